/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_trace.h: what a storage's medium was asked for, in its order, as a storage opened with trace=FILE
 * notes it.
 *
 * Owns: reading such a file, and what follows from it: a write is durable if it was forced, or if a flush
 * that began after the write had ended has ended well.
 */
#ifndef WEIR_TESTS_REQUEST_TRACE_H
#define WEIR_TESTS_REQUEST_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRACE_REQUESTS = 1 << 16 };

/** struct trace_request - when it began and ended, as line numbers; @ended 0: it has not */
struct trace_request {
	char kind; /* of "read", "write", "flush", "zero", "discard": its first letter */
	bool forced;
	uint64_t offset;
	uint64_t bytes;
	unsigned began;
	unsigned ended;
	unsigned status;
};

/** struct trace - all of them; freed by trace_free() */
struct trace {
	struct trace_request *requests;
	unsigned count;
};

static inline void trace_line(struct trace *trace, const char *line, unsigned number)
{
	unsigned request, status;
	char kind[16], forced[8] = "";
	unsigned long long offset, bytes;

	if (sscanf(line, "begin %u %15s %llu %llu %7s", &request, kind, &offset, &bytes, forced) >= 4 &&
	    request < TRACE_REQUESTS) {
		trace->requests[request] = (struct trace_request){
			kind[0], !strcmp(forced, "fua"), offset, bytes, number, 0, 0
		};
		trace->count = request >= trace->count ? request + 1 : trace->count;
	} else if (sscanf(line, "end %u %x", &request, &status) == 2 && request < TRACE_REQUESTS) {
		trace->requests[request].ended = number;
		trace->requests[request].status = status;
	} else if (sscanf(line, "refused %u", &request) == 1 && request < TRACE_REQUESTS) {
		trace->requests[request].began = 0; /* it comes again, as another */
	}
}

static inline struct trace trace_read(const char *path)
{
	struct trace trace = { calloc(TRACE_REQUESTS, sizeof(*trace.requests)), 0 };
	FILE *file = fopen(path, "re");
	unsigned number = 0;
	char line[160];

	while (file && trace.requests && fgets(line, sizeof(line), file))
		trace_line(&trace, line, ++number);
	if (file)
		fclose(file);
	return trace;
}

static inline void trace_free(struct trace *trace)
{
	free(trace->requests);
}

/** trace_count() - requests of a kind that ended well */
static inline unsigned trace_count(const char *path, char kind)
{
	struct trace trace = trace_read(path);
	unsigned count = 0;

	for (unsigned i = 0; i < trace.count; i++) {
		const struct trace_request *request = &trace.requests[i];

		count += request->began && request->kind == kind && request->ended && !request->status;
	}
	trace_free(&trace);
	return count;
}

/** trace_volatile() - writes that a power failure just now could undo */
static inline unsigned trace_volatile(const char *path)
{
	struct trace trace = trace_read(path);
	unsigned count = 0, flushed = 0; /* the latest beginning of a flush that has ended well */

	for (unsigned i = 0; i < trace.count; i++) {
		const struct trace_request *request = &trace.requests[i];

		if (request->began > flushed && request->kind == 'f' && request->ended && !request->status)
			flushed = request->began;
	}
	for (unsigned i = 0; i < trace.count; i++) {
		const struct trace_request *request = &trace.requests[i];

		if (request->began && (request->kind == 'w' || request->kind == 'z') &&
		    !(request->forced && request->ended) && (!request->ended || request->ended > flushed))
			count++;
	}
	trace_free(&trace);
	return count;
}

#endif
