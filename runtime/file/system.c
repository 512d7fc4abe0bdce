/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * system.c: the system calls of an area's pieces: one io_uring_enter() for all of them where io_uring is to
 * be had, else a pread() or pwrite() for each.
 *
 * Either may do less than was asked for. What is left is done one by one: that is the end of a file, or rare.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "../backend/error.h"
#include "files.h"

/** struct call - one system call: the piece's bytes, and for O_DIRECT what surrounds them */
struct call {
	int file;
	bool write;
	bool direct;
	char *memory;
	uint64_t offset;
	size_t bytes;
};

/* The file without O_DIRECT, for edges. Return: a descriptor, or a negative errno. */
static int edges_of(struct weir_files *files, struct file_target *target, uint32_t operation)
{
	char name[64];

	pthread_mutex_lock(&files->mutex);
	if (target->edges < 0) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", target->file);
		target->edges = open(name, O_CLOEXEC | (target->flags & O_SYNC) | /* with O_DSYNC in it */
						   (operation == WEIR_FILE_READ ? O_RDONLY : O_WRONLY));
		if (target->edges < 0)
			target->edges = -errno - 1; /* below -1: why there is none */
	}
	pthread_mutex_unlock(&files->mutex);
	return target->edges >= 0 ? target->edges : target->edges + 1;
}

static struct call call_of(struct file_worker *worker, struct file_area *area, const struct file_piece *piece)
{
	const struct weir_file_io *io = file_piece_io(piece);
	struct file_target *target = &piece->batch->targets[piece->batch->states[piece->io].target];
	struct call call = { .file = io->file,
			     .write = io->operation == WEIR_FILE_WRITE,
			     .direct = target->direct && !piece->edge,
			     .offset = io->offset + piece->at,
			     .bytes = piece->bytes };

	if (piece->edge)
		call.file = edges_of(worker->files, target, io->operation);
	if (!piece->staged) {
		call.memory = io->registration->host + file_piece_offset(piece);
		return call;
	}
	call.memory = area->memory + piece->position - piece->skew;
	call.offset -= piece->skew;
	call.bytes += piece->skew;
	if (call.direct)
		call.bytes = (call.bytes + FILES_ALIGN - 1) / FILES_ALIGN * FILES_ALIGN;
	return call;
}

static ssize_t call_now(const struct call *call, size_t done)
{
	return call->write ? pwrite(call->file, call->memory + done, call->bytes - done,
				    (off_t)(call->offset + done))
			   : pread(call->file, call->memory + done, call->bytes - done,
				   (off_t)(call->offset + done));
}

/* What a first try left over, which @did bytes or failed with it. Return: all bytes done, or a negative
 * errno. */
static int64_t call_rest(const struct call *call, int64_t did)
{
	bool again = did == -EAGAIN || did == -EINTR;
	size_t done = did > 0 ? (size_t)did : 0;

	if (call->file < 0)
		return call->file;
	if (did == 0 || (did < 0 && !again))
		return did;
	/* A direct read that ends within a block has come to the end of the file. */
	while (done < call->bytes && !(call->direct && done % FILES_ALIGN)) {
		ssize_t more = call_now(call, done);

		if (more < 0 && errno == EINTR)
			continue;
		if (more < 0 && done == 0)
			return -errno;
		if (more <= 0)
			break;
		done += (size_t)more;
	}
	return (int64_t)done;
}

/* Of what the call did, the piece's. */
static void take_result(struct file_worker *worker, struct file_area *area, struct file_piece *piece,
			int64_t did)
{
	struct call call = call_of(worker, area, piece);
	int64_t all = call_rest(&call, did), mine = all - (int64_t)piece->skew;

	piece->got = all < 0                        ? all
		     : mine < 0                     ? 0
		     : mine < (int64_t)piece->bytes ? mine
						    : (int64_t)piece->bytes;
	if (piece->got <= 0)
		return;
	*(call.write ? &worker->stats.written_bytes : &worker->stats.read_bytes) += (uint64_t)piece->got;
	worker->stats.edges += piece->edge;
	worker->stats.direct_bytes += piece->staged ? 0 : (uint64_t)piece->got;
	worker->stats.module_bytes +=
		!piece->staged && file_piece_io(piece)->registration->pin ? (uint64_t)piece->got : 0;
}

static void run_calls(struct file_worker *worker, struct file_area *area)
{
	for (size_t i = 0; i < area->count; i++)
		take_result(worker, area, &area->pieces[i], -EAGAIN);
}

/* A piece that is not sent is done by hand. */
static bool send_piece(struct file_worker *worker, struct file_area *area, size_t index)
{
	struct call call = call_of(worker, area, &area->pieces[index]);
	struct io_uring_sqe *sqe = call.file < 0 ? NULL : io_uring_get_sqe(&worker->ring);

	area->pieces[index].got = -EAGAIN;
	if (!sqe)
		return false;
	if (call.write)
		io_uring_prep_write(sqe, call.file, call.memory, (unsigned)call.bytes, call.offset);
	else
		io_uring_prep_read(sqe, call.file, call.memory, (unsigned)call.bytes, call.offset);
	io_uring_sqe_set_data64(sqe, index);
	return true;
}

/* All that was sent must come back: the kernel has its memory until then. */
static void collect(struct file_worker *worker, struct file_area *area, unsigned sent)
{
	struct io_uring_cqe *cqe;

	while (sent) {
		int error = io_uring_submit_and_wait(&worker->ring, 1);
		unsigned head, seen = 0;

		io_uring_for_each_cqe(&worker->ring, head, cqe)
		{
			area->pieces[io_uring_cqe_get_data64(cqe)].got = cqe->res;
			seen++;
		}
		io_uring_cq_advance(&worker->ring, seen);
		sent -= seen;
		if (error < 0 && error != -EINTR && error != -EAGAIN && error != -EBUSY && !seen)
			break;
	}
}

static void run_ring(struct file_worker *worker, struct file_area *area)
{
	unsigned sent = 0;

	for (size_t i = 0; i < area->count; i++)
		sent += send_piece(worker, area, i);
	collect(worker, area, sent);
	for (size_t i = 0; i < area->count; i++)
		take_result(worker, area, &area->pieces[i], area->pieces[i].got);
}

static bool came_straight(const struct file_piece *piece)
{
	return !piece->staged && piece->got > 0 && file_piece_io(piece)->registration->pin;
}

/* Once for all pieces that an SSD has put into the device's memory itself. */
static void see_arrived(struct file_worker *worker, struct file_area *area)
{
	bool any = false;
	int error;

	for (size_t i = 0; i < area->count; i++)
		any |= came_straight(&area->pieces[i]);
	error = any ? file_module_arrived(worker->files) : 0;
	if (!error)
		return;
	area->error = error;
	snprintf(area->sentence, sizeof(area->sentence), "%s", weir_last_error());
	for (size_t i = 0; i < area->count; i++)
		if (came_straight(&area->pieces[i]))
			area->pieces[i].got = error;
}

void file_system_run(struct file_worker *worker, struct file_area *area)
{
	if (worker->has_ring && area->count > 1)
		run_ring(worker, area);
	else
		run_calls(worker, area);
	if (area->operation == WEIR_FILE_READ)
		see_arrived(worker, area);
}
