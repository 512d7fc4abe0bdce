/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume_bench_channels.c: how the two designs send a request.
 *
 * Owns: memory, channels and commands of a client. A request is one command to the server of the basic
 * design; of the direct one, a read is one command to the least busy replica, a write one to each. Nothing is
 * repeated: the array is whole while this runs, and a refused command is a failed request.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/error.h"
#include "volume_bench.h"

enum {
	SPINS = 50, /* polls without an answer before the thread rests between them, as a volume's host
		       threads */
	NAP_NS = 10000,
	VID_SHIFT = 48,
	CLIENT_SHIFT = 32,
};

static size_t list_bytes(const struct bench_load *load)
{
	return (load->bs / BENCH_BLOCK * sizeof(u64) + BENCH_BLOCK - 1) / BENCH_BLOCK * BENCH_BLOCK;
}

/* The cpu backend's device memory has the same address for the host. */
static int take_memory(struct bench_client *client)
{
	const struct bench_load *load = client->load;
	size_t data = load->depth * load->bs, lists = load->depth * list_bytes(load);
	int error = weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &client->context);

	if (!error)
		error = weir_alloc(client->context, data + (load->copies ? 0 : lists), &client->device);
	if (error)
		return error;
	client->memory_bytes = data + lists;
	client->memory = load->copies ? aligned_alloc(BENCH_BLOCK, client->memory_bytes)
				      : (unsigned char *)(uintptr_t)client->device;
	client->latency_ns = calloc(BENCH_LATENCIES, sizeof(*client->latency_ns));
	client->written = calloc(client->places, sizeof(*client->written));
	if (!client->memory || !client->latency_ns || !client->written)
		return weir_fail(ENOMEM, "volume \"%s\": no memory for requests", client->name);
	memset(client->memory, 0, client->memory_bytes);
	for (u32 i = 0; i < load->depth; i++) {
		struct bench_request *request = &client->requests[i];

		request->client = client;
		request->device = (unsigned char *)(uintptr_t)client->device + i * load->bs;
		request->host = client->memory + i * load->bs;
		request->list = (u64 *)(void *)(client->memory + data + i * list_bytes(load));
		for (u64 page = 0; page < load->bs / BENCH_BLOCK; page++)
			request->list[page] = (uintptr_t)request->host + page * BENCH_BLOCK;
	}
	return 0;
}

static void no_tick(void *argument)
{
	(void)argument;
}

static int open_session(struct bench_client *client)
{
	struct weir_session_keys keys = { .wait_ms = 10000 };
	int error = weir_host_identity(&keys.host);

	if (!error && (strlen(client->name) >= sizeof(keys.name) ||
		       strlen(client->load->daemon) >= sizeof(keys.daemon)))
		error = weir_fail(EINVAL, "volume \"%s\": its name, or the daemon's address, is too long",
				  client->name);
	if (error)
		return error;
	strcpy(keys.name, client->name);
	strcpy(keys.daemon, client->load->daemon);
	error = weir_session_open(&keys, &client->session);
	if (error)
		return error;
	(void)weir_session_refresh(client->session, &client->map);
	client->version = (u64)client->session->lease_epoch << NVME_VOLUME_VERSION_EPOCH | 1;
	return weir_session_start(client->session, no_tick, NULL, NULL);
}

static int open_engines(struct bench_client *client)
{
	const struct weir_session_map *map = client->map;
	int error = 0;

	for (u32 i = 0; i < map->map.count && !error; i++) {
		char uri[WEIR_SESSION_URI_BYTES];

		weir_session_uri(client->session, &map->map.engines[i], 1, uri);
		error = weir_channel_open(uri, client->memory, client->memory_bytes,
					  (unsigned)client->load->bs, &client->channels[map->slot[i]]);
	}
	return error;
}

/* A request is one command: it has to lie in one stripe unit. */
static int check_volume(const struct bench_client *client)
{
	const struct nvme_volume *volume = &client->session->volume;

	if (client->load->bs > (u64)BENCH_BLOCK << volume->unit_log2)
		return weir_fail(EINVAL,
				 "volume \"%s\": requests of %llu bytes do not lie in one stripe unit",
				 client->name, (unsigned long long)client->load->bs);
	if (client->load->bytes > volume->blocks * BENCH_BLOCK)
		return weir_fail(EINVAL, "volume \"%s\" has no %llu bytes", client->name,
				 (unsigned long long)client->load->bytes);
	return 0;
}

int bench_open(struct bench_client *client)
{
	int error;

	client->places = client->load->bytes / client->load->bs;
	error = take_memory(client);
	if (!error && !client->load->direct)
		return weir_channel_open(client->name, client->memory, client->memory_bytes,
					 (unsigned)client->load->bs, &client->channels[0]);
	if (!error)
		error = open_session(client);
	if (!error)
		error = check_volume(client);
	return error ? error : open_engines(client);
}

void bench_close(struct bench_client *client)
{
	for (u32 slot = 0; slot < WEIR_SESSION_SLOTS; slot++)
		if (client->channels[slot])
			client->channels[slot]->ops->close(client->channels[slot]);
	if (client->session) {
		weir_session_stop(client->session);
		if (client->map)
			weir_session_put(client->session, client->map);
		weir_session_close(client->session);
	}
	if (client->load->copies)
		free(client->memory);
	free(client->latency_ns);
	free(client->written);
	(void)weir_context_close(client->context);
}

static void set_data(const struct bench_client *client, const struct bench_request *request,
		     struct nvme_sqe *sqe)
{
	u64 pages = client->load->bs / BENCH_BLOCK;

	sqe->prp1 = request->list[0];
	if (pages == 2)
		sqe->prp2 = request->list[1];
	else if (pages > 2)
		sqe->prp2 = (uintptr_t)&request->list[1];
}

static bool submit(struct bench_client *client, struct bench_request *request, u32 slot,
		   const struct nvme_sqe *sqe)
{
	struct bench_command *command = &client->commands[request - client->requests][request->open];

	*command = (struct bench_command){ request, slot };
	if (!client->channels[slot] ||
	    !client->channels[slot]->ops->submit(client->channels[slot], sqe, command))
		return false;
	client->inflight[slot]++;
	request->open++;
	return true;
}

/* Slots of the engines that have the block; how many. */
static u32 replicas_of(const struct bench_client *client, u64 vba, u8 slots[NVME_VOLUME_MOST_REPLICAS])
{
	const struct nvme_volume *volume = &client->session->volume;
	u32 group = weir_placement_group(volume->vid, vba, volume->unit_log2), count = 0;

	for (u32 replica = 0; replica < volume->replicas; replica++) {
		u32 engine = weir_placement_engine((weir_addr)(uintptr_t)client->map->table, group, replica);

		if (engine != WEIR_PLACEMENT_NONE)
			slots[count++] = client->map->slot[engine];
	}
	return count;
}

static u32 least_busy(const struct bench_client *client, const u8 *slots, u32 count, u64 from)
{
	u32 chosen = slots[from % count];

	for (u32 i = 0; i < count; i++)
		if (client->inflight[slots[i]] < client->inflight[chosen])
			chosen = slots[i];
	return chosen;
}

static bool send_direct(struct bench_client *client, struct bench_request *request, struct nvme_sqe sqe,
			u64 vba)
{
	const struct weir_session *session = client->session;
	u64 slba = (u64)session->volume.vid << VID_SHIFT | (u64)session->client << CLIENT_SHIFT | vba;
	u8 slots[NVME_VOLUME_MOST_REPLICAS];
	u32 count = replicas_of(client, vba, slots);
	bool all = count > 0;

	sqe.cdw10 = (u32)slba;
	sqe.cdw11 = (u32)(slba >> 32);
	sqe.cdw15 = client->map->map.epoch;
	if (count && !request->writes)
		return submit(client, request,
			      least_busy(client, slots, count, vba >> session->volume.unit_log2), &sqe);
	sqe.cdw2 = (u32)client->version;
	sqe.cdw3 = (u32)(client->version >> 32);
	sqe.cdw14 = session->lease_epoch;
	client->version += client->load->bs / BENCH_BLOCK;
	for (u32 i = 0; i < count; i++)
		all &= submit(client, request, slots[i], &sqe);
	return all; /* a channel has more entries than a client has requests */
}

bool bench_send(struct bench_client *client, struct bench_request *request)
{
	u64 blocks = client->load->bs / BENCH_BLOCK, lba = request->place * blocks;
	struct nvme_sqe sqe = { .cdw0 = request->writes ? NVME_OPCODE_WRITE : NVME_OPCODE_READ,
				.nsid = 1,
				.cdw10 = (u32)lba,
				.cdw11 = (u32)(lba >> 32),
				.cdw12 = (u32)blocks - 1 };

	request->open = 0;
	request->failed = false;
	set_data(client, request, &sqe);
	if (client->load->direct)
		return send_direct(client, request, sqe, lba);
	if (request->writes && client->load->copies)
		(void)weir_copy_from_device(client->context, request->host, (uintptr_t)request->device,
					    client->load->bs);
	return submit(client, request, 0, &sqe);
}

static void answered(void *argument, u32 status)
{
	struct bench_command *command = argument;
	struct bench_request *request = command->request;
	struct bench_client *client = request->client;
	u32 code = status & NVME_STATUS_CODE_MASK;

	client->inflight[command->slot]--;
	/* A write of this client that began later has come first: this one is over, too. */
	if (code != NVME_STATUS_SUCCESS && !(request->writes && code == NVME_STATUS_VOLUME_OLD_VERSION)) {
		request->failed = true;
		client->status = status;
	}
	if (--request->open)
		return;
	if (!request->failed && !request->writes && client->load->copies)
		(void)weir_copy_to_device(client->context, (uintptr_t)request->device, request->host,
					  client->load->bs);
	bench_done(request);
}

void bench_poll(struct bench_client *client)
{
	unsigned count = 0;

	for (u32 slot = 0; slot < WEIR_SESSION_SLOTS; slot++)
		if (client->channels[slot])
			count += client->channels[slot]->ops->poll(client->channels[slot], answered);
	client->idle = count ? 0 : client->idle + 1;
	if (client->idle > SPINS)
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
}
