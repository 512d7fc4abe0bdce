/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium/trace.c: a medium in front of another, which notes every request in a file.
 *
 * Owns: the file, a line for each request that begins and for each that ends. The line of a beginning is
 * there before the medium behind sees the request, the line of an end before the controller hears of it: of
 * two lines the first one happened first, whatever the thread. Each line is one system call, so that nothing
 * is lost with the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../backend/error.h"
#include "medium.h"
#include <weir/nvme.h>

enum { LINE_BYTES = 128 };

/**
 * struct trace - the medium in front
 * @ops: as the medium behind has them
 * @behind: it
 * @file: where lines go
 * @requests: how many have come; counted by all threads
 * @lost: a line could not be written
 */
struct trace {
	struct weir_medium medium;
	struct weir_medium_ops ops;
	struct weir_medium *behind;
	int file;
	uint64_t requests;
	bool lost;
};

/** struct traced - a request to the medium behind, in the name of @given, the controller's */
struct traced {
	struct weir_io io;
	struct weir_io *given;
	struct trace *trace;
	uint64_t number;
};

static const char *kind_name(enum weir_io_kind kind)
{
	static const char *const names[] = { "read", "write", "flush", "zero",
					     "discard" }; /* enum weir_io_kind */

	return names[kind];
}

static void write_line(struct trace *trace, const char *line, int bytes)
{
	if (write(trace->file, line, (size_t)bytes) == bytes)
		return;
	/* relaxed: a thread may say so once more */
	if (!__atomic_exchange_n(&trace->lost, true, __ATOMIC_RELAXED))
		weir_report("a line of a medium's trace could not be written (%s); the trace has holes",
			    strerror(errno));
}

static void note_begin(const struct traced *traced)
{
	const struct weir_io *io = &traced->io;
	char line[LINE_BYTES];

	write_line(traced->trace, line,
		   snprintf(line, sizeof(line), "begin %" PRIu64 " %s %" PRIu64 " %" PRIu64 "%s\n",
			    traced->number, kind_name(io->kind), io->offset_bytes, io->bytes,
			    io->force_unit_access ? " fua" : ""));
}

static void note_end(const struct traced *traced, const char *how)
{
	char line[LINE_BYTES];

	write_line(
		traced->trace, line,
		snprintf(line, sizeof(line), "%s %" PRIu64 " %#x\n", how, traced->number, traced->io.status));
}

static void traced_done(struct weir_io *io)
{
	struct traced *traced = (struct traced *)io;
	struct weir_io *given = traced->given;

	note_end(traced, "end");
	given->status = io->status;
	free(traced);
	given->done(given);
}

static bool trace_submit(struct weir_medium *medium, struct weir_io *io)
{
	struct trace *trace = (struct trace *)medium;
	struct traced *traced = malloc(sizeof(*traced));

	if (!traced) {
		io->status = NVME_STATUS_INTERNAL_ERROR;
		io->done(io);
		return true;
	}
	/* relaxed: a number dispenser */
	*traced =
		(struct traced){ *io, io, trace, __atomic_add_fetch(&trace->requests, 1, __ATOMIC_RELAXED) };
	traced->io.done = traced_done;
	traced->io.status = 0;
	note_begin(traced);
	if (trace->behind->ops->submit(trace->behind, &traced->io))
		return true;
	note_end(traced, "refused");
	free(traced);
	return false;
}

static unsigned trace_poll(struct weir_medium *medium, unsigned thread)
{
	struct weir_medium *behind = ((struct trace *)medium)->behind;

	return behind->ops->poll(behind, thread);
}

static void trace_memory_changed(struct weir_medium *medium, unsigned thread,
				 const struct weir_dma_view *view)
{
	struct weir_medium *behind = ((struct trace *)medium)->behind;

	behind->ops->memory_changed(behind, thread, view);
}

static void trace_expect(const struct weir_medium *medium, enum weir_io_kind kind, uint64_t offset_bytes)
{
	const struct weir_medium *behind = ((const struct trace *)medium)->behind;

	behind->ops->expect(behind, kind, offset_bytes);
}

static void trace_close(struct weir_medium *medium)
{
	struct trace *trace = (struct trace *)medium;

	trace->behind->ops->close(trace->behind);
	close(trace->file);
	free(trace);
}

int weir_medium_trace_open(const char *path, struct weir_medium *behind, struct weir_medium **out)
{
	struct trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return weir_fail(ENOMEM, "no memory for a medium");
	trace->file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (trace->file < 0) {
		int error = errno;

		free(trace);
		return weir_fail(error, "cannot write the trace %s: %s", path, strerror(error));
	}
	trace->ops = (struct weir_medium_ops){
		.size = sizeof(trace->ops),
		.submit = trace_submit,
		.poll = trace_poll,
		.memory_changed = behind->ops->memory_changed ? trace_memory_changed : NULL,
		.close = trace_close,
		.expect = behind->ops->expect ? trace_expect : NULL,
	};
	trace->medium = *behind;
	trace->medium.ops = &trace->ops;
	trace->behind = behind;
	*out = &trace->medium;
	return 0;
}
