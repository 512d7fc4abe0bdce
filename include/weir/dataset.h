/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dataset.h: training samples by mini-batch from storages, in a random order that is known in advance.
 *
 * A dataset lies in one or several storages, either where it is (a tar, TFRecord or MDS file, a file of
 * records: weir_dataset_index()) or uploaded from a folder or one of these files (weir_dataset_upload()). A
 * manifest has its sample directory: 16 bytes per sample. Mounting reads the manifest;
 * weir_dataset_sequence() sets the order of an epoch; weir_dataset_bread() returns the next mini-batch: rows
 * in memory of the device or the host, which lanes assembled. While a program uses a batch, the next ones are
 * read. (Zhu et al., "Efficient User-Level Storage Disaggregation for Deep Learning": DLFS; <weir/dlfs.h> has
 * its seven names.)
 *
 * Host only; the rules of <weir/weir.h> hold: 0 or a negative errno and a sentence in weir_last_error(); a
 * dataset belongs to one thread at a time, as its context does. Calls that say "collective" are made by all
 * ranks of a communicator; they return an error on every rank if one rank fails.
 */
#ifndef WEIR_DATASET_H
#define WEIR_DATASET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_dataset;

/** WEIR_DATASET_NO_LABEL - the label of a sample without one */
#define WEIR_DATASET_NO_LABEL UINT32_MAX

/** WEIR_DATASET_MAX_SAMPLE_BYTES - of the longest sample: the directory has 23 bits for a length */
#define WEIR_DATASET_MAX_SAMPLE_BYTES ((1u << 23) - 1)

/**
 * struct weir_dataset_communicator - how ranks of one job exchange bytes
 * @size: sizeof the structure
 * @rank: of this process
 * @ranks: processes
 * @gather: every rank gives @bytes at @mine and receives all ranks' bytes, in rank order, in @all (of
 * malloc()), with each rank's length in @counts[ranks]; 0 or a negative errno
 * @close: frees it
 * @state: the implementation's
 */
struct weir_dataset_communicator {
	size_t size;
	uint32_t rank;
	uint32_t ranks;
	int (*gather)(struct weir_dataset_communicator *communicator, const void *mine, size_t bytes,
		      void **all, size_t *counts);
	void (*close)(struct weir_dataset_communicator *communicator);
	void *state;
};

/**
 * weir_dataset_communicator_open() - the communicator of this job
 * @name: `single`, `mpi` (MPI_COMM_WORLD; initialises MPI if nobody has), or `auto`: mpi under mpirun, else
 * single
 * @out: the communicator; its close() frees it
 *
 * Return: 0; -ENOTSUP: this build has no MPI; -EINVAL; -EIO.
 */
WEIR_API int weir_dataset_communicator_open(const char *name, struct weir_dataset_communicator **out);

/**
 * weir_dataset_agree() - collective: what one rank met becomes the result of all
 * @communicator: of the job; NULL: this process alone
 * @error: 0, or what a call on this rank returned, with its sentence in weir_last_error()
 *
 * Calls that are not collective, such as weir_storage_open() and weir_dataset_bread(), fail on one rank
 * alone, and the others would wait for it in the next collective one. So a program calls this after it has
 * opened its storages, and at the end of each epoch.
 *
 * Return: 0 if @error was 0 on all ranks; else, on each, the error of the first rank that has one, and its
 * sentence, which names that rank.
 */
WEIR_API int weir_dataset_agree(struct weir_dataset_communicator *communicator, int error);

/** typedef weir_dataset_progress - called now and then with what is done; not 0: stop, and leave a state that
 * can be resumed */
typedef int (*weir_dataset_progress)(void *user, uint64_t done, uint64_t total);

/**
 * struct weir_dataset_index_options - how to index data where it lies, or to upload it
 * @size: sizeof the structure
 * @format: `auto`, `tar`, `tfrecord`, `mds`, `cifar10`, `cifar100`, `fixed:BYTES` or `fixed:BYTES:HEADER`
 * (records of BYTES behind a header), and for weir_dataset_upload() also `folder`; NULL: auto
 * @checks: not 0: also check what the format has checksums for (TFRecord: the data)
 * @progress: NULL, or called now and then
 * @user: for @progress
 */
struct weir_dataset_index_options {
	size_t size;
	const char *format;
	uint32_t checks;
	weir_dataset_progress progress;
	void *user;
};

/**
 * weir_dataset_index() - index the data that lies in a storage, and leave it there
 * @storage: a storage that is a tar file, TFRecord file, ... from its first byte on
 * @manifest: file that receives the sample directory; written aside and renamed, so that it is whole or not
 * there
 * @options: NULL for the defaults
 *
 * Return: 0; -EINVAL for what is not of the format, with the byte where it is not; -ECANCELED; what the
 * system says.
 */
WEIR_API int weir_dataset_index(struct weir_storage *storage, const char *manifest,
				const struct weir_dataset_index_options *options);

/**
 * weir_dataset_upload() - copy samples to storages, with a manifest on each
 * @storages: storages, none read-only; all they hold is overwritten
 * @storage_count: 1 to 65535
 * @source: a folder (classes are its subfolders), or a file of any other format
 * @options: NULL for the defaults
 *
 * Samples go to a storage by the hash of their name, and lie there in the order of that hash; so neighbours
 * on the storage are no neighbours in the source. One of a block or more begins at a block. An upload that
 * was interrupted is resumed by the next call with the same source; until it is complete, no mount takes the
 * storages. One that is complete stays as it is, unless a mount would find its manifest damaged or its data
 * changed: then it is done anew.
 *
 * Return: 0; -ENOSPC; -ECANCELED when @options.progress asked for it; what the system says.
 */
WEIR_API int weir_dataset_upload(struct weir_storage *const *storages, unsigned storage_count,
				 const char *source, const struct weir_dataset_index_options *options);

/** enum weir_dataset_lookup - which index finds samples by name */
enum weir_dataset_lookup {
	WEIR_DATASET_BUCKETS, /* a bucket table over the sorted keys */
	WEIR_DATASET_AVL,     /* the paper's balanced tree */
};

/**
 * struct weir_dataset_mount_options - how to mount
 * @size: sizeof the structure
 * @communicator: NULL: this process alone
 * @manifests: for each storage the file that weir_dataset_index() wrote, or NULL: the manifest is in the
 * storage; NULL: all are
 * @chunk_bytes: bytes read at a time where samples are small, a power of two from 64 KiB to 4 MiB; 0: 256
 * KiB. The same on every rank
 * @cache_bytes: memory of the sample cache, at least 4 chunks; 0: 64 MiB
 * @row_bytes: bytes of a row of a batch; 0: the longest sample. Longer samples are cut, their lengths are
 * not. Rounded up to 16
 * @batches: batches in memory at once: the one in use and those ahead, 1 to 16; 0: 3
 * @device: not 0: rows in memory of the device, which the host may not see; 0: in memory that host and device
 * see
 * @lookup: enum weir_dataset_lookup
 * @no_labels: not 0: leave the labels out; else they take 4 bytes per sample if there are any
 */
struct weir_dataset_mount_options {
	size_t size;
	struct weir_dataset_communicator *communicator;
	const char *const *manifests;
	uint32_t chunk_bytes;
	uint64_t cache_bytes;
	uint32_t row_bytes;
	uint32_t batches;
	uint32_t device;
	uint32_t lookup;
	uint32_t no_labels;
};

/**
 * weir_dataset_mount() - collective: make the samples of storages known
 * @context: the context whose lanes load them
 * @storages: the same ones in the same order on every rank, each opened by every rank
 * @storage_count: 1 to 65535
 * @options: NULL for the defaults
 * @out: the dataset
 *
 * Each rank reads the manifests of its share of the storages; then all ranks have all entries. The storages
 * stay open until weir_dataset_unmount().
 *
 * Return: 0; -ENODATA: no manifest there, or an upload that is not complete; -EBADMSG: a manifest whose
 * checksum is wrong; -EPROTO: one of another version; -ESTALE: the data changed since it was indexed;
 * -ENOMEM; the same on every rank.
 */
WEIR_API int weir_dataset_mount(struct weir_context *context, struct weir_storage *const *storages,
				unsigned storage_count, const struct weir_dataset_mount_options *options,
				struct weir_dataset **out);

/**
 * weir_dataset_unmount() - wait for what is under way, then free it; NULL is fine
 *
 * The dataset is gone in any case. Memory that a read has which has not ended stays until the context is
 * closed. Where that is closed already, it has waited for them, and what they met is not told.
 *
 * Return: 0; -EIO: what weir_dataset_bread_enqueue() could not read, or a read into a batch has not ended;
 * -ETIMEDOUT: reads of chunks have not.
 */
WEIR_API int weir_dataset_unmount(struct weir_dataset *dataset);

/**
 * struct weir_dataset_info - what a dataset is
 * @size: sizeof the structure
 * @samples: samples of all storages
 * @bytes: of all samples
 * @longest_bytes: of the longest one
 * @shortest_bytes: of the shortest one
 * @chunks: chunks they lie in
 * @labels: one more than the highest label; 0: there are none
 * @storages: storages
 * @chunk_bytes: as mounted
 * @row_bytes: bytes of a row of a batch
 * @directory_bytes: memory of the sample directory, its index included
 * @cache_bytes: memory of the sample cache
 * @mount_us: time that the mount took
 */
struct weir_dataset_info {
	size_t size;
	uint64_t samples;
	uint64_t bytes;
	uint32_t longest_bytes;
	uint32_t shortest_bytes;
	uint64_t chunks;
	uint32_t labels;
	uint32_t storages;
	uint32_t chunk_bytes;
	uint32_t row_bytes;
	uint64_t directory_bytes;
	uint64_t cache_bytes;
	uint64_t mount_us;
};

/** weir_dataset_info() - describe a dataset */
WEIR_API int weir_dataset_info(struct weir_dataset *dataset, struct weir_dataset_info *info);

/**
 * struct weir_dataset_sample - where a sample is
 * @size: sizeof the structure
 * @storage: index of its storage
 * @label: its label, or WEIR_DATASET_NO_LABEL
 * @length: bytes
 * @offset: byte of the storage where it begins
 */
struct weir_dataset_sample {
	size_t size;
	uint32_t storage;
	uint32_t label;
	uint32_t length;
	uint64_t offset;
};

/**
 * weir_dataset_find() - the number of a sample by its name
 * @name: as in the archive or below the folder; record N of a file of records is `record-N`
 * @dataset: the dataset
 * @sample: its number, 0 to samples - 1
 *
 * By a hash of 48 bits; names that the dataset has not are taken for one that it has with a chance of samples
 * / 2^48.
 *
 * Return: 0; -ENOENT, without a sentence; -ENOMEM: the index, which the first call makes, has no room.
 */
WEIR_API int weir_dataset_find(struct weir_dataset *dataset, const char *name, uint64_t *sample);

/** weir_dataset_find_many() - weir_dataset_find() of @count names, UINT64_MAX where there is none; several
 * lookups overlap */
WEIR_API int weir_dataset_find_many(struct weir_dataset *dataset, const char *const *names, size_t count,
				    uint64_t *samples);

/** weir_dataset_sample() - where sample number @sample is; -ERANGE */
WEIR_API int weir_dataset_sample(struct weir_dataset *dataset, uint64_t number,
				 struct weir_dataset_sample *sample);

/**
 * weir_dataset_name() - the name of sample number @sample, read from its manifest
 * @text: receives it, cut to @bytes
 *
 * Return: 0; -ERANGE; -EIO.
 */
WEIR_API int weir_dataset_name(struct weir_dataset *dataset, uint64_t number, char *text, size_t bytes);

/**
 * weir_dataset_read() - one sample into memory of the host
 * @number: of the sample
 * @offset: first byte of it
 * @to: receives it
 * @bytes: at most
 *
 * From the sample cache where it is there (the V bit), else from its storage. Slow beside
 * weir_dataset_bread(): one request at a time.
 *
 * Return: bytes read, 0 at the end; a negative errno.
 */
WEIR_API ssize_t weir_dataset_read(struct weir_dataset *dataset, uint64_t number, uint64_t offset, void *to,
				   size_t bytes);

/** weir_dataset_find_file() - number of a file that holds many samples, by its name; -ENOENT;
 * weir_dataset_read_file() reads of it */
WEIR_API int weir_dataset_find_file(struct weir_dataset *dataset, const char *name, uint32_t *file,
				    uint64_t *bytes);
WEIR_API ssize_t weir_dataset_read_file(struct weir_dataset *dataset, uint32_t file, uint64_t offset,
					void *to, size_t bytes);

/**
 * enum weir_dataset_order - the order of an epoch
 * @WEIR_DATASET_SHUFFLED_CHUNK: random chunks into a buffer, and a uniform shuffle of the samples in the
 * buffer
 * @WEIR_DATASET_CHUNK: the paper's: the next sample of a random chunk of the buffer; inside a chunk the order
 * stays
 * @WEIR_DATASET_FULL: a uniform permutation of all samples
 */
enum weir_dataset_order {
	WEIR_DATASET_SHUFFLED_CHUNK,
	WEIR_DATASET_CHUNK,
	WEIR_DATASET_FULL,
};

/** weir_dataset_order_name() - "shuffled-chunk" and so on; NULL if there is no such order */
WEIR_API const char *weir_dataset_order_name(enum weir_dataset_order order);

/**
 * struct weir_dataset_sequence_options - one epoch
 * @size: sizeof the structure
 * @seed: of the job
 * @epoch: number of the epoch
 * @order: enum weir_dataset_order
 * @buffer_chunks: chunks that are shuffled together; 0: 32, or half of the cache if that is less, of ranks of
 * the smallest one
 */
struct weir_dataset_sequence_options {
	size_t size;
	uint64_t seed;
	uint64_t epoch;
	uint32_t order;
	uint32_t buffer_chunks;
};

/**
 * weir_dataset_sequence() - begin an epoch
 * @options: the same on every rank
 *
 * The order depends on these and the manifest alone: no messages. Each rank gets an equal, contiguous share
 * of it, so that each sample comes exactly once; shares differ by one sample at most. Batches that are ahead
 * are dropped.
 *
 * Return: 0; -EINVAL.
 */
WEIR_API int weir_dataset_sequence(struct weir_dataset *dataset,
				   const struct weir_dataset_sequence_options *options);

/**
 * struct weir_dataset_batch - a mini-batch
 * @size: sizeof the structure
 * @count: rows in it; 0: the epoch is over
 * @row_bytes: bytes from one row to the next; behind a sample its row has zeros, which a program that writes
 * to its rows leaves as they are: later batches have them from there
 * @rows: device address of the rows
 * @lengths: device address of u32[@count], the lengths of the samples
 * @labels: device address of u32[@count]; WEIR_DATASET_NO_LABEL where there is none
 * @host_rows: the rows for the host, NULL where it does not see them
 * @host_lengths: the same lengths, for the host
 * @host_labels: the same labels
 * @samples: u64[@count], numbers of the samples
 * @slot: the dataset's
 */
struct weir_dataset_batch {
	size_t size;
	uint32_t count;
	uint32_t row_bytes;
	uint64_t rows;
	uint64_t lengths;
	uint64_t labels;
	void *host_rows;
	const uint32_t *host_lengths;
	const uint32_t *host_labels;
	const uint64_t *samples;
	uint32_t slot;
};

/**
 * weir_dataset_bread() - the next mini-batch of this rank
 * @count: rows wanted; the last batch of an epoch has what is left
 * @batch: filled in; its memory is the program's until weir_dataset_release(), or else until the next
 * weir_dataset_bread()
 *
 * Returns when the rows are there. The batches after it are being read from then on
 * (weir_dataset_mount_options.batches). Calls with the same @count are fast; another one drops what is ahead.
 *
 * Return: 0; -EIO with a sentence that names the sample, the storage and the block: the next call reads the
 * same batch again; -EINVAL.
 */
WEIR_API int weir_dataset_bread(struct weir_dataset *dataset, uint32_t count,
				struct weir_dataset_batch *batch);

/**
 * weir_dataset_bread_enqueue() - the same in the order of weir_launch(): kernels that are launched from now
 * on find the rows
 *
 * Returns before the rows are there. While a kernel uses batch n, the reads of batch n+1 are under way: they
 * were submitted before it. @batch is the program's until weir_dataset_release() or the next call, and
 * kernels launched until then may use it.
 *
 * A batch that failed is returned as an error by a later call: by the next one if
 * weir_dataset_mount_options.batches is 1 or 2, else by the one after that, for which the next one need not
 * wait for kernels. Every failure comes before the call that says that the epoch is over.
 * weir_dataset_bread(), weir_dataset_sequence(), weir_dataset_resume() and weir_dataset_unmount() wait for
 * all of them, and return one. The batch is not read again, and its rows have anything; the call after the
 * error goes on behind it.
 *
 * Return: 0; -EIO: an earlier batch failed, with a sentence that names the sample; -EINVAL.
 */
WEIR_API int weir_dataset_bread_enqueue(struct weir_dataset *dataset, uint32_t count,
					struct weir_dataset_batch *batch);

/** weir_dataset_release() - the program has done with a batch */
WEIR_API int weir_dataset_release(struct weir_dataset *dataset, const struct weir_dataset_batch *batch);

/**
 * weir_dataset_position() - collective: where the epoch is, for weir_dataset_resume()
 * @text: receives one line of text
 * @bytes: its size; 256 + 48 x ranks is enough, more after several resumptions by other numbers of ranks
 *
 * Batches that weir_dataset_bread() has returned count as used.
 *
 * Return: 0; -ENOSPC; -EINVAL: no epoch has begun.
 */
WEIR_API int weir_dataset_position(struct weir_dataset *dataset, char *text, size_t bytes);

/**
 * weir_dataset_resume() - collective: go on with an epoch, with any number of ranks
 * @text: of weir_dataset_position()
 *
 * What is left of the epoch is divided among the ranks anew: each sample of the epoch comes exactly once.
 *
 * Return: 0; -EINVAL for text that is not a position; -ESTALE: of another dataset, or, but for
 * WEIR_DATASET_FULL, of other chunks: weir_dataset_mount_options.chunk_bytes was another one, or samples lie
 * elsewhere on their storages.
 */
WEIR_API int weir_dataset_resume(struct weir_dataset *dataset, const char *text);

/**
 * struct weir_dataset_stats - what a dataset did since it was mounted
 * @size: sizeof the structure
 * @batches: returned
 * @samples: in these
 * @reads: commands to storages
 * @read_bytes: by these
 * @direct_samples: read by the storage straight into their rows: nobody copied them
 * @cache_hits: samples whose chunk was in the cache or on its way
 * @chunk_loads: chunks read
 * @evictions: chunks that made room
 * @copied_bytes: by lanes, from the cache or from staging into rows
 * @cache_full_samples: read by themselves, since batches under way had all of the cache when their chunk was
 * needed: it is too small for the buffer and the batches ahead. The first one is a sentence on stderr, too
 */
struct weir_dataset_stats {
	size_t size;
	uint64_t batches;
	uint64_t samples;
	uint64_t reads;
	uint64_t read_bytes;
	uint64_t direct_samples;
	uint64_t cache_hits;
	uint64_t chunk_loads;
	uint64_t evictions;
	uint64_t copied_bytes;
	uint64_t cache_full_samples;
};

/** weir_dataset_stats() - read the counters */
WEIR_API int weir_dataset_stats(struct weir_dataset *dataset, struct weir_dataset_stats *stats);

/**
 * struct weir_dataset_quality - how random an order is
 * @size: sizeof the structure
 * @coverage: different labels in a batch, mean, as a share of what a uniform permutation has
 * @displacement: mean distance between a sample's number and its position, as a share of the uniform mean,
 * samples / 3
 * @autocorrelation: of the sample numbers of neighbours in the order, -1 to 1; 0 is random
 * @neighbours: share of neighbours in the order that are neighbours on the storage, too
 */
struct weir_dataset_quality {
	size_t size;
	double coverage;
	double displacement;
	double autocorrelation;
	double neighbours;
};

/**
 * weir_dataset_quality() - measure an order, without reading a sample
 * @sequence: the order
 * @batch: rows of a batch
 * @quality: filled in
 * @order: NULL, or receives u64[samples], the sample numbers in order
 */
WEIR_API int weir_dataset_quality(struct weir_dataset *dataset,
				  const struct weir_dataset_sequence_options *sequence, uint32_t batch,
				  struct weir_dataset_quality *quality, uint64_t *order);

#ifdef __cplusplus
}
#endif
#endif
