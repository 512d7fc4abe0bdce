/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libraries that look like others: requests that fail behind their submission, system calls that do less
 * than they were asked for, ends of every limit, and that nothing stays of what was refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <cufile.h>
#include <phoenix.h>

#include "../rig/leaks.h"

enum { BYTES = 256 << 10, BLOCK = 8192, TEXT = 4096, SLABS = 16 };

#define SECOND_NS ((uint64_t)1000000000)

static char want[BYTES], memory[BYTES] __attribute__((aligned(4096))), there[BYTES];
static char path[] = "weir-shims-edges-XXXXXX";
static int file, read_only, write_only;

/* What pread() and pwrite() do: @most bytes at once, every other call interrupted, nothing from byte @bad on.
 * 0: as the system. */
static struct limits {
	size_t most;
	bool interrupted;
	off_t bad;
	unsigned calls;
} limits;

static atomic_bool held;           /* no call moves anything */
static atomic_ullong pretended_ns; /* a clock that sleeping alone moves; 0: the machine's */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	uint64_t now = atomic_load(&pretended_ns);

	if (!now)
		return (int)syscall(SYS_clock_gettime, clock, time);
	*time = (struct timespec){ .tv_sec = (time_t)(now / SECOND_NS), .tv_nsec = (long)(now % SECOND_NS) };
	return 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	if (!atomic_load(&pretended_ns))
		return (int)syscall(SYS_nanosleep, time, left);
	atomic_fetch_add(&pretended_ns, (uint64_t)time->tv_sec * SECOND_NS + (uint64_t)time->tv_nsec);
	return 0;
}

static ssize_t moved(long call, int fd, void *at, size_t bytes, off_t offset)
{
	while (atomic_load(&held))
		sched_yield();
	limits.calls++;
	if (limits.interrupted && limits.calls % 2) {
		errno = EINTR;
		return -1;
	}
	if (limits.bad && offset >= limits.bad) {
		errno = EIO;
		return -1;
	}
	if (limits.most && bytes > limits.most)
		bytes = limits.most;
	return syscall(call, fd, at, bytes, offset);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
	return moved(SYS_pread64, fd, to, bytes, offset);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
	return moved(SYS_pwrite64, fd, (void *)(uintptr_t)from, bytes, offset);
}

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < BYTES; i++)
		want[i] = (char)(i * 2654435761u >> 13);
	file = mkstemp(path);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	write_only = open(path, O_WRONLY | O_CLOEXEC);
	return file < 0 || read_only < 0 || write_only < 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(file);
	close(read_only);
	close(write_only);
	unlink(path);
	return 0;
}

static int begin(void **state)
{
	(void)state;
	limits = (struct limits){ .calls = 0 };
	memset(there, 0, BYTES);
	memcpy(memory, want, BYTES);
	return ftruncate(file, 0) || pwrite(file, want, BYTES, 0) != BYTES;
}

static void good(CUfileError_t error)
{
	assert_int_equal(error.err, CU_FILE_SUCCESS);
}

static CUfileHandle_t register_file(int fd)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD, .handle.fd = fd };
	CUfileHandle_t handle = NULL;

	good(cuFileHandleRegister(&handle, &descr));
	return handle;
}

static CUfileIOParams_t write_of(CUfileHandle_t handle, off_t offset, void *cookie)
{
	return (CUfileIOParams_t){ .mode = CUFILE_BATCH,
				   .fh = handle,
				   .opcode = CUFILE_WRITE,
				   .cookie = cookie,
				   .u.batch = {
					   .devPtr_base = memory, .file_offset = offset, .size = BLOCK } };
}

/* No file may be longer than @bytes. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* One request of a batch fails when it is done: it alone is told as failed, with its error, and counted so.
 */
static void test_a_request_of_a_batch_fails(void **state)
{
	CUfileStatsLevel1_t one;
	CUfileIOParams_t params[3];
	CUfileIOEvents_t events[3];
	CUfileBatchHandle_t batch;
	CUfileHandle_t handle;
	unsigned got = 3, seen = 0;
	char cookies[3];

	(void)state;
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	good(cuFileDriverOpen());
	good(cuFileSetStatsLevel(1));
	handle = register_file(file);
	good(cuFileStatsReset());
	good(cuFileStatsStart());
	for (unsigned i = 0; i < 3; i++)
		params[i] = write_of(handle, i == 1 ? (off_t)BYTES : (off_t)i * BLOCK, &cookies[i]);
	good(cuFileBatchIOSetUp(&batch, 3));
	limit_files(BYTES);
	good(cuFileBatchIOSubmit(batch, 3, params, 0));
	good(cuFileBatchIOGetStatus(batch, 3, &got, events, NULL));
	assert_int_equal(got, 3);
	for (unsigned i = 0; i < 3; i++) {
		bool bad = events[i].cookie == &cookies[1];

		assert_int_equal(events[i].status, bad ? CUFILE_FAILED : CUFILE_COMPLETE);
		assert_int_equal((ssize_t)events[i].ret, bad ? -EFBIG : BLOCK);
		seen |= 1u << ((char *)events[i].cookie - cookies);
	}
	assert_int_equal(seen, 7);
	assert_int_equal(cuFileWrite(handle, memory, BLOCK, BYTES, 0), -1);
	assert_int_equal(errno, EFBIG);
	limit_files(RLIM_INFINITY);
	good(cuFileBatchIOSubmit(batch, 3, params, 0)); /* its places are free again */
	got = 3;
	good(cuFileBatchIOGetStatus(batch, 3, &got, events, NULL));
	assert_int_equal(got, 3);
	cuFileBatchIODestroy(batch);
	good(cuFileGetStatsL1(&one));
	assert_true(one.batch_complete_ops.ok == 5 && one.batch_complete_ops.err == 1);
	assert_int_equal(one.batch_write_bytes, 5 * BLOCK);
	assert_true(one.write_ops.ok == 0 && one.write_ops.err == 1 && one.write_bytes == 0);
	good(cuFileStatsStop());
	good(cuFileSetStatsLevel(0));
	cuFileHandleDeregister(handle);
	good(cuFileDriverClose());
}

/* What a call says is cuFile's code for it, and not another error's. */
static void test_codes_of_errors(void **state)
{
	CUfileHandle_t in, out;
	size_t size = 10;
	off_t zero = 0, negative = -1;
	ssize_t done = -77;

	(void)state;
	good(cuFileDriverOpen());
	in = register_file(read_only);
	out = register_file(write_only);
	assert_int_equal(cuFileReadAsync(out, memory, &size, &zero, &zero, &done, NULL).err,
			 CU_FILE_INVALID_FILE_OPEN_FLAG);
	assert_int_equal(cuFileWriteAsync(in, memory, &size, &zero, &zero, &done, NULL).err,
			 CU_FILE_INVALID_FILE_OPEN_FLAG);
	assert_int_equal(cuFileReadAsync(in, memory, &size, &negative, &zero, &done, NULL).err,
			 CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileReadAsync(in, memory, &size, &zero, &negative, &done, NULL).err,
			 CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileReadAsync(&size, memory, &size, &zero, &zero, &done, NULL).err,
			 CU_FILE_HANDLE_NOT_REGISTERED);
	assert_int_equal(done, -77);
	assert_int_equal(cuFileRead(out, memory, 10, 0, 0), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(cuFileRead(in, memory, 10, 0, -1), -CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileBufRegister(memory, SIZE_MAX, 0).err, CU_FILE_INVALID_VALUE);
	cuFileHandleDeregister(in);
	cuFileHandleDeregister(out);
	good(cuFileDriverClose());
}

/* A file's handle goes by itself, whichever it is; the driver is open until the last user has closed it. */
static void test_handles_and_users(void **state)
{
	const int files[3] = { file, read_only, write_only };
	CUfileHandle_t handles[3];

	(void)state;
	for (unsigned gone = 0; gone < 3; gone++) {
		good(cuFileDriverOpen());
		good(cuFileDriverOpen());
		assert_int_equal(cuFileUseCount(), 2);
		good(cuFileBufRegister(memory, 4096, 0));
		good(cuFileDriverClose());
		assert_int_equal(cuFileUseCount(), 1);
		assert_int_equal(cuFileBufRegister(memory, 4096, 0).err, CU_FILE_MEMORY_ALREADY_REGISTERED);
		for (unsigned i = 0; i < 3; i++)
			handles[i] = register_file(files[i]);
		cuFileHandleDeregister(handles[gone]);
		for (unsigned i = 0; i < 3; i++) {
			ssize_t bytes = files[i] == write_only ? cuFileWrite(handles[i], want, 10, 0, 0)
							       : cuFileRead(handles[i], memory, 10, 0, 0);

			assert_int_equal(bytes, i == gone ? -CU_FILE_HANDLE_NOT_REGISTERED : 10);
			if (i != gone)
				cuFileHandleDeregister(handles[i]);
		}
		good(cuFileDriverClose());
		assert_int_equal(cuFileUseCount(), 0);
		good(cuFileDriverOpen()); /* nothing is registered any more */
		assert_int_equal(cuFileBufDeregister(memory).err, CU_FILE_MEMORY_NOT_REGISTERED);
		good(cuFileDriverClose());
	}
}

/* Plain memory of a Phoenix batch is moved by the system's calls: those that move less, or are interrupted,
 * are no end of the file, and what was moved before an error counts. */
static void test_plain_memory_in_parts(void **state)
{
	static const struct {
		struct limits limits;
		ssize_t moves;
	} rows[] = {
		{ { .most = 1000 }, 3 * BLOCK },
		{ { .interrupted = true }, 3 * BLOCK },
		{ { .most = 4096, .interrupted = true }, 3 * BLOCK },
		{ { .most = 1000, .bad = BLOCK + 2500 }, 3000 },
		{ { .bad = BLOCK }, -EIO },
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		bool writes = i % 2;
		ssize_t moves = rows[i / 2].moves, got = 0;
		phxfs_io_req_t request = { file, -1, memory, 100, 3 * BLOCK, BLOCK, 0 };

		assert_int_equal(begin(NULL), 0);
		memset(memory, 0x33, BYTES);
		limits = rows[i / 2].limits;
		assert_int_equal((writes ? phxfs_write_batch : phxfs_read_batch)(&request, 1),
				 moves != 3 * BLOCK);
		limits = (struct limits){ .calls = 0 };
		assert_int_equal(request.result, moves);
		got = moves < 0 ? 0 : moves;
		if (writes) {
			assert_int_equal(pread(file, there, BYTES, 0), BYTES);
			assert_memory_equal(there, want, BLOCK);
			assert_memory_equal(there + BLOCK, memory + 100, (size_t)got);
			assert_memory_equal(there + BLOCK + got, want + BLOCK + got,
					    (size_t)(BYTES - BLOCK - got));
		} else {
			assert_memory_equal(memory + 100, want + BLOCK, (size_t)got);
			assert_int_equal(memory[100 + got], 0x33);
		}
	}
}

/* What a limit says is what is taken: both ends, and nothing beyond; what was refused changes nothing. */
static void test_limits_of_parameters(void **state)
{
	size_t least, most, before, value;

	(void)state;
	for (int i = 0; i <= (int)CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS; i++) {
		CUFileSizeTConfigParameter_t param = (CUFileSizeTConfigParameter_t)i;

		good(cuFileGetParameterMinMaxValue(param, &least, &most));
		good(cuFileGetParameterSizeT(param, &before));
		assert_true(least < most && before >= least && before <= most);
		for (unsigned end = 0; end < 2; end++) {
			good(cuFileSetParameterSizeT(param, end ? most : least));
			if (end && most < SIZE_MAX)
				assert_int_equal(cuFileSetParameterSizeT(param, most + 1).err,
						 CU_FILE_INVALID_VALUE);
			if (!end && least)
				assert_int_equal(cuFileSetParameterSizeT(param, least - 1).err,
						 CU_FILE_INVALID_VALUE);
			good(cuFileGetParameterSizeT(param, &value));
			assert_int_equal(value, end ? most : least);
		}
		good(cuFileSetParameterSizeT(param, before));
	}
}

static void test_flags_and_texts_of_parameters(void **state)
{
	static char text[TEXT + 1], got[TEXT];
	bool before[CUFILE_PARAM_STREAM_MEMOPS_BYPASS + 1], is;

	(void)state;
	for (int i = 0; i <= (int)CUFILE_PARAM_STREAM_MEMOPS_BYPASS; i++)
		good(cuFileGetParameterBool((CUFileBoolConfigParameter_t)i, &before[i]));
	for (int i = 0; i <= (int)CUFILE_PARAM_STREAM_MEMOPS_BYPASS; i++) {
		good(cuFileSetParameterBool((CUFileBoolConfigParameter_t)i, !before[i]));
		for (int k = 0; k <= (int)CUFILE_PARAM_STREAM_MEMOPS_BYPASS; k++) {
			good(cuFileGetParameterBool((CUFileBoolConfigParameter_t)k, &is));
			assert_int_equal(is, k == i ? !before[k] : before[k]);
		}
		good(cuFileSetParameterBool((CUFileBoolConfigParameter_t)i, before[i]));
	}
	memset(text, 'x', TEXT);
	assert_int_equal(cuFileSetParameterString(CUFILE_PARAM_LOG_DIR, text).err, CU_FILE_INVALID_VALUE);
	text[TEXT - 1] = '\0';
	good(cuFileSetParameterString(CUFILE_PARAM_LOG_DIR, text));
	good(cuFileGetParameterString(CUFILE_PARAM_LOG_DIR, got, TEXT));
	assert_string_equal(got, text);
	assert_int_equal(cuFileGetParameterString(CUFILE_PARAM_LOG_DIR, got, TEXT - 1).err,
			 CU_FILE_INVALID_VALUE);
	good(cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, got, TEXT));
	assert_string_equal(got, "ERROR"); /* another one's stays */
}

static void test_slabs(void **state)
{
	size_t sizes[SLABS + 1], counts[SLABS + 1], got[2][SLABS];

	(void)state;
	for (size_t i = 0; i <= SLABS; i++) {
		sizes[i] = 4 + i;
		counts[i] = 100 + i;
	}
	good(cuFileSetParameterPosixPoolSlabArray(sizes, counts, SLABS));
	assert_int_equal(cuFileSetParameterPosixPoolSlabArray(counts, sizes, SLABS + 1).err,
			 CU_FILE_INVALID_VALUE);
	assert_int_equal(cuFileSetParameterPosixPoolSlabArray(counts, sizes, 0).err, CU_FILE_INVALID_VALUE);
	good(cuFileGetParameterPosixPoolSlabArray(got[0], got[1], SLABS));
	assert_memory_equal(got[0], sizes, sizeof(got[0]));
	assert_memory_equal(got[1], counts, sizeof(got[1]));
}

/* A mode whose threshold is refused is not set either; what is set is told in its own place. */
static void test_properties(void **state)
{
	CUfileDrvProps_t props;

	(void)state;
	good(cuFileDriverOpen());
	good(cuFileDriverSetPollMode(false, 12));
	assert_int_equal(cuFileDriverSetPollMode(true, 6).err, CU_FILE_DRIVER_UNSUPPORTED_LIMIT);
	good(cuFileDriverSetMaxDirectIOSize(16));
	good(cuFileDriverSetMaxCacheSize(20));
	good(cuFileDriverSetMaxPinnedMemSize(24));
	good(cuFileDriverGetProperties(&props));
	assert_int_equal(props.nvfs.poll_thresh_size, 12);
	assert_false(props.nvfs.dcontrolflags & 1u << CU_FILE_USE_POLL_MODE);
	assert_true(props.nvfs.dcontrolflags & 1u << CU_FILE_ALLOW_COMPAT_MODE);
	assert_int_equal(props.nvfs.max_direct_io_size, 16);
	assert_int_equal(props.max_device_cache_size, 20);
	assert_int_equal(props.max_device_pinned_mem_size, 24);
	good(cuFileDriverSetMaxPinnedMemSize(SIZE_MAX));
	good(cuFileDriverGetProperties(&props));
	assert_int_equal(props.max_device_pinned_mem_size, UINT32_MAX); /* as much as it holds */
	good(cuFileDriverClose());
}

/* Of each kind one that is refused, and one of memory that is not registered. */
static void refuse_some(CUfileHandle_t handle, CUfileHandle_t in)
{
	CUfileIOParams_t params[2] = { write_of(handle, 0, NULL), write_of(in, 0, NULL) };
	phxfs_io_req_t requests[2] = { { file, 0, memory, 0, BLOCK, 0, 0 },
				       { read_only, 0, memory, 0, BLOCK, 0, 0 } };
	CUfileBatchHandle_t batch;
	CUfileIOEvents_t event;
	size_t size = BLOCK;
	off_t zero = 0;
	ssize_t done[2];
	unsigned got = 1;

	good(cuFileBatchIOSetUp(&batch, 2));
	assert_int_equal(cuFileBatchIOSubmit(batch, 2, params, 0).err, CU_FILE_BATCH_SUBMIT_FAILED);
	params[1].u.batch.devPtr_base = NULL;
	assert_int_equal(cuFileBatchIOSubmit(batch, 2, params, 0).err, CU_FILE_INVALID_VALUE);
	good(cuFileBatchIOSubmit(batch, 1, params, 0));
	good(cuFileBatchIOGetStatus(batch, 1, &got, &event, NULL));
	good(cuFileBatchIOSubmit(batch, 1, params, 0)); /* and one that nobody asks about */
	cuFileBatchIODestroy(batch);
	assert_int_equal(cuFileRead(in, memory, BLOCK, 0, 0), BLOCK);
	assert_int_equal(cuFileWrite(in, memory, BLOCK, 0, 0), -1);
	assert_int_equal(cuFileWriteAsync(in, memory, &size, &zero, &zero, &done[0], NULL).err,
			 CU_FILE_INVALID_FILE_OPEN_FLAG);
	good(cuFileReadAsync(in, memory, &size, &zero, &zero, &done[1], NULL));
	assert_int_equal(phxfs_write_batch(requests, 2), 1);
	good(cuFileBufRegister(memory, BLOCK, 0));
	assert_int_equal(cuFileBufRegister(memory, BLOCK, 0).err, CU_FILE_MEMORY_ALREADY_REGISTERED);
	good(cuFileBufDeregister(memory));
}

/* Of the heap hardly anything more is in use; arenas and stacks of threads may be kept for others. */
static void keeps(struct test_has before)
{
	enum { HEAP = 8 << 10, MAPPED = 8 << 20 };

	test_keeps(before, MAPPED);
	if (TEST_COUNTS_MEMORY)
		assert_in_range(test_has().heap_bytes, 0, before.heap_bytes + HEAP);
}

/* Over and over: heap, files and threads are as before. The library remembers 256 handles that were closed.
 */
static void test_nothing_stays_of_what_was_refused(void **state)
{
	enum { WARM = 80, ROUNDS = 80 };
	CUfileHandle_t handle, in;
	struct test_has before;

	(void)state;
	good(cuFileDriverOpen());
	assert_int_equal(phxfs_open(0), 0);
	handle = register_file(file);
	in = register_file(read_only);
	for (unsigned round = 0; round < WARM + ROUNDS; round++) {
		if (round == WARM)
			before = test_has();
		refuse_some(handle, in);
	}
	keeps(before);
	cuFileHandleDeregister(handle);
	cuFileHandleDeregister(in);
	assert_int_equal(phxfs_close(0), 0);
	good(cuFileDriverClose());
}

/* What is registered when a driver is closed goes with it, requests in streams and batches, too. */
static void test_nothing_stays_of_a_driver(void **state)
{
	enum { WARM = 20, ROUNDS = 20, BUFFERS = 8 };
	struct test_has before;

	(void)state;
	for (unsigned round = 0; round < WARM + ROUNDS; round++) {
		CUfileHandle_t handle, in;
		void *target;

		if (round == WARM)
			before = test_has();
		good(cuFileDriverOpen());
		assert_int_equal(phxfs_open(0), 0);
		handle = register_file(file);
		in = register_file(read_only);
		refuse_some(handle, in);
		for (size_t i = 1; i <= BUFFERS; i++) {
			good(cuFileBufRegister(memory + i * BLOCK, BLOCK, 0));
			assert_int_equal(phxfs_regmem(0, memory + i * BLOCK, BLOCK, &target), 0);
		}
		cuFileHandleDeregister(handle);
		cuFileHandleDeregister(in);
		assert_int_equal(phxfs_close(0), 0);
		good(cuFileDriverClose());
	}
	keeps(before);
}

/* Who asks for the requests of a batch that have ended waits for as long as was said, no less and hardly
 * more, and then gets those that have. */
static void test_a_batch_is_waited_for(void **state)
{
	static const struct timespec timeouts[] = {
		{ .tv_nsec = 0 },         { .tv_nsec = 1 }, { .tv_nsec = 30000000 },
		{ .tv_nsec = 999999999 }, { .tv_sec = 5 },  { .tv_sec = 1, .tv_nsec = 600000000 },
	};
	CUfileIOEvents_t events[2];
	CUfileIOParams_t params;
	CUfileBatchHandle_t batch;
	CUfileHandle_t handle;
	unsigned got;

	(void)state;
	assert_int_equal(setenv("WEIR_FILE_NO_URING", "1", 1), 0); /* so that it is the test that moves it */
	good(cuFileDriverOpen());
	handle = register_file(file);
	good(cuFileBatchIOSetUp(&batch, 2));
	params = write_of(handle, 0, NULL);
	atomic_store(&held, true);
	good(cuFileBatchIOSubmit(batch, 1, &params, 0));
	for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
		struct timespec timeout = timeouts[i];
		uint64_t ns = (uint64_t)timeout.tv_sec * SECOND_NS + (uint64_t)timeout.tv_nsec, begun;

		begun = 7 * SECOND_NS + 900000000;
		atomic_store(&pretended_ns, begun);
		got = 2;
		good(cuFileBatchIOGetStatus(batch, 1, &got, events, &timeout));
		assert_int_equal(got, 0);
		assert_in_range(atomic_load(&pretended_ns) - begun, ns, ns + 1000000);
	}
	atomic_store(&held, false);
	got = 2;
	good(cuFileBatchIOGetStatus(batch, 1, &got, events, NULL));
	assert_int_equal(got, 1);
	atomic_store(&pretended_ns, 0);
	assert_int_equal(events[0].ret, BLOCK);
	cuFileBatchIODestroy(batch);
	cuFileHandleDeregister(handle);
	good(cuFileDriverClose());
	assert_int_equal(unsetenv("WEIR_FILE_NO_URING"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_request_of_a_batch_fails, begin),
		cmocka_unit_test_setup(test_codes_of_errors, begin),
		cmocka_unit_test_setup(test_handles_and_users, begin),
		cmocka_unit_test_setup(test_plain_memory_in_parts, begin),
		cmocka_unit_test(test_limits_of_parameters),
		cmocka_unit_test(test_flags_and_texts_of_parameters),
		cmocka_unit_test(test_slabs),
		cmocka_unit_test(test_properties),
		cmocka_unit_test_setup(test_nothing_stays_of_what_was_refused, begin),
		cmocka_unit_test_setup(test_nothing_stays_of_a_driver, begin),
		cmocka_unit_test_setup(test_a_batch_is_waited_for, begin),
	};

	setenv("WEIR_BACKEND", "cpu", 1); /* the memory is this program's own */
	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("shims_edges", tests, set_up, tear_down);
}
