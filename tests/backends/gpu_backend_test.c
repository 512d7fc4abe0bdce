/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What backends of GPUs have in common (backends/gpu/), over a run time that is none (gpu/stand_in.h): which
 * device is meant, what stays while a kernel does, arguments, streams, gates, and sentences.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/stand_in.h"

enum { PAGE = 4096, LARGE = 1000, BLOCK_LANES = 64 };

static struct weir_image images[] = {
	{ .backend = "plain", .kernel = "small", .args_bytes = 16, .block_lanes = BLOCK_LANES },
	{ .backend = "plain", .kernel = "large", .args_bytes = LARGE, .block_lanes = BLOCK_LANES },
	{ .backend = "another", .kernel = "elsewhere", .args_bytes = 16, .block_lanes = BLOCK_LANES },
};

static const struct weir_backend_ops *ops;

static struct weir_backend *open_device(const char *selector)
{
	struct weir_backend *backend = NULL;

	assert_int_equal(ops->open(selector, NULL, &backend), 0);
	return backend;
}

static void says(int result, int error, const char *words)
{
	assert_int_equal(result, error);
	if (!strstr(weir_last_error(), words))
		fail_msg("\"%s\" does not say \"%s\"", weir_last_error(), words);
}

/* Nothing is there any more that was opened. */
static void all_is_gone(void)
{
	assert_int_equal(stand_in.memory, 0);
	assert_int_equal(stand_in.streams, 0);
	assert_int_equal(stand_in.events, 0);
	assert_int_equal(stand_in.pinned, 0);
}

static int begin(void **state)
{
	(void)state;
	stand_in_begin();
	return 0;
}

static void test_which_device(void **state)
{
	static const struct {
		const char *selector;
		int device;
	} devices[] = { { "", 0 }, { "0", 0 }, { "1", 1 }, { "01", 1 } };
	static const struct {
		const char *selector, *words;
	} none[] = { { "2", "there is no plain:2: this process sees 2 devices, plain:0 and on" },
		     { "4294967296", "there is no plain:4294967296" },
		     { "18446744073709551616", "there is no plain:" },
		     { "1x", "\"plain:1x\" is no device" },
		     { "-1", "\"plain:-1\" is no device" },
		     { "+1", "\"plain:+1\" is no device" },
		     { " 1", "is no device" } };
	struct weir_backend *backend;
	uint32_t count = 0;

	(void)state;
	assert_int_equal(ops->devices(&count), 0);
	assert_int_equal(count, STAND_IN_DEVICES);
	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
		backend = open_device(devices[i].selector);
		assert_int_equal(gpu_of(backend)->device, devices[i].device);
		ops->close(backend);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		says(ops->open(none[i].selector, NULL, &backend), -ENODEV, none[i].words);
	all_is_gone();
}

/* Whatever fails when a device is opened, all that was made before it goes. */
static void test_nothing_stays_of_a_failure(void **state)
{
	static const struct {
		char call;
		unsigned good;
	} calls[] = { { STAND_IN_STREAM, 0 },  { STAND_IN_STREAM, 1 }, { STAND_IN_EVENT, 0 },
		      { STAND_IN_KERNELS, 0 }, { STAND_IN_MEMORY, 0 }, { STAND_IN_MEMORY, 1 } };
	static const struct {
		gpuError_t code;
		int error;
	} codes[] = { { gpuErrorMemoryAllocation, -ENOMEM },
		      { gpuErrorNotSupported, -ENOTSUP },
		      { gpuErrorUnknown, -EIO } };

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		for (size_t k = 0; k < sizeof(codes) / sizeof(*codes); k++) {
			struct weir_backend *backend = NULL;

			stand_in_begin();
			stand_in.fails = calls[i].call;
			stand_in.good = calls[i].good;
			stand_in.code = codes[k].code;
			assert_int_equal(ops->open("", NULL, &backend), codes[k].error);
			assert_null(backend);
			all_is_gone();
		}
}

static uint64_t take(struct weir_backend *backend, size_t bytes, enum weir_memory kind)
{
	uint64_t device = 0;
	void *host = &device;

	assert_int_equal(ops->allocate(backend, bytes, kind, &host, &device), 0);
	assert_ptr_equal(host, kind == WEIR_MEMORY_HOST ? (void *)(uintptr_t)device : NULL);
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(((unsigned char *)(uintptr_t)device)[i], 0);
	memset((void *)(uintptr_t)device, 0x77, bytes);
	return device;
}

/* While a kernel stays, on whichever device, nothing is freed; what was let go of is there for who wants as
 * much of the same kind, of the host by whichever device, else of the same one. */
static void test_memory_while_kernels_stay(void **state)
{
	struct weir_backend *first = open_device("0"), *second = open_device("1");
	uint64_t args[2] = { 1, 2 }, gone, host, two, three, mapped, others;
	int before = stand_in.memory;
	void *services[2];

	(void)state;
	assert_int_equal(ops->serve(first, "small", 1, 1, args, sizeof(args), &services[0]), 0);
	assert_int_equal(ops->serve(second, "small", 1, 1, args, sizeof(args), &services[1]), 0);
	gone = take(first, 2 * PAGE + 1, WEIR_MEMORY_DEVICE);
	host = take(first, PAGE, WEIR_MEMORY_HOST);
	ops->release(first, gone, 2 * PAGE + 1, WEIR_MEMORY_DEVICE);
	ops->release(first, host, PAGE, WEIR_MEMORY_HOST);
	ops->release(first, 0, PAGE, WEIR_MEMORY_HOST);
	assert_int_equal(stand_in_asked(STAND_IN_FREE), 0);
	two = take(first, 2 * PAGE, WEIR_MEMORY_DEVICE);
	mapped = take(first, 3 * PAGE, WEIR_MEMORY_HOST);
	others = take(second, 3 * PAGE, WEIR_MEMORY_DEVICE);
	assert_true(two != gone && mapped != gone && others != gone);
	ops->release(second, others, 3 * PAGE, WEIR_MEMORY_DEVICE);
	assert_true(take(first, 3 * PAGE, WEIR_MEMORY_DEVICE) == gone);
	three = take(first, 3 * PAGE, WEIR_MEMORY_DEVICE);
	assert_true(three != gone && three != others); /* the one is taken, the other not this device's */
	assert_true(take(second, PAGE, WEIR_MEMORY_HOST) == host);
	ops->serve_end(first, services[0]);
	assert_int_equal(stand_in_asked(STAND_IN_FREE), 0);
	ops->serve_end(second, services[1]);
	assert_int_equal(stand_in.freed[0], 1); /* arguments of the kernels, and what nobody took again */
	assert_int_equal(stand_in.freed[1], 2);
	ops->release(first, gone, 3 * PAGE, WEIR_MEMORY_DEVICE);
	assert_int_equal(stand_in.freed[0], 2); /* at once */
	ops->release(first, two, 2 * PAGE, WEIR_MEMORY_DEVICE);
	ops->release(first, three, 3 * PAGE, WEIR_MEMORY_DEVICE);
	ops->release(first, mapped, 3 * PAGE, WEIR_MEMORY_HOST);
	ops->release(second, host, PAGE, WEIR_MEMORY_HOST);
	assert_int_equal(stand_in.memory, before);
	ops->close(first);
	ops->close(second);
	all_is_gone();
}

/* A persistent kernel that does not start is none: nothing waits for its end. */
static void test_kernels_that_do_not_stay(void **state)
{
	static const char calls[] = { STAND_IN_STREAM, STAND_IN_MEMORY, STAND_IN_COPY, STAND_IN_WAIT,
				      STAND_IN_START };
	struct weir_backend *backend = open_device("1");
	uint64_t args[2] = { 1, 2 };
	int before = stand_in.memory, streams = stand_in.streams;
	void *service = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(calls); i++) {
		stand_in_begin();
		stand_in.fails = calls[i];
		stand_in.code = gpuErrorMemoryAllocation;
		says(ops->serve(backend, "small", 1, 1, args, sizeof(args), &service), -ENOMEM,
		     "cannot start kernel \"small\" on plain:1: words of the run time (plainErrorOther)");
		assert_null(service);
		assert_int_equal(stand_in.memory, before);
		assert_int_equal(stand_in.streams, streams);
	}
	says(ops->serve(backend, "none", 1, 1, args, sizeof(args), &service), -ENOENT, "none");
	ops->release(backend, take(backend, PAGE, WEIR_MEMORY_DEVICE), PAGE, WEIR_MEMORY_DEVICE);
	assert_int_equal(stand_in.memory, before);
	ops->close(backend);
	all_is_gone();
}

static void launch(struct weir_backend *backend, const char *kernel, uint64_t word)
{
	uint64_t args[LARGE / 8] = { word };

	assert_int_equal(ops->launch(backend, kernel, 1, 1, args, *kernel == 's' ? 16 : LARGE), 0);
}

/* Each launch finds its own arguments, however many wait, and however large the next one's are. */
static void test_arguments(void **state)
{
	struct weir_backend *backend = open_device("1"), *other = open_device("0");
	uint64_t word = 100;

	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		stand_in_begin();
		for (uint64_t i = 0; i < 10; i++)
			launch(backend, "small", word + i);
		launch(other, "large", 7);
		launch(backend, "large", word + 10);
		for (uint64_t i = 11; i < 20; i++)
			launch(backend, i % 4 ? "small" : "large", word + i);
		assert_int_equal(ops->synchronise(backend), 0);
		assert_int_equal(stand_in.ran_count, 20);
		for (uint64_t i = 0; i < 20; i++)
			assert_int_equal(stand_in.ran[i], word + i);
		assert_int_equal(ops->synchronise(other), 0);
		assert_int_equal(stand_in.ran[20], 7);
		word += 100;
	}
	ops->close(backend);
	ops->close(other);
	all_is_gone();
}

static void test_launches_that_cannot_be(void **state)
{
	struct weir_backend *backend = open_device("");
	struct weir_kernel_info info = { .size = sizeof(info) };
	uint64_t args[2] = { 0 };

	(void)state;
	says(ops->launch(backend, "none", 1, 1, args, 16), -ENOENT, "none");
	says(ops->launch(backend, "elsewhere", 1, 1, args, 16), -ENOENT, "elsewhere");
	says(ops->launch(backend, "small", 1, 1, args, 8), -EINVAL, "takes 16 bytes of arguments, not 8");
	says(ops->launch(backend, "small", 1, BLOCK_LANES + 1, args, 16), -EINVAL, "65 lanes per block");
	says(ops->launch(backend, "small", 1001, 1, args, 16), -EINVAL, "too many blocks for plain:0");
	says(ops->stream_launch(backend, gpu_of(backend)->copies, "none", 1, 1, 0), -ENOENT, "none");
	says(ops->kernel_info(backend, "none", &info), -ENOENT, "none");
	assert_int_equal(stand_in_asked(STAND_IN_START), 0);
	assert_int_equal(ops->kernel_info(backend, "small", &info), 0);
	assert_int_equal(info.registers, 40);
	assert_int_equal(info.local_bytes, 16);
	assert_int_equal(info.block_lanes, BLOCK_LANES);
	ops->close(backend);
	all_is_gone();
}

/* What the run time says, whether that is of any use, and which kernel may have been to blame. */
static void test_sentences(void **state)
{
	struct weir_backend *backend = open_device("1");
	uint64_t address;
	void *host;

	(void)state;
	stand_in.fails = STAND_IN_MEMORY;
	stand_in.code = gpuErrorMemoryAllocation;
	says(ops->allocate(backend, 5, WEIR_MEMORY_DEVICE, &host, &address), -ENOMEM,
	     "cannot allocate 5 bytes on plain:1: words of the run time (plainErrorOther)");
	stand_in.fails = STAND_IN_SET;
	stand_in.code = gpuErrorUnknown;
	says(ops->allocate(backend, 5, WEIR_MEMORY_DEVICE, &host, &address), -EIO,
	     "cannot clear 5 bytes on plain:1: plainErrorUnknown");
	assert_null(strstr(weir_last_error(), "("));
	stand_in.fails = STAND_IN_WAIT;
	says(ops->synchronise(backend), -EIO, "(latest launched: \"none\")");
	launch(backend, "small", 1);
	stand_in.fails = STAND_IN_WAIT;
	stand_in.lost = true;
	says(ops->synchronise(backend), -EIO, "a kernel failed on plain:1 (latest launched: \"small\")");
	says(-EIO, -EIO, "the device is lost to this process");
	stand_in.lost = false;
	stand_in.fails = STAND_IN_COPY;
	says(ops->h2d(backend, (uint64_t)(uintptr_t)&address, &host, sizeof(host)), -EIO, "cannot copy 8");
	stand_in.fails = STAND_IN_WAIT;
	says(ops->d2h(backend, &host, (uint64_t)(uintptr_t)&address, sizeof(host)), -EIO, "cannot copy 8");
	ops->close(backend);
	all_is_gone();
}

/* A kernel in a stream of the caller's finds the arguments that lie where it is told, behind what is in the
 * stream. */
static void test_kernels_in_streams(void **state)
{
	struct weir_backend *backend = open_device("1");
	uint64_t from = 41, args = 7;
	struct weir_move move = { (uintptr_t)&args, (uintptr_t)&from, 8 };
	void *stream;

	(void)state;
	assert_int_equal(ops->stream_open(backend, &stream), 0);
	assert_int_equal(ops->stream_copy(backend, stream, &move, 1), 0);
	assert_int_equal(ops->stream_launch(backend, stream, "small", 1, 1, (uintptr_t)&args), 0);
	assert_int_equal(ops->synchronise(backend), 0); /* of another stream */
	assert_int_equal(stand_in.ran_count, 0);
	assert_int_equal(ops->stream_wait(backend, stream), 0);
	assert_int_equal(stand_in.ran_count, 1);
	assert_int_equal(stand_in.ran[0], 41);
	stand_in.fails = STAND_IN_START;
	stand_in.code = gpuErrorUnknown;
	says(ops->stream_launch(backend, stream, "small", 1, 1, (uintptr_t)&args), -EIO,
	     "cannot launch kernel \"small\"");
	stand_in.fails = STAND_IN_STREAM;
	ops->stream_close(backend, stream);
	says(ops->stream_open(backend, &stream), -EIO, "cannot make a stream on plain:1");
	ops->close(backend);
	all_is_gone();
}

/* A kernel that stays on a device that is of no more use ends for those of others: what they let go of is
 * freed. */
static void test_a_kernel_that_stays_on_a_lost_device(void **state)
{
	struct weir_backend *lost = open_device("0"), *other = open_device("1");
	uint64_t args[2] = { 1, 2 }, memory;
	int before, streams;
	void *service;

	(void)state;
	before = stand_in.memory;
	streams = stand_in.streams;
	memory = take(other, PAGE, WEIR_MEMORY_DEVICE);
	assert_int_equal(ops->serve(lost, "small", 1, 1, args, sizeof(args), &service), 0);
	ops->release(other, memory, PAGE, WEIR_MEMORY_DEVICE);
	assert_int_equal(stand_in.memory, before + 2);
	stand_in.unset = 1; /* device 0 cannot be set any more */
	ops->serve_end(lost, service);
	assert_int_equal(stand_in.memory, before + 1); /* its own arguments are lost with it */
	assert_int_equal(stand_in.streams, streams + 1);
	memory = take(other, PAGE, WEIR_MEMORY_DEVICE);
	ops->release(other, memory, PAGE, WEIR_MEMORY_DEVICE);
	assert_int_equal(stand_in.memory, before + 1); /* at once */
	stand_in.unset = 0;
	ops->close(lost);
	ops->close(other);
	assert_int_equal(stand_in.memory, 1);
	assert_int_equal(stand_in.streams, 1);
	stand_in.memory = stand_in.streams = 0;
}

static void test_copies(void **state)
{
	struct weir_backend *backend = open_device("");
	uint64_t from[3] = { 1, 2, 3 }, to[3] = { 0 };
	struct weir_move moves[3];
	void *stream;

	(void)state;
	assert_int_equal(ops->h2d(backend, (uint64_t)(uintptr_t)to, from, 8), 0);
	assert_int_equal(to[0], 1);
	assert_int_equal(ops->d2h(backend, to, (uint64_t)(uintptr_t)(from + 1), 8), 0);
	assert_int_equal(to[0], 2);
	stand_in_begin();
	assert_int_equal(ops->h2d(backend, 0, NULL, 0), 0);
	assert_int_equal(stand_in_asked(STAND_IN_COPY), 0);
	for (unsigned i = 0; i < 3; i++)
		moves[i] = (struct weir_move){ (uintptr_t)&to[i], (uintptr_t)&from[2 - i], 8 };
	assert_int_equal(ops->stream_open(backend, &stream), 0);
	assert_int_equal(ops->stream_copy(backend, stream, moves, 3), 0);
	memset(moves, 0, sizeof(moves)); /* they are free at once */
	assert_int_equal(ops->stream_wait(backend, stream), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(to[i], 3 - i);
	for (unsigned i = 0; i < 3; i++)
		moves[i] = (struct weir_move){ (uintptr_t)&to[i], (uintptr_t)&from[i], 8 };
	stand_in_begin();
	stand_in.fails = STAND_IN_COPY;
	stand_in.good = 1;
	stand_in.code = gpuErrorUnknown;
	says(ops->stream_copy(backend, stream, moves, 3), -EIO, "cannot copy 8 bytes");
	assert_int_equal(stand_in_asked(STAND_IN_COPY), 2); /* and no more */
	stand_in.fails = STAND_IN_WAIT;
	says(ops->stream_wait(backend, stream), -EIO, "copies failed on plain:0");
	assert_int_equal(ops->stream_join(backend, stream, WEIR_JOIN_AFTER), 0);
	assert_true(stand_in.first == stream && stand_in.behind == gpu_of(backend)->launches);
	assert_int_equal(ops->stream_join(backend, stream, WEIR_JOIN_BEFORE), 0);
	assert_true(stand_in.first == gpu_of(backend)->launches && stand_in.behind == stream);
	stand_in.fails = STAND_IN_RECORD;
	says(ops->stream_join(backend, stream, WEIR_JOIN_AFTER), -EIO, "in the order of stream");
	ops->stream_close(backend, stream);
	ops->close(backend);
	all_is_gone();
}

static void resume_at_once(void *of)
{
	ops->resume(NULL, *(void **)of);
}

static void do_nothing(void *of)
{
	(void)of;
}

/* Each gate is one stream's until that has passed it; who asks for one more is told so. */
static void test_gates(void **state)
{
	struct weir_backend *backend = open_device("");
	struct weir_gate *gates[STAND_IN_GATES];
	void *gate = NULL;

	(void)state;
	for (unsigned i = 0; i < STAND_IN_GATES; i++) {
		assert_int_equal(ops->defer(backend, NULL, do_nothing, NULL, (void **)&gates[i]), 0);
		assert_int_equal(*gates[i]->word, WEIR_GATE_SHUT);
	}
	says(ops->defer(backend, NULL, do_nothing, NULL, &gate), -EAGAIN, "3 requests wait in streams");
	ops->resume(backend, gates[1]);
	assert_int_equal(*gates[1]->word, WEIR_GATE_OPEN);
	says(ops->defer(backend, NULL, do_nothing, NULL, &gate), -EAGAIN, "3 requests"); /* not yet */
	weir_gate_give_back(gates[1]);                                                   /* the stream has */
	stand_in.fails = STAND_IN_CALL;
	stand_in.code = gpuErrorUnknown;
	says(ops->defer(backend, NULL, do_nothing, NULL, &gate), -EIO, "cannot queue a call in a stream");
	assert_int_equal(*gates[1]->word, WEIR_GATE_FREE);
	stand_in.waits = false; /* whoever asks waits in its place */
	assert_int_equal(ops->defer(backend, NULL, resume_at_once, &gate, &gate), 0);
	assert_ptr_equal(gate, gates[1]);
	assert_int_equal(*gates[1]->word, WEIR_GATE_FREE);
	ops->close(backend);
	all_is_gone();
}

/* Pages that others allocated, and registers: what cannot be leaves nothing behind, and what is given back
 * while a kernel stays goes with it. */
static void test_pages_of_others(void **state)
{
	struct weir_backend *backend = open_device("1");
	uint64_t args[2] = { 0 }, device = 0, mine;
	void *pages = aligned_alloc(PAGE, PAGE), *service;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		stand_in.fails = i ? STAND_IN_POINTER : STAND_IN_PIN;
		stand_in.code = gpuErrorUnknown;
		says(ops->register_host(backend, pages, PAGE, &device), -EIO,
		     "plain:1 cannot register 4096 bytes of host memory");
		stand_in.fails = i ? STAND_IN_POINTER : STAND_IN_PIN;
		says(ops->map_registers(backend, pages, PAGE, &device), -ENOTSUP, "plainErrorUnknown");
		assert_int_equal(stand_in.pinned, 0);
	}
	says(ops->register_host(backend, pages, PAGE - 1, &device), -EINVAL, "host memory");
	says(ops->map_registers(backend, (char *)pages + 1, PAGE, &device), -EINVAL, "device registers");
	says(ops->map_registers(backend, NULL, PAGE, &device), -EINVAL, "device registers");
	assert_int_equal(ops->register_host(backend, pages, PAGE, &device), 0);
	assert_true(device == (uintptr_t)pages);
	ops->unregister_host(backend, pages, PAGE);
	assert_int_equal(stand_in.pinned, 0);
	assert_int_equal(ops->map_registers(backend, pages, PAGE, &device), 0);
	assert_int_equal(ops->serve(backend, "small", 1, 1, args, sizeof(args), &service), 0);
	ops->unmap_registers(backend, pages, PAGE);
	assert_int_equal(stand_in.pinned, 1);
	mine = take(backend, PAGE, WEIR_MEMORY_HOST);
	assert_true(mine != device); /* those are nobody's to take */
	ops->serve_end(backend, service);
	assert_int_equal(stand_in.pinned, 0);
	ops->release(backend, mine, PAGE, WEIR_MEMORY_HOST);
	ops->close(backend);
	all_is_gone();
	free(pages);
}

static void test_what_a_device_is(void **state)
{
	struct weir_backend *backend = open_device("1");
	struct weir_backend_properties found = { .wave_lanes = 0 };

	(void)state;
	ops->properties(backend, &found);
	assert_string_equal(found.name, "plain:1");
	assert_string_equal(found.pci_address, "0000:af:00.0");
	assert_int_equal(found.workers, 3);
	assert_int_equal(found.wave_lanes, 32);
	assert_int_equal(found.block_lanes, 1024);
	assert_int_equal(found.memory_bytes, 7);
	assert_int_equal(found.memory_free_bytes, 5);
	assert_true(found.copies_while_running && found.peer_dma && !found.shared_memory);
	stand_in.bus_id = "";
	assert_int_equal(ops->pci_address(0, found.pci_address, sizeof(found.pci_address)), 0);
	assert_string_equal(found.pci_address, "");
	ops->close(backend);
	all_is_gone();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_which_device, begin),
		cmocka_unit_test_setup(test_nothing_stays_of_a_failure, begin),
		cmocka_unit_test_setup(test_memory_while_kernels_stay, begin),
		cmocka_unit_test_setup(test_kernels_that_do_not_stay, begin),
		cmocka_unit_test_setup(test_arguments, begin),
		cmocka_unit_test_setup(test_launches_that_cannot_be, begin),
		cmocka_unit_test_setup(test_sentences, begin),
		cmocka_unit_test_setup(test_kernels_in_streams, begin),
		cmocka_unit_test_setup(test_a_kernel_that_stays_on_a_lost_device, begin),
		cmocka_unit_test_setup(test_copies, begin),
		cmocka_unit_test_setup(test_gates, begin),
		cmocka_unit_test_setup(test_pages_of_others, begin),
		cmocka_unit_test_setup(test_what_a_device_is, begin),
	};

	ops = weir_backend_module;
	for (size_t i = 0; i < sizeof(images) / sizeof(*images); i++)
		weir_image_register(&images[i]);
	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("gpu_backend", tests, NULL, NULL);
}
