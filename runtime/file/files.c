/* SPDX-License-Identifier: BSD-3-Clause */
/* What a context has for files: made when it is first needed, ended with the context. */
#include "files.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../backend/error.h"

/* One core is left to the program; WEIR_FILE_THREADS says otherwise. */
static unsigned choose_limit(void)
{
	const char *asked = getenv("WEIR_FILE_THREADS");
	unsigned long number = asked ? strtoul(asked, NULL, 10) : 0;
	cpu_set_t set;
	int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 2;

	if (!number)
		number = cores > 2 ? (unsigned long)cores - 1 : 2;
	return number < FILES_MOST_THREADS ? (unsigned)number : FILES_MOST_THREADS;
}

struct weir_files *weir_files_get(struct weir_context *context)
{
	struct weir_files *files = context->files;

	if (files)
		return files;
	files = calloc(1, sizeof(*files));
	if (!files) {
		weir_fail(ENOMEM, "no memory for reading files");
		return NULL;
	}
	files->context = context;
	files->backend = context->backend;
	files->thread_limit = choose_limit();
	files->with_uring = !getenv("WEIR_FILE_NO_URING");
	pthread_mutex_init(&files->mutex, NULL);
	pthread_cond_init(&files->work, NULL);
	pthread_cond_init(&files->ended, NULL);
	pthread_cond_init(&files->caller, NULL);
	file_module_begin(&files->module);
	context->files = files;
	return files;
}

/* Another thread. Mutex held. */
static int add_thread(struct weir_files *files)
{
	struct file_worker *worker;
	int error = file_worker_make(files, &worker);

	if (error)
		return error;
	error = pthread_create(&worker->thread, NULL, file_worker_main, worker);
	if (error) {
		file_worker_end(worker);
		return weir_fail(error, "cannot start thread %u for files: %s", files->thread_count,
				 strerror(error));
	}
	files->workers[files->thread_count++] = worker;
	return 0;
}

/* Too few are no failure, as long as there are @least. */
int weir_files_threads(struct weir_files *files, uint64_t bytes, unsigned least)
{
	uint64_t worth = bytes / FILES_LEAST_SHARE, most = files->thread_limit - 1;
	uint64_t count = worth < most ? worth : most;
	int error = 0;

	count = count < least ? least : count;
	pthread_mutex_lock(&files->mutex);
	while (files->thread_count < count && !error)
		error = add_thread(files);
	if (files->thread_count >= least)
		error = 0;
	pthread_mutex_unlock(&files->mutex);
	return error;
}

/* Another caller's. Mutex held. */
static int add_caller(struct weir_files *files)
{
	struct file_worker *worker;
	int error = file_worker_make(files, &worker);

	if (!error) {
		files->callers[files->caller_count++] = worker;
		files->idle = worker;
	}
	return error;
}

int weir_files_caller(struct weir_files *files, bool waits, struct file_worker **out)
{
	int error = 0;

	pthread_mutex_lock(&files->mutex);
	while (waits && !files->idle && files->caller_count == FILES_MOST_CALLERS)
		pthread_cond_wait(&files->caller, &files->mutex); /* each of them ends, whatever others do */
	if (!files->idle && files->caller_count < FILES_MOST_CALLERS)
		error = add_caller(files);
	*out = files->idle;
	if (*out)
		files->idle = (*out)->idle;
	pthread_mutex_unlock(&files->mutex);
	return error;
}

void weir_files_caller_ends(struct file_worker *caller)
{
	struct weir_files *files = caller ? caller->files : NULL;

	if (!caller)
		return;
	pthread_mutex_lock(&files->mutex);
	caller->idle = files->idle;
	files->idle = caller;
	pthread_cond_signal(&files->caller);
	pthread_mutex_unlock(&files->mutex);
}

void weir_files_forget(struct weir_context *context, uint64_t address)
{
	if (context->files)
		file_module_forget(context->files, address);
}

int weir_files_registered(struct weir_context *context, uint64_t address, uint64_t bytes)
{
	const struct weir_registration *one = context->files ? context->files->registrations : NULL;

	while (one && (one->address - address >= bytes && address - one->address >= one->bytes))
		one = one->next;
	return one ? weir_fail(EBUSY,
			       "cannot free %#" PRIx64 ": %" PRIu64 " bytes at %#" PRIx64
			       " are registered; weir_deregister() them first",
			       address, one->bytes, one->address)
		   : 0;
}

int weir_files_failure(struct weir_context *context)
{
	struct weir_files *files = context->files;
	int failure;

	if (!files)
		return 0;
	pthread_mutex_lock(&files->mutex);
	failure = files->failure;
	files->failure = 0;
	if (failure)
		weir_fail(-failure, "%s", files->failure_sentence);
	pthread_mutex_unlock(&files->mutex);
	return failure;
}

static void wait_for_all(struct weir_files *files)
{
	pthread_mutex_lock(&files->mutex);
	while (files->deferred || files->running)
		pthread_cond_wait(&files->ended, &files->mutex);
	files->stop = true;
	pthread_cond_broadcast(&files->work);
	pthread_mutex_unlock(&files->mutex);
}

/* Batches that nobody waited for, all of which have ended: their handles are none any more. */
static void forget_batches(struct weir_files *files, struct weir_losses *losses)
{
	while (files->submitted) {
		struct weir_file_batch *batch = files->submitted;

		files->submitted = batch->next_submitted;
		weir_losses_add(losses,
				batch->error ? weir_fail(-batch->error, "a batch that nobody waited for: %s",
							 batch->sentence)
					     : 0);
		file_batch_drop(batch);
	}
}

int weir_files_close(struct weir_context *context)
{
	struct weir_losses losses = { .error = 0 };
	struct weir_files *files = context->files;

	if (!files)
		return 0;
	wait_for_all(files);
	weir_losses_add(&losses, weir_files_failure(context));
	forget_batches(files, &losses);
	for (unsigned i = 0; i < files->thread_count; i++) {
		pthread_join(files->workers[i]->thread, NULL);
		file_worker_end(files->workers[i]);
	}
	for (unsigned i = 0; i < files->caller_count; i++)
		file_worker_end(files->callers[i]);
	while (files->registrations) {
		struct weir_registration *next = files->registrations->next;

		file_module_unpin(files, files->registrations->pin);
		weir_handle_retire(files->registrations);
		files->registrations = next;
	}
	file_module_end(files);
	free(files->kept);
	pthread_cond_destroy(&files->caller);
	pthread_cond_destroy(&files->ended);
	pthread_cond_destroy(&files->work);
	pthread_mutex_destroy(&files->mutex);
	free(files);
	context->files = NULL;
	return weir_losses_end(&losses);
}

static void add_stats(struct weir_file_stats *sum, const struct file_worker *worker)
{
	const struct weir_file_stats *of = &worker->stats;

	sum->read_bytes += of->read_bytes;
	sum->written_bytes += of->written_bytes;
	sum->direct_bytes += of->direct_bytes;
	sum->module_bytes += of->module_bytes;
	sum->pulled_bytes += of->pulled_bytes;
	sum->copied_bytes += of->copied_bytes;
	sum->edges += of->edges;
	sum->uring |= worker->has_ring;
}

/* Relaxed: as they are counted. */
static void add_plain(struct weir_file_stats *sum, const struct weir_files *files)
{
	uint64_t read = atomic_load_explicit(&files->plain_read, memory_order_relaxed);
	uint64_t written = atomic_load_explicit(&files->plain_written, memory_order_relaxed);

	sum->read_bytes += read;
	sum->written_bytes += written;
	sum->direct_bytes += read + written;
	sum->module_bytes += atomic_load_explicit(&files->plain_module, memory_order_relaxed);
}

/* Other threads may be reading meanwhile, and more of them come. */
static void add_all(struct weir_file_stats *sum, struct weir_files *files)
{
	pthread_mutex_lock(&files->mutex);
	for (unsigned i = 0; i < files->thread_count; i++)
		add_stats(sum, files->workers[i]);
	for (unsigned i = 0; i < files->caller_count; i++)
		add_stats(sum, files->callers[i]);
	sum->threads = files->thread_count + files->caller_count;
	pthread_mutex_unlock(&files->mutex);
	add_plain(sum, files);
}

int weir_file_stats(struct weir_context *context, struct weir_file_stats *stats)
{
	struct weir_file_stats sum = { .size = sizeof(sum) };
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_file_stats");

	if (error || (error = weir_given(stats, "weir_file_stats", "stats")) != 0)
		return error;
	if (context->files)
		add_all(&sum, context->files);
	return weir_result_give(stats, &sum, sizeof(sum), "weir_file_stats");
}
