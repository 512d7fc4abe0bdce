/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opened.c: a medium on top of a storage that the runtime opened: nvme:, nvmf:, and whatever comes.
 *
 * Owns: one thread that carries out one request after the other, through lanes of the cpu, and tells
 * the server thread that
 * asked. Slower than a storage that has a medium of its own, by far: one request is under way at a time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <weir/nvme.h>
#include <weir/weir.h>

#include "../backend/error.h"
#include "opened.h"

enum { ZEROS_BYTES = 1 << 20 };

/** struct list - requests, the oldest first; linked by medium_data[0] */
struct list {
	struct weir_io *first;
	struct weir_io *last;
};

/**
 * struct opened - the medium
 * @wanted: to be carried out; under @lock
 * @ended: by server thread; under @lock
 * @events: eventfds, by server thread: something has ended
 * @stop: the thread is to end; under @lock
 */
struct opened {
	struct weir_medium medium;
	struct weir_context *context;
	struct weir_storage *storage;
	pthread_t worker;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct list wanted;
	struct list *ended;
	int *events;
	unsigned threads;
	bool started;
	bool stop;
	unsigned char *zeros;
	char path[160];
};

static struct weir_io *next_of(const struct weir_io *io)
{
	return (struct weir_io *)(uintptr_t)io->medium_data[0];
}

static void add(struct list *list, struct weir_io *io)
{
	io->medium_data[0] = 0;
	if (list->first)
		list->last->medium_data[0] = (uintptr_t)io;
	else
		list->first = io;
	list->last = io;
}

static struct weir_io *take(struct list *list)
{
	struct weir_io *io = list->first;

	if (io)
		list->first = next_of(io);
	return io;
}

static int write_zeros(struct opened *opened, uint64_t offset, uint64_t bytes)
{
	int error = 0;

	for (uint64_t done = 0; done < bytes && !error; done += ZEROS_BYTES)
		error = weir_storage_write(opened->storage, offset + done, opened->zeros,
					   bytes - done < ZEROS_BYTES ? bytes - done : ZEROS_BYTES);
	return error;
}

static int move(struct opened *opened, const struct weir_io *io)
{
	uint64_t offset = io->offset_bytes;
	int error = 0;

	for (unsigned i = 0; i < io->iov_count && !error; offset += io->iov[i++].iov_len)
		error = io->kind == WEIR_IO_READ
				? weir_storage_read(opened->storage, offset, io->iov[i].iov_base,
						    io->iov[i].iov_len)
				: weir_storage_write(opened->storage, offset, io->iov[i].iov_base,
						     io->iov[i].iov_len);
	return error;
}

static uint16_t carry_out(struct opened *opened, const struct weir_io *io)
{
	int error = 0;

	if (io->kind == WEIR_IO_READ || io->kind == WEIR_IO_WRITE)
		error = move(opened, io);
	else if (io->kind == WEIR_IO_ZERO)
		error = write_zeros(opened, io->offset_bytes, io->bytes);
	if (!error && (io->kind == WEIR_IO_FLUSH || io->force_unit_access))
		error = weir_storage_flush(opened->storage);
	if (!error)
		return NVME_STATUS_SUCCESS;
	return io->kind == WEIR_IO_READ ? NVME_STATUS_UNRECOVERED_READ : NVME_STATUS_WRITE_FAULT;
}

static void notify(struct opened *opened, struct weir_io *io)
{
	uint64_t one = 1;
	unsigned thread = io->thread;

	pthread_mutex_lock(&opened->lock);
	add(&opened->ended[thread], io);
	pthread_mutex_unlock(&opened->lock);
	if (write(opened->events[thread], &one, sizeof(one)) < 0) /* full: it polls as readable anyway */
		return;
}

static void *run(void *argument)
{
	struct opened *opened = argument;
	struct weir_io *io;

	for (;;) {
		pthread_mutex_lock(&opened->lock);
		while (!opened->wanted.first && !opened->stop)
			pthread_cond_wait(&opened->changed, &opened->lock);
		io = take(&opened->wanted);
		pthread_mutex_unlock(&opened->lock);
		if (!io)
			return NULL;
		io->status = carry_out(opened, io);
		notify(opened, io);
	}
}

static bool opened_submit(struct weir_medium *medium, struct weir_io *io)
{
	struct opened *opened = (struct opened *)medium;

	pthread_mutex_lock(&opened->lock);
	add(&opened->wanted, io);
	pthread_cond_signal(&opened->changed);
	pthread_mutex_unlock(&opened->lock);
	return true;
}

static unsigned opened_poll(struct weir_medium *medium, unsigned thread)
{
	struct opened *opened = (struct opened *)medium;
	struct weir_io *io, *next;
	unsigned count = 0;
	uint64_t reported;

	if (read(opened->events[thread], &reported, sizeof(reported)) < 0)
		return 0;
	pthread_mutex_lock(&opened->lock);
	io = opened->ended[thread].first;
	opened->ended[thread].first = NULL;
	pthread_mutex_unlock(&opened->lock);
	for (; io; io = next, count++) {
		next = next_of(io);
		io->done(io);
	}
	return count;
}

static int opened_descriptor(const struct weir_medium *medium, unsigned thread)
{
	return ((const struct opened *)medium)->events[thread];
}

static void opened_close(struct weir_medium *medium)
{
	struct opened *opened = (struct opened *)medium;

	if (opened->started) {
		pthread_mutex_lock(&opened->lock);
		opened->stop = true;
		pthread_cond_signal(&opened->changed);
		pthread_mutex_unlock(&opened->lock);
		pthread_join(opened->worker, NULL);
	}
	if (opened->storage)
		weir_storage_close(opened->storage);
	if (opened->context)
		weir_context_close(opened->context);
	for (unsigned i = 0; opened->events && i < opened->threads; i++)
		if (opened->events[i] >= 0)
			close(opened->events[i]);
	pthread_cond_destroy(&opened->changed);
	pthread_mutex_destroy(&opened->lock);
	free(opened->zeros);
	free(opened->events);
	free(opened->ended);
	free(opened);
}

static const struct weir_medium_ops opened_ops = {
	.size = sizeof(opened_ops),
	.submit = opened_submit,
	.poll = opened_poll,
	.close = opened_close,
	.descriptor = opened_descriptor,
};

static int open_storage(struct opened *opened, const char *uri, bool read_only)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	int error = weir_context_open("cpu", NULL, &opened->context);

	if (!error)
		error = weir_storage_open(opened->context, uri, WEIR_OPTIONS(storage, .read_only = read_only),
					  &opened->storage);
	if (!error)
		error = weir_storage_info(opened->storage, &info);
	if (error)
		return error;
	snprintf(opened->path, sizeof(opened->path), "%s, one request at a time", info.path);
	opened->medium = (struct weir_medium){ .ops = &opened_ops,
					       .block_bytes = (uint32_t)info.block_bytes,
					       .path = opened->path,
					       .bytes = info.bytes / info.block_bytes * info.block_bytes,
					       .read_only = read_only || info.read_only };
	opened->medium.end_bytes = opened->medium.bytes;
	return 0;
}

static int make_threads(struct opened *opened, unsigned threads)
{
	int error;

	opened->threads = threads;
	opened->ended = calloc(threads, sizeof(*opened->ended));
	opened->events = malloc(threads * sizeof(*opened->events));
	opened->zeros = calloc(1, ZEROS_BYTES);
	for (unsigned i = 0; opened->events && i < threads; i++)
		opened->events[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!opened->ended || !opened->events || !opened->zeros)
		return weir_fail(ENOMEM, "no memory for a storage of %u threads", threads);
	for (unsigned i = 0; i < threads; i++)
		if (opened->events[i] < 0)
			return weir_fail(EMFILE, "a storage of %u threads needs as many descriptors",
					 threads);
	error = pthread_create(&opened->worker, NULL, run, opened);
	opened->started = !error;
	return error ? weir_fail(error, "a thread for a storage cannot be started: %s", strerror(error)) : 0;
}

int weir_medium_opened(const char *uri, bool read_only, unsigned threads, struct weir_medium **out)
{
	struct opened *opened = calloc(1, sizeof(*opened));
	int error;

	if (!opened)
		return weir_fail(ENOMEM, "storage \"%s\": no memory", uri);
	pthread_mutex_init(&opened->lock, NULL);
	pthread_cond_init(&opened->changed, NULL);
	error = open_storage(opened, uri, read_only);
	if (!error)
		error = make_threads(opened, threads);
	if (error) {
		opened_close(&opened->medium);
		return error;
	}
	*out = &opened->medium;
	return 0;
}
