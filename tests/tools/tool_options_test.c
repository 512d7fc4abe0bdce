/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of a command line: what each kind of option takes and refuses, at both ends, and with which
 * words. */
#include "capture.h"

#include <errno.h>
#include <stdlib.h>

#include <weir/weir.h>

#include "tool_options.h"

enum { TEXT_BYTES = 4096 };

/** taken - what the options of @program are read into */
static struct {
	bool flag, given;
	uint32_t u32, bounded, bytes32, word;
	uint64_t u64, bytes, behind;
	double real, free_real;
	const char *text, *operand;
	struct tool_names list, each;
	enum weir_policy policy;
	char parsed[64];
} taken;

static int parse(void *to, const char *text)
{
	(void)snprintf(to, sizeof(taken.parsed), "%s", text);
	return strcmp(text, "bad") ? 0 : -EINVAL;
}

/* Says what is wrong by itself. */
static int parse_and_say(void *to, const char *text)
{
	(void)to;
	return weir_parse_bytes(text, &taken.behind);
}

static const char *const words_of_one[] = { "", "first", "second", NULL };
static struct tool_word word = { words_of_one, &taken.word };
static struct tool_parser parser = { parse, taken.parsed }, sayer = { parse_and_say, NULL };

static const struct tool_option table[] = {
	{ .name = "", .help = "A heading" },
	{ "flag", NULL, TOOL_FLAG, &taken.flag, 0, 0, "a flag", NULL, NULL },
	{ "u32", "N", TOOL_U32, &taken.u32, 0, 0, "a number", NULL, &taken.given },
	{ "bounded", "N", TOOL_U32, &taken.bounded, 5, 9, "a number\nof two lines", NULL, NULL },
	{ "u64", "N", TOOL_U64, &taken.u64, 1, 0, "a number", NULL, NULL },
	{ "bytes", "SIZE", TOOL_BYTES, &taken.bytes, 512, 0, "a size", NULL, NULL },
	{ "bytes32", "SIZE", TOOL_BYTES_U32, &taken.bytes32, 0, 0, "a size", NULL, NULL },
	{ "real", "X", TOOL_REAL, &taken.real, 0.5, 2, "a number", NULL, NULL },
	{ "free-real", "X", TOOL_REAL, &taken.free_real, 0.25, 0, "a number", NULL, NULL },
	{ "text", "TEXT", TOOL_TEXT, &taken.text, 0, 0, "a text", "give one", NULL },
	{ "list", "A,B", TOOL_LIST, &taken.list, 0, 0, "names", NULL, NULL },
	{ "each", "A", TOOL_EACH, &taken.each, 0, 0, "a name", NULL, NULL },
	{ "policy", "NAME", TOOL_POLICY, &taken.policy, 0, 0, "a policy", NULL, NULL },
	{ "word", "WORD", TOOL_WORD, &word, 0, 0, "a word", NULL, NULL },
	{ "parsed", "X", TOOL_PARSED, &parser, 0, 0, "anything", "it is anything but bad", NULL },
	{ "said", "X", TOOL_PARSED, &sayer, 0, 0, "a size", NULL, NULL },
	{ "o", "TEXT", TOOL_TEXT, &taken.text, 0, 0, NULL, NULL, NULL },
	{ .name = NULL },
};

static const struct tool_program program = { .name = "weir-x",
					     .about = "usage: weir-x [options]",
					     .options = table,
					     .operand = "one thing",
					     .to = &taken.operand,
					     .notes = "A note." };

static int run(int count, char **words)
{
	memset(&taken, 0, sizeof(taken));
	return tool_parse(&program, count, words);
}

/* "weir-x: SENTENCE; see weir-x --help" and nothing else. */
static void expect_refusal(const char *line, const char *sentence)
{
	char expected[TEXT_BYTES + sizeof("weir-x: ; see weir-x --help\n")];

	if (capture_run(run, line) != 2)
		fail_msg("%s is accepted", line);
	(void)snprintf(expected, sizeof(expected), "weir-x: %s; see weir-x --help\n", sentence);
	assert_string_equal(captured_errors, expected);
	assert_string_equal(captured, "");
}

static void expect_taken(const char *line)
{
	if (capture_run(run, line) != -1)
		fail_msg("%s: %s", line, captured_errors);
	assert_string_equal(captured, "");
	assert_string_equal(captured_errors, "");
}

static void test_numbers_at_both_ends(void **state)
{
	(void)state;
	expect_taken("weir-x --u32 4294967295 --bounded 9 --u64 18446744073709551615 --bytes 16777215T "
		     "--bytes32 4294967295"
		     " --real 2 --free-real 1e300");
	assert_int_equal(taken.u32, UINT32_MAX);
	assert_int_equal(taken.bounded, 9);
	assert_true(taken.u64 == UINT64_MAX && taken.bytes == 16777215ull << 40 &&
		    taken.bytes32 == UINT32_MAX);
	assert_true(taken.real == 2 && taken.free_real == 1e300 && taken.given);
	expect_taken("weir-x --bounded 5 --u64 1 --bytes 512 --bytes32 0 --real 0.5 --free-real .25");
	assert_true(taken.bounded == 5 && taken.u64 == 1 && taken.bytes == 512 && taken.real == 0.5 &&
		    !taken.given);
	expect_taken("weir-x --u32 0 --bytes32 4M --bytes 18446744073709551615");
	assert_true(taken.bytes32 == 4 << 20 && taken.bytes == UINT64_MAX && taken.given);
}

static void test_numbers_that_are_refused(void **state)
{
	static const struct {
		const char *option, *bounds, *values[8];
	} rows[] = {
		{ "u32",
		  "it is a whole number from 0 to 4294967295",
		  { "4294967296", "18446744073709551615", "18446744073709551616", "-1", "+1", "0x1", "1K",
		    "" } },
		{ "bounded", "it is a whole number from 5 to 9", { "4", "10", "4294967301", "5.0", "x" } },
		{ "u64",
		  "it is a whole number from 1 to 18446744073709551615",
		  { "0", "18446744073709551616", "18446744073709551617", "-18446744073709551615", "1e3" } },
		{ "bytes",
		  "it is a whole number of bytes, or one with K, M, G or T, from 512 to 18446744073709551615",
		  { "511", "0K", "16777216T", "18446744073709551616", "1Q", "1KB", "-1K" } },
		{ "bytes32",
		  "it is a whole number of bytes, or one with K, M, G or T, from 0 to 4294967295",
		  { "4G", "4294967296", "4194304K", "16777215T" } },
		{ "real",
		  "it is a number from 0.5 to 2",
		  { "0.4999", "2.0001", "nan", "inf", "-1", "1x", "x" } },
		{ "free-real", "it is a number of 0.25 at least", { "0.2", "nan", "-inf", "x" } },
	};
	char line[TEXT_BYTES], sentence[TEXT_BYTES];

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned j = 0; j < 8 && rows[i].values[j]; j++) {
			(void)snprintf(line, sizeof(line), "weir-x --%s=%s", rows[i].option,
				       rows[i].values[j]);
			(void)snprintf(sentence, sizeof(sentence), "--%s does not take \"%s\"; %s",
				       rows[i].option, rows[i].values[j], rows[i].bounds);
			expect_refusal(line, sentence);
		}
}

/* A line with @count names of option @option, behind each other or each behind its own option. */
static void many_names(char line[TEXT_BYTES], unsigned count, bool list)
{
	size_t used = (size_t)snprintf(line, TEXT_BYTES, "weir-x%s", list ? " --list=" : "");

	for (unsigned i = 0; i < count; i++)
		used += (size_t)snprintf(line + used, TEXT_BYTES - used, list ? "n%u," : " --each=n%u", i);
}

static void test_names(void **state)
{
	char line[TEXT_BYTES];

	(void)state;
	expect_taken("weir-x --list a,b --list c,,d, --each e,f --each g --text t --word second --policy "
		     "sieve --parsed p --flag");
	assert_int_equal(taken.list.count, 2);
	assert_string_equal(taken.list.item[0], "c");
	assert_string_equal(taken.list.item[1], "d");
	assert_int_equal(taken.each.count, 2);
	assert_string_equal(taken.each.item[0], "e,f");
	assert_string_equal(taken.each.item[1], "g");
	assert_string_equal(taken.text, "t");
	assert_true(taken.word == 2 && taken.policy == WEIR_POLICY_SIEVE && taken.flag);
	assert_string_equal(taken.parsed, "p");
	many_names(line, TOOL_MOST_NAMES, false);
	expect_taken(line);
	assert_int_equal(taken.each.count, TOOL_MOST_NAMES);
	assert_string_equal(taken.each.item[TOOL_MOST_NAMES - 1], "n63");
	many_names(line, TOOL_MOST_NAMES + 1, false);
	expect_refusal(line, "--each does not take \"n64\"");
	many_names(line, TOOL_MOST_NAMES, true);
	expect_taken(line);
	assert_int_equal(taken.list.count, TOOL_MOST_NAMES);
	assert_string_equal(taken.list.item[TOOL_MOST_NAMES - 1], "n63");
	many_names(line, TOOL_MOST_NAMES + 1, true);
	assert_int_equal(capture_run(run, line), 2);
}

static void test_words_that_are_refused(void **state)
{
	static const struct {
		const char *words, *sentence;
	} rows[] = {
		{ "--word=third", "--word does not take \"third\"; it is one of first second" },
		{ "--word=", "--word does not take \"\"; it is one of first second" },
		{ "--word=firs", "--word does not take \"firs\"; it is one of first second" },
		{ "--list=,", "--list does not take \",\"" },
		{ "--list=", "--list does not take \"\"" },
		{ "--each=", "--each does not take \"\"" },
		{ "--text=", "--text does not take \"\"; give one" },
		{ "--parsed=bad", "--parsed does not take \"bad\"; it is anything but bad" },
		{ "--flag=1", "--flag=1: this option takes no value" },
		{ "--help=1", "--help=1: this option takes no value" },
		{ "--version=1", "--version=1: this option takes no value" },
		{ "--u32", "--u32 needs a value" },
		{ "-o", "-o needs a value" },
		{ "-x", "-x is no option" },
		{ "--none", "--none is no option" },
		{ "a b", "give one thing" },
	};
	char line[TEXT_BYTES];

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(line, sizeof(line), "weir-x %s", rows[i].words);
		expect_refusal(line, rows[i].sentence);
	}
	assert_int_equal(capture_run(run, "weir-x --said 1Q"), 2); /* in words of its own, and those alone */
	assert_non_null(strstr(captured_errors, "weir-x: '1Q' is not a size: "));
	assert_int_equal(capture_run(run, "weir-x --policy lifo"), 2);
	assert_non_null(strstr(captured_errors, "weir-x: --policy does not take \"lifo\"; "));
	assert_non_null(strstr(captured_errors, "clock, lru, fifo"));
}

static void test_operands_and_letters(void **state)
{
	(void)state;
	expect_taken("weir-x");
	assert_null(taken.operand);
	expect_taken("weir-x thing --flag -o out");
	assert_string_equal(taken.operand, "thing");
	assert_string_equal(taken.text, "out");
	assert_true(taken.flag);
	expect_taken("weir-x --flag -- --u32");
	assert_string_equal(taken.operand, "--u32");
}

static void test_help(void **state)
{
	static const char head[] = "usage: weir-x [options]\n\nA heading\n  --flag                a flag\n";
	static const char *const lines[] = { "weir-x --help", "weir-x -h", "weir-x --flag -h --none" };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(capture_run(run, lines[i]), 0);
		assert_int_equal(strncmp(captured, head, strlen(head)), 0);
		assert_non_null(
			strstr(captured,
			       "\n  --bounded N           a number\n                        of two lines\n"));
		assert_non_null(strstr(
			captured,
			"\n  --help                print this\n  --version             print the version\n"
			"\nA note.\n"));
		assert_null(strstr(captured, "--o "));
		assert_string_equal(captured_errors, "");
	}
	assert_int_equal(capture_run(run, "weir-x --version"), 0);
	assert_int_equal(strncmp(captured, "weir-x ", 7), 0);
	assert_string_equal(captured + 7 + strlen(weir_version()), "\n");
}

/* Commands, and as many operands as each takes. */
static unsigned calls, given;

static int command(char **operands)
{
	for (given = 0; operands[given]; given++)
		;
	calls++;
	return 5;
}

static char **all;
static const struct tool_option no_options[] = { { .name = NULL } };
static const struct tool_program commanded = {
	.name = "weir-y", .about = "", .options = no_options, .all = &all
};
static const struct tool_command commands[] = {
	{ "none", NULL, 0, 0, command },
	{ "one", "THING", 1, 1, command },
	{ "some", "THING...", 1, 0, command },
	{ "few", "THING or two", 0, 2, command },
	{ NULL, NULL, 0, 0, NULL },
};

static int run_commanded(int count, char **words)
{
	int status = tool_parse(&commanded, count, words);

	calls = given = 0;
	return status < 0 ? tool_run(&commanded, commands) : status;
}

static void test_commands(void **state)
{
	static const struct {
		const char *line, *sentence; /* NULL: it is carried out */
		unsigned operands;
	} rows[] = {
		{ "weir-y none", NULL, 0 },
		{ "weir-y one a", NULL, 1 },
		{ "weir-y some a", NULL, 1 },
		{ "weir-y some a b c d", NULL, 4 },
		{ "weir-y few", NULL, 0 },
		{ "weir-y few a b", NULL, 2 },
		{ "weir-y", "a command is missing: give none, one, some or few", 0 },
		{ "weir-y other", "there is no command other: give none, one, some or few", 0 },
		{ "weir-y on", "there is no command on: give none, one, some or few", 0 },
		{ "weir-y none a", "none takes nothing more: \"a\"", 0 },
		{ "weir-y one", "give one THING", 0 },
		{ "weir-y one a b", "give one THING", 0 },
		{ "weir-y some", "give some THING...", 0 },
		{ "weir-y few a b c", "give few THING or two", 0 },
	};
	char expected[TEXT_BYTES];

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(capture_run(run_commanded, rows[i].line), rows[i].sentence ? 2 : 5);
		assert_int_equal(calls, rows[i].sentence == NULL);
		if (!rows[i].sentence) {
			assert_int_equal(given, rows[i].operands);
			continue;
		}
		(void)snprintf(expected, sizeof(expected), "weir-y: %s; see weir-y --help\n",
			       rows[i].sentence);
		assert_string_equal(captured_errors, expected);
	}
}

static void test_one_option_by_its_name(void **state)
{
	char value[] = "7", none[] = "4";

	(void)state;
	memset(&taken, 0, sizeof(taken));
	assert_int_equal(tool_set(&program, "bounded", value), 0);
	assert_int_equal(taken.bounded, 7);
	assert_int_equal(tool_set(&program, "bounded", none), -EINVAL);
	assert_string_equal(weir_last_error(),
			    "--bounded does not take \"4\"; it is a whole number from 5 to 9");
	assert_int_equal(tool_set(&program, "", value), -EINVAL); /* the heading */
	assert_int_equal(tool_set(&program, "none", value), -EINVAL);
	assert_string_equal(weir_last_error(), "--none is no option");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_at_both_ends),
		cmocka_unit_test(test_numbers_that_are_refused),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_words_that_are_refused),
		cmocka_unit_test(test_operands_and_letters),
		cmocka_unit_test(test_help),
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_one_option_by_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
