/* SPDX-License-Identifier: BSD-3-Clause */
/* losses_test.c: what went wrong on the way of a close becomes one sentence, of all, and the first error. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <weir/status.h>
#include <weir/weir.h>

#include "backend/error.h"
#include "base/losses.h"

static void test_nothing(void **state)
{
	struct weir_losses losses = { .error = 0 };

	(void)state;
	(void)weir_fail(EIO, "an older sentence");
	weir_losses_add(&losses, 0);
	assert_int_equal(weir_losses_end(&losses), 0);
	assert_string_equal(losses.text, "");
}

/* What went well in between takes nothing away. */
static void test_every_sentence_once(void **state)
{
	struct weir_losses losses = { .error = 0 };

	(void)state;
	weir_losses_add(&losses, weir_fail(ENOSPC, "lines of the first are lost"));
	weir_losses_add(&losses, 0);
	weir_losses_add(&losses, weir_fail(EIO, "lines of the second are lost"));
	weir_losses_add(&losses, weir_fail(ETIMEDOUT, "the third does not answer"));
	weir_losses_add(&losses, 0);
	(void)weir_fail(EINVAL, "something else");
	assert_int_equal(weir_losses_end(&losses), -ENOSPC);
	assert_string_equal(
		weir_last_error(),
		"lines of the first are lost. Also: lines of the second are lost. Also: the third does "
		"not answer");
}

static void test_the_last_alone(void **state)
{
	struct weir_losses losses = { .error = 0 };

	(void)state;
	weir_losses_add(&losses, 0);
	weir_losses_add(&losses, weir_fail(EIO, "100%% of it is lost"));
	assert_int_equal(weir_losses_end(&losses), -EIO);
	assert_string_equal(weir_last_error(), "100% of it is lost");
}

/* More than there is room for: the first ones, whole, and nothing behind the text. */
static void test_too_many(void **state)
{
	struct {
		struct weir_losses losses;
		char behind[8];
	} room = { .behind = "behind" };
	char before[sizeof(room.losses.text)];

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		weir_losses_add(&room.losses, weir_fail(EIO, "number %u of many that are lost", i));
	snprintf(before, sizeof(before), "%s", room.losses.text);
	assert_int_equal(weir_losses_end(&room.losses), -EIO);
	assert_string_equal(weir_last_error(), before);
	assert_true(strlen(before) < sizeof(before));
	assert_ptr_equal(strstr(before, "number 0 of many that are lost. Also: number 1 of"), before);
	assert_non_null(strstr(before, "number 9 of many that are lost. Also: "));
	assert_string_equal(room.behind, "behind");
}

static void *fail_elsewhere(void *sentence)
{
	*(bool *)sentence = *weir_last_error() != '\0';
	(void)weir_fail(EIO, "of another thread");
	return NULL;
}

/* What a call of one thread says is that thread's. */
static void test_each_thread_has_its_sentence(void **state)
{
	pthread_t thread;
	bool before = true;

	(void)state;
	(void)weir_fail(EINVAL, "of this thread");
	assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &before), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(before);
	assert_string_equal(weir_last_error(), "of this thread");
}

/* Each status of weir's own has a text of its own; those of NVMe are told with their numbers, known or not,
 * and whatever bits beside the code say of another try. */
static void test_texts_of_statuses(void **state)
{
	static const struct {
		uint32_t first, count;
	} groups[] = { { WEIR_E_INDEX, WEIR_E_POOL - WEIR_E_INDEX + 1 },
		       { WEIR_E_QUEUE_FULL, 2 },
		       { WEIR_E_DEVICE_DEAD, 3 } };
	static const struct {
		uint32_t code;
		const char *text;
	} some[] = { { 0x001, "invalid opcode (NVMe status 0:01)" },
		     { 0x006, "internal error (NVMe status 0:06)" },
		     { 0x080, "LBA out of range (NVMe status 0:80)" },
		     { 0x280, "media write fault (NVMe status 2:80)" },
		     { 0x281, "unrecovered read error (NVMe status 2:81)" },
		     { 0x371, "not answered, ended by the host (NVMe status 3:71)" } };
	char texts[32][80], text[80], other[80], number[32];
	unsigned known = 0, count = 0;

	(void)state;
	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
		for (uint32_t i = 0; i < groups[g].count; i++, count++) {
			weir_status_text(groups[g].first + i, texts[count]);
			assert_null(strstr(texts[count], "unknown"));
			assert_null(strstr(texts[count], "NVMe status"));
			for (unsigned before = 0; before < count; before++)
				assert_string_not_equal(texts[before], texts[count]);
		}
	for (uint32_t code = 1; code < 0x800; code++) {
		weir_status_text(WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | code, text);
		weir_status_text(WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | 0x7800 | code, other);
		assert_string_equal(text, other);
		snprintf(number, sizeof(number), " (NVMe status %x:%02x)", code >> 8, code & 0xff);
		assert_non_null(strstr(text, number));
		known += strncmp(text, "unknown", 7) != 0;
		for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
			if (some[i].code == code)
				assert_string_equal(text, some[i].text);
	}
	assert_true(known > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_every_sentence_once),
		cmocka_unit_test(test_the_last_alone),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_each_thread_has_its_sentence),
		cmocka_unit_test(test_texts_of_statuses),
	};

	return cmocka_run_group_tests_name("losses", tests, NULL, NULL);
}
