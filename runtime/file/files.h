/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * files.h: files into and out of registered memory, for the files of this folder.
 *
 * Owns: batches of requests, and the threads that carry them out. A batch is cut into pieces. A thread takes as many
 * pieces as one of its areas of staging has room for, has the system read them all, hands the lot to the device, and
 * takes the next area meanwhile; writes go the other way. Pieces whose place the host sees need no staging.
 */
#ifndef WEIR_RUNTIME_FILES_H
#define WEIR_RUNTIME_FILES_H

#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <weir/file.h>

#include "../context.h"

enum {
	FILES_AREA_BYTES = 1 << 20,  /* staging that is handed to the device at a time */
	FILES_AREAS = 4,             /* of a thread */
	FILES_MOST_PIECES = 512,     /* of an area */
	FILES_MOST_THREADS = 16,
	FILES_LEAST_PIECE = 64 << 10,
	FILES_LEAST_SHARE = 128 << 10, /* less is not worth another thread */
	FILES_ALIGN = 4096,          /* what O_DIRECT gets: no device wants more of what Linux 6 mounts */
	FILES_SENTENCE = 512,
};

/**
 * struct weir_registration - registered memory
 * @host: where the host sees it, or NULL
 * @under_way: requests on it that have not ended; under the mutex
 */
struct weir_registration {
	struct weir_context *context;
	struct weir_registration *next;
	uint64_t address;
	uint64_t bytes;
	char *host;
	enum weir_file_path path;
	char reason[160];
	size_t under_way;
};

/**
 * struct file_target - a descriptor, as a batch finds it
 * @direct: O_DIRECT
 * @edges: the same file without O_DIRECT, opened when first needed; -1: not yet. Under the mutex
 */
struct file_target {
	int file;
	int flags;
	bool direct;
	int edges;
};

/**
 * struct file_state - how far a request is
 * @left: bytes whose piece has not ended
 * @end: where the first piece that ended short or failed ended; at first the request's length
 * @error: why, if it failed
 * @target: index of the descriptor
 */
struct file_state {
	uint64_t left;
	uint64_t end;
	int error;
	uint32_t target;
};

/**
 * struct weir_file_batch - requests, and how far they are
 * @next_io, @next_at: what is to be given out next; under the mutex, as all that follows
 * @piece_bytes: longest piece, a power of two
 * @share_bytes: what a thread takes at a time
 * @ended: requests; results are written before (E0)
 * @failed: index of the first that failed
 * @enqueued: nobody waits for it: whoever ends it resumes @gate and frees it
 */
struct weir_file_batch {
	struct weir_files *files;
	struct weir_file_batch *next;
	struct weir_file_io *io;
	size_t count;
	size_t next_io;
	uint64_t next_at;
	uint64_t piece_bytes;
	uint64_t share_bytes;
	struct file_state *states;
	struct file_target *targets;
	uint32_t target_count;
	_Atomic size_t ended;
	size_t failed;
	int error;
	char sentence[FILES_SENTENCE];
	bool enqueued;
	void *gate;
};

/**
 * struct file_piece - what one system call moves
 * @batch, @io: whose it is
 * @at: first byte within the request
 * @bytes: of the request
 * @staged: goes through @position of the area; else to its place
 * @edge: past O_DIRECT, through the page cache
 * @skew: bytes before @position that are read, too, since O_DIRECT wants it so
 * @got: how many of @bytes; negative: errno
 */
struct file_piece {
	struct weir_file_batch *batch;
	size_t io;
	uint64_t at;
	uint32_t bytes;
	uint32_t position;
	uint32_t skew;
	bool staged;
	bool edge;
	int64_t got;
};

/**
 * struct file_area - staging, and the pieces in it
 * @memory: FILES_AREA_BYTES, then the moves and the arguments of a kernel
 * @address: the same for lanes
 * @stream: of the backend, or NULL
 * @busy: something is in the stream
 * @operation: what the pieces do
 * @error: the device failed, with @sentence
 */
struct file_area {
	char *memory;
	uint64_t address;
	void *stream;
	bool busy;
	uint32_t operation;
	uint32_t used;
	size_t count;
	struct file_piece pieces[FILES_MOST_PIECES];
	struct weir_move moves[FILES_MOST_PIECES];
	size_t move_count;
	int error;
	char sentence[FILES_SENTENCE];
};

/** struct file_worker - a thread with its ring and its areas; the first has no thread: it is whoever waits */
struct file_worker {
	struct weir_files *files;
	pthread_t thread;
	bool started;
	bool has_ring;
	struct io_uring ring;
	unsigned turn;
	struct file_area areas[FILES_AREAS];
	struct weir_file_stats stats;
};

/**
 * struct weir_files - all of a context's
 * @first: batches of which something is left to be given out
 * @deferred: batches that wait in a stream
 * @running: batches given to the threads that have not ended
 * @failure: of an enqueued batch, for weir_sync()
 */
struct weir_files {
	struct weir_context *context;
	struct weir_backend *backend;
	pthread_mutex_t mutex;
	pthread_cond_t work;
	pthread_cond_t ended;
	bool stop;
	struct weir_file_batch *first;
	size_t deferred;
	size_t running;
	int failure;
	char failure_sentence[FILES_SENTENCE];
	unsigned thread_limit;
	unsigned thread_count; /* workers there are, the first included */
	bool with_uring;
	struct file_worker *workers[FILES_MOST_THREADS];
	struct weir_registration *registrations;
};

/** weir_files_get() - a context's, made when first needed; NULL with a sentence */
struct weir_files *weir_files_get(struct weir_context *context);
/** weir_files_close() - wait for all requests, end the threads, forget the registrations; launches have ended */
void weir_files_close(struct weir_context *context);
/** weir_files_failure() - of what was enqueued: the first failure since the last call, with its sentence */
int weir_files_failure(struct weir_context *context);
/** weir_files_threads() - start those that @bytes are worth; 0 or a negative errno if not even one could be */
int weir_files_threads(struct weir_files *files, uint64_t bytes, bool wanted);

/** file_batch_make() - check requests, and note them; a negative errno with a sentence if one cannot be */
int file_batch_make(struct weir_files *files, struct weir_file_io *io, size_t count, struct weir_file_batch **out);
/** file_batch_begin() - give it to the threads */
void file_batch_begin(struct weir_file_batch *batch);
/** file_batch_take() - pieces for an area, which is empty; false if there is nothing to do. Mutex not held. */
bool file_batch_take(struct weir_files *files, struct file_area *area);
/** file_batch_report() - an area's pieces have ended */
void file_batch_report(struct weir_files *files, struct file_area *area);
/** file_batch_drop() - undo file_batch_make() */
void file_batch_drop(struct weir_file_batch *batch);

/** file_worker_make() - ring and staging */
int file_worker_make(struct weir_files *files, struct file_worker **out);
void file_worker_end(struct file_worker *worker);
/** file_worker_help() - work until nothing is left to be taken, and all that was taken has ended */
void file_worker_help(struct file_worker *worker);
/** file_worker_main() - of a thread */
void *file_worker_main(void *worker);

/** file_system_run() - the system calls of an area's pieces; sets what each @got */
void file_system_run(struct file_worker *worker, struct file_area *area);

/** file_moves_begin() - staging to its places, or the other way; may leave it to the area's stream */
void file_moves_begin(struct file_worker *worker, struct file_area *area);
/** file_moves_end() - wait for that */
void file_moves_end(struct file_worker *worker, struct file_area *area);

/** file_piece_io() - the request of a piece */
static inline struct weir_file_io *file_piece_io(const struct file_piece *piece)
{
	return &piece->batch->io[piece->io];
}

/** file_piece_place() - its place within the registered memory */
static inline uint64_t file_piece_place(const struct file_piece *piece)
{
	return file_piece_io(piece)->at + piece->at;
}

#endif
