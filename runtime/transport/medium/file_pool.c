/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium/file_pool.c: io_uring's entries carried out by system calls of threads, where io_uring is not to be
 * had.
 *
 * Owns: the threads, and what is on its way between them and controller threads. An entry says what it says
 * in an io_uring, and has the same result. Knows nothing of requests.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "file.h"

enum { STACK_BYTES = 64 << 10 };

/**
 * struct file_pool - threads that carry out entries of all queues
 * @lock: guards what follows
 * @work: something is in @first, or @stopping
 * @first: entries nobody has begun, in order
 * @last: where the next one goes
 * @stopping: threads end once nothing is left
 * @fds: by enum file_way
 * @thread_count: threads that run
 */
struct file_pool {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct file_entry *first;
	struct file_entry **last;
	bool stopping;
	int fds[FILE_WAYS];
	unsigned thread_count;
	pthread_t threads[FILE_POOL_THREADS];
};

static int call(const struct file_pool *pool, const struct file_entry *entry)
{
	const struct io_uring_sqe *sqe = &entry->sqe;
	struct iovec piece = { (void *)(uintptr_t)sqe->addr, sqe->len };
	const struct iovec *vector = (const struct iovec *)(uintptr_t)sqe->addr;
	int fd = sqe->fd == FILE_SYNC ? entry->queue->sync : pool->fds[sqe->fd];
	off_t offset = (off_t)sqe->off;
	ssize_t result;

	switch (sqe->opcode) {
	case IORING_OP_READ: result = preadv2(fd, &piece, 1, offset, 0); break;
	case IORING_OP_READV: result = preadv2(fd, vector, (int)sqe->len, offset, 0); break;
	case IORING_OP_WRITE: result = pwritev2(fd, &piece, 1, offset, sqe->rw_flags); break;
	case IORING_OP_WRITEV: result = pwritev2(fd, vector, (int)sqe->len, offset, sqe->rw_flags); break;
	case IORING_OP_FSYNC: result = fdatasync(fd); break;
	case IORING_OP_FALLOCATE: result = fallocate(fd, (int)sqe->len, offset, (off_t)sqe->addr); break;
	default: return -EINVAL;
	}
	return result < 0 ? -errno : (int)result;
}

/* pool.E0: pairs with pool.E1 in file_queue_ended(): the result, and the bytes that were moved. */
static void end(struct file_entry *entry)
{
	struct file_queue *queue = entry->queue;
	struct file_entry *seen = __atomic_load_n(&queue->ended, __ATOMIC_RELAXED); /* a guess for the CAS */

	do
		entry->next = seen;
	while (!__atomic_compare_exchange_n(&queue->ended, &seen, entry, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED));
}

/* The next entry; NULL when the pool stops. */
static struct file_entry *next(struct file_pool *pool)
{
	struct file_entry *entry;

	pthread_mutex_lock(&pool->lock);
	while (!pool->first && !pool->stopping)
		pthread_cond_wait(&pool->work, &pool->lock);
	entry = pool->first;
	if (entry) {
		pool->first = entry->next;
		if (!pool->first)
			pool->last = &pool->first;
	}
	pthread_mutex_unlock(&pool->lock);
	return entry;
}

static void *pool_main(void *argument)
{
	struct file_pool *pool = argument;
	struct file_entry *entry;

	while ((entry = next(pool)) != NULL) {
		entry->result = call(pool, entry);
		end(entry);
	}
	return NULL;
}

/* Signals are for the program's own threads. */
static int start(struct file_pool *pool)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int error = pthread_attr_init(&attributes);

	if (error)
		return -error;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&pool->threads[pool->thread_count], &attributes, pool_main, pool);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (!error)
		pool->thread_count++;
	return -error;
}

int file_pool_create(unsigned depth, const int fds[FILE_WAYS], struct file_pool **out)
{
	struct file_pool *pool = calloc(1, sizeof(*pool));
	int error = 0;

	*out = pool;
	if (!pool)
		return -ENOMEM;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	pool->last = &pool->first;
	memcpy(pool->fds, fds, sizeof(pool->fds));
	while (!error && pool->thread_count < FILE_POOL_THREADS && pool->thread_count < depth)
		error = start(pool);
	return pool->thread_count ? 0 : error; /* fewer are slower, not wrong */
}

void file_pool_destroy(struct file_pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->stopping = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned i = 0; i < pool->thread_count; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

int file_queue_create(struct file_pool *pool, unsigned depth, int sync, struct file_queue **out)
{
	struct file_queue *queue = calloc(1, sizeof(*queue) + depth * sizeof(struct file_entry));

	*out = queue;
	if (!queue)
		return -ENOMEM;
	queue->pool = pool;
	queue->sync = sync;
	queue->prepared_end = &queue->prepared;
	for (unsigned i = 0; i < depth; i++) {
		queue->entries[i].queue = queue;
		file_queue_give(queue, &queue->entries[i]);
	}
	return 0;
}

struct io_uring_sqe *file_queue_take(struct file_queue *queue)
{
	struct file_entry *entry = queue->free;

	queue->free = entry->next;
	entry->next = NULL;
	*queue->prepared_end = entry;
	queue->prepared_end = &entry->next;
	return &entry->sqe;
}

void file_queue_give(struct file_queue *queue, struct file_entry *entry)
{
	entry->next = queue->free;
	queue->free = entry;
}

void file_queue_push(struct file_queue *queue)
{
	struct file_pool *pool = queue->pool;

	if (!queue->prepared)
		return;
	pthread_mutex_lock(&pool->lock);
	*pool->last = queue->prepared;
	pool->last = queue->prepared_end;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	queue->prepared = NULL;
	queue->prepared_end = &queue->prepared;
}

struct file_entry *file_queue_ended(struct file_queue *queue)
{
	/* relaxed: an empty list carries nothing */
	if (!__atomic_load_n(&queue->ended, __ATOMIC_RELAXED))
		return NULL;
	return __atomic_exchange_n(&queue->ended, NULL, __ATOMIC_ACQUIRE); /* pool.E1: pairs with pool.E0 */
}
