/* SPDX-License-Identifier: BSD-3-Clause */
/* The libraries that look like others: programs written for those, as they would be, and what they refuse. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <cufile.h>
#include <phoenix.h>

enum { FILE_BYTES = 1 << 20, BLOCK = 8192, BLOCKS = 64, THREADS = 8 };

static char path[] = "weir-shims-test-XXXXXX", want[FILE_BYTES], memory[FILE_BYTES];
static int file;

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < FILE_BYTES; i++)
		want[i] = (char)(i * 2654435761u >> 13);
	file = mkstemp(path);
	return file < 0 || write(file, want, FILE_BYTES) != FILE_BYTES;
}

static int tear_down(void **state)
{
	(void)state;
	close(file);
	unlink(path);
	return 0;
}

static void test_phoenix(void **state)
{
	phxfs_fileid_t fid = { .fd = file, .deviceID = 0 };
	void *target = NULL;
	ssize_t done = -77;

	(void)state;
	assert_int_equal(phxfs_open(0), 0);
	assert_int_equal(phxfs_open(0), 0); /* once more */
	assert_int_equal(phxfs_regmem(0, memory, FILE_BYTES, &target), 0);
	assert_non_null(target);
	assert_int_equal(pread(file, target, FILE_BYTES, 0), FILE_BYTES); /* as in listing 2 */
	assert_memory_equal(memory, want, FILE_BYTES);
	memset(memory, 0, FILE_BYTES);
	assert_int_equal(phxfs_read(fid, memory, 100, 5000, 3), 5000);
	assert_memory_equal(memory + 100, want + 3, 5000);
	assert_int_equal(phxfs_read(fid, target, 0, 4096, FILE_BYTES - 10), 10);
	assert_int_equal(phxfs_read_async(fid, memory + 8192, 8192, 8192, &done, NULL), 0);
	assert_int_equal(phxfs_close(0), 0);
	while (phxfs_deregmem(0, memory, FILE_BYTES) != 0)
		assert_int_equal(errno, EBUSY); /* as long as the request is under way */
	assert_int_equal(done, 8192);
	assert_int_equal(phxfs_close(0), 0);
	assert_memory_equal(memory + 8192, want + 8192, 8192);
}

static void test_phoenix_writes(void **state)
{
	char own[] = "weir-shims-own-XXXXXX", there[BLOCK];
	phxfs_fileid_t fid = { .fd = mkstemp(own), .deviceID = 0 };
	ssize_t done = -77;
	void *target;

	(void)state;
	memcpy(memory, want, FILE_BYTES);
	assert_int_equal(phxfs_open(0), 0);
	assert_int_equal(phxfs_regmem(0, memory, FILE_BYTES, &target), 0);
	assert_int_equal(phxfs_write(fid, memory, 4096, BLOCK, 0), BLOCK);
	assert_int_equal(phxfs_write_async(fid, memory, BLOCK, BLOCK, &done, NULL), 0);
	assert_int_equal(phxfs_close(0), 0); /* waits */
	assert_int_equal(done, BLOCK);
	assert_int_equal(pread(fid.fd, there, BLOCK, 0), BLOCK);
	assert_memory_equal(there, want + 4096, BLOCK);
	assert_int_equal(pread(fid.fd, there, BLOCK, BLOCK), BLOCK);
	assert_memory_equal(there, want, BLOCK);
	close(fid.fd);
	unlink(own);
}

#define refused(call, code)                                                                                  \
	do {                                                                                                 \
		errno = 0;                                                                                   \
		assert_int_equal(call, -1);                                                                  \
		assert_int_equal(errno, code);                                                               \
	} while (0)

/* The calls published since: six arguments, batches of device and plain memory, begun and waited for. */
static void test_phoenix_newer(void **state)
{
	static char plain[BLOCK];
	phxfs_io_req_t requests[4];
	phxfs_batch_t *batch;
	void *target;

	(void)state;
	assert_int_equal(phxfs_find_dev(0), 0);
	assert_int_equal(phxfs_find_dev(99), -1);
	assert_true(phxfs_get_page_size() > 0 && *phxfs_io_engine_name());
	assert_int_equal(phxfs_open(0), 0);
	assert_int_equal(phxfs_regmem(0, memory, FILE_BYTES, &target), 0);
	memset(memory, 0, FILE_BYTES);
	assert_int_equal(phxfs_read(file, 0, memory, 100, 5000, 3), 5000);
	assert_memory_equal(memory + 100, want + 3, 5000);
	requests[0] = (phxfs_io_req_t){ file, 0, memory, BLOCK, BLOCK, 2 * BLOCK, 0 };
	requests[1] = (phxfs_io_req_t){ file, -1, plain, 0, BLOCK, 3 * BLOCK, 0 };
	requests[2] = (phxfs_io_req_t){ file, 0, memory, 4 * BLOCK, BLOCK, BLOCK, 0 };
	assert_int_equal(phxfs_read_batch(requests, 3), 0);
	assert_memory_equal(memory + BLOCK, want + 2 * BLOCK, BLOCK);
	assert_memory_equal(plain, want + 3 * BLOCK, BLOCK);
	assert_memory_equal(memory + 4 * BLOCK, want + BLOCK, BLOCK);
	requests[1].f_offset = FILE_BYTES - 10;                            /* less than was asked for */
	requests[3] = (phxfs_io_req_t){ file, 7, memory, 0, BLOCK, 0, 0 }; /* a device that is not open */
	batch = phxfs_batch_submit_read(requests, 4);
	assert_non_null(batch);
	assert_int_equal(phxfs_batch_wait(batch), 2);
	assert_true(requests[0].result == BLOCK && requests[1].result == 10 && requests[3].result == -ENODEV);
	requests[1] =
		(phxfs_io_req_t){ 9999, 0, memory, BLOCK, BLOCK, 0, 0 }; /* no descriptor: it alone fails */
	assert_int_equal(phxfs_read_batch(requests, 3), 1);
	assert_true(requests[0].result == BLOCK && requests[1].result == -EBADF &&
		    requests[2].result == BLOCK);
	assert_int_equal(phxfs_batch_wait(phxfs_batch_submit_read(NULL, 0)), 0);
	assert_int_equal(phxfs_batch_wait(NULL), -EINVAL);
	assert_int_equal(phxfs_read_batch(NULL, 1), -EINVAL);
	assert_int_equal(phxfs_deregmem(0, memory, FILE_BYTES), 0);
	requests[0] =
		(phxfs_io_req_t){ file, 0, plain, 0, BLOCK, 0, 0 }; /* not registered, and waited for late */
	batch = phxfs_batch_submit_read(requests, 1);
	assert_int_equal(phxfs_close(0), 0);
	assert_int_equal(phxfs_batch_wait(batch), 0);
	assert_memory_equal(plain, want, BLOCK);
}

static void test_phoenix_refuses(void **state)
{
	phxfs_fileid_t fid = { .fd = file, .deviceID = 0 }, other = { .fd = file, .deviceID = 3 };
	ssize_t done;
	void *target;

	(void)state;
	refused(phxfs_open(-1), ENODEV);
	refused(phxfs_open(99), ENODEV);
	refused(phxfs_close(0), ENODEV);
	refused(phxfs_read(fid, memory, 0, 1, 0), ENODEV);
	assert_int_equal(phxfs_open(0), 0);
	refused(phxfs_regmem(0, NULL, 4096, &target), EINVAL);
	refused(phxfs_regmem(0, memory, 0, &target), EINVAL);
	refused(phxfs_regmem(2, memory, 4096, &target), ENODEV);
	assert_int_equal(phxfs_regmem(0, memory, 4096, &target), 0);
	refused(phxfs_regmem(0, memory, 4096, &target), EEXIST);
	refused(phxfs_deregmem(0, memory + 1, 4096), ENOENT);
	refused(phxfs_read(other, memory, 0, 1, 0), ENODEV);
	refused(phxfs_read(fid, memory, 0, -1, 0), EINVAL);
	refused(phxfs_read(fid, memory, 0, 1, -1), EINVAL);
	refused(phxfs_read((phxfs_fileid_t){ .fd = 9999 }, memory, 0, 1, 0), EBADF);
	refused(phxfs_read_async(fid, memory, 1, 0, NULL, NULL), EINVAL);
	refused(phxfs_read_async((phxfs_fileid_t){ .fd = 9999 }, memory, 1, 0, &done, NULL), EBADF);
	assert_int_equal(phxfs_deregmem(0, memory, 4096), 0);
	refused(phxfs_deregmem(0, memory, 4096), ENOENT);
	assert_int_equal(phxfs_close(0), 0);
}

static CUfileHandle_t register_file(int fd)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = fd };
	CUfileHandle_t handle = NULL;

	assert_int_equal(cuFileHandleRegister(&handle, &descr).err, CU_FILE_SUCCESS);
	return handle;
}

static void test_cufile(void **state)
{
	char own[] = "weir-shims-own-XXXXXX";
	size_t size = 3000;
	off_t offset = 5, at = 7;
	ssize_t done = -77;
	CUfileHandle_t handle, out;
	int fd = mkstemp(own);

	(void)state;
	memset(memory, 0, FILE_BYTES);
	assert_int_equal(cuFileDriverOpen().err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileUseCount(), 1);
	handle = register_file(file);
	out = register_file(fd);
	assert_int_equal(cuFileBufRegister(memory, FILE_BYTES / 2, 0).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileRead(handle, memory, 10000, 100, 4096), 10000);
	assert_memory_equal(memory + 4096, want + 100, 10000);
	assert_int_equal(cuFileRead(handle, memory + FILE_BYTES / 2, 100, FILE_BYTES - 50, 0),
			 50); /* not registered */
	assert_memory_equal(memory + FILE_BYTES / 2, want + FILE_BYTES - 50, 50);
	assert_int_equal(cuFileWrite(out, memory, 10000, 0, 4096), 10000);
	assert_int_equal(cuFileStreamRegister(NULL, 15).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileReadAsync(handle, memory, &size, &offset, &at, &done, NULL).err,
			 CU_FILE_SUCCESS);
	assert_int_equal(cuFileStreamDeregister(NULL).err, CU_FILE_SUCCESS);
	cuFileHandleDeregister(handle);
	assert_int_equal(cuFileDriverClose().err, CU_FILE_SUCCESS);
	assert_int_equal(done, 3000);
	assert_memory_equal(memory + 7, want + 5, 3000);
	assert_int_equal(pread(fd, memory, FILE_BYTES, 0), 10000);
	assert_memory_equal(memory, want + 100, 10000);
	cuFileHandleDeregister(out);
	close(fd);
	unlink(own);
}

static void test_cufile_batch(void **state)
{
	CUfileIOParams_t params[BLOCKS];
	CUfileIOEvents_t events[BLOCKS];
	CUfileBatchHandle_t batch;
	CUfileHandle_t handle;
	unsigned seen[BLOCKS] = { 0 }, reported = 0;

	(void)state;
	memset(memory, 0, FILE_BYTES);
	assert_int_equal(cuFileDriverOpen().err, CU_FILE_SUCCESS);
	handle = register_file(file);
	assert_int_equal(cuFileBufRegister(memory, FILE_BYTES, 0).err, CU_FILE_SUCCESS);
	for (size_t i = 0; i < BLOCKS; i++)
		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = handle,
						.opcode = CUFILE_READ,
						.cookie = &seen[i],
						.u.batch = { .devPtr_base = memory,
							     .file_offset = (off_t)((BLOCKS - 1 - i) * BLOCK),
							     .devPtr_offset = (off_t)(i * BLOCK),
							     .size = BLOCK } };
	assert_int_equal(cuFileBatchIOSetUp(&batch, BLOCKS).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileBatchIOSubmit(batch, BLOCKS / 2, params, 0).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileBatchIOSubmit(batch, BLOCKS / 2, params + BLOCKS / 2, 0).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileBatchIOSubmit(batch, 1, params, 0).err, CU_FILE_BATCH_FULL);
	while (reported < BLOCKS) {
		unsigned count = 7;

		assert_int_equal(cuFileBatchIOGetStatus(batch, 1, &count, events, NULL).err, CU_FILE_SUCCESS);
		assert_true(count >= 1 && count <= 7);
		for (unsigned i = 0; i < count; i++) {
			++*(unsigned *)events[i].cookie;
			assert_int_equal(events[i].status, CUFILE_COMPLETE);
			assert_int_equal(events[i].ret, BLOCK);
		}
		reported += count;
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		assert_int_equal(seen[i], 1);
		assert_memory_equal(memory + i * BLOCK, want + (BLOCKS - 1 - i) * BLOCK, BLOCK);
	}
	assert_int_equal(cuFileBatchIOSubmit(batch, BLOCKS, params, 0).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileBatchIOCancel(batch).err, CU_FILE_SUCCESS);
	reported = BLOCKS;
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, 1, &reported, events, &(struct timespec){ .tv_nsec = 1000 })
			.err,
		CU_FILE_SUCCESS);
	assert_int_equal(reported, 0);
	/* One of no bytes ends as the others do, though its memory is not registered. */
	assert_int_equal(cuFileBufDeregister(memory).err, CU_FILE_SUCCESS);
	params[1].u.batch.size = 0;
	assert_int_equal(cuFileBatchIOSubmit(batch, 2, params, 0).err, CU_FILE_SUCCESS);
	reported = 2;
	assert_int_equal(cuFileBatchIOGetStatus(batch, 2, &reported, events, NULL).err, CU_FILE_SUCCESS);
	assert_int_equal(reported, 2);
	assert_int_equal(events[0].ret + events[1].ret, BLOCK);
	cuFileBatchIODestroy(batch);
	cuFileHandleDeregister(handle);
	assert_int_equal(cuFileDriverClose().err, CU_FILE_SUCCESS);
}

static CUfileHandle_t shared_handle;

static void *read_some(void *argument)
{
	size_t me = (size_t)(uintptr_t)argument;
	ssize_t wrong = 0;

	for (size_t i = 0; i < 200; i++) {
		size_t block = (me * 31 + i) % (FILE_BYTES / BLOCK);

		wrong += cuFileRead(shared_handle, memory, BLOCK, (off_t)(block * BLOCK),
				    (off_t)(me * BLOCK)) != BLOCK;
		wrong += memcmp(memory + me * BLOCK, want + block * BLOCK, BLOCK) != 0;
	}
	return (void *)(uintptr_t)wrong;
}

static void test_cufile_threads(void **state)
{
	pthread_t threads[THREADS];
	void *wrong;

	(void)state;
	assert_int_equal(cuFileDriverOpen().err, CU_FILE_SUCCESS);
	shared_handle = register_file(file);
	assert_int_equal(cuFileBufRegister(memory, FILE_BYTES, 0).err, CU_FILE_SUCCESS);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_some, (void *)(uintptr_t)i), 0);
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	cuFileHandleDeregister(shared_handle);
	assert_int_equal(cuFileDriverClose().err, CU_FILE_SUCCESS);
}

static void test_cufile_refuses(void **state)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = file }, bad = descr;
	CUfileIOParams_t params = { .mode = CUFILE_BATCH,
				    .opcode = CUFILE_READ,
				    .u.batch = { .devPtr_base = memory, .size = 1 } };
	CUfileHandle_t handle = NULL, none = NULL;
	CUfileBatchHandle_t batch;
	CUfileIOEvents_t event;
	unsigned count = 1;
	int ends[2], version = 0;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(cuFileDriverClose().err, CU_FILE_DRIVER_NOT_INITIALIZED);
	assert_int_equal(cuFileDriverOpen().err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileHandleRegister(NULL, &descr).err, CU_FILE_INVALID_VALUE);
	bad.handle.fd = 9999;
	assert_int_equal(cuFileHandleRegister(&none, &bad).err, CU_FILE_INVALID_VALUE);
	bad.handle.fd = ends[0];
	assert_int_equal(cuFileHandleRegister(&none, &bad).err, CU_FILE_INVALID_FILE_TYPE);
	bad.type = CU_FILE_HANDLE_TYPE_USERSPACE_FS;
	assert_int_equal(cuFileHandleRegister(&none, &bad).err, CU_FILE_IO_NOT_SUPPORTED);
	assert_int_equal(cuFileHandleRegister(&handle, &descr).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileHandleRegister(&none, &descr).err, CU_FILE_HANDLE_ALREADY_REGISTERED);
	assert_int_equal(cuFileBufRegister(NULL, 4096, 0).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileBufRegister(memory, 4096, 0).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileBufRegister(memory, 4096, 0).err, CU_FILE_MEMORY_ALREADY_REGISTERED);
	assert_int_equal(cuFileBufDeregister(memory + 1).err, CU_FILE_MEMORY_NOT_REGISTERED);
	assert_int_equal(cuFileRead(&descr, memory, 1, 0, 0), -CU_FILE_HANDLE_NOT_REGISTERED);
	assert_int_equal(cuFileRead(handle, NULL, 1, 0, 0), -CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileRead(handle, memory, 1, -1, 0), -CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileReadAsync(handle, memory, NULL, NULL, NULL, NULL, NULL).err,
			 CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileBatchIOSetUp(&batch, 0).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileBatchIOSetUp(&batch, 1).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileBatchIOSubmit(batch, 1, &params, 0).err, CU_FILE_HANDLE_NOT_REGISTERED);
	params.fh = handle;
	assert_int_equal(cuFileBatchIOSubmit(batch, 1, &params, 1).err, CU_FILE_INVALID_VALUE);
	params.mode = 0;
	assert_int_equal(cuFileBatchIOSubmit(batch, 1, &params, 0).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileBatchIOGetStatus(batch, 2, &count, &event, NULL).err, CU_FILE_INVALID_VALUE);
	cuFileBatchIODestroy(batch);
	cuFileHandleDeregister(handle);
	assert_int_equal(cuFileGetVersion(&version).err, CU_FILE_SUCCESS);
	assert_true(version >= 1000);
	assert_int_equal(cuFileDriverClose().err, CU_FILE_SUCCESS);
	assert_string_equal(CUFILE_ERRSTR(-CU_FILE_INVALID_VALUE), "an argument cannot be");
	assert_string_equal(CUFILE_ERRSTR(4711), "an unknown error");
	assert_true(IS_CUFILE_ERR(-CU_FILE_INVALID_VALUE) && !IS_CUFILE_ERR(-1));
	close(ends[0]);
	close(ends[1]);
}

/* As KvikIO does when it is loaded: from dlsym() on, its calls in its order; cuFile closes and opens again.
 */
static void test_cufile_kvikio(void **state)
{
	static const char *const names[] = {
		"cuFileHandleRegister",
		"cuFileHandleDeregister",
		"cuFileRead",
		"cuFileWrite",
		"cuFileBufRegister",
		"cuFileBufDeregister",
		"cuFileDriverOpen",
		"cuFileDriverClose",
		"cuFileDriverGetProperties",
		"cuFileDriverSetPollMode",
		"cuFileDriverSetMaxCacheSize",
		"cuFileDriverSetMaxPinnedMemSize",
		"cuFileBatchIOSetUp",
		"cuFileBatchIOSubmit",
		"cuFileBatchIOGetStatus",
		"cuFileBatchIOCancel",
		"cuFileBatchIODestroy",
		"cuFileReadAsync",
		"cuFileWriteAsync",
		"cuFileStreamRegister",
		"cuFileStreamDeregister",
		"cuFileGetVersion",
	};
	CUfileDrvProps_t props;
	CUfileHandle_t handle;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_non_null(dlsym(RTLD_DEFAULT, names[i]));
	for (int round = 0; round < 2; round++) {
		assert_int_equal(cuFileDriverOpen().err, CU_FILE_SUCCESS);
		memset(&props, 0xff, sizeof(props));
		assert_int_equal(cuFileDriverGetProperties(&props).err, CU_FILE_SUCCESS);
		assert_true(props.nvfs.major_version == 0 &&
			    props.nvfs.max_direct_io_size == (round ? 8192 : 16384));
		assert_true(props.fflags & 1U << CU_FILE_BATCH_IO_SUPPORTED);
		assert_int_equal(cuFileDriverSetPollMode(true, 8).err, CU_FILE_SUCCESS);
		assert_int_equal(cuFileDriverSetMaxCacheSize(65536).err, CU_FILE_SUCCESS);
		assert_int_equal(cuFileDriverSetMaxPinnedMemSize(SIZE_MAX).err, CU_FILE_SUCCESS);
		assert_int_equal(cuFileDriverSetMaxDirectIOSize(8192).err, CU_FILE_SUCCESS); /* DeepSpeed */
		assert_int_equal(cuFileDriverGetProperties(&props).err, CU_FILE_SUCCESS);
		assert_true(props.max_device_cache_size == 65536 && props.nvfs.poll_thresh_size == 8);
		assert_true(props.nvfs.dcontrolflags & 1U << CU_FILE_USE_POLL_MODE);
		handle = register_file(file);
		memset(memory, 0, BLOCK);
		assert_int_equal(cuFileRead(handle, memory, BLOCK, 0, 0), BLOCK);
		assert_memory_equal(memory, want, BLOCK);
		cuFileHandleDeregister(handle);
		assert_int_equal(cuFileDriverClose().err, CU_FILE_SUCCESS);
		assert_int_equal(cuFileUseCount(), 0);
	}
}

/* As fio's libcufile engine does: the file and the buffer per thread, requests, and everything back in the
 * other order. */
static void test_cufile_fio(void **state)
{
	CUfileHandle_t handle;

	(void)state;
	assert_int_equal(cuFileDriverOpen().err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileBufRegister(memory, FILE_BYTES, 0).err, CU_FILE_SUCCESS);
	handle = register_file(file);
	for (off_t at = 0; at < FILE_BYTES; at += BLOCK)
		assert_int_equal(cuFileRead(handle, memory, BLOCK, at, at), BLOCK);
	assert_memory_equal(memory, want, FILE_BYTES);
	cuFileHandleDeregister(handle);
	assert_int_equal(cuFileBufDeregister(memory).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileDriverClose().err, CU_FILE_SUCCESS);
}

/* Without cuFileDriverOpen(), then closed, and on with the same handle. */
static void test_cufile_again(void **state)
{
	CUfileHandle_t handle = register_file(file);
	CUfileBatchHandle_t batch;
	size_t size = BLOCK;
	off_t zero = 0;
	ssize_t done = -77;

	(void)state;
	assert_int_equal(cuFileUseCount(), 1);
	for (int round = 0; round < 3; round++) {
		memset(memory, 0, BLOCK);
		assert_int_equal(cuFileRead(handle, memory, BLOCK, BLOCK, 0), BLOCK);
		assert_memory_equal(memory, want + BLOCK, BLOCK);
		assert_int_equal(cuFileDriverClose().err, CU_FILE_SUCCESS);
		assert_int_equal(cuFileDriverClose().err, CU_FILE_DRIVER_NOT_INITIALIZED);
	}
	assert_int_equal(cuFileReadAsync(handle, memory, &size, &zero, &zero, &done, NULL).err,
			 CU_FILE_SUCCESS);
	assert_int_equal(cuFileDriverClose().err, CU_FILE_SUCCESS);
	assert_int_equal(done, BLOCK);
	assert_int_equal(cuFileBatchIOSetUp(&batch, 1).err, CU_FILE_SUCCESS);
	cuFileBatchIODestroy(batch);
	cuFileHandleDeregister(handle);
	assert_int_equal(cuFileDriverClose().err, CU_FILE_SUCCESS);
}

static void test_cufile_parameters(void **state)
{
	size_t sizes[2] = { 4, 64 }, counts[2] = { 8, 2 }, value = 0, least = 0, most = 0, got[2][2];
	char text[64];
	bool yes = false;

	(void)state;
	assert_int_equal(cuFileSetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 64).err,
			 CU_FILE_SUCCESS);
	assert_int_equal(cuFileGetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &value).err,
			 CU_FILE_SUCCESS);
	assert_int_equal(value, 64);
	assert_int_equal(
		cuFileGetParameterMinMaxValue(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &least, &most).err,
		CU_FILE_SUCCESS);
	assert_true(least == 1 && most >= 64);
	assert_int_equal(cuFileSetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, most + 1).err,
			 CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileSetParameterSizeT((CUFileSizeTConfigParameter_t)99, 1).err,
			 CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileSetParameterBool(CUFILE_PARAM_USE_PCIP2PDMA, true).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileGetParameterBool(CUFILE_PARAM_USE_PCIP2PDMA, &yes).err, CU_FILE_SUCCESS);
	assert_true(yes);
	assert_int_equal(cuFileGetParameterBool((CUFileBoolConfigParameter_t)99, &yes).err,
			 CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileSetParameterString(CUFILE_PARAM_LOG_DIR, "/var/log").err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileGetParameterString(CUFILE_PARAM_LOG_DIR, text, sizeof(text)).err,
			 CU_FILE_SUCCESS);
	assert_string_equal(text, "/var/log");
	assert_int_equal(cuFileGetParameterString(CUFILE_PARAM_LOG_DIR, text, 8).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileSetParameterPosixPoolSlabArray(sizes, counts, 2).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileGetParameterPosixPoolSlabArray(got[0], got[1], 3).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileGetParameterPosixPoolSlabArray(got[0], got[1], 2).err, CU_FILE_SUCCESS);
	assert_memory_equal(got[0], sizes, sizeof(sizes));
	assert_int_equal(cuFileDriverOpen().err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileSetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 1).err,
			 CU_FILE_DRIVER_ALREADY_OPEN);
	assert_int_equal(cuFileSetParameterPosixPoolSlabArray(sizes, counts, 2).err,
			 CU_FILE_DRIVER_ALREADY_OPEN);
	assert_int_equal(cuFileDriverSetMaxDirectIOSize(6).err,
			 CU_FILE_DRIVER_UNSUPPORTED_LIMIT); /* no multiple of 4 KiB */
	assert_int_equal(cuFileDriverGetProperties(NULL).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileGetBARSizeInKB(0, &value).err,
			 CU_FILE_PLATFORM_NOT_SUPPORTED); /* the cpu is no PCI function */
	assert_int_equal(cuFileGetBARSizeInKB(1, &value).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileDriverClose().err, CU_FILE_SUCCESS);
}

static void test_cufile_statistics(void **state)
{
	CUfileStatsLevel3_t three;
	CUfileStatsLevel2_t two;
	CUfileStatsLevel1_t one;
	CUfileHandle_t handle;
	int level = -1;

	(void)state;
	assert_int_equal(cuFileStatsStart().err, CU_FILE_DRIVER_NOT_INITIALIZED);
	assert_int_equal(cuFileSetStatsLevel(4).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileDriverOpen().err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileGetStatsL1(&one).err, CU_FILE_INVALID_VALUE); /* the level is 0 */
	assert_int_equal(cuFileSetStatsLevel(2).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileGetStatsLevel(&level).err, CU_FILE_SUCCESS);
	assert_int_equal(level, 2);
	handle = register_file(file); /* before it is counted */
	assert_int_equal(cuFileStatsStart().err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileRead(handle, memory, BLOCK, 0, 0), BLOCK);
	assert_int_equal(cuFileRead(handle, memory, 1024, 0, 0), 1024);
	assert_int_equal(cuFileRead(handle, NULL, 1, 0, 0), -CU_FILE_INVALID_VALUE);
	cuFileHandleDeregister(handle);
	assert_int_equal(cuFileStatsStop().err, CU_FILE_SUCCESS);
	cuFileHandleDeregister(handle); /* no longer counted */
	assert_int_equal(cuFileGetStatsL1(&one).err, CU_FILE_SUCCESS);
	assert_true(one.read_ops.ok == 2 && one.read_ops.err == 1 && one.read_bytes == BLOCK + 1024 &&
		    one.write_ops.ok == 0);
	assert_true(one.hdl_register_ops.ok == 0 && one.hdl_deregister_ops.ok == 1 &&
		    one.hdl_deregister_ops.err == 0);
	assert_int_equal(cuFileGetStatsL2(&two).err, CU_FILE_SUCCESS);
	assert_true(two.read_size_kb_hist[0] == 1 && two.read_size_kb_hist[3] == 1);
	assert_int_equal(cuFileGetStatsL3(&three).err, CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileSetStatsLevel(3).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileGetStatsL3(&three).err, CU_FILE_SUCCESS);
	assert_true(three.num_gpus == 1 && three.per_gpu_stats[0].n_total_reads == 2);
	assert_int_equal(cuFileStatsReset().err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileGetStatsL1(&one).err, CU_FILE_SUCCESS);
	assert_int_equal(one.read_ops.ok, 0);
	assert_int_equal(cuFileSetStatsLevel(0).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileDriverClose().err, CU_FILE_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_phoenix),
		cmocka_unit_test(test_phoenix_writes),
		cmocka_unit_test(test_phoenix_newer),
		cmocka_unit_test(test_phoenix_refuses),
		cmocka_unit_test(test_cufile),
		cmocka_unit_test(test_cufile_batch),
		cmocka_unit_test(test_cufile_threads),
		cmocka_unit_test(test_cufile_refuses),
		cmocka_unit_test(test_cufile_kvikio),
		cmocka_unit_test(test_cufile_fio),
		cmocka_unit_test(test_cufile_again),
		cmocka_unit_test(test_cufile_parameters),
		cmocka_unit_test(test_cufile_statistics),
	};

	setenv("WEIR_BACKEND", "cpu", 1); /* the memory is this program's own */
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
