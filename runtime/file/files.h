/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * files.h: files into and out of registered memory, for the files of this folder.
 *
 * Owns: batches of requests, and the threads that carry them out. A batch is cut into pieces. A thread takes
 * as many pieces as one of its areas of staging has room for, has the system read them all, hands the lot to
 * the device, and takes the next area meanwhile; writes go the other way. Pieces whose place the host sees
 * need no staging.
 */
#ifndef WEIR_RUNTIME_FILES_H
#define WEIR_RUNTIME_FILES_H

#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <weir/file.h>

#include "../device/context.h"
#include "module.h"

enum {
	FILES_AREA_BYTES = 1 << 20, /* staging that is handed to the device at a time */
	FILES_AREAS = 4,            /* of a thread */
	FILES_MOST_PIECES = 512,    /* of an area */
	FILES_MOST_THREADS = 16,
	FILES_MOST_CALLERS = 64,
	FILES_LEAST_PIECE = 64 << 10,
	FILES_LEAST_SHARE = 128 << 10, /* less is not worth another thread */
	FILES_ALIGN = 4096,            /* what O_DIRECT gets: no device wants more of what Linux 6 mounts */
	FILES_SENTENCE = 512,
};

/**
 * struct weir_registration - registered memory
 * @host: where the host sees it, or NULL
 * @pin: its pages of the kernel module, if it is these that the host sees
 * @staging: WEIR_FILE_PULL or WEIR_FILE_BOUNCE: how what cannot go straight to its place gets there
 * @under_way: requests on it that have not ended; under the mutex
 */
struct weir_registration {
	struct weir_context *context;
	struct weir_registration *next;
	uint64_t address;
	uint64_t bytes;
	char *host;
	struct file_pin *pin;
	enum weir_file_path path;
	enum weir_file_path staging;
	char reason[256];
	size_t under_way;
};

/**
 * struct file_target - a descriptor, as a batch finds it
 * @direct: O_DIRECT
 * @edges: the same file without O_DIRECT, opened when first needed; -1: not yet. Under the mutex
 * @pair: its file system and the device's memory; NULL: not looked for yet
 * @reaches: its SSD reaches that memory, which has been tried
 * @takes: and writes from there arrive
 * @kept: weir_file_attach() was called for it
 */
struct file_target {
	int file;
	int flags;
	bool direct;
	bool reaches;
	bool takes;
	bool kept;
	int edges;
	struct file_pair *pair;
};

/**
 * struct file_state - how far a request is
 * @bytes: its length; the request is its owner's again once it has its result
 * @left: bytes whose piece has not ended
 * @end: where the first piece that ended short or failed ended; at first the request's length
 * @error: why, if it failed
 * @target: index of the descriptor
 */
struct file_state {
	uint64_t bytes;
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
 * @ended: requests; results are written before (batch.E0)
 * @failed: index of the first that failed
 * @own: so short that its caller does it alone: no thread sees it, and no mutex is needed
 * @enqueued: nobody waits for it: whoever ends it resumes @gate and frees it
 * @listed: it is one of those of weir_file_submit(), a handle
 * @next_submitted: of weir_file_submit(), not waited for yet
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
	bool own;
	bool enqueued;
	void *gate;
	bool listed;
	struct weir_file_batch *next_submitted;
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
	struct weir_move copies[FILES_MOST_PIECES];
	size_t move_count;
	int error;
	char sentence[FILES_SENTENCE];
};

/**
 * struct file_worker - a ring and areas, and who uses them: a thread, or a caller that waits
 * @idle: the next caller's that nobody uses at this moment; under the mutex
 */
struct file_worker {
	struct weir_files *files;
	struct file_worker *idle;
	pthread_t thread;
	bool has_ring;
	struct io_uring ring;
	unsigned iteration;
	struct file_area areas[FILES_AREAS];
	struct weir_file_stats stats;
};

/**
 * struct weir_files - all of a context's
 * @first: batches of which something is left to be given out
 * @deferred: batches that wait in a stream
 * @running: batches given to the threads that have not ended
 * @caller: one of @callers is idle
 * @failure: of an enqueued batch, for weir_sync()
 * @workers: of threads
 * @callers: of those who wait meanwhile, several threads perhaps
 * @idle: of these, the first that nobody uses
 */
struct weir_files {
	struct weir_context *context;
	struct weir_backend *backend;
	pthread_mutex_t mutex;
	pthread_cond_t work;
	pthread_cond_t ended;
	pthread_cond_t caller;
	bool stop;
	struct weir_file_batch *first;
	size_t deferred;
	size_t running;
	int failure;
	char failure_sentence[FILES_SENTENCE];
	unsigned thread_limit; /* a caller among them */
	unsigned thread_count;
	unsigned caller_count;
	bool with_uring;
	struct file_worker *workers[FILES_MOST_THREADS];
	struct file_worker *callers[FILES_MOST_CALLERS];
	struct file_worker *idle;
	struct weir_registration *registrations;
	struct weir_file_batch *submitted; /* that nobody waited for yet; under the mutex */
	struct file_module module;
	struct file_target *kept; /* descriptors that stay what they are, by number; under the mutex */
	size_t kept_count;
	_Atomic uint64_t plain_read; /* bytes of requests that were a single system call, without a worker */
	_Atomic uint64_t plain_written;
	_Atomic uint64_t plain_module;
};

/** weir_files_get() - a context's, made when first needed; NULL with a sentence */
struct weir_files *weir_files_get(struct weir_context *context);
/**
 * weir_files_close() - wait for all requests, end the threads, forget the registrations; launches have ended
 *
 * Return: 0; of what nobody waited for: the first failure, with its sentence.
 */
int weir_files_close(struct weir_context *context);
/** weir_files_failure() - of what was enqueued: the first failure since the last call, with its sentence */
int weir_files_failure(struct weir_context *context);
/** file_target_probe() - what a descriptor is, asked of the system; a negative errno with a sentence that
 * begins with @what */
int file_target_probe(int file, const char *what, struct file_target *target);
/** file_target_kept() - one that weir_file_attach() was called for; false: it was not */
bool file_target_kept(struct weir_files *files, int file, struct file_target *target);
/** file_target_find() - the same, where weir_file_attach() was not called */
int file_target_find(struct weir_files *files, int file, const char *what, struct file_target *target);

/** weir_files_threads() - start those that @bytes are worth beside @least; 0, or a negative errno if there
 * are not @least */
int weir_files_threads(struct weir_files *files, uint64_t bytes, unsigned least);
/** weir_files_caller() - what a caller works with; 0, or a negative errno with a sentence, and @out is NULL.
 * Where all are in use it @waits for one, or else has 0 and NULL */
int weir_files_caller(struct weir_files *files, bool waits, struct file_worker **out);
/** weir_files_caller_ends() - it does not any more; NULL is fine */
void weir_files_caller_ends(struct file_worker *caller);

/** file_batch_make() - check requests, and note them; a negative errno with a sentence if one cannot be */
int file_batch_make(struct weir_files *files, struct weir_file_io *io, size_t count,
		    struct weir_file_batch **out);
/** file_batch_defer() - it is (1), or is not after all (-1), in a stream, from where it will begin */
void file_batch_defer(struct weir_file_batch *batch, int more);
/** file_batch_begin() - give it to the threads; nothing keeps it from being done any more. What it writes is
 * tried before (module.h), unless it is enqueued */
void file_batch_begin(struct weir_file_batch *batch);
/** file_batch_take() - pieces for an area, which is empty: of @until if it is its caller's own, else of any,
 * until nothing of @until is left to be taken; NULL: nothing of any. False if there is nothing to do */
bool file_batch_take(struct weir_files *files, struct weir_file_batch *until, struct file_area *area);
/** file_batch_report() - an area's pieces have ended */
void file_batch_report(struct weir_files *files, struct file_area *area);
/** file_batch_drop() - undo file_batch_make() */
void file_batch_drop(struct weir_file_batch *batch);

/** file_worker_make() - ring and staging */
int file_worker_make(struct weir_files *files, struct file_worker **out);
void file_worker_end(struct file_worker *worker);
/** file_worker_help() - work until file_batch_take() has nothing more for @until, and all that it had has
 * ended */
void file_worker_help(struct file_worker *worker, struct weir_file_batch *until);
/** file_worker_main() - of a thread */
void *file_worker_main(void *worker);

/** file_system_run() - the system calls of an area's pieces; sets what each @got */
void file_system_run(struct file_worker *worker, struct file_area *area);

/** file_copies_begin() - staging to its places, or the other way; may leave it to the area's stream */
void file_copies_begin(struct file_worker *worker, struct file_area *area);
/** file_copies_end() - wait for that */
void file_copies_end(struct file_worker *worker, struct file_area *area);

/** file_piece_io() - the request of a piece */
static inline struct weir_file_io *file_piece_io(const struct file_piece *piece)
{
	return &piece->batch->io[piece->io];
}

/** file_piece_offset() - its place within the registered memory */
static inline uint64_t file_piece_offset(const struct file_piece *piece)
{
	return file_piece_io(piece)->at + piece->at;
}

#endif
