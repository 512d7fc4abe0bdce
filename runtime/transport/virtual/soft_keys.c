/* SPDX-License-Identifier: BSD-3-Clause */
#include "soft_keys.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include <weir/nvme_volume.h>

#include "../../backend/error.h"
#include "virtual.h"

enum {
	MOST_THREADS = 64,
	AUTO_THREADS = 16,
	SPARED_CORES = 2,
	LEAST_TRANSFER = 8192 /* MDTS of a page would be 0, which means no limit */
};

static int check_power(const struct weir_uri *uri, const char *key, uint64_t value)
{
	if ((value & (value - 1)) == 0)
		return 0;
	return weir_fail(EINVAL, "storage \"%s\": %s=%llu is not a power of two", uri->text, key,
			 (unsigned long long)value);
}

static int take_faults(struct weir_uri *uri, struct weir_soft_keys *keys)
{
	const char *text = weir_uri_take_text(uri, "fault");

	if (!text)
		return 0;
	return weir_virtual_faults_parse(text, keys->faults, WEIR_VIRTUAL_FAULTS, &keys->fault_count);
}

/* All cores the process may use but two, for the program itself; never more than there are queues. */
static uint64_t auto_threads(uint32_t queues)
{
	cpu_set_t cores;
	int count = sched_getaffinity(0, sizeof(cores), &cores) ? 1 : CPU_COUNT(&cores) - SPARED_CORES;

	if (count > AUTO_THREADS)
		count = AUTO_THREADS;
	if (count < 1 || !queues)
		return 1;
	return (uint32_t)count < queues ? (uint32_t)count : queues;
}

static int take_threads(struct weir_uri *uri, uint32_t queues, uint64_t *threads)
{
	const char *text = weir_uri_take_text(uri, "threads");

	if (text && !strcmp(text, "auto")) {
		*threads = auto_threads(queues);
		return 0;
	}
	if (!weir_uri_take_u64(uri, "threads", 1, MOST_THREADS, threads))
		return 0;
	return weir_fail(
		EINVAL,
		"storage \"%s\": threads=%s is not accepted: threads is a whole number from 1 to %d, or auto",
		uri->text, text, MOST_THREADS);
}

int weir_soft_keys_take(const struct weir_transport_request *request, struct weir_soft_keys *keys)
{
	static const char *const movers[] = { "auto", "direct", "pull", NULL }; /* enum weir_mover */
	static const char *const switches[] = { "off", "on", NULL };
	static const char *const ringers[] = { "auto", "lanes", "host", NULL }; /* enum weir_doorbell */
	struct weir_uri *uri = request->uri;
	int error;

	*keys = (struct weir_soft_keys){ .block_bytes = 0, .threads = 1, .mdts = 128 << 10 };
	if ((error = weir_uri_take_bytes(uri, "block", 512, 4096, &keys->block_bytes)) != 0 ||
	    (error = take_threads(uri, request->queues, &keys->threads)) != 0 ||
	    (error = weir_uri_take_u64(uri, "lat_us", 0, 10000000, &keys->latency_us)) != 0 ||
	    (error = weir_uri_take_u64(uri, "iops", 0, 1000000000, &keys->iops)) != 0 ||
	    (error = weir_uri_take_bytes(uri, "mdts", LEAST_TRANSFER, 16 << 20, &keys->mdts)) != 0 ||
	    (error = weir_uri_take_choice(uri, "mover", movers, &keys->mover)) != 0 ||
	    (error = weir_uri_take_choice(uri, "shadow", switches, &keys->shadow)) != 0 ||
	    (error = weir_uri_take_choice(uri, "doorbell", ringers, &keys->doorbell)) != 0 ||
	    (error = take_faults(uri, keys)) != 0)
		return error;
	keys->trace = weir_uri_take_text(uri, "trace");
	keys->engine = request->engine;
	keys->manager = request->manager;
	if (request->front)
		keys->threads = request->front_threads;
	if (keys->block_bytes && keys->block_bytes != 512 && keys->block_bytes != 4096)
		return weir_fail(EINVAL, "storage \"%s\": block=%llu; blocks are 512 or 4096 bytes",
				 uri->text, (unsigned long long)keys->block_bytes);
	return check_power(uri, "mdts", keys->mdts);
}

int weir_soft_keys_check_engine(const struct weir_uri *uri, struct weir_soft_keys *keys, bool on_device)
{
	if (!keys->engine)
		return 0;
	if (on_device)
		return weir_fail(ENOTSUP, "storage \"%s\": an engine is on the host; leave on=device out",
				 uri->text);
	if (keys->block_bytes && keys->block_bytes != NVME_VOLUME_BLOCK_BYTES)
		return weir_fail(EINVAL,
				 "storage \"%s\": the blocks of an engine have %d bytes; leave block out",
				 uri->text, NVME_VOLUME_BLOCK_BYTES);
	keys->block_bytes = NVME_VOLUME_BLOCK_BYTES;
	return 0;
}
