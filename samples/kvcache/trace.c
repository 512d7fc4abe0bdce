/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/device.h"

enum { SHARED_BLOCKS = 16, LEAST_BLOCKS = 16, MOST_BLOCKS = 1024, OFTEN = 8 };

/* One more block. Grows in steps of a power of two. */
static bool add(struct kvcache_trace *trace, uint64_t block)
{
	if ((trace->count & (trace->count - 1)) == 0) {
		size_t room = trace->count ? 2 * trace->count : 1;
		uint64_t *grown = realloc(trace->blocks, room * sizeof(*grown));

		if (!grown)
			return false;
		trace->blocks = grown;
	}
	trace->blocks[trace->count++] = block;
	return true;
}

static int no_memory(char *error)
{
	return sample_fail(error, -ENOMEM, "no memory for the trace");
}

/* Page @page of conversation @who: the first ones are everybody's. */
static uint64_t page_of(uint64_t seed, uint64_t who, uint64_t page, uint64_t blocks)
{
	return sample_scramble(seed ^ sample_scramble(page < SHARED_BLOCKS ? page : (who << 20) + page)) %
	       blocks;
}

int kvcache_trace_make(struct kvcache_trace *trace, uint64_t seed, uint64_t blocks, uint64_t count,
		       char *error)
{
	uint64_t people = blocks / 256 + 1;

	*trace = (struct kvcache_trace){ .blocks = NULL };
	while (trace->count < count) {
		uint64_t dice = sample_scramble(seed + 77 * ++trace->requests),
			 most = LEAST_BLOCKS << (dice >> 8) % 7;
		uint64_t who = sample_scramble(dice) % (dice & 1 ? people : people / OFTEN + 1);

		for (uint64_t page = 0; page < most && page < MOST_BLOCKS && trace->count < count; page++)
			if (!add(trace, page_of(seed, who, page, blocks)))
				return no_memory(error);
	}
	return 0;
}

/* "7" or "100-131" at *@text, which moves on. */
static bool take_range(char **text, uint64_t *first, uint64_t *last)
{
	char *end;

	errno = 0;
	if (**text < '0' || **text > '9')
		return false;
	*first = *last = strtoull(*text, &end, 10);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		*last = strtoull(end + 1, &end, 10);
	*text = end;
	return !errno && *last >= *first && (!*end || strchr(" \t\r\n", *end));
}

static int take_line(struct kvcache_trace *trace, char *line, size_t number, const char *path,
		     uint64_t blocks, char *error)
{
	uint64_t first, last;

	for (char *at = line + strspn(line, " \t\r\n"); *at; at += strspn(at, " \t\r\n")) {
		char *begin = at;

		if (!take_range(&at, &first, &last))
			return sample_fail(error, -EINVAL,
					   "%s, line %zu: \"%.20s\" is neither a block's number nor a range "
					   "such as 100-131",
					   path, number, begin);
		if (last >= blocks)
			return sample_fail(
				error, -ERANGE,
				"%s, line %zu: there is no block %llu: the file has %llu, from 0 on", path,
				number, (unsigned long long)last, (unsigned long long)blocks);
		for (uint64_t block = first; block <= last; block++)
			if (!add(trace, block))
				return no_memory(error);
	}
	return 0;
}

int kvcache_trace_read(struct kvcache_trace *trace, const char *path, uint64_t blocks, char *error)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0, number = 0;
	int code = 0;

	*trace = (struct kvcache_trace){ .blocks = NULL };
	if (!file)
		return sample_fail(error, -errno, "cannot read the trace %s: %s", path, strerror(errno));
	while (!code && getline(&line, &room, file) > 0) {
		size_t before = trace->count;

		number++;
		line[strcspn(line, "\r\n")] = '\0';
		if (line[0] != '#')
			code = take_line(trace, line, number, path, blocks, error);
		trace->requests += trace->count > before;
	}
	if (!code && ferror(file)) /* what came before is not all of it */
		code = sample_fail(error, -errno, "cannot read the trace %s: %s", path, strerror(errno));
	free(line);
	fclose(file);
	if (!code && !trace->count)
		code = sample_fail(error, -EINVAL, "the trace %s names no block", path);
	return code;
}
