/* SPDX-License-Identifier: BSD-3-Clause */
#include "lines.h"
#include "number.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#define BUFFER_BYTES  (256u << 10)
#define EXCERPT_BYTES 48

int graph_lines_open(struct graph_lines *lines, const char *path, struct graph_error *error)
{
	memset(lines, 0, sizeof(*lines));
	int status = graph_input_open(&lines->input, path, error);
	if (status)
		return status;
	lines->buffer = malloc(BUFFER_BYTES);
	if (lines->buffer)
		return 0;
	graph_input_close(&lines->input);
	return graph_fail_memory(error, BUFFER_BYTES, "a read buffer");
}

void graph_lines_close(struct graph_lines *lines)
{
	graph_input_close(&lines->input);
	free(lines->buffer);
	lines->buffer = NULL;
}

void graph_lines_rewind(struct graph_lines *lines)
{
	lines->begin = lines->filled = 0;
	lines->position = lines->number = 0;
}

/* Keep the start of an unfinished line and fetch what follows it. */
static int refill(struct graph_lines *lines, struct graph_error *error)
{
	uint64_t left = lines->input.bytes - lines->position;

	memmove(lines->buffer, lines->buffer + lines->begin, lines->filled - lines->begin);
	lines->filled -= lines->begin;
	lines->begin = 0;
	size_t room = BUFFER_BYTES - lines->filled;
	if (!room)
		return graph_fail(
			error, -EILSEQ,
			"%s, line %llu is longer than %u bytes: this is no text graph, so check the "
			"file or its extension",
			lines->input.path, (unsigned long long)lines->number + 1, BUFFER_BYTES);
	size_t bytes = left < room ? (size_t)left : room;
	int status = graph_input_read_at(&lines->input, lines->position, lines->buffer + lines->filled, bytes,
					 error);
	if (status)
		return status;
	lines->position += bytes;
	lines->filled += bytes;
	return 0;
}

static void take_line(struct graph_lines *lines, size_t bytes, size_t with_end)
{
	lines->text = lines->buffer + lines->begin;
	lines->bytes = bytes;
	lines->begin += with_end;
	lines->number++;
}

int graph_lines_next(struct graph_lines *lines, bool *more, struct graph_error *error)
{
	*more = true;
	for (;;) {
		size_t held = lines->filled - lines->begin;
		const char *start = lines->buffer + lines->begin;
		const char *end = memchr(start, '\n', held);
		if (end) {
			take_line(lines, (size_t)(end - start), (size_t)(end - start) + 1);
			return 0;
		}
		if (lines->position == lines->input.bytes) {
			*more = held != 0; /* the last line may lack its end */
			if (held)
				take_line(lines, held, held);
			return 0;
		}
		int status = refill(lines, error);
		if (status)
			return status;
	}
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool is_data(const struct graph_lines *lines)
{
	size_t i = 0;

	while (i < lines->bytes && is_blank(lines->text[i]))
		i++;
	return i < lines->bytes && lines->text[i] != '#' && lines->text[i] != '%';
}

int graph_lines_next_data(struct graph_lines *lines, bool *more, struct graph_error *error)
{
	int status;

	do {
		status = graph_lines_next(lines, more, error);
	} while (!status && *more && !is_data(lines));
	return status;
}

int graph_lines_numbers(const struct graph_lines *lines, uint64_t *numbers, int capacity)
{
	const char *at = lines->text;
	const char *const end = at + lines->bytes;

	for (int count = 0;; count++) {
		while (at < end && is_blank(*at))
			at++;
		if (at == end || count > capacity)
			return count;
		const char *const start = at;
		uint64_t value = 0;
		for (; at < end && *at >= '0' && *at <= '9'; at++)
			if (!graph_multiply(value, 10, &value) ||
			    !graph_add(value, (uint64_t)(*at - '0'), &value))
				return -1;
		if (at == start || (at < end && !is_blank(*at)))
			return -1;
		if (count < capacity)
			numbers[count] = value;
	}
}

int graph_lines_fail(const struct graph_lines *lines, struct graph_error *error, const char *format, ...)
{
	char excerpt[EXCERPT_BYTES + 1], why[512];
	size_t bytes = lines->bytes < EXCERPT_BYTES ? lines->bytes : EXCERPT_BYTES;
	va_list arguments;

	for (size_t i = 0; i < bytes; i++)
		excerpt[i] = lines->text[i] >= ' ' && lines->text[i] <= '~' ? lines->text[i] : '?';
	excerpt[bytes] = '\0';
	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	return graph_fail(error, -EILSEQ, "%s, line %llu (\"%s%s\"): %s", lines->input.path,
			  (unsigned long long)lines->number, excerpt, lines->bytes > bytes ? "..." : "", why);
}
