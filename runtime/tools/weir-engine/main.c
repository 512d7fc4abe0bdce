/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-engine: an engine's file, while no engine has it open: made, shown, checked. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include <weir/weir.h>

#include "backend/error.h"
#include "tool_options.h"
#include "base/uri.h"
#include "engine/engine.h"

enum { EXIT_BAD = 1, DEPTH = 64, EDGE_BYTES = 1 << 20 };

static const char about[] =
	"usage: weir-engine format FILE [--size SIZE] [--force]\n"
	"       weir-engine show FILE [--json]\n"
	"       weir-engine check FILE [--json]\n"
	"\n"
	"An engine keeps blocks of volumes on a file or a block device (docs/engine.md); this is for\n"
	"one that no process has open.\n"
	"\n"
	"  format   make an empty engine of it\n"
	"  show     its volumes, wear and write amplification\n"
	"  check    read every block, compare its checksum, and compare the tables with one another\n";

static const char notes[] = "Exit status: 0 done, and in order; 1 not; 2 bad usage.";

/** struct task - what is to be done */
struct task {
	const char *path;
	uint64_t bytes;
	bool force;
	bool json;
};

static struct task task;
static char **words;

static const struct tool_option options[] = {
	{ "size", "SIZE", TOOL_BYTES, &task.bytes, 1, 0,
	  "format: make the file first, or make it so large: 64M, 4G", NULL, NULL },
	{ "force", NULL, TOOL_FLAG, &task.force, 0, 0, "format: though something is there", NULL, NULL },
	{ "json", NULL, TOOL_FLAG, &task.json, 0, 0, "show, check: print one JSON object", NULL, NULL },
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-engine", .about = about, .options = options, .all = &words, .notes = notes
};

static int fail(void)
{
	return tool_failed();
}

/* ---- format ---- */

/* Not under an engine that has it open. */
static int resize(void)
{
	int file = open(task.path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), error = 0;

	if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		error = weir_fail(EBUSY, "%s is in use by an engine: end that one first", task.path);
	else if (file < 0 || ftruncate(file, (off_t)task.bytes) != 0)
		error = weir_fail(errno, "%s cannot be made %" PRIu64 " bytes large: %s", task.path,
				  task.bytes, strerror(errno));
	if (file >= 0)
		close(file);
	return error;
}

/* Is there anything but zeros in the MiB from @at on? */
static int check_edge(int file, off_t at)
{
	static unsigned char bytes[EDGE_BYTES];
	ssize_t got = pread(file, bytes, sizeof(bytes), at);

	if (got < 0)
		return weir_fail(errno, "cannot read %s: %s", task.path, strerror(errno));
	for (ssize_t i = 0; i < got; i++)
		if (bytes[i])
			return weir_fail(EEXIST,
					 "%s is not empty; --force makes an empty engine of it all the same",
					 task.path);
	return 0;
}

/* At both ends, where superblocks, file systems, arrays and partition tables have something. */
static int check_empty(void)
{
	int file = open(task.path, O_RDONLY | O_CLOEXEC);
	off_t end = file < 0 ? -1 : lseek(file, 0, SEEK_END);
	int error = 0;

	if (end < 0)
		error = weir_fail(errno, "cannot read %s: %s", task.path, strerror(errno));
	if (!error)
		error = check_edge(file, 0);
	if (!error && end > EDGE_BYTES)
		error = check_edge(file, end - EDGE_BYTES);
	if (file >= 0)
		close(file);
	return error;
}

static int open_engine(bool format, struct weir_engine **engine)
{
	struct weir_medium *behind;
	int error = weir_medium_file_open(
		task.path,
		&(struct weir_medium_file_options){ .block_bytes = NVME_VOLUME_BLOCK_BYTES,
						    .read_only = !format,
						    .threads = 2,
						    .depth = DEPTH,
						    .alone = true },
		&behind);

	if (error)
		return error;
	error = weir_engine_open(
		&(struct weir_engine_options){
			.behind = behind, .threads = 1, .format = format, .read_only = !format },
		engine);
	if (error)
		behind->ops->close(behind);
	return error;
}

static void close_engine(struct weir_engine *engine)
{
	struct weir_medium *medium = weir_engine_medium(engine);

	medium->ops->close(medium);
}

static int format(char **operands)
{
	struct nvme_volume_engine_status status;
	struct weir_engine *engine;
	int error = 0;
	bool is_new;

	task.path = operands[0];
	is_new = access(task.path, F_OK) != 0;
	if (!task.force && !(task.bytes && is_new))
		error = check_empty();
	if (!error && task.bytes)
		error = resize();
	if (!error)
		error = open_engine(true, &engine);
	if (error && is_new)
		(void)unlink(task.path);
	if (error)
		return fail();
	weir_engine_status(engine, &status);
	printf("%s: an engine with room for %" PRIu64 " blocks of 4 KiB\n", task.path,
	       (uint64_t)status.blocks);
	close_engine(engine);
	return 0;
}

/* ---- show ---- */

static bool next_volume(struct weir_engine *engine, u32 from, struct nvme_volume *volume)
{
	unsigned char page[NVME_VOLUME_BLOCK_BYTES];
	struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_VOLUME_GET, .cdw10 = from };

	if (from > NVME_VOLUME_MOST || weir_engine_admin(engine, NULL, &sqe, page) != 0)
		return false;
	memcpy(volume, page, sizeof(*volume));
	return true;
}

static json_t *volumes_json(struct weir_engine *engine)
{
	json_t *list = json_array();
	struct nvme_volume volume;

	for (u32 from = 1; next_volume(engine, from, &volume); from = volume.vid + 1u)
		json_array_append_new(
			list, json_pack("{s:s, s:i, s:I, s:I, s:i, s:i, s:i}", "name", volume.name, "vid",
					(int)volume.vid, "blocks", (json_int_t)volume.blocks, "blocks_here",
					(json_int_t)weir_engine_volume_blocks(engine, volume.vid), "replicas",
					(int)volume.replicas, "lease_epoch", (int)volume.lease_epoch,
					"lease_client", (int)volume.lease_client));
	return list;
}

static double amplification(const struct nvme_volume_engine_status *status)
{
	return status->user_writes ? (double)status->medium_writes / (double)status->user_writes : 1;
}

static json_t *show_json(struct weir_engine *engine)
{
	struct nvme_volume_engine_status status;
	struct weir_engine_wear wear;

	weir_engine_status(engine, &status);
	weir_engine_wear(engine, &wear);
	return json_pack("{s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:{s:i, s:i, s:i, s:i, s:i}, s:i, s:o}",
			 "blocks", (json_int_t)status.blocks, "used", (json_int_t)status.used, "user_writes",
			 (json_int_t)status.user_writes, "medium_writes", (json_int_t)status.medium_writes,
			 "write_amplification", amplification(&status), "bad_blocks",
			 (json_int_t)status.bad_blocks, "repaired", (json_int_t)status.repaired,
			 "erase_blocks", "count", (int)wear.count, "of_blocks", (int)wear.erase_blocks,
			 "free", (int)wear.free, "erases_least", (int)wear.least, "erases_most",
			 (int)wear.most, "map_epoch", (int)status.map_epoch, "volumes", volumes_json(engine));
}

static void print_json(json_t *json)
{
	json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(4));
	putchar('\n');
	json_decref(json);
}

static void show_text(struct weir_engine *engine)
{
	struct nvme_volume_engine_status status;
	struct weir_engine_wear wear;
	struct nvme_volume volume;

	weir_engine_status(engine, &status);
	weir_engine_wear(engine, &wear);
	printf("%" PRIu64 " of %" PRIu64 " blocks of 4 KiB in use, map epoch %u\n", (uint64_t)status.used,
	       (uint64_t)status.blocks, status.map_epoch);
	printf("%" PRIu64 " blocks written by clients, %" PRIu64 " to the medium: write amplification %.2f\n",
	       (uint64_t)status.user_writes, (uint64_t)status.medium_writes, amplification(&status));
	printf("%u erase blocks of %u blocks, %u free; erased %u to %u times\n", wear.count,
	       wear.erase_blocks, wear.free, wear.least, wear.most);
	for (u32 from = 1; next_volume(engine, from, &volume); from = volume.vid + 1u)
		printf("volume %u \"%s\": %" PRIu64 " of %" PRIu64
		       " blocks are here; %u replicas, lease epoch %u of client %u\n",
		       volume.vid, volume.name, (uint64_t)weir_engine_volume_blocks(engine, volume.vid),
		       (uint64_t)volume.blocks, volume.replicas, volume.lease_epoch, volume.lease_client);
}

static int show(char **operands)
{
	struct weir_engine *engine;

	task.path = operands[0];
	if (open_engine(false, &engine) != 0)
		return fail();
	if (task.json)
		print_json(show_json(engine));
	else
		show_text(engine);
	close_engine(engine);
	return 0;
}

/* ---- check ---- */

static void say_bad(u32 vid, u32 vba, u64 version)
{
	(void)tool_complain("volume %u, block %u, version %" PRIu64 ": its data is damaged", vid, vba,
			    (uint64_t)version);
}

static void print_checked(const struct weir_engine_checked *checked)
{
	if (task.json)
		print_json(json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "blocks", (json_int_t)checked->blocks,
				     "tombstones", (json_int_t)checked->tombstones, "bad",
				     (json_int_t)checked->bad, "lost", (json_int_t)checked->lost, "orphans",
				     (json_int_t)checked->orphans, "miscounted",
				     (json_int_t)checked->miscounted));
	else
		printf("%" PRIu64 " blocks and %" PRIu64 " tombstones: %" PRIu64 " damaged, %" PRIu64
		       " lost, %" PRIu64 " of no volume, %" PRIu64 " erase blocks miscounted\n",
		       (uint64_t)checked->blocks, (uint64_t)checked->tombstones, (uint64_t)checked->bad,
		       (uint64_t)checked->lost, (uint64_t)checked->orphans, (uint64_t)checked->miscounted);
}

static int check(char **operands)
{
	struct weir_engine_checked checked;
	struct weir_engine *engine;

	task.path = operands[0];
	if (open_engine(false, &engine) != 0)
		return fail();
	weir_engine_check(engine, &checked, say_bad);
	print_checked(&checked);
	close_engine(engine);
	return checked.bad || checked.lost || checked.orphans || checked.miscounted ? EXIT_BAD : 0;
}

static const struct tool_command commands[] = {
	{ "format", "FILE", 1, 1, format },
	{ "show", "FILE", 1, 1, show },
	{ "check", "FILE", 1, 1, check },
	{ NULL, NULL, 0, 0, NULL },
};

int main(int count, char **arguments)
{
	int status = tool_parse(&program, count, arguments);

	return status < 0 ? tool_run(&program, commands) : status;
}
