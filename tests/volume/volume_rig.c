/* SPDX-License-Identifier: BSD-3-Clause */
#include "volume_rig.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

enum { BLOCK = NVME_VOLUME_BLOCK_BYTES, CONNECTIONS = 8, GENEROUS_MS = 60000, SEND_MS = 5000 };

/** struct rig_channel - to @engine; @count commands, of which those done have been answered */
struct rig_channel {
	struct weir_channel base;
	struct rig_engine *engine;
	struct rig_command commands[RIG_WAITING];
	unsigned count;
};

static struct rig_channel *channels[64];
static unsigned channel_count;

static unsigned char *page_of(const struct nvme_sqe *sqe, u32 index, u32 count)
{
	if (!index)
		return (unsigned char *)(uintptr_t)sqe->prp1;
	return (unsigned char *)(uintptr_t)(count == 2 ? sqe->prp2
						       : ((const u64 *)(uintptr_t)sqe->prp2)[index - 1]);
}

static u32 read_blocks(struct rig_engine *engine, const struct nvme_sqe *sqe, u32 vba, u32 count)
{
	engine->reads++;
	for (u32 i = 0; i < count; i++) {
		const struct rig_block *block = &engine->blocks[vba - engine->rig->first + i];

		if (block->bad)
			return NVME_STATUS_UNRECOVERED_READ;
		if (!block->version && engine->rebuilding)
			return NVME_STATUS_VOLUME_NOT_HERE;
		memcpy(page_of(sqe, i, count), block->data, BLOCK);
	}
	return 0;
}

static u32 write_blocks(struct rig_engine *engine, const struct nvme_sqe *sqe, u32 vba, u32 count, bool data)
{
	struct rig_block *blocks = &engine->blocks[vba - engine->rig->first];
	u64 version = (u64)sqe->cdw3 << 32 | sqe->cdw2;

	for (u32 i = 0; i < count; i++)
		if (blocks[i].version > version + i)
			return NVME_STATUS_VOLUME_OLD_VERSION;
	for (u32 i = 0; i < count; i++) {
		struct rig_block *block = &blocks[i];

		if (block->version == version + i)
			continue;
		block->version = version + i;
		block->bad = false;
		memset(block->data, 0, BLOCK);
		if (data)
			memcpy(block->data, page_of(sqe, i, count), BLOCK);
	}
	return 0;
}

static bool is_placed(struct rig *rig, unsigned index, u32 vba)
{
	for (unsigned r = 0; r < rig->replicas; r++)
		if (rig_replica(rig, vba, r) == index)
			return true;
	return false;
}

/* Whether @count blocks from @vba on lie in what the engine has of the volume. */
static bool is_here(const struct rig *rig, u64 vba, u32 count)
{
	return vba >= rig->first && vba + count <= rig->first + RIG_BLOCKS;
}

static u32 execute(struct rig_engine *engine, const struct nvme_sqe *sqe)
{
	const struct nvme_sqe *range = (const struct nvme_sqe *)(uintptr_t)sqe->prp1;
	u8 opcode = (u8)sqe->cdw0;
	u64 slba = (u64)sqe->cdw11 << 32 | sqe->cdw10;
	u32 count = (sqe->cdw12 & 0xffff) + 1, vba;

	engine->backward += sqe->cdw15 < engine->newest;
	engine->newest = sqe->cdw15 > engine->newest ? sqe->cdw15 : engine->newest;
	if (engine->refuses)
		return engine->refuses;
	if (sqe->cdw15 != engine->map_epoch) {
		engine->stale++;
		return NVME_STATUS_VOLUME_STALE_MAP;
	}
	if (opcode == NVME_OPCODE_FLUSH) {
		engine->flushes++;
		return 0;
	}
	if (opcode == NVME_OPCODE_DSM) {
		memcpy(&count, (const char *)range + 4, sizeof(count));
		memcpy(&slba, (const char *)range + 8, sizeof(slba));
	}
	vba = (u32)slba;
	if (slba >> 48 != RIG_VID || (slba >> 32 & 0xffff) != RIG_CLIENT || !is_here(engine->rig, vba, count))
		return NVME_STATUS_VOLUME_CLIENT;
	if (vba >> engine->rig->unit_log2 != (vba + count - 1) >> engine->rig->unit_log2)
		return NVME_STATUS_INVALID_FIELD;
	if (!is_placed(engine->rig, (unsigned)(engine - engine->rig->engines), vba))
		return NVME_STATUS_VOLUME_MISPLACED;
	if (opcode == NVME_OPCODE_READ)
		return read_blocks(engine, sqe, vba, count);
	if (sqe->cdw14 != engine->lease_epoch)
		return NVME_STATUS_VOLUME_STALE_LEASE;
	if (engine->faulty)
		return NVME_STATUS_WRITE_FAULT;
	engine->durable += opcode != NVME_OPCODE_DSM && sqe->cdw12 & NVME_RW_FUA;
	return write_blocks(engine, sqe, vba, count, opcode == NVME_OPCODE_WRITE);
}

static void carry_out(struct rig_engine *engine, struct rig_command *command)
{
	command->status = execute(engine, &command->sqe);
	command->done = true;
}

static bool rig_submit(struct weir_channel *base, const struct nvme_sqe *sqe, void *argument)
{
	struct rig_channel *channel = (struct rig_channel *)base;
	struct rig_engine *engine = channel->engine;
	struct rig_command *command = &channel->commands[channel->count];

	if (channel->count == engine->room)
		return false;
	pthread_mutex_lock(&engine->lock);
	*command = (struct rig_command){ .sqe = *sqe, .argument = argument };
	channel->count++;
	if (!engine->held && !engine->down)
		carry_out(engine, command);
	pthread_mutex_unlock(&engine->lock);
	return true;
}

static unsigned rig_answers(struct weir_channel *base, void (*done)(void *argument, u32 status))
{
	struct rig_channel *channel = (struct rig_channel *)base;
	unsigned count = 0;

	for (unsigned i = 0; i < channel->count;) {
		struct rig_command command = channel->commands[i];

		if (!command.done || channel->engine->down || (channel->engine->slow && count)) {
			i++;
			continue;
		}
		memmove(&channel->commands[i], &channel->commands[i + 1],
			(--channel->count - i) * sizeof(command));
		count++;
		done(command.argument, command.status);
	}
	return count;
}

static bool rig_lost(struct weir_channel *base)
{
	return __atomic_load_n(&((struct rig_channel *)base)->engine->down, __ATOMIC_SEQ_CST);
}

static int rig_halt(struct weir_channel *base)
{
	struct rig_engine *engine = ((struct rig_channel *)base)->engine;

	return __atomic_add_fetch(&engine->halts, 1, __ATOMIC_SEQ_CST) <= engine->unhalted ? -EIO : 0;
}

static void rig_close(struct weir_channel *base)
{
	for (unsigned i = 0; i < channel_count; i++)
		if (channels[i] == (struct rig_channel *)base)
			channels[i] = channels[--channel_count];
	free(base);
}

static const struct weir_channel_ops rig_ops = {
	.submit = rig_submit, .poll = rig_answers, .lost = rig_lost, .halt = rig_halt, .close = rig_close
};

int rig_channel_open(void *argument, const char *uri, void *memory, size_t bytes, struct weir_channel **out)
{
	struct rig *rig = argument;
	unsigned index = (unsigned)(uri[5] - '0');
	struct rig_channel *channel;

	(void)memory;
	(void)bytes;
	__atomic_fetch_add(&rig->engines[index].tried, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&rig->engines[index].down, __ATOMIC_SEQ_CST))
		return -ECONNREFUSED;
	__atomic_fetch_add(&rig->engines[index].opened, 1, __ATOMIC_RELAXED); /* relaxed: a count */
	channel = calloc(1, sizeof(*channel));
	channel->base.ops = &rig_ops;
	channel->engine = &rig->engines[index];
	channels[channel_count++] = channel;
	*out = &channel->base;
	return 0;
}

void rig_release(struct rig *rig, unsigned index, bool reverse)
{
	struct rig_engine *engine = &rig->engines[index];

	engine->held = false;
	for (unsigned c = 0; c < channel_count; c++)
		for (unsigned i = 0; channels[c]->engine == engine && i < channels[c]->count; i++) {
			unsigned at = reverse ? channels[c]->count - 1 - i : i;

			if (!channels[c]->commands[at].done)
				carry_out(engine, &channels[c]->commands[at]);
		}
}

static json_t *map_json(struct rig *rig)
{
	json_t *engines = json_array();

	for (unsigned i = 0; i < rig->map.count; i++) {
		const struct nvme_volume_engine *engine = &rig->map.engines[i];

		json_array_append_new(engines, json_pack("{s:i, s:s, s:i, s:i, s:s, s:s}", "id", engine->id,
							 "state", engine->state ? "out" : "in", "domain",
							 (int)engine->domain, "weight", (int)engine->weight,
							 "address", engine->address, "nqn", engine->nqn));
	}
	return json_pack("{s:i, s:b, s:o}", "epoch", (int)rig->map.epoch, "rebuilding", 0, "engines",
			 engines);
}

/* With the lock held. */
static void take_out(struct rig *rig, unsigned index)
{
	rig->map.engines[index].state = NVME_VOLUME_ENGINE_OUT;
	rig->map.epoch++;
	for (unsigned i = 0; i < RIG_ENGINES; i++)
		rig->engines[i].map_epoch = rig->map.epoch;
}

static void suspect(struct rig *rig, unsigned index)
{
	if (__atomic_load_n(&rig->engines[index].down, __ATOMIC_SEQ_CST) && !rig->keeps_dead &&
	    !rig->map.engines[index].state)
		take_out(rig, index);
}

static json_t *serve(struct rig *rig, const json_t *request)
{
	const char *method = json_string_value(json_object_get(request, "method"));
	const json_t *params = json_object_get(request, "params");
	bool writes = json_is_true(json_object_get(params, "write"));

	if (rig->on_lease && (!strcmp(method, "volume_open") || !strcmp(method, "lease_renew")))
		rig->on_lease();
	if (!strcmp(method, "volume_open") && rig->refuse_open)
		return weir_rpc_error(request, -EBUSY, "another client has the lease");
	if (!strcmp(method, "volume_open"))
		return weir_rpc_result(
			request, json_pack("{s:{s:s, s:i, s:I, s:i, s:i}, s:i, s:o, s:o}", "volume", "name",
					   "test", "vid", RIG_VID, "blocks", (json_int_t)rig->blocks,
					   "replicas", (int)rig->replicas, "unit_log2", (int)rig->unit_log2,
					   "client", RIG_CLIENT, "lease",
					   writes && !rig->gives_no_lease
						   ? json_pack("{s:i, s:i}", "epoch", (int)rig->lease_epoch,
							       "ms", (int)rig->lease_ms)
						   : json_null(),
					   "map", map_json(rig)));
	if (!strcmp(method, "lease_renew") && rig->refuse_renewal)
		return weir_rpc_error(request, -ESTALE, "another client has the lease");
	if (!strcmp(method, "lease_renew")) {
		__atomic_fetch_add(&rig->renewals, 1, __ATOMIC_RELAXED); /* relaxed: a count */
		return weir_rpc_result(request, json_pack("{s:i}", "ms", (int)rig->lease_ms));
	}
	if (!strcmp(method, "map_get"))
		__atomic_fetch_add(&rig->maps, 1, __ATOMIC_SEQ_CST);
	if (!strcmp(method, "lease_release")) {
		rig->releases++;
		rig->unequal += json_is_true(json_object_get(params, "unequal"));
	}
	if (!strcmp(method, "block_damaged")) {
		rig->reports++;
		rig->reported_id = json_integer_value(json_object_get(params, "id"));
		rig->reported_vba = json_integer_value(json_object_get(params, "vba"));
		rig->reported_blocks = json_integer_value(json_object_get(params, "blocks"));
	}
	if (!strcmp(method, "engine_suspect"))
		suspect(rig, (unsigned)json_integer_value(json_object_get(params, "id")) - 1);
	return weir_rpc_result(request, json_pack("{s:o}", "map", map_json(rig)));
}

static bool answer(struct rig *rig, struct weir_rpc *rpc)
{
	json_t *request, *reply;

	if (weir_rpc_receive(rpc, 0, &request) != 0)
		return false;
	pthread_mutex_lock(&rig->lock);
	reply = serve(rig, request);
	pthread_mutex_unlock(&rig->lock);
	json_decref(request);
	return weir_rpc_send(rpc, reply, SEND_MS) == 0;
}

static void *run(void *argument)
{
	struct rig *rig = argument;
	struct weir_rpc *rpcs[CONNECTIONS] = { NULL };
	struct pollfd pollers[CONNECTIONS + 2] = { { rig->stop[0], POLLIN, 0 },
						   { rig->listener, POLLIN, 0 } };
	unsigned count = 0;

	while (poll(pollers, count + 2, -1) >= 0 && !pollers[0].revents) {
		for (unsigned i = count; i-- > 0;)
			if (pollers[i + 2].revents && !answer(rig, rpcs[i])) {
				weir_rpc_close(rpcs[i]);
				rpcs[i] = rpcs[--count];
				pollers[i + 2] = pollers[count + 2];
			}
		if (pollers[1].revents && count < CONNECTIONS &&
		    weir_rpc_of(accept(rig->listener, NULL, NULL), "client", &rpcs[count]) == 0) {
			pollers[count + 2] = (struct pollfd){ weir_rpc_socket(rpcs[count]), POLLIN, 0 };
			count++;
		}
	}
	for (unsigned i = 0; i < count; i++)
		weir_rpc_close(rpcs[i]);
	return NULL;
}

void rig_begin(struct rig *rig, unsigned replicas)
{
	char folder[] = "/tmp/weir-volume-XXXXXX";

	memset(rig, 0, sizeof(*rig));
	rig->replicas = replicas;
	rig->unit_log2 = RIG_UNIT_LOG2;
	rig->blocks = RIG_BLOCKS;
	rig->threads = 1;
	rig->lease_ms = 300000;
	rig->lease_epoch = RIG_LEASE_EPOCH;
	rig->map.epoch = 7;
	rig->map.count = RIG_ENGINES;
	pthread_mutex_init(&rig->lock, NULL);
	for (unsigned i = 0; i < RIG_ENGINES; i++) {
		rig->map.engines[i] =
			(struct nvme_volume_engine){ .id = (u16)(i + 1), .domain = i, .weight = 100 };
		snprintf(rig->map.engines[i].address, sizeof(rig->map.engines[i].address), "virt:%u", i);
		pthread_mutex_init(&rig->engines[i].lock, NULL);
		rig->engines[i].rig = rig;
		rig->engines[i].room = RIG_WAITING;
		rig->engines[i].map_epoch = rig->map.epoch;
		rig->engines[i].lease_epoch = RIG_LEASE_EPOCH;
	}
	assert_non_null(mkdtemp(folder));
	snprintf(rig->path, sizeof(rig->path), "%s/daemon", folder);
	rig->listener = weir_rpc_listen(rig->path);
	assert_true(rig->listener >= 0);
	assert_int_equal(pipe(rig->stop), 0);
	assert_int_equal(pthread_create(&rig->thread, NULL, run, rig), 0);
}

void rig_stop_daemon(struct rig *rig)
{
	if (rig->listener < 0)
		return;
	assert_int_equal(write(rig->stop[1], "", 1), 1);
	pthread_join(rig->thread, NULL);
	close(rig->listener);
	close(rig->stop[0]);
	close(rig->stop[1]);
	rig->listener = -1;
}

void rig_end(struct rig *rig)
{
	if (rig->medium) {
		const struct volume *volume = weir_volume_from(rig->medium);

		/* What has ended has given its blocks back. */
		for (unsigned i = 0; i < VOLUME_CHANGING / 64; i++)
			assert_int_equal(volume->changing[i], 0);
		rig->medium->ops->close(rig->medium);
	}
	rig->medium = NULL;
	rig_stop_daemon(rig);
	unlink(rig->path);
	*strrchr(rig->path, '/') = 0;
	rmdir(rig->path);
	assert_int_equal(channel_count, 0);
}

struct weir_session_keys rig_keys(const struct rig *rig)
{
	struct weir_session_keys keys = { .name = "test", .wait_ms = 20000 };

	strcpy(keys.daemon, rig->path);
	strcpy(keys.host.nqn, "nqn.test:host");
	return keys;
}

int rig_try(struct rig *rig, bool read_only, unsigned wait_ms)
{
	struct weir_session_keys keys = rig_keys(rig);

	keys.read_only = read_only;
	keys.wait_ms = wait_ms;
	return weir_volume_medium_open(&keys, rig->threads,
				       &(struct volume_options){ .open = rig_channel_open, .argument = rig },
				       &rig->medium);
}

void rig_open(struct rig *rig, bool read_only, unsigned wait_ms)
{
	if (rig_try(rig, read_only, wait_ms))
		fail_msg("%s", weir_last_error());
}

void rig_daemon_behind(struct rig *rig, u32 epochs)
{
	pthread_mutex_lock(&rig->lock);
	rig->map.epoch -= epochs;
	pthread_mutex_unlock(&rig->lock);
}

void rig_take_out(struct rig *rig, unsigned index)
{
	pthread_mutex_lock(&rig->lock);
	take_out(rig, index);
	pthread_mutex_unlock(&rig->lock);
}

void rig_new_epoch(struct rig *rig, bool daemon, bool engines)
{
	pthread_mutex_lock(&rig->lock);
	rig->map.epoch += daemon;
	for (unsigned i = 0; i < RIG_ENGINES; i++)
		rig->engines[i].map_epoch += engines;
	pthread_mutex_unlock(&rig->lock);
}

unsigned rig_replica(struct rig *rig, u64 vba, unsigned replica)
{
	static u32 table[WEIR_PLACEMENT_GROUPS];
	static u32 outs = ~0u;
	u32 now = 0;

	for (unsigned i = 0; i < RIG_ENGINES; i++)
		now |= (u32)rig->map.engines[i].state << i;
	if (outs != now)
		assert_int_equal(weir_placement_build(&rig->map, table), 0);
	outs = now;
	return weir_placement_engine((weir_addr)(uintptr_t)table,
				     weir_placement_group(RIG_VID, vba, rig->unit_log2), replica);
}

static void note_done(struct weir_io *io)
{
	io->thread = ~0u; /* nobody needs it any more */
}

bool rig_is_done(const struct weir_io *io)
{
	return io->thread == ~0u;
}

void rig_start(struct rig *rig, struct weir_io *io, enum weir_io_kind kind, u64 vba, u32 blocks, void *data)
{
	size_t bytes = (size_t)blocks * BLOCK, piece = rig->piece_bytes ? rig->piece_bytes : bytes;
	unsigned count = data ? (unsigned)((bytes + piece - 1) / piece) : 0;
	struct iovec *iov = calloc(count + 1, sizeof(*iov));

	for (unsigned i = 0; i < count; i++)
		iov[i] =
			(struct iovec){ (char *)data + i * piece, i < count - 1 ? piece : bytes - i * piece };
	*io = (struct weir_io){ .kind = kind,
				.offset_bytes = vba * BLOCK,
				.bytes = (u64)blocks * BLOCK,
				.iov = iov,
				.iov_count = count,
				.force_unit_access = rig->durable,
				.thread = rig->used_thread,
				.done = note_done };
	io->version = rig->version;
	assert_true(rig->medium->ops->submit(rig->medium, io));
}

/* Of all threads; how many requests ended. */
static unsigned poll_threads(struct rig *rig)
{
	unsigned ended = 0;

	for (unsigned i = 0; i < rig->threads; i++)
		ended += rig->medium->ops->poll(rig->medium, i);
	return ended;
}

void rig_poll(struct rig *rig)
{
	for (unsigned i = 0; i < 20; i++) {
		(void)poll_threads(rig);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

u32 rig_wait(struct rig *rig, struct weir_io *io)
{
	uint64_t end_ns = weir_session_now_ns() + (uint64_t)GENEROUS_MS * 1000000;

	while (!rig_is_done(io)) {
		if (!poll_threads(rig))
			sched_yield();
		if (weir_session_now_ns() > end_ns)
			fail_msg("a request does not end");
	}
	free(io->iov);
	return io->status;
}

u32 rig_do(struct rig *rig, enum weir_io_kind kind, u64 vba, u32 blocks, void *data)
{
	struct weir_io io;

	rig_start(rig, &io, kind, vba, blocks, data);
	return rig_wait(rig, &io);
}
