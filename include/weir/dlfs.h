/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dlfs.h: the seven calls of the paper (Zhu et al., section III-A) in its words, over <weir/dataset.h>.
 *
 * Owns: nothing but the names. Unlike the paper's, calls take the dataset that they are about. Descriptors
 * are sample numbers, or, of a file that holds many samples, the file's number behind the last sample's.
 */
#ifndef WEIR_DLFS_H
#define WEIR_DLFS_H

#include <errno.h>

#include <weir/dataset.h>

/** dlfs_mount() - collective: rank 0 uploads @folder to the storages unless it is there already, and all
 * ranks mount them; options may be NULL */
static inline int dlfs_mount(struct weir_context *context, struct weir_storage *const *storages,
			     unsigned storage_count, const char *folder,
			     const struct weir_dataset_mount_options *options, struct weir_dataset **out)
{
	struct weir_dataset_communicator *communicator = options ? options->communicator : NULL;
	int error = 0;

	if (folder && (!communicator || communicator->rank == 0))
		error = weir_dataset_upload(storages, storage_count, folder, NULL);
	error = weir_dataset_agree(communicator, error);
	return error ? error : weir_dataset_mount(context, storages, storage_count, options, out);
}

/** dlfs_open() - a descriptor of the sample, or file of samples, @name; -ENOENT */
static inline int64_t dlfs_open(struct weir_dataset *dataset, const char *name)
{
	struct weir_dataset_info info = { .size = sizeof(info) };
	uint64_t sample, bytes;
	uint32_t file;
	int error = weir_dataset_find(dataset, name, &sample);

	if (error != -ENOENT)
		return error ? error : (int64_t)sample;
	error = weir_dataset_find_file(dataset, name, &file, &bytes);
	if (!error)
		error = weir_dataset_info(dataset, &info);
	return error ? error : (int64_t)(info.samples + file);
}

/** dlfs_read() - up to @bytes from @offset on; Return: bytes, 0 at the end, or a negative errno */
static inline ssize_t dlfs_read(struct weir_dataset *dataset, int64_t descriptor, void *to, size_t bytes,
				uint64_t offset)
{
	struct weir_dataset_info info = { .size = sizeof(info) };
	int error = descriptor < 0 ? -EBADF : weir_dataset_info(dataset, &info);
	uint64_t file;

	if (error)
		return error;
	if ((uint64_t)descriptor < info.samples)
		return weir_dataset_read(dataset, (uint64_t)descriptor, offset, to, bytes);
	file = (uint64_t)descriptor - info.samples;
	return weir_dataset_read_file(dataset, file < UINT32_MAX ? (uint32_t)file : UINT32_MAX, offset, to,
				      bytes); /* there is no file UINT32_MAX */
}

/** dlfs_close() - nothing is held by a descriptor */
static inline int dlfs_close(struct weir_dataset *dataset, int64_t descriptor)
{
	(void)dataset;
	return descriptor < 0 ? -EBADF : 0;
}

/** dlfs_sequence() - the order of epoch @epoch from @seed, in the paper's way: random chunks */
static inline int dlfs_sequence(struct weir_dataset *dataset, uint64_t seed, uint64_t epoch)
{
	return weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .seed = seed, .epoch = epoch,
							   .order = WEIR_DATASET_CHUNK));
}

/** dlfs_bread() - the next mini-batch of @count samples */
static inline int dlfs_bread(struct weir_dataset *dataset, uint32_t count, struct weir_dataset_batch *batch)
{
	return weir_dataset_bread(dataset, count, batch);
}

/** dlfs_unmount() - the directory and the cache go */
static inline int dlfs_unmount(struct weir_dataset *dataset)
{
	return weir_dataset_unmount(dataset);
}

#endif
