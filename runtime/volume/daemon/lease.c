/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease.c: who may write a volume, one client at a time.
 *
 * Owns: a lease's life. Correctness rests on its epoch: engines refuse writes of any other. The time only
 * says when the daemon may give the volume to somebody else.
 *
 * After a lease that did not end with lease_release, replicas may differ in blocks whose writes were not
 * acknowledged. Then, in this order: the even epoch behind it at all engines, with client VOLUMED_NOBODY, so
 * that nothing more of the old writer arrives, and so that a daemon that starts now knows; the blocks made
 * equal; the next odd epoch. A daemon that finds VOLUMED_NOBODY compares the whole volume.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "../../backend/error.h"
#include "command.h"
#include "daemon.h"

struct lease {
	u16 vid;
	u16 client;
	u32 epoch;
};

static int call_lease(struct volume_engine_link *link, const void *argument)
{
	const struct lease *lease = argument;

	return volume_engine_lease(link, lease->vid, lease->epoch, lease->client);
}

/* @volume is only valid until here: engines may come back meanwhile, but volumes stay where they are. */
static int set(struct volumed *d, struct volumed_volume *volume, u32 epoch, u16 client)
{
	const struct lease lease = { .vid = volume->info.vid, .client = client, .epoch = epoch };
	int error = volumed_each_in(d, call_lease, &lease, 0, "change a lease");

	if (error)
		return error;
	volume->info.lease_epoch = epoch;
	volume->info.lease_client = client;
	return 0;
}

static bool somebody_has(const struct volumed_volume *volume)
{
	return volume->info.lease_client && volume->info.lease_client != VOLUMED_NOBODY;
}

static void become_unclean(struct volumed_volume *volume, u64 from)
{
	volume->from = volume->unclean && volume->from < from ? volume->from : from;
	volume->unclean = true;
}

/* A change that failed has left an engine with a lease that nobody was given: go above it, and keep everyone
 * off. */
static int overtake(struct volumed *d, struct volumed_volume *volume)
{
	u32 newest = volume->info.lease_epoch;

	for (unsigned i = 0; i < d->engine_count; i++) {
		struct nvme_volume there = { .vid = 0 };

		if (d->engines[i].current &&
		    volume_engine_get(d->engines[i].link, volume->info.vid, &there) == 0 &&
		    there.vid == volume->info.vid && there.lease_epoch > newest)
			newest = there.lease_epoch;
	}
	become_unclean(volume, (u64)volume->info.lease_epoch << NVME_VOLUME_VERSION_EPOCH);
	return set(d, volume, (newest | 1) + 1, VOLUMED_NOBODY);
}

/* Keep a writer off that did not say that it was done. */
static int fence(struct volumed *d, struct volumed_volume *volume)
{
	u32 epoch = volume->info.lease_epoch;
	int error;

	if (!somebody_has(volume))
		return 0;
	become_unclean(volume, (u64)epoch << NVME_VOLUME_VERSION_EPOCH);
	error = set(d, volume, (epoch | 1) + 1, VOLUMED_NOBODY);
	return error == -ESTALE ? overtake(d, volume) : error;
}

/* What an engine that joins has above the others was left to the writer (level.h), who is no more: it is
 * compared once more. */
static int compare_joining(struct volumed *d, const struct volumed_volume *volume)
{
	bool compared = d->copy.pass || d->copy.next > volume->info.vid;

	if (d->copy.task != VOLUMED_JOIN || !compared)
		return 0;
	return volumed_copy_begin(d, VOLUMED_JOIN, d->copy.engine);
}

static int make_clean(struct volumed *d, struct volumed_volume *volume)
{
	int error = fence(d, volume);

	if (error || !volume->unclean)
		return error;
	error = volumed_equalize(d, volume);
	if (!error)
		error = compare_joining(d, volume);
	if (!error)
		volume->unclean = false;
	return error;
}

int volumed_lease_grant(struct volumed *d, struct volumed_volume *volume, u16 client)
{
	uint64_t now = volumed_now_ms(d);
	int error;

	if (somebody_has(volume) && now < volume->lease_end_ms)
		return weir_fail(
			EBUSY,
			"volume '%s' is being written by client %u, whose lease ends in %llu s unless "
			"it renews it; weir-volume lease %s --end ends it now",
			volume->info.name, volume->info.lease_client,
			(unsigned long long)(volume->lease_end_ms - now + 999) / 1000, volume->info.name);
	if (volume->info.lease_epoch >= NVME_VOLUME_LAST_EPOCH - 2)
		return weir_fail(
			EOVERFLOW,
			"volume '%s' has had %u lease epochs, the last that there are; copy it to a new one",
			volume->info.name, volume->info.lease_epoch);
	error = make_clean(d, volume);
	if (!error)
		error = set(d, volume, ((volume->info.lease_epoch + 1) | 1), client);
	if (error == -ESTALE && (error = overtake(d, volume)) == 0 && (error = make_clean(d, volume)) == 0)
		error = set(d, volume, ((volume->info.lease_epoch + 1) | 1), client);
	if (error)
		return error;
	volume->lease_end_ms = volumed_now_ms(d) + d->options.lease_ms;
	d->counts.leases++;
	return 0;
}

/* The volume if @client has its lease of @epoch, still. */
static struct volumed_volume *leased(struct volumed *d, const char *name, u16 client, u32 epoch)
{
	struct volumed_volume *volume = volumed_volume_of(d, name);

	if (!volume)
		return NULL;
	if (volume->info.lease_client == client && volume->info.lease_epoch == epoch &&
	    somebody_has(volume) && volumed_now_ms(d) < volume->lease_end_ms)
		return volume;
	weir_fail(ESTALE, "volume '%s': lease %u of client %u is over; open the volume again", name, epoch,
		  client);
	return NULL;
}

static bool may_write(const struct volumed_volume *volume, u16 client)
{
	for (size_t i = 0; i < volume->count; i++)
		if (volume->permissions[i].client == client)
			return volume->permissions[i].rights & NVME_VOLUME_WRITE;
	return false;
}

/* Engines refuse the writes of whoever has no right to write any more: nobody else has to wait for it. */
int volumed_lease_renew(struct volumed *d, const char *name, u16 client, u32 epoch)
{
	struct volumed_volume *volume = leased(d, name, client, epoch);

	if (!volume)
		return -ESTALE;
	if (!may_write(volume, client))
		return weir_fail(EACCES,
				 "volume '%s': client %u may not write it any more: lease %u is not renewed",
				 name, client, epoch);
	volume->lease_end_ms = volumed_now_ms(d) + d->options.lease_ms;
	return 0;
}

int volumed_lease_release(struct volumed *d, const char *name, u16 client, u32 epoch)
{
	struct volumed_volume *volume = leased(d, name, client, epoch);

	return volume ? set(d, volume, epoch, 0) : -ESTALE;
}

/* An engine that does not answer keeps it: for the daemon it is over all the same, and whoever comes next has
 * it fenced. */
void volumed_lease_take_back(struct volumed *d, const char *name, u16 client, u32 epoch)
{
	char *sentence = strdup(weir_last_error());
	struct volumed_volume *volume = leased(d, name, client, epoch);

	if (volume && set(d, volume, epoch, 0) != 0)
		volume->lease_end_ms = volumed_now_ms(d);
	if (sentence)
		weir_fail(EAGAIN, "%s", sentence);
	free(sentence);
}

int volumed_lease_abandon(struct volumed *d, const char *name, u16 client, u32 epoch)
{
	struct volumed_volume *volume = leased(d, name, client, epoch);

	return volume ? make_clean(d, volume) : -ESTALE;
}

int volumed_lease_end(struct volumed *d, const char *name)
{
	struct volumed_volume *volume = volumed_volume_of(d, name);

	return volume ? make_clean(d, volume) : -ENOENT;
}

void volumed_lease_note(struct volumed *d, struct volumed_volume *volume)
{
	if (volume->info.lease_client == VOLUMED_NOBODY)
		become_unclean(volume, 0);
	volume->lease_end_ms = volumed_now_ms(d) + d->options.lease_ms;
}

/* Blocks are made equal as soon as a lease is over, whoever comes next; where that fails, when somebody does.
 */
void volumed_lease_step(struct volumed *d)
{
	uint64_t now = volumed_now_ms(d);

	for (size_t i = 0; i < d->volume_count; i++)
		if (somebody_has(&d->volumes[i]) && now >= d->volumes[i].lease_end_ms)
			(void)make_clean(d, &d->volumes[i]);
}
