/* SPDX-License-Identifier: BSD-3-Clause */
/* What weir-try writes to: a file without a name, and disks on which nothing is. */
#include "try.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

#include "machine.h"
#include "tool_options.h"

enum { EDGE = 1 << 20, LEAST_DISK = 2 * EDGE + (4 << 20) };

/* Keys of URIs: each is a path, or a way to ring doorbells, that not every device or file has. */
static const char *const file_variants[] = { "", "mover=pull", "doorbell=host", "engine=threads", NULL };
static const char *const nvme_variants[] = { "",
					     "doorbell=lanes",
					     "doorbell=host",
					     "shadow=off",
					     "mover=direct",
					     "gpu_memory=data",
					     "gpu_memory=queues",
					     NULL };

void try_uri(char uri[TRY_PATH], const struct try_storage *storage, const char *variant)
{
	put_text(uri, TRY_PATH, "%s%s%s", storage->uri, !*variant ? "" : storage->keys ? "&" : "?", variant);
}

/* A file in @folder that is gone with the last descriptor. Return: -1: there is none, and errno says why. */
static int open_nameless(const char *folder)
{
	char path[PATH_MAX];
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	snprintf(path, sizeof(path), "%s/weir-try-XXXXXX", folder);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

int try_file_open(const struct try_options *options, struct try_storage *storage)
{
	int fd = open_nameless(options->folder),
	    error = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)options->file_bytes);

	if (error) {
		(void)tool_complain("no temporary file of %llu bytes in %s: %s; name another folder with "
				    "--dir, or a smaller --size",
				    (unsigned long long)options->file_bytes, options->folder,
				    strerror(error));
		return -1;
	}
	*storage = (struct try_storage){ .variants = file_variants, .bytes = options->file_bytes };
	snprintf(storage->name, sizeof(storage->name), "a file in %.100s", options->folder);
	/* The descriptor stays open to the end of the program, whose children name it so. */
	snprintf(storage->path, sizeof(storage->path), "/proc/%d/fd/%d", (int)getpid(), fd);
	put_text(storage->uri, sizeof(storage->uri), "file:%s%s%s", storage->path,
		 options->file_keys ? "?" : "", options->file_keys ? options->file_keys : "");
	storage->keys = options->file_keys;
	return 0;
}

static int refuse(const struct try_disk *disk, const char *what)
{
	(void)tool_complain("--destroy-data-on %s: %s; nothing was written", disk->address, what);
	return TRY_REFUSED;
}

/** struct refusal - of @disk; @status: 0: none */
struct refusal {
	const struct try_disk *disk;
	int status;
};

/* What the kernel knows is on a block device, or that it has partitions. */
static bool check_block(void *to, const char *block)
{
	struct refusal *refusal = to;
	char why[TREE_WHY_BYTES], text[TRY_TEXT + TREE_WHY_BYTES];

	if (tree_used(block, why)) {
		snprintf(text, sizeof(text), "it is in use: %s", why);
		refusal->status = refuse(refusal->disk, text);
	} else if (strchr(block + strlen("nvme"), 'p')) {
		snprintf(text, sizeof(text),
			 "it holds the partition %s; if nobody needs what is there, wipefs -a or "
			 "blkdiscard first",
			 block);
		refusal->status = refuse(refusal->disk, text);
	}
	return refusal->status != 0;
}

/* Return: 0: nothing is on any of the controller's block devices. */
static int check_kernel(const struct try_disk *disk)
{
	struct refusal refusal = { .disk = disk };

	(void)tree_blocks_each(disk->address, check_block, &refusal);
	return refusal.status;
}

/* Which of the controller's block devices. Return: 0, and its name. */
static int choose_block(const struct try_disk *disk, const struct tree_names *blocks,
			char name[TREE_NAME_BYTES])
{
	char suffix[32];

	snprintf(suffix, sizeof(suffix), "n%u", disk->nsid);
	for (unsigned i = 0; i < blocks->count; i++) {
		const char *last = strrchr(blocks->name[i], 'n');

		if (!disk->nsid || (last && !strcmp(last, suffix))) {
			snprintf(name, TREE_NAME_BYTES, "%.63s", blocks->name[i]);
			return !disk->nsid && blocks->count > 1
				       ? refuse(disk, "it has several namespaces; name one: ADDRESS/NSID")
				       : 0;
		}
	}
	return refuse(disk, blocks->count ? "there is no such namespace"
					  : "the kernel's driver shows no namespace of it");
}

static int location(const struct try_disk *disk, struct try_storage *storage)
{
	struct tree_function function;
	struct tree_names blocks;
	char name[TREE_NAME_BYTES];
	int status;

	if (!tree_function(disk->address, &function) || strncmp(function.class, "0x0108", 6))
		return refuse(disk, "there is no NVMe controller; weir-check lists those that are there");
	status = check_kernel(disk);
	if (status)
		return status;
	if (tree_root[0])
		return refuse(disk, "with --root the machine is one in a folder, which has no disks");
	if (!strcmp(function.driver, "vfio-pci")) {
		storage->variants = nvme_variants;
		snprintf(storage->uri, sizeof(storage->uri), disk->nsid ? "nvme:%s?nsid=%u" : "nvme:%s",
			 disk->address, disk->nsid);
		storage->keys = disk->nsid != 0;
		return 0;
	}
	if (strcmp(function.driver, "nvme"))
		return refuse(
			disk,
			"neither the kernel's driver nor vfio-pci has it; as root: weir-bind bind ADDRESS");
	tree_blocks(disk->address, &blocks);
	status = choose_block(disk, &blocks, name);
	storage->variants = file_variants;
	snprintf(storage->path, sizeof(storage->path), "/dev/%s", name);
	snprintf(storage->uri, sizeof(storage->uri), "file:/dev/%s", name);
	return status;
}

static bool blank(const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i])
			return false;
	return true;
}

/* In a process of its own: "good" if nothing is on the disk, with its size. Opened as the tests will, it is
 * only read. */
static json_t *check_contents(const void *arguments)
{
	static unsigned char edge[EDGE];
	const struct try_storage *storage = arguments;
	struct weir_storage_info info = { .size = sizeof(info) };
	struct weir_context *context;
	struct weir_storage *opened;
	json_t *object;
	bool clean;

	if (weir_context_open("cpu", NULL, &context) != 0 ||
	    weir_storage_open(context, storage->uri, NULL, &opened) != 0 ||
	    weir_storage_info(opened, &info) != 0)
		return try_verdict("failed", "it cannot be opened: %s", weir_last_error());
	if (info.bytes < LEAST_DISK)
		return try_verdict("failed", "it has %llu bytes, and 6 MiB are the fewest",
				   (unsigned long long)info.bytes);
	if (weir_storage_read(opened, 0, edge, EDGE) != 0)
		return try_verdict("failed", "its first MiB cannot be read: %s", weir_last_error());
	clean = blank(edge, EDGE);
	if (weir_storage_read(opened, (info.bytes - EDGE) / info.block_bytes * info.block_bytes, edge,
			      EDGE) != 0)
		return try_verdict("failed", "its last MiB cannot be read: %s", weir_last_error());
	object = clean && blank(edge, EDGE)
			 ? try_verdict("good", "blank")
			 : try_verdict("failed", "it holds data: its first and last MiB are not zeros; if "
						 "nobody needs what is there, "
						 "blkdiscard -z or nvme format first");
	json_object_set_new(object, "bytes", json_integer((json_int_t)info.bytes));
	weir_context_close(context);
	return object;
}

int try_disk_open(const struct try_options *options, const struct try_disk *disk, struct try_storage *storage)
{
	json_t *found;
	uint64_t bytes;
	int status;

	*storage = (struct try_storage){ .offset = EDGE };
	put_text(storage->name, sizeof(storage->name), "SSD %s", disk->address);
	status = location(disk, storage);
	if (status)
		return status;
	found = try_child(check_contents, storage);
	if (strcmp(json_string_value(json_object_get(found, "verdict")), "good"))
		status = refuse(disk, json_string_value(json_object_get(found, "why")));
	bytes = (uint64_t)json_integer_value(json_object_get(found, "bytes"));
	storage->bytes =
		bytes < options->file_bytes + 2 * EDGE ? (bytes - 2 * EDGE) >> 20 << 20 : options->file_bytes;
	json_decref(found);
	return status;
}

json_t *try_disk_clean(const void *arguments)
{
	static const unsigned char zeros[EDGE];
	const struct try_storage *storage = arguments;
	struct weir_context *context;
	struct weir_storage *opened;

	if (weir_context_open("cpu", NULL, &context) != 0 ||
	    weir_storage_open(context, storage->uri, NULL, &opened) != 0)
		return try_verdict("failed", "%s", weir_last_error());
	for (uint64_t done = 0; done < storage->bytes; done += sizeof(zeros))
		if (weir_storage_write(opened, storage->offset + done, zeros, sizeof(zeros)) != 0)
			return try_verdict("failed", "%s", weir_last_error());
	if (weir_context_close(context) != 0)
		return try_verdict("failed", "%s", weir_last_error());
	return try_verdict("good", "zeros are where the tests wrote");
}
