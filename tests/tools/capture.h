/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tools/capture.h: a tool's main() inside a test, and what it prints. A test includes the tool's main.c, over
 * stand-ins for what the tool calls.
 */
#ifndef WEIR_TEST_CAPTURE_H
#define WEIR_TEST_CAPTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

enum { CAPTURED_BYTES = 1 << 16, CAPTURED_WORDS = 96, CAPTURED_LINE = 1 << 13 };

/** captured - the latest standard output; captured_errors - the latest standard error */
static char captured[CAPTURED_BYTES], captured_errors[CAPTURED_BYTES];

/** struct capture - descriptor @number of @stream, which was @before, in @file */
struct capture {
	FILE *stream, *file;
	int number, before;
};

static inline struct capture capture_begin(FILE *stream, int number)
{
	struct capture capture = { .stream = stream, .file = tmpfile(), .number = number };

	(void)fflush(stream);
	capture.before = dup(number);
	assert_true(capture.file && capture.before >= 0 && dup2(fileno(capture.file), number) == number);
	return capture;
}

static inline void capture_end(struct capture *capture, char text[CAPTURED_BYTES])
{
	(void)fflush(capture->stream);
	assert_int_equal(dup2(capture->before, capture->number), capture->number);
	(void)close(capture->before);
	rewind(capture->file);
	text[fread(text, 1, CAPTURED_BYTES - 1, capture->file)] = '\0';
	(void)fclose(capture->file);
}

/** capture_run() - @line, words with blanks between them, as the command line of @run. Return: its exit
 * status; what it printed is in captured and captured_errors. The words stay until the next one. */
static inline int capture_run(int (*run)(int count, char **words), const char *line)
{
	static char copy[CAPTURED_LINE];
	char *words[CAPTURED_WORDS + 1] = { NULL }, *rest = NULL;
	struct capture out, errors;
	int count = 0, status;

	assert_true((size_t)snprintf(copy, sizeof(copy), "%s", line) < sizeof(copy));
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(count < CAPTURED_WORDS);
		words[count++] = word;
	}
	out = capture_begin(stdout, STDOUT_FILENO);
	errors = capture_begin(stderr, STDERR_FILENO);
	status = run(count, words);
	capture_end(&errors, captured_errors);
	capture_end(&out, captured);
	return status;
}

/** capture_expect_json() - @text is the JSON @expected, key by key */
static inline void capture_expect_json(const char *text, const char *expected)
{
	json_t *found = json_loads(text, JSON_DECODE_ANY, NULL),
	       *wanted = json_loads(expected, JSON_DECODE_ANY, NULL);
	int same = json_equal(found, wanted);

	assert_non_null(wanted);
	if (!same) /* with keys sorted, for whoever compares them; longer than cmocka's messages */
		printf("# found    %s\n# expected %s\n",
		       json_dumps(found, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY),
		       json_dumps(wanted, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY));
	json_decref(found);
	json_decref(wanted);
	assert_true(same);
}

#endif
