/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that carry out requests, each with a ring of its own and areas that it fills in turns. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../backend/error.h"
#include "files.h"

enum { BEHIND_BYTES = 16 << 10 }; /* for the moves of an area, and their arguments */

_Static_assert(BEHIND_BYTES >= FILES_MOST_PIECES * sizeof(struct weir_move) + 64,
	       "a list of moves fits behind the staging");

/* What the area has begun ends: data is in its place, or in the file. */
static void finish(struct file_worker *worker, struct file_area *area)
{
	if (!area->count)
		return;
	file_copies_end(worker, area);
	if (area->operation == WEIR_FILE_WRITE && !area->error)
		file_system_run(worker, area);
	file_batch_report(worker->files, area);
}

static void begin(struct file_worker *worker, struct file_area *area)
{
	if (area->operation == WEIR_FILE_READ)
		file_system_run(worker, area);
	file_copies_begin(worker, area);
	if (!area->busy)
		finish(worker, area);
}

/* The next area: end what it did last, and begin with it what there is to do. False: nothing. */
static bool take_iteration(struct file_worker *worker, struct weir_file_batch *until)
{
	struct file_area *area = &worker->areas[worker->iteration];

	finish(worker, area);
	if (!file_batch_take(worker->files, until, area))
		return false;
	worker->iteration = (worker->iteration + 1) % FILES_AREAS;
	begin(worker, area);
	return true;
}

void file_worker_help(struct file_worker *worker, struct weir_file_batch *until)
{
	while (take_iteration(worker, until))
		;
	for (unsigned i = 0; i < FILES_AREAS; i++)
		finish(worker, &worker->areas[(worker->iteration + i) % FILES_AREAS]);
}

void *file_worker_main(void *argument)
{
	struct file_worker *worker = argument;
	struct weir_files *files = worker->files;
	bool stop = false;

	while (!stop) {
		file_worker_help(worker, NULL);
		pthread_mutex_lock(&files->mutex);
		while (!files->first && !files->stop)
			pthread_cond_wait(&files->work, &files->mutex);
		stop = files->stop && !files->first;
		pthread_mutex_unlock(&files->mutex);
	}
	return NULL;
}

/* Less than a ring is none: io_uring may be forbidden here. */
static bool make_ring(struct file_worker *worker)
{
	struct io_uring_params params = { .flags = IORING_SETUP_COOP_TASKRUN };
	int error = io_uring_queue_init_params(FILES_MOST_PIECES, &worker->ring, &params);

	if (error == -EINVAL) { /* a kernel before 5.19 does not know this flag */
		memset(&params, 0, sizeof(params));
		error = io_uring_queue_init_params(FILES_MOST_PIECES, &worker->ring, &params);
	}
	return error == 0;
}

static int make_area(struct file_worker *worker, struct file_area *area)
{
	struct weir_backend *backend = worker->files->backend;
	void *host = NULL;
	int error = backend->ops->allocate(backend, FILES_AREA_BYTES + BEHIND_BYTES, WEIR_MEMORY_HOST, &host,
					   &area->address);

	area->memory = host;
	if (!error && backend->ops->stream_open)
		error = backend->ops->stream_open(backend, &area->stream);
	return error;
}

void file_worker_end(struct file_worker *worker)
{
	struct weir_backend *backend = worker->files->backend;

	for (unsigned i = 0; i < FILES_AREAS; i++) {
		struct file_area *area = &worker->areas[i];

		if (area->stream)
			backend->ops->stream_close(backend, area->stream);
		if (area->memory)
			backend->ops->release(backend, area->address, FILES_AREA_BYTES + BEHIND_BYTES,
					      WEIR_MEMORY_HOST);
	}
	if (worker->has_ring)
		io_uring_queue_exit(&worker->ring);
	free(worker);
}

int file_worker_make(struct weir_files *files, struct file_worker **out)
{
	struct file_worker *worker = calloc(1, sizeof(*worker));
	int error = 0;

	if (!worker)
		return weir_fail(ENOMEM, "no memory for a thread that reads files");
	worker->files = files;
	worker->has_ring = files->with_uring && make_ring(worker);
	for (unsigned i = 0; i < FILES_AREAS && !error; i++)
		error = make_area(worker, &worker->areas[i]);
	if (error) {
		file_worker_end(worker);
		return error;
	}
	*out = worker;
	return 0;
}
