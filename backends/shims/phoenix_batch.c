/* SPDX-License-Identifier: BSD-3-Clause */
/* Phoenix's batches: requests of several devices, and of plain memory, submitted together and waited for
 * together. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "phoenix_shim.h"

/**
 * struct phxfs_batch - what phxfs_batch_submit_read() gives
 * @requests: the caller's, with @count of them
 * @io: of those that a device does, each device's together
 * @of: which request one of @io is
 * @buffers: what goes with it, or NULL
 * @ready: how many of @io there are
 * @devices: what each device has under way, NULL if nothing
 * @shims: theirs, which outlive phxfs_close()
 */
struct phxfs_batch {
	phxfs_io_req_t *requests;
	int count;
	enum weir_file_operation operation;
	struct weir_file_io *io;
	int *of;
	struct shim_buffer **buffers;
	int ready;
	struct weir_file_batch *devices[PHOENIX_DEVICES];
	struct shim *shims[PHOENIX_DEVICES];
};

static void batch_free(struct phxfs_batch *batch)
{
	free(batch->io);
	free(batch->of);
	free(batch->buffers);
	free(batch);
}

static struct phxfs_batch *batch_make(phxfs_io_req_t *requests, int count, enum weir_file_operation operation)
{
	struct phxfs_batch *batch = calloc(1, sizeof(*batch));
	size_t room = count ? (size_t)count : 1;

	if (!batch)
		return NULL;
	*batch = (struct phxfs_batch){ .requests = requests, .count = count, .operation = operation };
	batch->io = calloc(room, sizeof(*batch->io));
	batch->of = calloc(room, sizeof(*batch->of));
	batch->buffers = calloc(room, sizeof(struct shim_buffer *));
	if (batch->io && batch->of && batch->buffers)
		return batch;
	batch_free(batch);
	return NULL;
}

/* One request of a device's, if it can be one. */
static void take_request(struct phxfs_batch *batch, struct shim *shim, int index)
{
	phxfs_io_req_t *request = &batch->requests[index];
	struct weir_file_io *io = &batch->io[batch->ready];
	int error = -EINVAL;

	*io = (struct weir_file_io){ .file = request->fd,
				     .operation = batch->operation,
				     .bytes = request->nbytes,
				     .offset = (uint64_t)request->f_offset,
				     .result = -EINPROGRESS };
	if (request->buf && request->f_offset >= 0 && request->buf_offset >= 0)
		error = shim_io(shim, request->buf, request->buf_offset, io, &batch->buffers[batch->ready]);
	if (error)
		request->result = error == -EINVAL ? error : -EFAULT;
	else
		batch->of[batch->ready++] = index;
}

static void submit_device(struct phxfs_batch *batch, int device)
{
	struct shim *shim = phoenix_device(device);
	int first = batch->ready, error;

	for (int i = 0; i < batch->count; i++)
		if (batch->requests[i].device_id == device) {
			batch->requests[i].result = -ENODEV;
			if (shim)
				take_request(batch, shim, i);
		}
	batch->shims[device] = shim;
	if (batch->ready == first)
		return;
	error = weir_file_submit(shim->context, batch->io + first, (unsigned)(batch->ready - first),
				 &batch->devices[device]);
	if (!error)
		return;
	/* One cannot be: each by itself, and only that one fails. */
	for (int i = first; i < batch->ready; i++) {
		error = weir_file_batch(shim->context, &batch->io[i], 1);
		if (error && batch->io[i].result == -EINPROGRESS)
			batch->io[i].result = error;
	}
}

static struct phxfs_batch *submit(phxfs_io_req_t *requests, int count, enum weir_file_operation operation)
{
	struct phxfs_batch *batch;

	if (count < 0 || (count && !requests)) {
		errno = EINVAL;
		return NULL;
	}
	batch = batch_make(requests, count, operation);
	for (int i = 0; batch && i < count; i++)
		requests[i].result = requests[i].device_id < PHOENIX_DEVICES ? -EINPROGRESS : -ENODEV;
	for (int device = 0; batch && device < PHOENIX_DEVICES; device++)
		submit_device(batch, device);
	return batch;
}

/* Plain memory needs no device: by the system's own calls, in the waiting one. */
static void move_plain(struct phxfs_batch *batch, phxfs_io_req_t *request)
{
	char *memory = (char *)request->buf + request->buf_offset;
	size_t done = 0;
	ssize_t moved = 0;

	while (done < request->nbytes) {
		off_t at = request->f_offset + (off_t)done;

		moved = batch->operation == WEIR_FILE_READ
				? pread(request->fd, memory + done, request->nbytes - done, at)
				: pwrite(request->fd, memory + done, request->nbytes - done, at);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved <= 0)
			break;
		done += (size_t)moved;
	}
	request->result = done || moved >= 0 ? (ssize_t)done : -errno;
}

int phxfs_batch_wait(phxfs_batch_t *batch)
{
	int failed = 0;

	if (!batch)
		return -EINVAL;
	for (int i = 0; i < batch->count; i++)
		if (batch->requests[i].device_id < 0)
			move_plain(batch, &batch->requests[i]);
	for (int device = 0; device < PHOENIX_DEVICES; device++)
		if (batch->devices[device])
			(void)weir_file_wait(batch->devices[device]); /* each request has its result */
	for (int i = 0; i < batch->ready; i++) {
		phxfs_io_req_t *request = &batch->requests[batch->of[i]];

		request->result = (ssize_t)batch->io[i].result;
		shim_io_ends(batch->shims[request->device_id], batch->buffers[i]);
	}
	for (int i = 0; i < batch->count; i++)
		failed += batch->requests[i].result != (ssize_t)batch->requests[i].nbytes;
	batch_free(batch);
	return failed;
}

phxfs_batch_t *phxfs_batch_submit_read(phxfs_io_req_t *reqs, int n)
{
	return submit(reqs, n, WEIR_FILE_READ);
}

phxfs_batch_t *phxfs_batch_submit_write(phxfs_io_req_t *reqs, int n)
{
	return submit(reqs, n, WEIR_FILE_WRITE);
}

static int at_once(phxfs_batch_t *batch)
{
	return batch ? phxfs_batch_wait(batch) : -errno;
}

int phxfs_read_batch(phxfs_io_req_t *reqs, int n)
{
	return at_once(phxfs_batch_submit_read(reqs, n));
}

int phxfs_write_batch(phxfs_io_req_t *reqs, int n)
{
	return at_once(phxfs_batch_submit_write(reqs, n));
}
