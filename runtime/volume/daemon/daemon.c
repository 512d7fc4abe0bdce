/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "../../backend/error.h"

static uint64_t machine_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t volumed_now_ms(const struct volumed *d)
{
	return d->options.now_ms();
}

int volumed_create(const struct volumed_options *options, struct volumed **out)
{
	struct volumed *d = calloc(1, sizeof(*d));

	if (!d)
		return weir_fail(ENOMEM, "no memory for the daemon");
	d->options = *options;
	if (!d->options.lease_ms)
		d->options.lease_ms = VOLUMED_LEASE_MS;
	if (!d->options.heartbeat_ms)
		d->options.heartbeat_ms = VOLUMED_HEARTBEAT_MS;
	if (!d->options.misses)
		d->options.misses = VOLUMED_MISSES;
	if (!d->options.kept_off_ms)
		d->options.kept_off_ms = VOLUMED_KEPT_OFF_MS;
	if (!d->options.now_ms)
		d->options.now_ms = machine_ms;
	d->table = calloc(WEIR_PLACEMENT_GROUPS, sizeof(*d->table));
	d->copy.table = calloc(WEIR_PLACEMENT_GROUPS, sizeof(*d->copy.table));
	d->copy.floors = calloc(NVME_VOLUME_MOST + 1, sizeof(*d->copy.floors));
	if (!d->table || !d->copy.table || !d->copy.floors) {
		volumed_destroy(d);
		return weir_fail(ENOMEM, "no memory for the table of a map");
	}
	*out = d;
	return 0;
}

void volumed_destroy(struct volumed *d)
{
	volumed_copy_end(d);
	for (unsigned i = 0; i < d->engine_count; i++)
		d->engines[i].link->ops->close(d->engines[i].link);
	for (size_t i = 0; i < d->volume_count; i++)
		free(d->volumes[i].permissions);
	free(d->volumes);
	free(d->copy.floors);
	free(d->copy.table);
	free(d->table);
	free(d);
}

unsigned volumed_step(struct volumed *d)
{
	uint64_t now = volumed_now_ms(d);
	bool repaired, copied;

	if (now >= d->heartbeat_at_ms) {
		volumed_heartbeat(d);
		now = volumed_now_ms(d);
		d->heartbeat_at_ms = now + d->options.heartbeat_ms;
	}
	volumed_lease_step(d);
	volumed_copy_choose(d);
	repaired = volumed_repair_step(d);
	copied = volumed_copy_step(d);
	if (repaired || copied)
		return 0;
	if (volumed_copy_paced(d))
		return 1;
	return (unsigned)(d->heartbeat_at_ms > now ? d->heartbeat_at_ms - now : 0);
}
