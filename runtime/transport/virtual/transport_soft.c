/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virt:, file: and vol: are the virtual controller on host threads over one medium
 * or the other.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/nvme.h>

#include "../../backend/error.h"
#include "../../engine/engine.h"
#include "../medium/medium.h"
#include "../nvme/shared.h"
#include "soft.h"
#include "virtual.h"

enum {
	MOST_QUEUE_ENTRIES = 4096,
	DEFAULT_WAVES = 256,
	HALT_MS = 3000,
	DEFAULT_PAIRS = 64,
	MOST_PAIRS = 511,
	ENGINE_ON = WEIR_ENGINE_THREADS + 1, /* of file:'s engine= */
};

static const uint64_t LARGEST = (uint64_t)127
				<< 40; /* a process has 2^47 bytes of addresses, its own included */
static const uint64_t LARGEST_COMPUTED = (uint64_t)1 << 60;

/** struct soft_made - what a controller with a name was made as; @load: the file, or NULL */
struct soft_made {
	const char *load;
	uint64_t bytes;
	uint64_t block_bytes;
	uint64_t latency_us;
	uint64_t iops;
	uint64_t mdts;
	unsigned shadow;
	unsigned pairs;
	unsigned computed;
	unsigned engine;
	unsigned fault_count;
	struct weir_virtual_fault faults[WEIR_VIRTUAL_FAULTS];
};

/** struct soft - a controller; @dma, @load, @made: of one with a name: what it may touch, how it was made */
struct soft {
	struct weir_transport base;
	struct weir_dma_map *dma;
	char *load;
	struct soft_made made;
	struct weir_virtual *controller;
	struct weir_medium *medium;                            /* the controller's; for its path */
	struct weir_virtual_fault faults[WEIR_VIRTUAL_FAULTS]; /* a device controller's */
};

/* A trace and an engine, where they are wanted, in front of @medium; it is closed on an error. */
static int stack(const struct weir_soft_keys *keys, struct weir_medium *medium,
		 struct weir_virtual_options *options)
{
	int error = keys->trace ? weir_medium_trace_open(keys->trace, medium, &medium) : 0;

	if (!error && keys->engine)
		error = weir_engine_open(&(struct weir_engine_options){ .behind = medium,
									.threads = options->threads,
									.manager = keys->manager,
									.own_thread = true },
					 &options->engine);
	if (error)
		medium->ops->close(medium);
	else
		options->medium = options->engine ? weir_engine_medium(options->engine) : medium;
	return error;
}

static int start(struct soft *soft, struct weir_medium *medium, const struct weir_soft_keys *keys,
		 const struct weir_transport_request *request)
{
	struct weir_virtual_options options = {
		.size = sizeof(options),
		.dma = request->dma,
		.threads = (unsigned)keys->threads,
		.max_queue_pairs = request->queues,
		.max_queue_entries = MOST_QUEUE_ENTRIES,
		.max_transfer_bytes = (uint32_t)keys->mdts,
		.latency_us = (uint32_t)keys->latency_us,
		.iops = keys->iops,
		.faults = keys->faults,
		.fault_count = keys->fault_count,
		.doorbells = request->doorbells,
		.woken = keys->woken,
		.shadow_doorbells = keys->shadow,
		.front = request->front,
	};
	int error = stack(keys, medium, &options);

	if (error)
		return error;
	soft->medium = options.medium;
	error = weir_virtual_create(&options, &soft->controller);
	if (error) {
		options.medium->ops->close(options.medium);
		return error;
	}
	if (request->front)
		return 0; /* which polls it */
	error = weir_virtual_start(soft->controller);
	if (error)
		weir_virtual_destroy(soft->controller);
	return error;
}

int weir_soft_new(const struct weir_transport_ops *ops, struct weir_medium *medium,
		  const struct weir_soft_keys *keys, const struct weir_transport_request *request,
		  struct weir_transport **out)
{
	struct soft *soft = calloc(1, sizeof(*soft));
	int error;

	if (!soft) {
		medium->ops->close(medium);
		return weir_fail(ENOMEM, "storage \"%s\": no memory", request->uri->text);
	}
	soft->base.ops = ops;
	soft->base.read_only = medium->read_only;
	soft->base.end_bytes = keys->engine ? 0 : medium->end_bytes;
	soft->base.mover = (enum weir_mover)keys->mover;
	soft->base.doorbell = (enum weir_doorbell)keys->doorbell;
	soft->base.doorbell_bytes = sizeof(uint32_t);
	error = start(soft, medium, keys, request);
	if (error) {
		free(soft);
		return error;
	}
	*out = &soft->base;
	return 0;
}

/* No size, but a file to load: as long as that, to the byte. */
static int virt_size(const struct weir_uri *uri, const char *load, uint64_t block_bytes, uint64_t most,
		     uint64_t *bytes)
{
	char least_text[WEIR_SIZE_TEXT_BYTES], most_text[WEIR_SIZE_TEXT_BYTES];

	*bytes = 0;
	if (load && !*uri->body)
		return 0;
	if (weir_parse_bytes(uri->body, bytes) != 0)
		return weir_fail(EINVAL, "storage \"%s\": \"%s\" is not a size; write virt:64M or virt:4G",
				 uri->text, uri->body);
	if (*bytes == 0 || *bytes > most)
		return weir_fail(EINVAL, "storage \"%s\": virt:%s is not accepted: virt: holds from %s to %s",
				 uri->text, uri->body, weir_size_text(block_bytes, least_text),
				 weir_size_text(most, most_text));
	if (*bytes % block_bytes)
		return weir_fail(EINVAL, "storage \"%s\": %llu bytes are no whole number of %llu-byte blocks",
				 uri->text, (unsigned long long)*bytes, (unsigned long long)block_bytes);
	return 0;
}

/* What strikes a controller as a whole, of which one on the device knows nothing. */
static bool strikes_all(enum weir_virtual_fault_kind kind)
{
	return kind == WEIR_VIRTUAL_FAULT_FATAL || kind == WEIR_VIRTUAL_FAULT_GONE ||
	       kind == WEIR_VIRTUAL_FAULT_STUCK || kind == WEIR_VIRTUAL_FAULT_HUNG ||
	       kind == WEIR_VIRTUAL_FAULT_OFF;
}

/* A controller on the device does all but fail as a whole, which the host's alone can. */
static int check_device_controller_faults(const struct weir_uri *uri, const struct weir_soft_keys *keys)
{
	for (unsigned i = 0; i < keys->fault_count; i++)
		if (strikes_all(keys->faults[i].kind))
			return weir_fail(ENOTSUP,
					 "storage \"%s\": fault row %u: a controller on the device knows "
					 "neither fatal nor gone, stuck, hung nor off, but "
					 "status, late, shuffle, burst, stall, drop, duplicate, stray, phase "
					 "and misroute",
					 uri->text, i + 1);
	return 0;
}

static int check_device_controller(const struct weir_uri *uri, const char *load, unsigned computed,
				   const struct weir_soft_keys *keys,
				   const struct weir_device_controller_options *device_controller)
{
	if (!device_controller->on &&
	    (!device_controller->data || device_controller->host_medium || device_controller->groups ||
	     device_controller->waves || device_controller->claim))
		return weir_fail(EINVAL,
				 "storage \"%s\": waves, groups, claim, data and medium are for on=device",
				 uri->text);
	if (device_controller->waves && device_controller->groups)
		return weir_fail(EINVAL,
				 "storage \"%s\": waves=%u and groups=%u: give waves for small blocks all "
				 "over the device or groups for as many multiprocessors",
				 uri->text, device_controller->waves, device_controller->groups);
	if (device_controller->on && (load || computed || keys->trace))
		return weir_fail(
			ENOTSUP,
			"storage \"%s\": a controller on the device has no load, content or trace yet",
			uri->text);
	if (device_controller->on && keys->shadow)
		return weir_fail(EINVAL,
				 "storage \"%s\": the doorbells of a controller on the device are memory "
				 "already; leave shadow=on out",
				 uri->text);
	if (device_controller->on && keys->doorbell == WEIR_DOORBELL_HOST)
		return weir_fail(EINVAL,
				 "storage \"%s\": lanes ring a controller on the device themselves; leave "
				 "doorbell=host out",
				 uri->text);
	if (device_controller->on && keys->mover == WEIR_MOVER_PULL)
		return weir_fail(EINVAL,
				 "storage \"%s\": a controller on the device moves the data itself; leave "
				 "mover=pull out",
				 uri->text);
	return device_controller->on ? check_device_controller_faults(uri, keys) : 0;
}

/* A controller on the device: on=device, how many waves of what kind, its medium there or here, or no data.
 */
static int take_device_controller(struct weir_uri *uri, const char *load, unsigned computed,
				  const struct weir_soft_keys *keys,
				  struct weir_device_controller_options *device_controller)
{
	static const char *const locations[] = { "host", "device", NULL };
	static const char *const switches[] = { "off", "on", NULL };
	unsigned on = 0, data = 1, medium = 1;
	uint64_t waves = 0, groups = 0, claim = 0;
	int error;

	if ((error = weir_uri_take_choice(uri, "on", locations, &on)) != 0 ||
	    (error = weir_uri_take_u64(uri, "waves", 1, 1 << 16, &waves)) != 0 ||
	    (error = weir_uri_take_u64(uri, "groups", 1, 1 << 16, &groups)) != 0 ||
	    (error = weir_uri_take_u64(uri, "claim", 1, 64, &claim)) != 0 ||
	    (error = weir_uri_take_choice(uri, "data", switches, &data)) != 0 ||
	    (error = weir_uri_take_choice(uri, "medium", locations, &medium)) != 0)
		return error;
	*device_controller = (struct weir_device_controller_options){ .on = on,
								      .waves = (uint32_t)waves,
								      .groups = (uint32_t)groups,
								      .claim = (uint32_t)claim,
								      .data = data,
								      .host_medium = !medium };
	error = check_device_controller(uri, load, computed, keys, device_controller);
	if (!error && on && !waves && !groups)
		device_controller->waves = DEFAULT_WAVES;
	return error;
}

/* What I/O queues do is the device controller's; the host's is left with the admin queue. */
static void hand_over(struct weir_soft_keys *keys, struct weir_device_controller_options *device_controller)
{
	if (!device_controller->on)
		return;
	device_controller->latency_us = keys->latency_us;
	device_controller->iops = keys->iops;
	device_controller->fault_count = keys->fault_count;
	keys->latency_us = keys->iops = 0;
	keys->fault_count = 0;
}

static int open_memory(const struct weir_uri *uri, uint64_t bytes, uint32_t block_bytes, const char *load,
		       unsigned computed, struct weir_medium **medium)
{
	if (computed && load)
		return weir_fail(
			EINVAL,
			"storage \"%s\": load and content=address both say what it holds; leave one out",
			uri->text);
	return computed ? weir_medium_sparse_open(bytes, block_bytes, medium)
			: weir_medium_ram_open(bytes, block_bytes, load, medium);
}

/* Memory that lanes read, where they move the data: unless it is asked for, not more than is to spare. */
static int open_lent(const struct weir_transport_request *request, const struct weir_soft_keys *keys,
		     uint64_t bytes, const char *load, enum weir_zero_copy zero_copy,
		     struct weir_medium **medium)
{
	struct weir_lender lender;

	if (!request->lender || zero_copy == WEIR_ZERO_COPY_OFF || keys->mover == WEIR_MOVER_DIRECT ||
	    (keys->mover == WEIR_MOVER_AUTO && !request->pulls))
		return -ENOTSUP;
	lender = *request->lender;
	if (zero_copy == WEIR_ZERO_COPY_ON)
		lender.most = UINT64_MAX;
	return weir_medium_ram_open_lent(bytes, (uint32_t)keys->block_bytes, load, &lender, medium);
}

/** struct virt_source - what weir_nvme_shared_open() is given for a virtual controller with a name */
struct virt_source {
	struct weir_transport_request *request;
	struct weir_soft_keys *keys;
	enum weir_zero_copy zero_copy;
	struct soft_made made;
};

/* Its doorbells are memory of its own, and what it may touch is what storages share with it. */
static int open_shared(void *of, struct weir_nvme_raw *out)
{
	const struct virt_source *source = of;
	struct weir_transport_request request = *source->request;
	struct weir_medium *medium;
	struct weir_dma_map *dma = NULL;
	char *load = source->made.load ? strdup(source->made.load) : NULL;
	int error = source->made.load && !load
			    ? weir_fail(ENOMEM, "storage \"%s\": no memory", request.uri->text)
			    : weir_dma_map_create(&dma);

	request.dma = dma;
	request.doorbells = NULL;
	request.queues = source->made.pairs;
	if (!error)
		error = open_memory(request.uri, source->made.bytes, (uint32_t)source->made.block_bytes, load,
				    source->made.computed, &medium);
	if (!error)
		error = weir_soft_new(&weir_transport_virt, medium, source->keys, &request, &out->transport);
	if (error) {
		weir_dma_map_destroy(dma);
		free(load);
		return error;
	}
	((struct soft *)out->transport)->dma = out->dma = dma;
	((struct soft *)out->transport)->made = source->made;
	((struct soft *)out->transport)->made.load = ((struct soft *)out->transport)->load = load;
	out->transport->most_queues = source->made.pairs;
	return 0;
}

static bool same_file(const char *one, const char *other)
{
	return one && other ? !strcmp(one, other) : one == other;
}

static int join_shared(void *of, const struct weir_nvme_raw *raw)
{
	const struct virt_source *source = of;
	const struct soft_made *made = &((struct soft *)raw->transport)->made, *asked = &source->made;

	if (made->bytes == asked->bytes && made->block_bytes == asked->block_bytes &&
	    made->latency_us == asked->latency_us && made->iops == asked->iops && made->mdts == asked->mdts &&
	    made->shadow == asked->shadow && made->pairs == asked->pairs &&
	    made->computed == asked->computed && made->engine == asked->engine &&
	    same_file(made->load, asked->load) && made->fault_count == asked->fault_count &&
	    !memcmp(made->faults, asked->faults, made->fault_count * sizeof(*made->faults)))
		return 0;
	return weir_fail(EBUSY,
			 "storage \"%s\": another storage of this process has made that controller, and not "
			 "like this; write the same "
			 "size, block, load, lat_us, iops, mdts, shadow, content, engine, fault and "
			 "queue_pairs in both",
			 source->request->uri->text);
}

/* A controller of this process that has a name: the first storage makes it, and others write the same. */
static int share_controller(struct weir_transport_request *request, const char *name,
			    struct virt_source *source, struct weir_transport **out)
{
	const struct weir_soft_keys *keys = source->keys;
	struct weir_transport base = { .mover = (enum weir_mover)keys->mover,
				       .doorbell = (enum weir_doorbell)keys->doorbell,
				       .shadow = keys->shadow ? WEIR_SHADOW_ON : WEIR_SHADOW_AUTO,
				       .zero_copy = source->zero_copy,
				       .registers = true };
	char *text;
	int error;

	source->made.block_bytes = keys->block_bytes;
	source->made.latency_us = keys->latency_us;
	source->made.iops = keys->iops;
	source->made.mdts = keys->mdts;
	source->made.shadow = keys->shadow;
	source->made.engine = keys->engine;
	source->made.fault_count = keys->fault_count;
	memcpy(source->made.faults, keys->faults, sizeof(keys->faults));
	if (asprintf(&text, "virtual controller \"%s\"", name) < 0)
		return weir_fail(ENOMEM, "storage \"%s\": no memory", request->uri->text);
	error = weir_nvme_shared_open(
		request, &base,
		&(struct weir_nvme_source){
			.key = text, .name = text, .of = source, .open = open_shared, .join = join_shared },
		out);
	free(text);
	return error;
}

static int check_controller(const struct weir_uri *uri, const char *name,
			    const struct weir_device_controller_options *device_controller)
{
	if (!name || !device_controller->on)
		return 0;
	return weir_fail(EINVAL,
			 "storage \"%s\": controller=%s is for storages that share a controller on the host; "
			 "leave on=device out",
			 uri->text, name);
}

static int virt_open(struct weir_transport_request *request, struct weir_transport **out)
{
	struct weir_uri *uri = request->uri;
	static const char *const contents[] = { "zeros", "address", NULL };
	const char *load = weir_uri_take_text(uri, "load"), *name = weir_uri_take_text(uri, "controller");
	unsigned computed = 0;
	struct weir_medium *medium;
	struct weir_device_controller_options device_controller;
	struct weir_soft_keys keys;
	uint64_t bytes, pairs = DEFAULT_PAIRS;
	static const char *const switches[] = { "off", "on", NULL };
	static const char *const zero_copies[] = { "auto", "off", "on", NULL }; /* enum weir_zero_copy */
	unsigned zero_copy = WEIR_ZERO_COPY_AUTO;
	int error = weir_soft_keys_take(request, &keys);

	if (error || (error = weir_uri_take_choice(uri, "engine", switches, &keys.engine)) != 0 ||
	    (error = weir_uri_take_choice(uri, "zero_copy", zero_copies, &zero_copy)) != 0 ||
	    (error = weir_uri_take_choice(uri, "content", contents, &computed)) != 0 ||
	    (error = take_device_controller(uri, load, computed, &keys, &device_controller)) != 0 ||
	    (error = weir_soft_keys_check_engine(uri, &keys, device_controller.on)) != 0)
		return error;
	if (!keys.block_bytes)
		keys.block_bytes = 512;
	if ((error = weir_uri_take_u64(uri, "queue_pairs", 1, MOST_PAIRS, &pairs)) != 0 ||
	    (error = check_controller(uri, name, &device_controller)) != 0 ||
	    (error = weir_uri_finish(uri, WEIR_SOFT_KEYS
				     ", load, content, on, waves, groups, claim, data, "
				     "medium, controller, engine, queue_pairs, zero_copy")) != 0 ||
	    (error = virt_size(uri, load, keys.block_bytes, computed ? LARGEST_COMPUTED : LARGEST, &bytes)) !=
		    0)
		return error;
	if (name)
		return share_controller(request, name,
					&(struct virt_source){ .request = request,
							       .keys = &keys,
							       .zero_copy = (enum weir_zero_copy)zero_copy,
							       .made = { .load = load,
									 .bytes = bytes,
									 .computed = computed,
									 .pairs = (unsigned)pairs } },
					out);
	error = computed || keys.engine || keys.trace || keys.fault_count || device_controller.on
			? -ENOTSUP
			: open_lent(request, &keys, bytes, load, (enum weir_zero_copy)zero_copy, &medium);
	if (error && (error == -ENOTSUP || zero_copy == WEIR_ZERO_COPY_AUTO))
		error = open_memory(uri, bytes, (uint32_t)keys.block_bytes, load, computed, &medium);
	if (error)
		return error;
	hand_over(&keys, &device_controller);
	error = weir_soft_new(&weir_transport_virt, medium, &keys, request, out);
	if (!error) {
		struct soft *soft = (struct soft *)*out;

		memcpy(soft->faults, keys.faults, device_controller.fault_count * sizeof(*keys.faults));
		device_controller.faults = soft->faults;
		soft->base.device_controller = device_controller;
		soft->base.zero_copy = (enum weir_zero_copy)zero_copy;
	}
	return error;
}

static int file_open(struct weir_transport_request *request, struct weir_transport **out)
{
	static const char *const directs[] = { "auto", "on", "off", NULL };
	/* enum weir_file_engine, and an engine of volumes */
	static const char *const engines[] = { "auto", "io_uring", "threads", "on", NULL };
	static const char *const switches[] = { "off", "on", NULL };
	struct weir_uri *uri = request->uri;
	unsigned direct = WEIR_DIRECT_AUTO, engine = WEIR_ENGINE_AUTO, share = 0;
	uint64_t poll = 0, ro = request->read_only;
	struct weir_medium *medium;
	struct weir_soft_keys keys;
	int error = weir_soft_keys_take(request, &keys);

	if (error || (error = weir_uri_take_choice(uri, "direct", directs, &direct)) != 0 ||
	    (error = weir_uri_take_u64(uri, "poll", 0, 1, &poll)) != 0 ||
	    (error = weir_uri_take_u64(uri, "ro", 0, 1, &ro)) != 0 ||
	    (error = weir_uri_take_choice(uri, "engine", engines, &engine)) != 0 ||
	    (error = weir_uri_take_choice(uri, "share", switches, &share)) != 0 ||
	    (error = weir_uri_finish(uri, WEIR_SOFT_KEYS ", direct, poll, ro, engine, share")) != 0)
		return error;
	if (engine == ENGINE_ON) {
		keys.engine = 1;
		engine = WEIR_ENGINE_AUTO;
	}
	if ((error = weir_soft_keys_check_engine(uri, &keys, false)) != 0)
		return error;
	keys.woken = request->host_rings && !keys.shadow; /* a store to a shadow doorbell wakes nobody */
	error = weir_medium_file_open(uri->body,
				      &(struct weir_medium_file_options){
					      .block_bytes = (uint32_t)keys.block_bytes,
					      .read_only = ro || request->read_only,
					      .direct = (enum weir_direct)direct,
					      .threads = (unsigned)keys.threads + keys.engine,
					      .depth = request->depth,
					      .poll = poll,
					      .engine = (enum weir_file_engine)engine,
					      .share = share,
					      .alone = keys.engine,
				      },
				      &medium);
	return error ? error : weir_soft_new(&weir_transport_file, medium, &keys, request, out);
}

static struct weir_virtual *controller_of(struct weir_transport *transport)
{
	return ((struct soft *)transport)->controller;
}

struct weir_virtual *weir_transport_core(struct weir_transport *transport, const struct weir_medium **medium)
{
	*medium = ((struct soft *)transport)->medium;
	return controller_of(transport);
}

static uint64_t soft_read64(struct weir_transport *transport, uint32_t offset)
{
	return weir_virtual_read64(controller_of(transport), offset);
}

static uint32_t soft_read32(struct weir_transport *transport, uint32_t offset)
{
	return weir_virtual_read32(controller_of(transport), offset);
}

static void soft_write64(struct weir_transport *transport, uint32_t offset, uint64_t value)
{
	weir_virtual_write64(controller_of(transport), offset, value);
}

static void soft_write32(struct weir_transport *transport, uint32_t offset, uint32_t value)
{
	weir_virtual_write32(controller_of(transport), offset, value);
}

static uint64_t soft_doorbell(struct weir_transport *transport, unsigned index)
{
	return (uint64_t)(uintptr_t)(weir_virtual_doorbells(controller_of(transport)) + index);
}

static void soft_stats(struct weir_transport *transport, struct weir_transport_stats *stats)
{
	struct weir_virtual_stats done;

	weir_virtual_stats(controller_of(transport), &done);
	*stats = (struct weir_transport_stats){ done.bytes_read, done.bytes_written, done.changes != 0 };
}

/* A medium that does not answer may still put what it reads where it was told to. */
static int soft_halt(struct weir_transport *transport)
{
	if (weir_virtual_halt(controller_of(transport), HALT_MS) == 0)
		return 0;
	return weir_fail(ETIMEDOUT, "the medium did not finish what it was asked within %d ms", HALT_MS);
}

static bool soft_places(struct weir_transport *transport)
{
	return weir_virtual_answer_places(controller_of(transport));
}

static const char *soft_path(struct weir_transport *transport)
{
	return weir_medium_path(((struct soft *)transport)->medium);
}

static void soft_close(struct weir_transport *transport)
{
	weir_virtual_stop(controller_of(transport));
	weir_virtual_destroy(controller_of(transport));
	weir_dma_map_destroy(((struct soft *)transport)->dma);
	free(((struct soft *)transport)->load);
	free(transport);
}

#define SOFT_OPS(name, opener, attacher, detacher)                                                           \
	const struct weir_transport_ops weir_transport_##name = {                                            \
		.size = sizeof(struct weir_transport_ops),                                                   \
		.scheme = #name,                                                                             \
		.open = opener,                                                                              \
		.read64 = soft_read64,                                                                       \
		.read32 = soft_read32,                                                                       \
		.write64 = soft_write64,                                                                     \
		.write32 = soft_write32,                                                                     \
		.doorbell = soft_doorbell,                                                                   \
		.stats = soft_stats,                                                                         \
		.places = soft_places,                                                                       \
		.path = soft_path,                                                                           \
		.close = soft_close,                                                                         \
		.halt = soft_halt,                                                                           \
		.attach = attacher,                                                                          \
		.detach = detacher,                                                                          \
	}

SOFT_OPS(virt, virt_open, NULL, NULL);
SOFT_OPS(file, file_open, NULL, NULL);
SOFT_OPS(vol, weir_volume_open, weir_volume_attach, weir_volume_detach);
