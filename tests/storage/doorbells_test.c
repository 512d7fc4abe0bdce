/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doorbells_test.c: words that a thread of the host forwards, and registers that a backend maps for its
 * lanes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../runtime/device/context.h"
#include "storage/doorbells.h"
#include "backend/error.h"
#include "base/idle.h"

/* Two pages as a controller has them, and the other two words. */
static _Alignas(4096) u32 pages[2][NVME_PAGE_BYTES / 4];
static u32 word, doorbell;

static struct weir_forward begin(bool shadow)
{
	memset(pages, 0, sizeof(pages));
	word = 0;
	doorbell = 77; /* never rung */
	return (struct weir_forward){ .word = WEIR_ADDR(&word),
				      .doorbell = WEIR_ADDR(&doorbell),
				      .shadow = shadow ? WEIR_ADDR(&pages[0][5]) : 0 };
}

static void test_a_word_is_forwarded_once(void **state)
{
	struct weir_forward forward = begin(false);

	(void)state;
	assert_int_equal(weir_forward_step(&forward), WEIR_FORWARD_NOTHING);
	assert_int_equal(doorbell, 77);
	word = 3;
	assert_int_equal(weir_forward_step(&forward), WEIR_FORWARD_RANG);
	assert_int_equal(doorbell, 3);
	doorbell = 77;
	assert_int_equal(weir_forward_step(&forward), WEIR_FORWARD_NOTHING);
	assert_int_equal(doorbell, 77);
	word = 1; /* around the ring */
	assert_int_equal(weir_forward_step(&forward), WEIR_FORWARD_RANG);
	assert_int_equal(doorbell, 1);
}

/* The shadow is stored each time, the register if EventIdx is passed. */
static void test_shadows(void **state)
{
	struct weir_forward forward = begin(true);

	(void)state;
	word = 2;
	assert_int_equal(weir_forward_step(&forward), WEIR_FORWARD_RANG);
	assert_int_equal(pages[0][5], 2);
	assert_int_equal(doorbell, 2);
	word = 4; /* the controller still waits at 0, which was left behind already */
	assert_int_equal(weir_forward_step(&forward), WEIR_FORWARD_SHADOW);
	assert_int_equal(pages[0][5], 4);
	assert_int_equal(doorbell, 2);
	pages[1][5] = 4;
	word = 5;
	assert_int_equal(weir_forward_step(&forward), WEIR_FORWARD_RANG);
	assert_int_equal(doorbell, 5);
}

/* A pair that was created anew is at 0, and rings the position that was forwarded last: that is a ring. */
static void test_a_new_pair_begins_at_nothing(void **state)
{
	struct weir_forward forward = begin(true);

	(void)state;
	word = 3;
	(void)weir_forward_step(&forward);
	pages[1][5] = 3;
	weir_forward_begin(&forward);
	assert_int_equal(word, 0);
	assert_int_equal(pages[0][5], 0);
	assert_int_equal(pages[1][5], 0);
	assert_int_equal(weir_forward_step(&forward), WEIR_FORWARD_NOTHING);
	doorbell = 77;
	word = 3;
	assert_int_equal(weir_forward_step(&forward), WEIR_FORWARD_RANG);
	assert_int_equal(doorbell, 3);
}

/* Of a second and a day without a ring: how often the thread looks, and how long a ring may lie. */
static uint64_t polls_in(uint64_t ns)
{
	uint64_t polls = 0, pause;

	for (uint64_t idle = 0; idle < ns; idle += pause) {
		pause = weir_idle_pause_ns(idle);
		assert_in_range(pause, 1, 1000000);
		assert_true(pause <= 1000 || pause <= idle / 64);
		polls++;
	}
	return polls;
}

static void test_the_thread_sleeps(void **state)
{
	(void)state;
	assert_true(polls_in(1000000000u) < 2000);
	assert_true(polls_in(100 * (uint64_t)1000000000u) < 101000);
}

/** struct fake - a backend that maps registers, or cannot */
static struct fake {
	struct weir_backend base;
	bool refuses;
	void *mapped;
	size_t bytes;
	unsigned unmapped;
} fake;

static int fake_map(struct weir_backend *backend, void *host, size_t bytes, uint64_t *device)
{
	(void)backend;
	if (fake.refuses)
		return weir_fail(ENOTSUP, "the driver maps no registers");
	fake.mapped = host;
	fake.bytes = bytes;
	*device = 0x700000000000;
	return 0;
}

static void fake_unmap(struct weir_backend *backend, void *host, size_t bytes)
{
	(void)backend;
	assert_ptr_equal(host, fake.mapped);
	assert_int_equal(bytes, fake.bytes);
	fake.unmapped++;
}

static int fake_allocate(struct weir_backend *backend, size_t bytes, enum weir_memory kind, void **host,
			 uint64_t *device)
{
	(void)backend;
	(void)kind;
	*host = aligned_alloc(NVME_PAGE_BYTES, bytes);
	memset(*host, 0, bytes);
	*device = WEIR_ADDR(*host);
	return 0;
}

static void fake_release(struct weir_backend *backend, uint64_t device, size_t bytes, enum weir_memory kind)
{
	(void)backend;
	(void)bytes;
	(void)kind;
	free((void *)(uintptr_t)device);
}

static void fake_properties(struct weir_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	out->shared_memory = true; /* which is not enough: its lanes do not run on the host */
}

static const struct weir_backend_ops fake_ops = { .size = sizeof(fake_ops),
						  .name = "fake",
						  .properties = fake_properties,
						  .allocate = fake_allocate,
						  .release = fake_release,
						  .map_registers = fake_map,
						  .unmap_registers = fake_unmap };

static _Alignas(4096) u32 registers[2 * NVME_PAGE_BYTES / 4];

static uint64_t register_at(struct weir_transport *transport, unsigned index)
{
	return WEIR_ADDR(registers) + (uint64_t)index * transport->doorbell_bytes;
}

static const struct weir_transport_ops transport_ops = { .size = sizeof(transport_ops),
							 .doorbell = register_at };

/** struct fixture - a storage with registers, 8 bytes apart, on a device that is not the host */
struct fixture {
	struct weir_context context;
	struct weir_transport transport;
	struct weir_storage storage;
};

static void set_up(struct fixture *fixture, enum weir_doorbell asked, bool refuses)
{
	memset(fixture, 0, sizeof(*fixture));
	memset(registers, 0, sizeof(registers));
	fake = (struct fake){ .base = { .ops = &fake_ops }, .refuses = refuses };
	fixture->context.backend = &fake.base;
	assert_int_equal(weir_dma_map_create(&fixture->context.dma), 0);
	fixture->transport = (struct weir_transport){
		.ops = &transport_ops, .registers = true, .doorbell_bytes = 8, .doorbell = asked
	};
	fixture->storage = (struct weir_storage){ .context = &fixture->context,
						  .transport = &fixture->transport,
						  .uri = "nvme:it" };
}

static void tear_down(struct fixture *fixture)
{
	weir_doorbells_end(&fixture->storage);
	assert_null(fixture->storage.forwarder);
	assert_null(fixture->context.memory);
	weir_dma_map_destroy(fixture->context.dma);
}

static void test_lanes_ring_mapped_registers(void **state)
{
	struct fixture fixture;

	(void)state;
	set_up(&fixture, WEIR_DOORBELL_AUTO, false);
	assert_int_equal(weir_doorbells_locate(&fixture.storage, 256), 0);
	weir_doorbells_add(&fixture.storage, 0);
	assert_false(weir_doorbells_forwarded(&fixture.storage));
	assert_ptr_equal(fake.mapped, registers);
	assert_int_equal(fake.bytes, 2 * NVME_PAGE_BYTES); /* of 257 pairs, whole pages */
	assert_int_equal(weir_doorbells_at(&fixture.storage, 0, 0), 0x700000000000 + 2 * 8);
	assert_int_equal(weir_doorbells_at(&fixture.storage, 1, 1), 0x700000000000 + 5 * 8);
	assert_string_equal(weir_doorbells_path(&fixture.storage), ", doorbells rung by lanes");
	assert_true(weir_doorbells_mapped(&fixture.storage));
	assert_true(fixture.transport.keep_addresses);
	weir_doorbells_unmap(&fixture.storage); /* the system wants the controller */
	assert_false(weir_doorbells_mapped(&fixture.storage));
	assert_int_equal(fake.unmapped, 1);
	tear_down(&fixture);
	assert_int_equal(fake.unmapped, 1);
}

static int adopt(struct weir_transport *transport, const struct weir_rings *rings)
{
	(void)transport;
	(void)rings;
	return 0;
}

/* Pairs of a shared controller have any numbers up to the last: all of those are mapped; where they may have
 * doorbells anywhere, none is. */
static void test_pairs_with_any_numbers(void **state)
{
	static const struct weir_transport_ops shared_ops = { .size = sizeof(shared_ops),
							      .doorbell = register_at,
							      .adopt = adopt };
	struct fixture fixture;

	(void)state;
	set_up(&fixture, WEIR_DOORBELL_AUTO, false);
	fixture.transport.ops = &shared_ops;
	fixture.transport.last_queue = 255;
	assert_int_equal(weir_doorbells_locate(&fixture.storage, 2), 0);
	assert_int_equal(fake.bytes, NVME_PAGE_BYTES); /* of 256 pairs */
	tear_down(&fixture);
	set_up(&fixture, WEIR_DOORBELL_AUTO, false);
	fixture.transport.ops = &shared_ops;
	fixture.transport.last_queue = 256;
	assert_int_equal(weir_doorbells_locate(&fixture.storage, 2), 0);
	assert_int_equal(fake.bytes, 2 * NVME_PAGE_BYTES);
	tear_down(&fixture);
	set_up(&fixture, WEIR_DOORBELL_AUTO, false);
	fixture.transport.ops = &shared_ops;
	assert_int_equal(weir_doorbells_locate(&fixture.storage, 2), 0);
	assert_null(fake.mapped);
	assert_true(weir_doorbells_forwarded(&fixture.storage));
	tear_down(&fixture);
}

/* The second pair's CQ doorbell: the word that lanes store arrives in its register, and in no other. */
static void check_forwarded(struct fixture *fixture)
{
	weir_doorbells_add(&fixture->storage, 0);
	weir_doorbells_add(&fixture->storage, 1);
	assert_true(weir_doorbells_forwarded(&fixture->storage));
	weir_store_u32_release_sys(weir_at(weir_doorbells_at(&fixture->storage, 1, 1), weir_shared_u32, 0),
				   9);
	weir_doorbells_settle(&fixture->storage);
	for (unsigned i = 0; i < sizeof(registers) / sizeof(*registers); i++)
		assert_int_equal(__atomic_load_n(&registers[i], __ATOMIC_ACQUIRE), i == 5 * 8 / 4 ? 9 : 0);
	assert_string_equal(weir_doorbells_path(&fixture->storage), ", doorbells rung by a host thread");
}

static void test_a_thread_rings_where_mapping_is_refused(void **state)
{
	struct fixture fixture;

	(void)state;
	set_up(&fixture, WEIR_DOORBELL_AUTO, true);
	assert_int_equal(weir_doorbells_locate(&fixture.storage, 2), 0);
	check_forwarded(&fixture);
	assert_string_equal(weir_doorbells_why(&fixture.storage), "the driver maps no registers");
	tear_down(&fixture);
	assert_int_equal(fake.unmapped, 0);
}

static void test_a_thread_rings_if_asked_for(void **state)
{
	struct fixture fixture;

	(void)state;
	set_up(&fixture, WEIR_DOORBELL_HOST, false);
	assert_int_equal(weir_doorbells_locate(&fixture.storage, 2), 0);
	assert_null(fake.mapped);
	check_forwarded(&fixture);
	assert_string_equal(weir_doorbells_why(&fixture.storage), "");
	tear_down(&fixture);
}

/* Both words of a pair that is created again are at 0, and those of its neighbour stay: a ring at the place
 * that was forwarded last is one. */
static void test_both_words_of_a_pair_begin_again(void **state)
{
	struct fixture fixture;

	(void)state;
	set_up(&fixture, WEIR_DOORBELL_HOST, false);
	assert_int_equal(weir_doorbells_locate(&fixture.storage, 2), 0);
	weir_doorbells_add(&fixture.storage, 0);
	weir_doorbells_add(&fixture.storage, 1);
	for (unsigned i = 0; i < 4; i++)
		weir_store_u32_release_sys(
			weir_at(weir_doorbells_at(&fixture.storage, i / 2, i % 2), weir_shared_u32, 0), 6);
	weir_doorbells_settle(&fixture.storage);
	weir_doorbells_begin(&fixture.storage, 1);
	for (unsigned i = 0; i < 4; i++) {
		weir_shared_u32 *is =
			weir_at(weir_doorbells_at(&fixture.storage, i / 2, i % 2), weir_shared_u32, 0);

		assert_int_equal(weir_load_u32_relaxed_sys(is), i / 2 ? 0 : 6);
		__atomic_store_n(&registers[(i + 2) * 8 / 4], 0, __ATOMIC_RELEASE);
		weir_store_u32_release_sys(is, 6);
	}
	weir_doorbells_settle(&fixture.storage);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(__atomic_load_n(&registers[(i + 2) * 8 / 4], __ATOMIC_ACQUIRE),
				 i / 2 ? 6 : 0);
	tear_down(&fixture);
}

/* Each word that is forwarded has a register and a shadow of its own: those of its pair's number, the SQ's
 * and then the CQ's. */
static void test_each_word_has_its_shadow(void **state)
{
	enum { PAIRS = 3, APART = 8, WORDS = 2 * PAIRS };
	struct fixture fixture;

	(void)state;
	set_up(&fixture, WEIR_DOORBELL_HOST, false);
	memset(pages, 0, sizeof(pages));
	fixture.storage.shadow_memory = WEIR_ADDR(pages);
	assert_int_equal(weir_doorbells_locate(&fixture.storage, PAIRS), 0);
	for (unsigned i = 0; i < PAIRS; i++)
		weir_doorbells_add(&fixture.storage, i);
	for (unsigned i = 0; i < WORDS; i++)
		weir_store_u32_release_sys(
			weir_at(weir_doorbells_at(&fixture.storage, i / 2, i % 2), weir_shared_u32, 0),
			10 + i);
	weir_doorbells_settle(&fixture.storage);
	for (unsigned i = 0; i < sizeof(pages[0]) / sizeof(pages[0][0]); i++) {
		unsigned at = i * 4 / APART;
		bool own = i * 4 % APART == 0 && at >= 2 && at < 2 + WORDS;

		assert_int_equal(__atomic_load_n(&pages[0][i], __ATOMIC_ACQUIRE), own ? 8 + at : 0);
		assert_int_equal(__atomic_load_n(&registers[i], __ATOMIC_ACQUIRE), own ? 8 + at : 0);
	}
	assert_int_equal(weir_doorbells_rings(&fixture.storage), WORDS);
	weir_doorbells_begin(&fixture.storage, 1);
	for (unsigned at = 2; at < 2 + WORDS; at++)
		assert_int_equal(pages[0][at * APART / 4], at / 2 == 2 ? 0 : 8 + at);
	tear_down(&fixture);
}

static void test_lanes_that_cannot(void **state)
{
	struct fixture fixture;

	(void)state;
	set_up(&fixture, WEIR_DOORBELL_LANES, true);
	assert_int_equal(weir_doorbells_locate(&fixture.storage, 2), -ENOTSUP);
	assert_string_equal(
		weir_last_error(),
		"storage \"nvme:it\": doorbell=lanes, but the driver maps no registers; leave it out, and a "
		"host thread rings for the lanes");
	tear_down(&fixture);
}

/* What lanes ring behind the end of their controller goes nowhere. */
static void test_nothing_is_forwarded_after_the_end(void **state)
{
	struct fixture fixture;

	(void)state;
	set_up(&fixture, WEIR_DOORBELL_HOST, false);
	assert_int_equal(weir_doorbells_locate(&fixture.storage, 1), 0);
	weir_doorbells_add(&fixture.storage, 0);
	weir_doorbells_halt(&fixture.storage);
	weir_store_u32_release_sys(weir_at(weir_doorbells_at(&fixture.storage, 0, 0), weir_shared_u32, 0), 1);
	weir_doorbells_settle(&fixture.storage);
	tear_down(&fixture); /* the thread has ended, too */
	assert_int_equal(registers[2 * 8 / 4], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_word_is_forwarded_once),
		cmocka_unit_test(test_shadows),
		cmocka_unit_test(test_a_new_pair_begins_at_nothing),
		cmocka_unit_test(test_the_thread_sleeps),
		cmocka_unit_test(test_lanes_ring_mapped_registers),
		cmocka_unit_test(test_pairs_with_any_numbers),
		cmocka_unit_test(test_a_thread_rings_where_mapping_is_refused),
		cmocka_unit_test(test_a_thread_rings_if_asked_for),
		cmocka_unit_test(test_both_words_of_a_pair_begin_again),
		cmocka_unit_test(test_each_word_has_its_shadow),
		cmocka_unit_test(test_lanes_that_cannot),
		cmocka_unit_test(test_nothing_is_forwarded_after_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
