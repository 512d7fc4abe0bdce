/* SPDX-License-Identifier: BSD-3-Clause */
/* dma_test.c: the map of memory that controllers may touch, and its views. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "storage/dma.h"

static void *at(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static void test_add(void **state)
{
	struct weir_dma_map *map;

	(void)state;
	assert_int_equal(weir_dma_map_create(&map), 0);
	assert_int_equal(weir_dma_map_add(map, at(0x1000), 0x1000), 0);
	assert_int_equal(weir_dma_map_add(map, at(0x1000), 0x1000), -EEXIST);
	assert_int_equal(weir_dma_map_add(map, at(0x1fff), 1), -EEXIST);
	assert_int_equal(weir_dma_map_add(map, at(0xfff), 2), -EEXIST);
	assert_int_equal(weir_dma_map_add(map, at(0x800), 0x10000), -EEXIST);
	assert_int_equal(weir_dma_map_add(map, at(0x1800), 0x10), -EEXIST);
	assert_int_equal(weir_dma_map_add(map, at(0x2000), 1), 0);
	assert_int_equal(weir_dma_map_add(map, at(0xfff), 1), 0);
	assert_int_equal(weir_dma_map_add(map, at(0x5000), 0), -EINVAL);
	assert_int_equal(weir_dma_map_add(map, at(UINT64_MAX), 2), -EINVAL);
	assert_int_equal(weir_dma_map_add(map, at(UINT64_MAX - 9), 10), 0); /* to the very end */
	weir_dma_map_destroy(map);
}

static void test_find(void **state)
{
	struct weir_dma_view view = { 0 };
	struct weir_dma_map *map;

	(void)state;
	assert_int_equal(weir_dma_map_create(&map), 0);
	assert_int_equal(weir_dma_map_add(map, at(0x4000), 0x1000), 0);
	assert_int_equal(weir_dma_map_add(map, at(0x1000), 0x1000), 0);
	assert_int_equal(weir_dma_map_add(map, at(0x2000), 0x1000), 0);
	assert_null(weir_dma_view_find(&view, 0x1000, 1)); /* nothing before a refresh */
	assert_true(weir_dma_view_refresh(map, &view));
	assert_false(weir_dma_view_refresh(map, &view));
	assert_int_equal(view.count, 3);
	assert_int_equal(weir_dma_view_find(&view, 0x1000, 0x1000)->address, 0x1000);
	assert_int_equal(weir_dma_view_find(&view, 0x2fff, 1)->address, 0x2000);
	assert_int_equal(weir_dma_view_find(&view, 0x4010, 0xff0)->address, 0x4000);
	assert_null(weir_dma_view_find(&view, 0x1800, 0x1000)); /* two regions hold it, not one */
	assert_null(weir_dma_view_find(&view, 0x4010, 0xff1));
	assert_null(weir_dma_view_find(&view, 0xfff, 1));
	assert_null(weir_dma_view_find(&view, 0x3000, 1));
	assert_null(weir_dma_view_find(&view, 0x5000, 1));
	assert_null(weir_dma_view_find(&view, 0x4fff, UINT64_MAX));
	assert_null(weir_dma_view_find(&view, UINT64_MAX, 2));
	weir_dma_view_release(&view);
	assert_int_equal(view.count, 0);
	weir_dma_map_destroy(map);
}

static void test_remove(void **state)
{
	struct weir_dma_view view = { 0 };
	struct weir_dma_map *map;
	uint64_t id;

	(void)state;
	assert_int_equal(weir_dma_map_create(&map), 0);
	for (unsigned i = 1; i < 40; i++)
		assert_int_equal(weir_dma_map_add(map, at(i * 0x1000), 0x1000), 0);
	weir_dma_view_refresh(map, &view);
	id = weir_dma_view_find(&view, 0x7000, 1)->id;
	assert_int_equal(weir_dma_map_remove(map, at(0x7800)), -ENOENT);
	assert_int_equal(weir_dma_map_remove(map, at(0)), -ENOENT);
	assert_int_equal(weir_dma_map_remove(map, at(0x7000)), 0);
	assert_int_equal(weir_dma_map_remove(map, at(0x7000)), -ENOENT);
	assert_non_null(weir_dma_view_find(&view, 0x7000, 1)); /* a view is a copy */
	assert_true(weir_dma_view_refresh(map, &view));
	assert_null(weir_dma_view_find(&view, 0x7000, 1));
	assert_non_null(weir_dma_view_find(&view, 0x8000, 1));
	assert_int_equal(weir_dma_map_add(map, at(0x7000), 0x1000), 0);
	assert_true(weir_dma_view_refresh(map, &view));
	assert_true(weir_dma_view_find(&view, 0x7000, 1)->id > id); /* another registration */
	for (unsigned i = 1; i < 40; i++)
		assert_int_equal(weir_dma_map_remove(map, at(i * 0x1000)), 0);
	assert_true(weir_dma_view_refresh(map, &view));
	assert_int_equal(view.count, 0);
	assert_null(weir_dma_view_find(&view, 0x8000, 1));
	weir_dma_view_release(&view);
	weir_dma_map_destroy(map);
}

/* A region of more than 4 GiB, and what lies 4 GiB behind one. */
static void test_beyond_4_gib(void **state)
{
	const uint64_t base = (uint64_t)1 << 40, most = ((uint64_t)5 << 30) + 4096;
	struct weir_dma_view view = { 0 };
	struct weir_dma_map *map;

	(void)state;
	assert_int_equal(weir_dma_map_create(&map), 0);
	assert_int_equal(weir_dma_map_add(map, at(base), 4096), 0);
	assert_int_equal(weir_dma_map_add(map, at(4 * base), most), 0);
	assert_int_equal(weir_dma_map_add(map, at(4 * base + ((uint64_t)4 << 30)), 4096), -EEXIST);
	assert_int_equal(weir_dma_map_add(map, at(4 * base - 4096), ((uint64_t)1 << 32) + 4096), -EEXIST);
	assert_true(weir_dma_view_refresh(map, &view));
	for (unsigned round = 0; round < 2; round++) { /* by looking for it, and where it was found last */
		assert_non_null(weir_dma_view_find(&view, base, 4096));
		assert_null(weir_dma_view_find(&view, base + ((uint64_t)1 << 32), 512));
		assert_null(weir_dma_view_find(&view, base, ((uint64_t)1 << 32) + 512));
		assert_non_null(weir_dma_view_find(&view, 4 * base, most));
		assert_non_null(weir_dma_view_find(&view, 4 * base + most - 4096, 4096));
		assert_null(weir_dma_view_find(&view, 4 * base + most - 4096, 4097));
		assert_null(weir_dma_view_find(&view, 4 * base + ((uint64_t)2 << 32), 1));
	}
	weir_dma_view_release(&view);
	weir_dma_map_destroy(map);
}

/* Whoever kept a registration's number knows another one from it, whatever came and went meanwhile. */
static void test_numbers_are_not_reused(void **state)
{
	struct weir_dma_view view = { 0 };
	uint64_t seen[64], count = 0;
	struct weir_dma_map *map;

	(void)state;
	assert_int_equal(weir_dma_map_create(&map), 0);
	for (unsigned round = 0; round < 8; round++) {
		for (unsigned i = 1; i <= 4; i++)
			assert_int_equal(weir_dma_map_add(map, at(i * 0x1000), 0x1000), 0);
		weir_dma_view_refresh(map, &view);
		for (unsigned i = 0; i < view.count; i++) {
			for (unsigned j = 0; j < count; j++)
				assert_true(seen[j] != view.regions[i].id);
			seen[count++] = view.regions[i].id;
		}
		for (unsigned i = 1; i <= 4; i++)
			assert_int_equal(weir_dma_map_remove(map, at(i * 0x1000)), 0);
	}
	assert_int_equal(count, 32);
	weir_dma_view_release(&view);
	weir_dma_map_destroy(map);
}

/** struct notes - a mapper that counts what it maps, and refuses one address */
struct notes {
	struct weir_dma_mapper mapper;
	uint64_t mapped, bytes, refused;
	void *host;
};

static int note_map(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes, void *host)
{
	struct notes *notes = (struct notes *)mapper;

	notes->host = host;
	if (address == notes->refused)
		return -ENOSPC;
	notes->mapped++;
	notes->bytes += bytes;
	return 0;
}

static void note_unmap(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes)
{
	struct notes *notes = (struct notes *)mapper;

	assert_int_not_equal(address, notes->refused);
	notes->mapped--;
	notes->bytes -= bytes;
}

static void test_mappers_follow(void **state)
{
	struct notes first = { .mapper = { .map = note_map, .unmap = note_unmap } }, second = first;
	struct weir_dma_map *map;

	(void)state;
	assert_int_equal(weir_dma_map_create(&map), 0);
	assert_int_equal(weir_dma_map_add(map, at(0x1000), 0x1000), 0);
	assert_int_equal(weir_dma_map_add(map, at(0x5000), 0x3000), 0);
	assert_int_equal(weir_dma_map_follow(map, &first.mapper), 0); /* what was there */
	assert_int_equal(first.mapped, 2);
	assert_int_equal(first.bytes, 0x4000);
	assert_int_equal(weir_dma_map_add(map, at(0x10000), 0x1000), 0); /* what comes */
	assert_int_equal(first.bytes, 0x5000);
	assert_int_equal(weir_dma_map_remove(map, at(0x5000)), 0);
	assert_int_equal(first.bytes, 0x2000);
	assert_int_equal(weir_dma_map_follow(map, &second.mapper), 0);
	weir_dma_map_unfollow(map, &first.mapper);
	weir_dma_map_unfollow(map, &first.mapper); /* it is gone already */
	assert_int_equal(first.mapped, 0);
	assert_int_equal(second.bytes, 0x2000);
	weir_dma_map_unfollow(map, &second.mapper);
	assert_int_equal(second.mapped, 0);
	weir_dma_map_destroy(map);
}

/* Memory of another device is mapped by who takes it, and what somebody never mapped it does not unmap. */
static void test_peers_memory(void **state)
{
	struct notes host = { .mapper = { .map = note_map, .unmap = note_unmap } }, all = host;
	struct weir_dma_map *map;

	(void)state;
	all.mapper.peers = true;
	assert_int_equal(weir_dma_map_create(&map), 0);
	assert_int_equal(weir_dma_map_add_peer(map, at(0x1000), 0x1000), 0);
	assert_int_equal(weir_dma_map_follow(map, &host.mapper), 0);
	assert_int_equal(weir_dma_map_follow(map, &all.mapper), 0);
	assert_int_equal(weir_dma_map_add(map, at(0x4000), 0x1000), 0);
	assert_int_equal(weir_dma_map_add_peer(map, at(0x8000), 0x1000), 0);
	assert_int_equal(weir_dma_map_add_peer(map, at(0x8800), 0x1000), -EEXIST);
	assert_int_equal(host.bytes, 0x1000);
	assert_int_equal(all.mapped, 3);
	assert_int_equal(all.bytes, 0x3000);
	assert_int_equal(weir_dma_map_remove(map, at(0x1000)), 0);
	assert_int_equal(host.mapped, 1);
	assert_int_equal(all.mapped, 2);
	weir_dma_map_unfollow(map, &host.mapper);
	weir_dma_map_unfollow(map, &all.mapper);
	assert_int_equal(host.mapped, 0);
	assert_int_equal(all.mapped, 0);
	weir_dma_map_destroy(map);
}

static void test_a_mapper_that_refuses(void **state)
{
	struct notes first = { .mapper = { .map = note_map, .unmap = note_unmap } }, second = first;
	struct weir_dma_view view = { 0 };
	struct weir_dma_map *map;

	(void)state;
	first.refused = 0x9000;
	second.refused = 0x5000;
	assert_int_equal(weir_dma_map_create(&map), 0);
	assert_int_equal(weir_dma_map_add(map, at(0x1000), 0x1000), 0);
	assert_int_equal(weir_dma_map_add(map, at(0x5000), 0x1000), 0);
	assert_int_equal(weir_dma_map_follow(map, &second.mapper), -ENOSPC);
	assert_int_equal(second.mapped, 0); /* all or nothing */
	assert_int_equal(weir_dma_map_remove(map, at(0x5000)), 0);
	assert_int_equal(weir_dma_map_follow(map, &first.mapper), 0);
	assert_int_equal(weir_dma_map_follow(map, &second.mapper), 0);
	assert_int_equal(weir_dma_map_add(map, at(0x9000), 0x1000), -ENOSPC);
	assert_int_equal(weir_dma_map_add(map, at(0x5000), 0x1000), -ENOSPC);
	assert_int_equal(first.mapped, 1);
	assert_int_equal(second.mapped, 1);
	weir_dma_view_refresh(map, &view);
	assert_int_equal(view.count, 1); /* and no region that one of them does not map */
	weir_dma_view_release(&view);
	weir_dma_map_unfollow(map, &second.mapper);
	weir_dma_map_unfollow(map, &first.mapper);
	weir_dma_map_destroy(map);
}

/* A device's memory that lanes call otherwise: real controllers have it mapped, and those in software never
 * see it. */
static void test_device_memory(void **state)
{
	struct notes notes = { .mapper = { .map = note_map, .unmap = note_unmap, .peers = true } };
	struct weir_dma_view view = { 0 };
	struct weir_dma_map *map;

	(void)state;
	assert_int_equal(weir_dma_map_create(&map), 0);
	assert_int_equal(weir_dma_map_add(map, at(0x1000), 0x1000), 0);
	assert_int_equal(weir_dma_map_add_device(map, 0x80000000, 0x1000, at(0x5000)), 0);
	assert_int_equal(weir_dma_map_follow(map, &notes.mapper), 0);
	assert_int_equal(notes.mapped, 2);
	assert_ptr_equal(notes.host, at(0x5000));
	weir_dma_view_refresh(map, &view);
	assert_non_null(weir_dma_view_find(&view, 0x1000, 0x1000));
	assert_null(weir_dma_view_find(&view, 0x80000000, 0x1000));
	assert_null(weir_dma_view_find(&view, 0x5000, 0x1000));
	weir_dma_map_unfollow(map, &notes.mapper);
	weir_dma_view_release(&view);
	weir_dma_map_destroy(map);
}

/* What several maps share is mapped once, until the last of them lets it go. */
static void test_shares(void **state)
{
	struct weir_dma_view view = { 0 };
	struct weir_dma_map *map;

	(void)state;
	assert_int_equal(weir_dma_map_create(&map), 0);
	assert_int_equal(weir_dma_map_share(map, at(0x1000), 0x2000, at(0x1000)), 0);
	assert_int_equal(weir_dma_map_share(map, at(0x1000), 0x2000, at(0x1000)), 0);
	assert_int_equal(weir_dma_map_share(map, at(0x1000), 0x1000, at(0x1000)), -EEXIST);
	assert_int_equal(weir_dma_map_share(map, at(0x2000), 0x1000, at(0x2000)), -EEXIST);
	assert_int_equal(weir_dma_map_add(map, at(0x1000), 0x2000), -EEXIST);
	assert_int_equal(weir_dma_map_remove(map, at(0x1000)), 0);
	weir_dma_view_refresh(map, &view);
	assert_non_null(weir_dma_view_find(&view, 0x1000, 0x2000));
	assert_int_equal(weir_dma_map_remove(map, at(0x1000)), 0);
	assert_int_equal(weir_dma_map_remove(map, at(0x1000)), -ENOENT);
	weir_dma_view_refresh(map, &view);
	assert_null(weir_dma_view_find(&view, 0x1000, 1));
	weir_dma_view_release(&view);
	weir_dma_map_destroy(map);
}

enum { ROUNDS = 2000 };

static void *poll(void *argument)
{
	struct weir_dma_map *map = argument;
	struct weir_dma_view view = { 0 };
	uintptr_t bad = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		const struct weir_dma_region *fixed;

		weir_dma_view_refresh(map, &view);
		fixed = weir_dma_view_find(&view, 0x100000, 0x1000);
		bad += !fixed || fixed->bytes != 0x1000;
	}
	weir_dma_view_release(&view);
	return (void *)bad;
}

static void test_threads(void **state)
{
	struct weir_dma_map *map;
	pthread_t threads[2];
	void *bad;

	(void)state;
	assert_int_equal(weir_dma_map_create(&map), 0);
	assert_int_equal(weir_dma_map_add(map, at(0x100000), 0x1000), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, poll, map), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		assert_int_equal(weir_dma_map_add(map, at(0x1000 + i % 7 * 0x1000), 0x1000), 0);
		assert_int_equal(weir_dma_map_remove(map, at(0x1000 + i % 7 * 0x1000)), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
	weir_dma_map_destroy(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_remove),
		cmocka_unit_test(test_beyond_4_gib),
		cmocka_unit_test(test_numbers_are_not_reused),
		cmocka_unit_test(test_mappers_follow),
		cmocka_unit_test(test_a_mapper_that_refuses),
		cmocka_unit_test(test_peers_memory),
		cmocka_unit_test(test_device_memory),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
