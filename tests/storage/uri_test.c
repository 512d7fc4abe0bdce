/* SPDX-License-Identifier: BSD-3-Clause */
/* uri_test.c: what storage URIs are read as, and what each refusal says. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/error.h"
#include "base/uri.h"

extern const char *weir_last_error(void);

#define assert_says(words)                                                                                   \
	do {                                                                                                 \
		if (!strstr(weir_last_error(), words))                                                       \
			fail_msg("'%s' is not in: %s", words, weir_last_error());                            \
	} while (0)

static void parse(const char *text, struct weir_uri *uri)
{
	if (weir_uri_parse(text, uri))
		fail_msg("%s", weir_last_error());
}

static void splits_scheme_body_and_parameters(void **state)
{
	struct weir_uri uri;

	(void)state;
	parse("virt:4G?lat_us=20&iops=1500000", &uri);
	assert_string_equal(uri.text, "virt:4G?lat_us=20&iops=1500000");
	assert_string_equal(uri.scheme, "virt");
	assert_string_equal(uri.body, "4G");
	assert_int_equal(uri.count, 2);
	assert_string_equal(weir_uri_take_text(&uri, "lat_us"), "20");
	assert_string_equal(weir_uri_take_text(&uri, "iops"), "1500000");
	assert_null(weir_uri_take_text(&uri, "depth"));
	assert_int_equal(weir_uri_finish(&uri, "lat_us, iops"), 0);
	weir_uri_release(&uri);
	assert_null(uri.text);
}

static void takes_a_path_as_written(void **state)
{
	struct weir_uri uri;

	(void)state;
	parse("file:/a b/c:d=e&f,g#h+i", &uri);
	assert_string_equal(uri.body, "/a b/c:d=e&f,g#h+i");
	assert_int_equal(uri.count, 0);
	weir_uri_release(&uri);
	parse("nvmf:tcp://host:4420/nqn?a=b=c?d", &uri);
	assert_string_equal(uri.body, "tcp://host:4420/nqn");
	assert_string_equal(weir_uri_take_text(&uri, "a"), "b=c?d");
	weir_uri_release(&uri);
}

/* What separates the parts of a URI is written as an escape; of these, one letter follows from two digits. */
static void decodes_escapes(void **state)
{
	struct weir_uri uri;

	(void)state;
	parse("file:/what%3F/100%25/%3f?load=a%26b%2Cc%25d%3F&key=%2c%253F", &uri);
	assert_string_equal(uri.text, "file:/what%3F/100%25/%3f?load=a%26b%2Cc%25d%3F&key=%2c%253F");
	assert_string_equal(uri.body, "/what?/100%/?");
	assert_int_equal(uri.count, 2);
	assert_string_equal(weir_uri_take_text(&uri, "load"), "a&b,c%d?");
	assert_string_equal(weir_uri_take_text(&uri, "key"), ",%3F");
	weir_uri_release(&uri);
}

struct refusal {
	const char *text;
	const char *says[4];
};

static void refuses_what_is_malformed(void **state)
{
	static const struct refusal rows[] = {
		{ "", { "no scheme", "file:/data/graph.bin" } },
		{ "/data/graph.bin", { "'/data/graph.bin'", "no scheme" } },
		{ ":body", { "':body'", "no scheme" } },
		{ "File:/x", { "'File:'", "lower-case" } },
		{ "fi le:/x", { "'fi le:'", "lower-case" } },
		{ "2file:/x", { "'2file:'" } },
		{ "file:", { "'file:'", "names nothing" } },
		{ "file:?a=b", { "'file:?a=b'", "names nothing" } },
		{ "file:/x?", { "''", "key=value" } },
		{ "file:/a%20b", { "'file:/a%20b'", "'%20' is no escape", "%25 for '%'", "%3F for '?'" } },
		{ "file:/100%", { "'%' is no escape", "%25 for '%'" } },
		{ "file:/100%3", { "'%3' is no escape" } },
		{ "file:/a%00", { "'%00' is no escape" } },
		{ "file:/x?load=50%done", { "'%do' is no escape" } },
		{ "file:/x?a%3Db=c", { "'a%3Db' is no key" } },
		{ "file:/x?a", { "'a'", "key=value" } },
		{ "file:/x?a=1&", { "''", "key=value" } },
		{ "file:/x?a=1&&b=2", { "''", "key=value" } },
		{ "file:/x?=1", { "''", "no key" } },
		{ "file:/x?A=1", { "'A'", "lower-case" } },
		{ "file:/x?a =1", { "'a '", "no key" } },
		{ "file:/x?a=", { "'a'", "no value" } },
		{ "file:/x?a=1&b=2&a=3", { "'a'", "twice", "'1'", "'3'" } },
		{ "v:x?a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1&j=1&k=1&l=1&m=1&n=1&o=1&p=1&q=1",
		  { "'q'", "at most 16" } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct weir_uri uri;

		assert_int_equal(weir_uri_parse(rows[i].text, &uri), -EINVAL);
		assert_null(uri.text);
		for (int j = 0; j < 4 && rows[i].says[j]; j++)
			assert_says(rows[i].says[j]);
	}
}

static void takes_sixteen_parameters(void **state)
{
	struct weir_uri uri;

	(void)state;
	parse("v:x?a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1&j=1&k=1&l=1&m=1&n=1&o=1&p=7", &uri);
	assert_string_equal(weir_uri_take_text(&uri, "p"), "7");
	weir_uri_release(&uri);
}

static int take_u64(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
	struct weir_uri uri;
	int error;

	parse(text, &uri);
	error = weir_uri_take_u64(&uri, "depth", least, most, value);
	assert_int_equal(weir_uri_finish(&uri, "depth"), 0); /* used, good or bad */
	weir_uri_release(&uri);
	return error;
}

static void takes_whole_numbers_within_limits(void **state)
{
	static const char *const bad[] = {
		"0", "65", "-1", "+1", " 1", "1 ", "0x1", "1.0", "1K", "a", "18446744073709551616"
	};
	uint64_t value = 77;

	(void)state;
	assert_int_equal(take_u64("file:/x?depth=1", 1, 64, &value), 0);
	assert_int_equal(value, 1);
	assert_int_equal(take_u64("file:/x?depth=64", 1, 64, &value), 0);
	assert_int_equal(value, 64);
	assert_int_equal(take_u64("file:/x?depth=18446744073709551615", 0, UINT64_MAX, &value), 0);
	assert_true(value == UINT64_MAX);
	value = 77;
	assert_int_equal(take_u64("file:/x", 1, 64, &value), 0);
	assert_int_equal(value, 77);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[64];

		snprintf(text, sizeof(text), "file:/x?depth=%s", bad[i]);
		assert_int_equal(take_u64(text, 1, 64, &value), -EINVAL);
		assert_int_equal(value, 77);
		assert_says(text + strlen("file:/x?"));
		assert_says("from 1 to 64");
	}
}

static void takes_sizes_with_suffixes(void **state)
{
	struct weir_uri uri;
	uint64_t value = 5;

	(void)state;
	parse("virt:4G?cache=64M&block=4096&line=3000&huge=2T", &uri);
	assert_int_equal(weir_uri_take_bytes(&uri, "cache", 1, UINT64_MAX, &value), 0);
	assert_true(value == 64ull << 20);
	assert_int_equal(weir_uri_take_bytes(&uri, "block", 512, 4096, &value), 0);
	assert_true(value == 4096);
	assert_int_equal(weir_uri_take_bytes(&uri, "absent", 512, 4096, &value), 0);
	assert_true(value == 4096);
	assert_int_equal(weir_uri_take_bytes(&uri, "line", 4096, 1ull << 20, &value), -EINVAL);
	assert_says("line=3000");
	assert_says("from 4K to 1M");
	assert_int_equal(weir_uri_take_bytes(&uri, "huge", 512, 1000, &value), -EINVAL);
	assert_says("huge=2T");
	assert_says("from 512 to 1000");
	assert_true(value == 4096);
	weir_uri_release(&uri);
}

static void parses_sizes_strictly(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = { { "0", 0 },
		     { "1", 1 },
		     { "64K", 64 << 10 },
		     { "7M", 7 << 20 },
		     { "4G", 4ull << 30 },
		     { "16777215T", 16777215ull << 40 },
		     { "18446744073709551615", UINT64_MAX } };
	static const char *const bad[] = { "",
					   "K",
					   "1k",
					   "1KB",
					   "1KiB",
					   "-1",
					   " 1",
					   "1 K",
					   "16777216T",
					   "18446744073709551616",
					   "1P",
					   "1.5G",
					   "99999999999999999999" };
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(weir_parse_bytes(good[i].text, &bytes), 0);
		assert_true(bytes == good[i].bytes);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		bytes = 3;
		assert_int_equal(weir_parse_bytes(bad[i], &bytes), -EINVAL);
		assert_true(bytes == 3);
		assert_says(bad[i]);
		assert_says("64M");
	}
}

static void takes_one_of_the_choices(void **state)
{
	static const char *const direct[] = { "auto", "on", "off", NULL };
	static const char *const one[] = { "tcp", NULL };
	struct weir_uri uri;
	unsigned value = 9;

	(void)state;
	parse("file:/x?direct=off&mode=On&kind=udp", &uri);
	assert_int_equal(weir_uri_take_choice(&uri, "absent", direct, &value), 0);
	assert_int_equal(value, 9);
	assert_int_equal(weir_uri_take_choice(&uri, "direct", direct, &value), 0);
	assert_int_equal(value, 2);
	assert_int_equal(weir_uri_take_choice(&uri, "mode", direct, &value), -EINVAL);
	assert_says("mode=On");
	assert_says("mode is auto, on or off");
	assert_int_equal(weir_uri_take_choice(&uri, "kind", one, &value), -EINVAL);
	assert_says("kind is tcp");
	assert_int_equal(value, 2);
	weir_uri_release(&uri);
}

static void names_the_unknown_key_and_the_known_ones(void **state)
{
	struct weir_uri uri;
	uint64_t value;

	(void)state;
	parse("file:/x?depth=4&detph=8&other=1", &uri);
	assert_int_equal(weir_uri_take_u64(&uri, "depth", 1, 64, &value), 0);
	assert_int_equal(weir_uri_finish(&uri, "depth, direct"), -EINVAL);
	assert_says("'detph'");
	assert_says("detph=8");
	assert_says("file: knows depth, direct");
	weir_uri_release(&uri);
	parse("mem:1G?a=b", &uri);
	assert_int_equal(weir_uri_finish(&uri, ""), -EINVAL);
	assert_says("mem: knows no keys");
	weir_uri_release(&uri);
}

static void keeps_the_latest_sentence(void **state)
{
	char expected[1024];
	char long_text[2000];

	(void)state;
	assert_int_equal(weir_fail(ENOENT, "first %d", 1), -ENOENT);
	assert_string_equal(weir_last_error(), "first 1");
	assert_int_equal(weir_fail(EIO, "after '%s'", weir_last_error()), -EIO);
	assert_string_equal(weir_last_error(), "after 'first 1'");
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	weir_fail(EIO, "%s", long_text);
	snprintf(expected, sizeof(expected), "%.1023s", long_text);
	assert_string_equal(weir_last_error(), expected);
}

static void says_nothing_before_the_first_failure(void **state)
{
	(void)state;
	assert_string_equal(weir_last_error(), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_nothing_before_the_first_failure),
		cmocka_unit_test(splits_scheme_body_and_parameters),
		cmocka_unit_test(takes_a_path_as_written),
		cmocka_unit_test(decodes_escapes),
		cmocka_unit_test(refuses_what_is_malformed),
		cmocka_unit_test(takes_sixteen_parameters),
		cmocka_unit_test(takes_whole_numbers_within_limits),
		cmocka_unit_test(takes_sizes_with_suffixes),
		cmocka_unit_test(parses_sizes_strictly),
		cmocka_unit_test(takes_one_of_the_choices),
		cmocka_unit_test(names_the_unknown_key_and_the_known_ones),
		cmocka_unit_test(keeps_the_latest_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
