/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mapped_test.c: device memory that is a file's: parts of any length, taken and given back in any order; and
 * why a window of the kernel module, which the test pretends to be, cannot be taken.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../../kmod-p2p/weir_p2p.h"
#include "backend/error.h"
#include "backend/mapped.h"
#include "backend/window.h"
#include "../rig/leaks.h"

enum { PAGES = 24, PARTS = 8, ROUNDS = 4000 };

static uint64_t chance = 7;

static uint64_t draw(uint64_t below)
{
	chance = chance * 6364136223846793005u + 1442695040888963407u;
	return (chance >> 33) % below;
}

static struct weir_mapped *open_file(char path[40])
{
	struct weir_mapped *memory;
	int file;

	snprintf(path, 40, "/tmp/weir_mapped_XXXXXX");
	file = mkstemp(path);
	assert_true(file >= 0 && ftruncate(file, PAGES * WEIR_MAPPED_PAGE + 100) == 0);
	close(file);
	assert_int_equal(weir_mapped_open(path, &memory), 0);
	return memory;
}

static bool all_are(const unsigned char *bytes, size_t count, unsigned char value)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

static size_t whole_pages(size_t bytes)
{
	return (bytes + WEIR_MAPPED_PAGE - 1) / WEIR_MAPPED_PAGE * WEIR_MAPPED_PAGE;
}

static void has_free(struct weir_mapped *memory, size_t wanted)
{
	uint64_t bytes, free_bytes;

	weir_mapped_room(memory, &bytes, &free_bytes);
	assert_int_equal(bytes, PAGES * WEIR_MAPPED_PAGE);
	assert_int_equal(free_bytes, wanted);
}

/*
 * A part is zeros when it is taken, and keeps what is put there until it is given back: no other one
 * has a byte of it.
 */
static void test_parts_have_their_own_pages(void **state)
{
	struct {
		unsigned char *at;
		size_t bytes;
		unsigned char value;
	} parts[PARTS] = { { NULL, 0, 0 } };
	char path[40];
	struct weir_mapped *memory = open_file(path);
	size_t left = PAGES * WEIR_MAPPED_PAGE;
	unsigned taken = 0, refused = 0;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned i = (unsigned)draw(PARTS);

		if (parts[i].at) {
			assert_true(all_are(parts[i].at, parts[i].bytes, parts[i].value));
			weir_mapped_give(memory, parts[i].at);
			left += whole_pages(parts[i].bytes);
			parts[i].at = NULL;
		} else {
			void *at;
			size_t bytes = draw(6 * WEIR_MAPPED_PAGE) + 1;
			int error = weir_mapped_take(memory, bytes, &at);

			assert_true(error == 0 || error == -ENOMEM);
			refused += error != 0;
			if (!error) {
				assert_true(all_are(at, whole_pages(bytes), 0));
				parts[i].at = at;
				parts[i].bytes = bytes;
				parts[i].value = (unsigned char)(round % 255 + 1);
				memset(at, parts[i].value, bytes);
				left -= whole_pages(bytes);
				taken++;
			}
		}
		has_free(memory, left);
	}
	assert_true(taken > ROUNDS / 8 && refused > 0);
	weir_mapped_close(memory);
	unlink(path);
}

/* The first gap that is large enough is used; one that is too small is not. */
static void test_gaps(void **state)
{
	char path[40];
	struct weir_mapped *memory = open_file(path);
	void *parts[PAGES / 2], *at;

	(void)state;
	for (unsigned i = 0; i < PAGES / 2; i++)
		assert_int_equal(weir_mapped_take(memory, 2 * WEIR_MAPPED_PAGE, &parts[i]), 0);
	assert_int_equal(weir_mapped_take(memory, 1, &at), -ENOMEM);
	weir_mapped_give(memory, parts[3]);
	weir_mapped_give(memory, parts[7]);
	weir_mapped_give(memory, parts[8]);
	weir_mapped_give(memory, (char *)parts[0] + 1); /* no part: nothing happens */
	has_free(memory, 6 * WEIR_MAPPED_PAGE);
	assert_int_equal(weir_mapped_take(memory, 4 * WEIR_MAPPED_PAGE + 1, &at), -ENOMEM);
	assert_int_equal(weir_mapped_take(memory, 4 * WEIR_MAPPED_PAGE, &at), 0);
	assert_ptr_equal(at, parts[7]);
	assert_int_equal(weir_mapped_take(memory, WEIR_MAPPED_PAGE + 1, &at), 0);
	assert_ptr_equal(at, parts[3]);
	has_free(memory, 0);
	weir_mapped_close(memory);
	unlink(path);
}

/** struct refusal - errno of WEIR_P2P_REGISTER; and of the call that the module has a reason of, 0: it is not
 * asked. @at, @bytes: where controllers see the window, and how much of it */
static struct refusal {
	int error;
	int reported;
	uint64_t at, bytes;
} refusal;

enum {
	WINDOW_PAGES = 3,
	WINDOW_AT = 2,
	HANDLE = 77
}; /* the window's size, and where in its node it is mapped */

int ioctl(int file, unsigned long call, ...)
{
	struct weir_p2p_reason *reason;
	struct weir_p2p_register *made;
	struct weir_p2p_locate *location;
	struct weir_p2p_info *info;
	va_list list;
	void *argument;

	(void)file;
	va_start(list, call);
	argument = va_arg(list, void *);
	va_end(list);
	info = argument;
	reason = argument;
	made = argument;
	location = argument;
	errno = call == WEIR_P2P_REGISTER                      ? refusal.error
		: call == WEIR_P2P_REASON && !refusal.reported ? EIO
							       : 0;
	if (errno)
		return -1;
	if (call == WEIR_P2P_INFO) {
		info->abi = WEIR_P2P_ABI;
		info->bytes = WINDOW_PAGES * WEIR_MAPPED_PAGE;
	} else if (call == WEIR_P2P_REGISTER) {
		assert_int_equal(made->bytes, WINDOW_PAGES * WEIR_MAPPED_PAGE);
		made->mmap_offset = WINDOW_AT * WEIR_MAPPED_PAGE;
		made->handle = HANDLE;
	} else if (call == WEIR_P2P_LOCATE) {
		assert_int_equal(location->handle, HANDLE);
		location->address = refusal.at;
		location->bytes = refusal.bytes;
	} else {
		reason->error = (unsigned)refusal.reported;
		strcpy(reason->text, "a ring is somebody else's");
	}
	return 0;
}

/* Return: whether the sentence is the module's. */
static bool is_refused(int error, int reported)
{
	struct weir_window window;

	refusal = (struct refusal){ .error = error, .reported = reported };
	assert_int_equal(weir_window_take(-1, "window", &window), -error);
	return strstr(weir_last_error(), "a ring is somebody else's") != NULL;
}

/* The reason is that of this call: neither that of an earlier one, nor does asking for it change what it was.
 */
static void test_reasons(void **state)
{
	(void)state;
	assert_true(is_refused(EBUSY, EBUSY));
	assert_false(is_refused(ENOMEM, EBUSY));
	assert_non_null(strstr(weir_last_error(), strerror(ENOMEM)));
	assert_false(is_refused(ENOMEM, 0));
	errno = ENODEV;
	(void)weir_window_reason(-1);
	assert_int_equal(errno, ENODEV);
}

/* A window is mapped where the module says, all of it; controllers see it at other addresses, which may be
 * below or above those of lanes; it goes when it is left. */
static void test_a_window(void **state)
{
	const uint64_t whole = WINDOW_PAGES * WEIR_MAPPED_PAGE;
	static const uint64_t at[] = { 0x1000, (uint64_t)9 << 40, UINT64_MAX - 0xffff };
	char path[] = "/tmp/weir_window_XXXXXX", words[8] = "";
	struct weir_window window, gone;
	int node = mkstemp(path);
	uint64_t offset = 0;
	unsigned char resident;

	(void)state;
	assert_true(node >= 0 && ftruncate(node, 8 * WEIR_MAPPED_PAGE) == 0);
	refusal = (struct refusal){ .error = 0 };
	assert_int_equal(weir_window_take(node, "window", &window), 0);
	assert_true(window.bytes == whole && window.handle == HANDLE && window.node == node);
	memcpy(window.host + whole - 8, "the end", 8);
	assert_int_equal(pread(node, words, 8, (off_t)((WINDOW_AT + WINDOW_PAGES) * WEIR_MAPPED_PAGE - 8)),
			 8);
	assert_string_equal(words, "the end");
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		refusal.at = at[i];
		refusal.bytes = whole;
		assert_int_equal(weir_window_locate(&window, &offset), 0);
		assert_true((uint64_t)(uintptr_t)(window.host + 5) + offset == at[i] + 5);
	}
	refusal.bytes = whole - 1;
	assert_int_equal(weir_window_locate(&window, &offset), -ENOTSUP);
	assert_non_null(strstr(weir_last_error(), "only 12287 of its 12288 bytes are contiguous"));
	gone = window;
	weir_window_leave(&window);
	assert_null(window.host);
	weir_window_leave(&window);
	assert_int_equal(mincore(gone.host, whole, &resident), -1);
	assert_int_equal(errno, ENOMEM);
	close(node);
	unlink(path);
}

/* Files that stand for memory are closed and unmapped again, also those that cannot be had. */
static void test_nothing_stays(void **state)
{
	enum { TIMES = 64, WARM = 8 };
	char path[40], small[40] = "/tmp/weir_mapped_XXXXXX";
	struct weir_mapped *memory = open_file(path), *again;
	int file = mkstemp(small);
	struct test_has before;

	(void)state;
	assert_true(file >= 0 && ftruncate(file, WEIR_MAPPED_PAGE - 1) == 0);
	close(file);
	for (unsigned i = 0; i < WARM + TIMES; i++) {
		void *part;

		if (i == WARM)
			before = test_has();
		assert_int_equal(weir_mapped_open(path, &again), -EBUSY);
		assert_int_equal(weir_mapped_open(small, &again), -EINVAL);
		assert_int_equal(weir_mapped_open("/tmp/no/such/file", &again), -ENOENT);
		assert_int_equal(weir_mapped_take(memory, (PAGES + 1) * WEIR_MAPPED_PAGE, &part), -ENOMEM);
		weir_mapped_close(memory);
		assert_int_equal(weir_mapped_open(path, &memory), 0);
		for (unsigned k = 0; k < PAGES; k++) /* parts that are not given back go with it */
			assert_int_equal(weir_mapped_take(memory, 1, &part), 0);
		weir_mapped_give(memory, part);
	}
	test_keeps(before, 4096);
	weir_mapped_close(memory);
	unlink(path);
	unlink(small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_have_their_own_pages),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_a_window),
		cmocka_unit_test(test_nothing_stays),
	};

	return cmocka_run_group_tests_name("mapped", tests, NULL, NULL);
}
