/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that take buffers out of a pool and give them back, and one of batched I/O. */
#include <weir/volume.h>

#include "scenarios_parts.h"

enum { PAGE = 1 << WEIR_POOL_PAGE_LOG2, SAMPLES_OF_BUFFER = 4 };

WEIR_FN WEIR_GLOBAL struct weir_pool *pool_of(struct scenario_args *args)
{
	return weir_at(args->pool, struct weir_pool, 0);
}

/* Bytes that this lane takes in round @r: of few pages such that two are often left of a unit; or of every
 * level. */
WEIR_FN u64 bytes_of(struct scenario_args *args, u32 r)
{
	u32 some = (u32)(weir_thread() * 5 + r * 3 + args->salt) % 8;

	if (args->mode & SCENARIO_POOL_PAGES)
		return (1 + (u64)(some & 1) * 6) * PAGE;
	return (some < 3 ? 1 + some : some < 6 ? 16 * (u64)(some - 2) - 1 : (u64)256 * (some - 5)) * PAGE;
}

/* The word of the page that is @k-th of those of a buffer that are marked: plain, as data is. */
WEIR_FN WEIR_GLOBAL u64 *owner_of(struct scenario_args *args, weir_addr buffer, u64 bytes, u32 k)
{
	u64 first = (buffer - SCENARIO_POOL_DATA) / PAGE, last = bytes / PAGE - 1;

	return weir_at(args->owners, u64, first + last * k / (SAMPLES_OF_BUFFER - 1));
}

/* A page that is free has 0, which its last owner wrote. */
WEIR_FN void change_owner(struct scenario_args *args, weir_addr buffer, u64 bytes, u64 from, u64 to)
{
	for (u32 k = 0; k < SAMPLES_OF_BUFFER; k++)
		explore_expect("owner of a page", *owner_of(args, buffer, bytes, k), from);
	for (u32 k = 0; k < SAMPLES_OF_BUFFER; k++)
		*owner_of(args, buffer, bytes, k) = to;
}

/* The last lane to come: all is free, in the largest units. Return: 1 in that lane. */
WEIR_FN u32 check_nothing_lost(struct scenario_args *args)
{
	WEIR_GLOBAL struct weir_pool_region *region = &pool_of(args)->regions[0];
	u64 units = 0;

	if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 != weir_threads())
		return 0;
	for (u32 level = 0; level < WEIR_POOL_LEVELS; level++) {
		units = 0;
		for (u32 i = 0; i < weir_pool_level_words(region->pages, level); i++)
			units += weir_popcount(weir_load_u64_relaxed_dev(weir_pool_word(region, level, i)));
		explore_expect("count of a level", weir_load_u32_relaxed_dev(&region->free[level]), units);
	}
	explore_expect("chunks that are free at the end", units, region->pages / WEIR_POOL_CHUNK_PAGES);
	return 1;
}

/* Lanes take buffers, mark pages of theirs, find the marks unchanged, give the buffers back. Of a pool that
 * is too small somebody gets none now and then; not all of them at once. */
WEIR_KERNEL(pool, struct scenario_args)
{
	WEIR_GLOBAL struct weir_pool *pool = pool_of(args);

	for (u32 r = 0; r < args->requests; r++) {
		u64 bytes = bytes_of(args, r);
		weir_addr buffer = weir_pool_take(pool, bytes, 0);

		if (buffer) {
			change_owner(args, buffer, bytes, 0, weir_thread() + 1);
			change_owner(args, buffer, bytes, weir_thread() + 1, 0);
			explore_expect("status of giving back", weir_pool_free(pool, buffer), WEIR_OK);
			explore_progress();
		}
	}
	(void)check_nothing_lost(args);
}

/* Two lanes each give the same buffer back, and one inside it that nobody took: one of them is right. */
WEIR_KERNEL(pool_twice, struct scenario_args)
{
	WEIR_GLOBAL struct weir_pool *pool = pool_of(args);
	WEIR_GLOBAL weir_shared_u64 *common = weir_at(args->marks, weir_shared_u64, 0);
	weir_addr buffer = weir_thread() == 0 ? weir_pool_try_take(pool, 2 * PAGE) : 0;
	weir_status status = WEIR_E_POOL;

	if (weir_thread() == 0)
		weir_store_u64_release_dev(common, buffer);
	buffer = weir_load_u64_acquire_dev(common);
	if (buffer)
		status = weir_pool_free(pool, buffer);
	if (status == WEIR_OK)
		(void)weir_add_u64_relaxed_dev(common + 1, 1);
	else
		explore_expect("status of giving back what is free", status, WEIR_E_POOL);
	if (buffer) {
		explore_expect("status of giving a part back", weir_pool_free(pool, buffer + PAGE),
			       WEIR_E_POOL);
		explore_expect("status of giving half a page back", weir_pool_free(pool, buffer + 8),
			       WEIR_E_POOL);
		explore_expect("status of giving back what is no buffer", weir_pool_free(pool, 8),
			       WEIR_E_POOL);
	}
	if (check_nothing_lost(args))
		explore_expect("how often the buffer was given back", weir_load_u64_relaxed_dev(common + 1),
			       1);
	explore_progress();
}

/* Each lane reads its blocks one after the other, by the four steps. */
WEIR_KERNEL(batch, struct scenario_args)
{
	WEIR_GLOBAL struct weir_batches *batches = weir_at(args->batches, struct weir_batches, 0);
	u32 sent = 0, read = 0, vain = 0, mine = args->requests - weir_lane() % 2;

	while (read < mine) {
		struct weir_io_request request;
		struct weir_io_ended ended;

		request.opcode = NVME_OPCODE_READ;
		request.blocks = 1;
		request.lba = some_lba(args, sent);
		request.buffer = buffer_of(args, sent % args->requests);
		request.argument = sent;
		request.callback = (u32)weir_thread();
		sent += weir_batch_submit(batches, sent < mine, request);
		weir_batch_commit(batches);
		ended = weir_batch_dispatch(batches, weir_batch_poll(batches));
		if (ended.ended) {
			explore_expect("status of a request of a batch", ended.status, WEIR_OK);
			explore_expect("callback of a request", ended.callback, weir_thread());
			explore_expect("requests that have ended", ended.argument, read);
			check_block(ended.buffer, some_lba(args, read), 0);
			read++;
			vain = 0;
		} else {
			weir_relax(vain++);
		}
	}
	explore_expect("a request at the end", weir_is_in(weir_batch_pending(batches)), 0);
}
