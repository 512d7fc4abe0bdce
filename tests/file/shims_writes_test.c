/* SPDX-License-Identifier: BSD-3-Clause */
/* The libraries that look like others: batches that write, edges of registered memory, and all that is
 * counted. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <cufile.h>
#include <phoenix.h>

enum { BYTES = 256 << 10, BLOCK = 8192 };

static char path[] = "weir-shims-own-XXXXXX", want[BYTES], memory[BYTES] __attribute__((aligned(4096))),
	    there[BYTES];
static int file, read_only;

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < BYTES; i++)
		want[i] = (char)(i * 2654435761u >> 13);
	file = mkstemp(path);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	return file < 0 || read_only < 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(file);
	close(read_only);
	unlink(path);
	return 0;
}

/* An empty file, and memory that is to go to it. */
static int begin(void **state)
{
	(void)state;
	memcpy(memory, want, BYTES);
	memset(there, 0, BYTES);
	return ftruncate(file, 0);
}

static off_t file_bytes(void)
{
	struct stat about;

	assert_int_equal(fstat(file, &about), 0);
	return about.st_size;
}

static void test_phoenix_batches_write(void **state)
{
	static char plain[BLOCK];
	phxfs_io_req_t requests[3];
	void *target;

	(void)state;
	memcpy(plain, want + 3, BLOCK);
	assert_int_equal(phxfs_open(0), 0);
	assert_int_equal(phxfs_regmem(0, memory, BYTES, &target), 0);
	requests[0] = (phxfs_io_req_t){ file, 0, memory, 4096, BLOCK, 0, 0 };
	requests[1] = (phxfs_io_req_t){ file, -1, plain, 8, BLOCK - 8, BLOCK, 0 };
	requests[2] = (phxfs_io_req_t){ file, 0, memory, 0, BLOCK, 2 * BLOCK, 0 };
	assert_int_equal(phxfs_write_batch(requests, 3), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(requests[i].result, requests[i].nbytes);
	assert_int_equal(file_bytes(), 3 * BLOCK);
	assert_int_equal(pread(file, there, 3 * BLOCK, 0), 3 * BLOCK);
	assert_memory_equal(there, want + 4096, BLOCK);
	assert_memory_equal(there + BLOCK, want + 11, BLOCK - 8);
	assert_memory_equal(there + 2 * BLOCK, want, BLOCK);
	requests[0].fd = requests[1].fd = read_only; /* each by itself: the third is written */
	requests[2].f_offset = 3 * BLOCK;
	assert_int_equal(phxfs_write_batch(requests, 3), 2);
	assert_int_equal(requests[0].result, -EBADF);
	assert_int_equal(requests[1].result, -EBADF);
	assert_int_equal(requests[2].result, BLOCK);
	assert_int_equal(file_bytes(), 4 * BLOCK);
	requests[0] = (phxfs_io_req_t){ file, 0, memory, -1, BLOCK, 0, 0 };
	requests[1] = (phxfs_io_req_t){ file, 0, memory, 0, BLOCK, -1, 0 };
	requests[2] = (phxfs_io_req_t){ file, 99, memory, 0, BLOCK, 0, 0 };
	assert_int_equal(phxfs_read_batch(requests, 3), 3);
	assert_int_equal(requests[0].result, -EINVAL);
	assert_int_equal(requests[1].result, -EINVAL);
	assert_int_equal(requests[2].result, -ENODEV);
	assert_int_equal(phxfs_write(file, 0, memory, 100, 50, 10), 50);
	assert_int_equal(pread(file, there, 60, 0), 60);
	assert_memory_equal(there + 10, want + 100, 50);
	assert_int_equal(phxfs_deregmem(0, memory, BYTES), 0);
	assert_int_equal(phxfs_close(0), 0);
}

static CUfileHandle_t register_file(int fd)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = fd };
	CUfileHandle_t handle = NULL;

	assert_int_equal(cuFileHandleRegister(&handle, &descr).err, CU_FILE_SUCCESS);
	return handle;
}

static CUfileIOParams_t request_of(CUfileHandle_t handle, int opcode, size_t bytes, off_t at, off_t offset)
{
	return (CUfileIOParams_t){ .mode = CUFILE_BATCH,
				   .fh = handle,
				   .opcode = opcode == CUFILE_READ ? CUFILE_READ : CUFILE_WRITE,
				   .u.batch = { .devPtr_base = memory,
						.devPtr_offset = at,
						.file_offset = offset,
						.size = bytes } };
}

/* Takes @count ended requests out of the batch, all of which moved @bytes. */
static void take(CUfileBatchHandle_t batch, unsigned count, size_t bytes)
{
	CUfileIOEvents_t events[4];
	unsigned got = count;

	assert_int_equal(cuFileBatchIOGetStatus(batch, count, &got, events, NULL).err, CU_FILE_SUCCESS);
	assert_int_equal(got, count);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(events[i].status, CUFILE_COMPLETE);
		assert_int_equal(events[i].ret, bytes);
	}
}

static void test_cufile_batches_write(void **state)
{
	CUfileHandle_t out, in;
	CUfileIOParams_t params[3];
	CUfileBatchHandle_t batch;

	(void)state;
	assert_int_equal(cuFileDriverOpen().err, CU_FILE_SUCCESS);
	out = register_file(file);
	in = register_file(read_only);
	assert_int_equal(cuFileBatchIOSetUp(&batch, 2).err, CU_FILE_SUCCESS);
	params[0] = request_of(out, CUFILE_WRITE, BLOCK, 4096, BLOCK);
	params[1] = request_of(out, CUFILE_WRITE, BLOCK, 0, 0);
	params[2] = request_of(out, CUFILE_WRITE, BLOCK, 0, 2 * BLOCK);
	assert_int_equal(cuFileBatchIOSubmit(batch, 3, params, 0).err, CU_FILE_BATCH_FULL);
	params[1].fh = in;
	assert_int_equal(cuFileBatchIOSubmit(batch, 2, params, 0).err, CU_FILE_BATCH_SUBMIT_FAILED);
	params[1].fh = out;
	params[1].u.batch.file_offset = -1;
	assert_int_equal(cuFileBatchIOSubmit(batch, 2, params, 0).err, CU_FILE_INVALID_VALUE);
	params[1].u.batch.file_offset = 0;
	params[1].u.batch.devPtr_offset = -1;
	assert_int_equal(cuFileBatchIOSubmit(batch, 2, params, 0).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(file_bytes(), 0); /* none of these was begun, and none has a place */
	params[1].u.batch.devPtr_offset = 0;
	assert_int_equal(cuFileBatchIOSubmit(batch, 2, params, 0).err, CU_FILE_SUCCESS);
	take(batch, 2, BLOCK);
	assert_int_equal(pread(file, there, BYTES, 0), 2 * BLOCK);
	assert_memory_equal(there, want, BLOCK);
	assert_memory_equal(there + BLOCK, want + 4096, BLOCK);
	cuFileBatchIODestroy(batch);
	assert_int_equal(cuFileWrite(in, memory, 10, 0, 0), -1);
	assert_int_equal(errno, EBADF);
	cuFileHandleDeregister(out);
	cuFileHandleDeregister(in);
	assert_int_equal(cuFileDriverClose().err, CU_FILE_SUCCESS);
}

/* What reaches past what is registered is memory of this one time; what ends with it is not. */
static void test_edges_of_registered_memory(void **state)
{
	CUfileHandle_t handle;

	(void)state;
	assert_int_equal(pwrite(file, want, BYTES, 0), BYTES);
	memset(memory, 0, BYTES);
	assert_int_equal(cuFileDriverOpen().err, CU_FILE_SUCCESS);
	handle = register_file(file);
	assert_int_equal(cuFileBufRegister(memory + 4096, BLOCK, 0).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileRead(handle, memory + 4096, BLOCK, 0, 0), BLOCK);
	assert_memory_equal(memory + 4096, want, BLOCK);
	assert_int_equal(cuFileRead(handle, memory + 4096, 100, 7, BLOCK - 100), 100);
	assert_memory_equal(memory + 4096 + BLOCK - 100, want + 7, 100);
	assert_int_equal(cuFileRead(handle, memory + 4096, 101, 9, BLOCK - 100), 101);
	assert_memory_equal(memory + 4096 + BLOCK - 100, want + 9, 101);
	assert_int_equal(cuFileRead(handle, memory, BLOCK, 11, 0), BLOCK);
	assert_memory_equal(memory, want + 11, BLOCK);
	assert_int_equal(cuFileRead(handle, memory + 4096, 100, 13, BLOCK + 4096), 100);
	assert_memory_equal(memory + BLOCK + 2 * 4096, want + 13, 100);
	assert_int_equal(cuFileBufDeregister(memory + 4096).err, CU_FILE_SUCCESS);
	cuFileHandleDeregister(handle);
	assert_int_equal(cuFileDriverClose().err, CU_FILE_SUCCESS);
}

/* One of each call that is counted, and one of some that fails. */
static void call_all(CUfileHandle_t handle)
{
	CUfileIOParams_t params[2] = { request_of(handle, CUFILE_WRITE, BLOCK, 0, 0),
				       request_of(handle, CUFILE_READ, 2 * BLOCK, 0, 0) };
	CUfileBatchHandle_t batch;

	assert_int_equal(cuFileBufRegister(memory, BYTES, 0).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileBufRegister(memory, BYTES, 0).err, CU_FILE_MEMORY_ALREADY_REGISTERED);
	assert_int_equal(cuFileWrite(handle, memory, 1000, 0, 0), 1000);
	assert_int_equal(cuFileWrite(handle, memory, 65536, 0, 0), 65536);
	assert_int_equal(cuFileWrite(handle, memory, 1, -1, 0), -CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileRead(handle, memory, 2048, 0, 0), 2048);
	assert_int_equal(cuFileBatchIOSetUp(&batch, 0).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileBatchIOSetUp(&batch, 1).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileBatchIOSubmit(batch, 2, params, 0).err, CU_FILE_BATCH_FULL);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(cuFileBatchIOSubmit(batch, 1, params + i, 0).err, CU_FILE_SUCCESS);
		take(batch, 1, (i + 1) * BLOCK);
	}
	assert_int_equal(cuFileBatchIOCancel(batch).err, CU_FILE_SUCCESS);
	cuFileBatchIODestroy(batch); /* cancels, too */
	assert_int_equal(cuFileBufDeregister(memory).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileBufDeregister(memory).err, CU_FILE_MEMORY_NOT_REGISTERED);
}

#define counted(of, good, bad)                                                                               \
	do {                                                                                                 \
		assert_int_equal((of).ok, good);                                                             \
		assert_int_equal((of).err, bad);                                                             \
	} while (0)

static void check_counts(const CUfileStatsLevel1_t *one)
{
	counted(one->write_ops, 2, 1);
	counted(one->read_ops, 1, 0);
	counted(one->buf_register_ops, 1, 1);
	counted(one->buf_deregister_ops, 1, 1);
	counted(one->batch_setup_ops, 1, 1);
	counted(one->batch_submit_ops, 2, 1);
	counted(one->batch_complete_ops, 2, 0);
	counted(one->batch_cancel_ops, 2, 0);
	counted(one->batch_destroy_ops, 1, 0);
	assert_int_equal(one->write_bytes, 66536);
	assert_int_equal(one->read_bytes, 2048);
	assert_int_equal(one->batch_write_bytes, BLOCK);
	assert_int_equal(one->batch_read_bytes, 2 * BLOCK);
	if (one->write_lat_sum_us) {
		assert_int_equal(one->write_bw_bytes_per_sec, 66536 * 1000000ull / one->write_lat_sum_us);
		assert_int_equal(one->write_ops_per_sec, 2 * 1000000ull / one->write_lat_sum_us);
		assert_int_equal(one->write_lat_avg_us, one->write_lat_sum_us / 2);
	}
	if (one->read_lat_sum_us) {
		assert_int_equal(one->read_bw_bytes_per_sec, 2048 * 1000000ull / one->read_lat_sum_us);
		assert_int_equal(one->read_lat_avg_us, one->read_lat_sum_us);
	}
}

static void test_all_that_is_counted(void **state)
{
	CUfileStatsLevel3_t three;
	CUfilePerGpuStats_t *gpu = &three.per_gpu_stats[0];
	CUfileHandle_t handle;

	(void)state;
	assert_int_equal(cuFileDriverOpen().err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileSetStatsLevel(1).err, CU_FILE_SUCCESS);
	handle = register_file(file);
	assert_int_equal(cuFileStatsStart().err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileWrite(handle, memory, 4096, 0, 0), 4096);
	assert_int_equal(cuFileSetStatsLevel(3).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileGetStatsL3(&three).err, CU_FILE_SUCCESS);
	assert_int_equal(three.detailed.basic.write_ops.ok, 1);
	for (unsigned i = 0; i < 32; i++) /* sizes are of the second level */
		assert_int_equal(three.detailed.write_size_kb_hist[i], 0);
	assert_int_equal(cuFileStatsReset().err, CU_FILE_SUCCESS);
	call_all(handle);
	assert_int_equal(cuFileStatsStop().err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileWrite(handle, memory, 1000, 0, 0), 1000); /* no longer counted */
	assert_int_equal(cuFileGetStatsL3(&three).err, CU_FILE_SUCCESS);
	check_counts(&three.detailed.basic);
	for (unsigned i = 0; i < 32; i++) {
		assert_int_equal(three.detailed.write_size_kb_hist[i], i == 0 || i == 6);
		assert_int_equal(three.detailed.read_size_kb_hist[i], i == 1);
	}
	assert_int_equal(gpu->writes_bytes, 66536);
	assert_int_equal(gpu->read_bytes, 2048);
	assert_true(gpu->n_total_writes == 2 && gpu->n_writes_err == 1);
	assert_true(gpu->n_total_reads == 1 && gpu->n_reads_err == 0);
	assert_int_equal(gpu->write_duration_us, three.detailed.basic.write_lat_sum_us);
	assert_int_equal(gpu->read_duration_us, three.detailed.basic.read_lat_sum_us);
	assert_int_equal(gpu->write_bw_bytes_per_sec, three.detailed.basic.write_bw_bytes_per_sec);
	assert_true(gpu->n_mmap == 2 && gpu->n_mmap_ok == 1 && gpu->n_mmap_err == 1 && gpu->n_mmap_free == 1);
	assert_int_equal(cuFileSetStatsLevel(0).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileStatsStart().err, CU_FILE_SUCCESS); /* of nothing, at level 0 */
	assert_int_equal(cuFileWrite(handle, memory, 10, 0, 0), 10);
	assert_int_equal(cuFileSetStatsLevel(1).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileGetStatsL3(&three).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileGetStatsL1(&three.detailed.basic).err, CU_FILE_SUCCESS);
	check_counts(&three.detailed.basic);
	assert_int_equal(cuFileSetStatsLevel(0).err, CU_FILE_SUCCESS);
	cuFileHandleDeregister(handle);
	assert_int_equal(cuFileDriverClose().err, CU_FILE_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_phoenix_batches_write, begin),
		cmocka_unit_test_setup(test_cufile_batches_write, begin),
		cmocka_unit_test_setup(test_edges_of_registered_memory, begin),
		cmocka_unit_test_setup(test_all_that_is_counted, begin),
	};

	setenv("WEIR_BACKEND", "cpu", 1); /* the memory is this program's own */
	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("shims_writes", tests, set_up, tear_down);
}
