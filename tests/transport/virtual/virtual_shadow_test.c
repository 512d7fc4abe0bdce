/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_shadow_test.c: shadow doorbells of the virtual controller: the command, and when a host has to
 * ring. */
#include "virtual_medium.h"

#include <endian.h>
#include <errno.h>

#include <nvme/types.h>

enum {
	PAGE = NVME_PAGE_BYTES,
	RING = 8,
	REFUSED_FIELD = NVME_STATUS_INVALID_FIELD | DRIVER_REFUSED,
	SHADOW_BIT = 1 << 8
};

/** struct pages - a word for each doorbell, twice */
struct pages {
	u32 *shadow;
	u32 *event;
};

static struct nvme_sqe config(const void *shadow, const void *event)
{
	return (struct nvme_sqe){ .cdw0 = NVME_ADMIN_DOORBELL_BUFFER_CONFIG,
				  .prp1 = driver_bus(shadow),
				  .prp2 = driver_bus(event) };
}

static void open_offering(struct driver *driver, unsigned threads)
{
	struct weir_virtual_options options = driver_defaults();

	options.shadow_doorbells = true;
	options.threads = threads;
	driver_open(driver, options);
	driver_enable(driver);
}

static struct pages configure(struct driver *driver)
{
	struct pages pages = { driver_pages(driver, PAGE), driver_pages(driver, PAGE) };

	assert_int_equal(driver_admin(driver, config(pages.shadow, pages.event)), 0);
	return pages;
}

static u32 offered(struct driver *driver)
{
	struct nvme_id_ctrl *id = driver_pages(driver, PAGE);

	assert_int_equal(driver_admin(driver, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_IDENTIFY,
								 .prp1 = driver_bus(id),
								 .cdw10 = NVME_CNS_CONTROLLER }),
			 0);
	return le16toh(id->oacs) & SHADOW_BIT;
}

static u32 load(const u32 *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

/* The host's part; that both are sequentially consistent keeps a later load of EventIdx behind it. */
static void store(u32 *word, u32 value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

static void put_read(struct driver *driver, u32 sq, u32 cid, void *buffer)
{
	struct nvme_sqe sqe = driver_io(NVME_OPCODE_READ, 0, 1, driver_bus(buffer), 0);

	driver_set_cid(&sqe, cid);
	driver_put(driver, sq, &sqe);
}

/* The next completion is of @cid. Its room is not given back. */
static void take(struct driver *driver, u32 cq, u32 cid)
{
	u64 deadline = driver_now_ns() + DRIVER_DEADLINE_S * 1000000000ull;
	struct nvme_cqe cqe;

	while (!driver_peek(driver, cq, &cqe)) {
		assert_true(driver_now_ns() < deadline);
		driver_step(driver);
	}
	assert_int_equal(driver_status(&cqe), 0);
	assert_int_equal(driver_cid(&cqe), cid);
}

static void test_offer(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct driver driver;
	unsigned char *memory;

	(void)state;
	driver_open(&driver, options);
	driver_enable(&driver);
	assert_int_equal(offered(&driver), 0);
	memory = driver_pages(&driver, 2 * PAGE);
	assert_int_equal(driver_admin(&driver, config(memory, memory + PAGE)),
			 NVME_STATUS_INVALID_OPCODE | DRIVER_REFUSED);
	driver_close(&driver);
	open_offering(&driver, 1);
	assert_int_equal(offered(&driver), SHADOW_BIT);
	driver_close(&driver);
}

static void test_memory(void **state)
{
	static unsigned char elsewhere[2 * PAGE] __attribute__((aligned(NVME_PAGE_BYTES)));
	struct driver driver;
	unsigned char *memory;
	struct nvme_sqe sqe;

	(void)state;
	open_offering(&driver, 1);
	memory = driver_pages(&driver, 2 * PAGE);
	assert_int_equal(driver_admin(&driver, config(memory + 8, memory + PAGE)), REFUSED_FIELD);
	assert_int_equal(driver_admin(&driver, config(memory, memory + PAGE + 4)), REFUSED_FIELD);
	assert_int_equal(driver_admin(&driver, config(elsewhere, memory)), REFUSED_FIELD);
	assert_int_equal(driver_admin(&driver, config(memory, elsewhere + PAGE)), REFUSED_FIELD);
	assert_int_equal(driver_admin(&driver, config(memory, memory)), REFUSED_FIELD);
	sqe = config(memory, memory + PAGE);
	sqe.cdw0 |= 1 << 14; /* an SGL */
	assert_int_equal(driver_admin(&driver, sqe), REFUSED_FIELD);
	/* Refused ones have no effect: a queue is served by its register. */
	driver_add_queue(&driver, 1, 1, RING, RING);
	put_read(&driver, 1, 7, memory);
	driver_ring(&driver, 1);
	take(&driver, 1, 7);
	driver_close(&driver);
}

static void test_too_many_queues(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct weir_virtual *controller;

	(void)state;
	options.shadow_doorbells = true;
	assert_int_equal(weir_medium_ram_open(1 << 20, 512, NULL, &options.medium), 0);
	assert_int_equal(weir_dma_map_create(&options.dma), 0);
	options.max_queue_pairs = 512;
	assert_int_equal(weir_virtual_create(&options, &controller), -EINVAL);
	options.max_queue_pairs = 511;
	assert_int_equal(weir_virtual_create(&options, &controller), 0);
	weir_virtual_destroy(controller);
	weir_dma_map_destroy(options.dma);
}

/* The shadow is not looked at before the register was rung; then it counts, whatever the register says. */
static void test_submission(void **state)
{
	struct driver driver;
	struct pages pages;
	unsigned char *buffer;

	(void)state;
	open_offering(&driver, 1);
	pages = configure(&driver);
	buffer = driver_pages(&driver, PAGE);
	driver_add_queue(&driver, 1, 1, RING, RING);
	for (u32 i = 0; i < 3 * RING; i++) {
		put_read(&driver, 1, i, buffer);
		store(&pages.shadow[2], driver.sq[1].tail);
		assert_true(driver_nothing(&driver, 1));
		assert_int_equal(load(&pages.event[2]), i % RING); /* where it sleeps: this move leaves it */
		driver_doorbell(&driver, 2, i % RING);             /* not where the tail is */
		take(&driver, 1, i);
		store(&pages.shadow[3], driver.cq[1].head);
		driver_steps(&driver, 2);
		assert_int_equal(load(&pages.event[2]), (i + 1) % RING);
	}
	driver_close(&driver);
}

/* Two moves and one ring, of the first or of the second, are two commands. */
static void test_one_ring_for_two(void **state)
{
	struct driver driver;
	struct pages pages;
	unsigned char *buffer;

	(void)state;
	open_offering(&driver, 1);
	pages = configure(&driver);
	buffer = driver_pages(&driver, PAGE);
	driver_add_queue(&driver, 1, 1, RING, RING);
	for (u32 i = 0; i < 4 * RING; i += 2) {
		put_read(&driver, 1, i, buffer);
		if (i % 4)
			driver_doorbell(&driver, 2, driver.sq[1].tail);
		put_read(&driver, 1, i + 1, buffer);
		store(&pages.shadow[2], driver.sq[1].tail);
		if (!(i % 4))
			driver_doorbell(&driver, 2, driver.sq[1].tail);
		take(&driver, 1, i);
		take(&driver, 1, i + 1);
		store(&pages.shadow[3], driver.cq[1].head);
	}
	driver_close(&driver);
}

/* Without room for completions it waits for the head, and says where. */
static void test_completion(void **state)
{
	struct driver driver;
	struct pages pages;
	unsigned char *buffer;

	(void)state;
	open_offering(&driver, 1);
	pages = configure(&driver);
	buffer = driver_pages(&driver, PAGE);
	driver_add_queue(&driver, 1, 1, 2 * RING, 4);
	for (u32 i = 0; i < RING; i++)
		put_read(&driver, 1, i, buffer);
	store(&pages.shadow[2], RING);
	driver_doorbell(&driver, 2, RING);
	for (u32 i = 0; i < 3; i++)
		take(&driver, 1, i);
	assert_true(driver_nothing(&driver, 1));
	assert_int_equal(load(&pages.event[3]), 0);
	store(&pages.shadow[3], driver.cq[1].head);
	assert_true(driver_nothing(&driver, 1)); /* it sleeps, and was not rung */
	driver_doorbell(&driver, 3, driver.cq[1].head);
	for (u32 i = 3; i < 6; i++)
		take(&driver, 1, i);
	assert_true(driver_nothing(&driver, 1));
	assert_int_equal(load(&pages.event[3]), 3);
	store(&pages.shadow[3], driver.cq[1].head);
	driver_doorbell(&driver, 3, driver.cq[1].head);
	take(&driver, 1, 6);
	take(&driver, 1, 7);
	driver_close(&driver);
}

/* Queues that were there before go on where they are; a second command moves all to other pages. */
static void test_live_queues(void **state)
{
	struct driver driver;
	struct pages pages;
	unsigned char *buffer;

	(void)state;
	open_offering(&driver, 2);
	buffer = driver_pages(&driver, PAGE);
	driver_add_queue(&driver, 1, 1, RING, RING);
	driver_add_queue(&driver, 2, 2, RING, RING); /* another thread's */
	for (u32 i = 0; i < 3; i++) {
		put_read(&driver, 2, i, buffer);
		driver_ring(&driver, 2);
		take(&driver, 2, i);
	}
	driver_release(&driver, 2);
	for (u32 round = 0; round < 2; round++) {
		u32 first = 3 + 2 * round;

		pages = configure(&driver);
		driver_steps(&driver, 4);
		assert_int_equal(load(&pages.shadow[4]), first);
		assert_int_equal(load(&pages.event[4]), first);
		assert_int_equal(load(&pages.shadow[5]), first);
		assert_int_equal(load(&pages.shadow[2]), 0);
		put_read(&driver, 2, first, buffer);
		put_read(&driver, 2, first + 1, buffer);
		store(&pages.shadow[4], driver.sq[2].tail);
		assert_true(driver_nothing(&driver, 2));
		driver_doorbell(&driver, 4, driver.sq[2].tail);
		take(&driver, 2, first);
		take(&driver, 2, first + 1);
		store(&pages.shadow[5], driver.cq[2].head);
		driver_steps(&driver, 2);
		/* Nobody waits for the head: it is known when it is needed. */
	}
	driver_close(&driver);
}

/* The command has ended when each thread looks at the pages, not before: until then a host may ring registers
 * alone. */
static void test_all_threads_know(void **state)
{
	enum { THREADS = 3 };
	struct driver driver;
	struct nvme_cqe cqe;
	struct pages pages;

	(void)state;
	open_offering(&driver, THREADS);
	for (u32 queue = 1; queue <= THREADS; queue++)
		driver_add_queue(&driver, queue, queue, RING, RING);
	for (u32 late = 1; late < THREADS; late++) { /* the thread that comes last */
		pages = (struct pages){ driver_pages(&driver, PAGE), driver_pages(&driver, PAGE) };
		driver_post(&driver, 0, config(pages.shadow, pages.event), 100 + late);
		for (u32 i = 0; i < 20; i++)
			for (u32 thread = 0; thread < THREADS; thread++)
				if (thread != late)
					weir_virtual_poll(driver.controller, thread);
		assert_false(driver_peek(&driver, 0, &cqe));
		driver_reap(&driver, 0, &cqe);
		assert_int_equal(driver_cid(&cqe), 100 + late);
		assert_int_equal(driver_status(&cqe), 0);
	}
	driver_close(&driver);
}

/* The admin queue of a host that keeps its shadow words and never rings, after one that knew registers only.
 */
static void test_admin_queue(void **state)
{
	struct driver driver;
	struct pages pages;
	struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_GET_FEATURES, .cdw10 = NVME_FEATURE_NUMBER_OF_QUEUES };

	(void)state;
	open_offering(&driver, 1);
	pages = configure(&driver);
	for (u32 i = 0; i < 2 * DRIVER_ADMIN_ENTRIES; i++)
		assert_int_equal(driver_admin(&driver, sqe), 0);
	for (u32 i = 0; i < 4 * DRIVER_ADMIN_ENTRIES; i++) {
		u32 before = driver.sq[0].tail, event = load(&pages.event[0]);

		driver_set_cid(&sqe, i);
		driver_put(&driver, 0, &sqe);
		store(&pages.shadow[0], driver.sq[0].tail);
		if (i == 0 || event == before)
			driver_ring(&driver, 0);
		take(&driver, 0, i);
		store(&pages.shadow[1], driver.cq[0].head);
		if (load(&pages.event[1]) ==
		    (driver.cq[0].head + DRIVER_ADMIN_ENTRIES - 1) % DRIVER_ADMIN_ENTRIES)
			driver_doorbell(&driver, 1, driver.cq[0].head);
		driver_steps(&driver, 2);
	}
	driver_close(&driver);
}

/* A reset forgets it; so does a queue that is deleted, of its words. */
static void test_forgotten(void **state)
{
	struct driver driver;
	struct pages pages;
	unsigned char *buffer;

	(void)state;
	open_offering(&driver, 1);
	pages = configure(&driver);
	buffer = driver_pages(&driver, PAGE);
	driver_add_queue(&driver, 1, 1, RING, RING);
	put_read(&driver, 1, 5, buffer);
	store(&pages.shadow[2], 1);
	driver_ring(&driver, 1);
	take(&driver, 1, 5);
	assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_SQ, 1)), 0);
	assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_CQ, 1)), 0);
	store(&pages.shadow[2], 0);
	store(&pages.shadow[3], 0);
	driver_add_queue(&driver, 1, 1, RING, RING);
	assert_int_equal(load(&pages.event[2]), 0);
	put_read(&driver, 1, 6, buffer);
	store(&pages.shadow[2], 1);
	assert_true(driver_nothing(&driver, 1));
	driver_ring(&driver, 1);
	take(&driver, 1, 6);
	driver_disable(&driver);
	driver_enable(&driver);
	buffer = driver_pages(&driver, PAGE);
	driver_add_queue(&driver, 1, 1, RING, RING);
	put_read(&driver, 1, 8, buffer);
	driver_ring(&driver, 1);
	take(&driver, 1, 8);
	driver_close(&driver);
}

static u64 bad_doorbells(struct driver *driver)
{
	struct weir_virtual_stats stats;

	weir_virtual_stats(driver->controller, &stats);
	return stats.bad_doorbells;
}

/* A shadow is the host's memory: any value may stand in it. */
static void test_bad_values(void **state)
{
	const u32 values[] = { RING, 0x10000, 0xffffffff };
	struct driver driver;
	struct pages pages;
	unsigned char *buffer;

	(void)state;
	open_offering(&driver, 1);
	pages = configure(&driver);
	buffer = driver_pages(&driver, PAGE);
	driver_add_queue(&driver, 1, 1, RING, RING);
	for (u32 i = 0; i < sizeof(values) / sizeof(*values); i++) {
		store(&pages.shadow[2], values[i]);
		driver_doorbell(&driver, 2, values[i] & 0xffff);
		assert_true(driver_nothing(&driver, 1));
		assert_int_equal(bad_doorbells(&driver), i + 1);
	}
	put_read(&driver, 1, 9, buffer);
	store(&pages.shadow[2], 1);
	driver_doorbell(&driver, 2, 1);
	take(&driver, 1, 9);
	driver_close(&driver);
}

/* Pages that leave the DMA map take the queues with them, and are not touched any more. */
static void test_pages_leave(void **state)
{
	struct driver driver;
	unsigned char *pages = aligned_alloc(PAGE, 2 * PAGE);

	(void)state;
	assert_non_null(pages);
	memset(pages, 0, 2 * PAGE);
	open_offering(&driver, 1);
	assert_int_equal(weir_dma_map_add(driver.dma, pages, 2 * PAGE), 0);
	assert_int_equal(driver_admin(&driver, config(pages, pages + PAGE)), 0);
	driver_add_queue(&driver, 1, 1, RING, RING);
	assert_int_equal(weir_dma_map_remove(driver.dma, pages), 0);
	driver_steps(&driver, 3);
	free(pages);
	put_read(&driver, 1, 1, driver_pages(&driver, PAGE));
	driver_ring(&driver, 1);
	assert_true(driver_nothing(&driver, 1));
	driver_add_queue(&driver, 2, 2, RING, RING); /* which has registers alone */
	put_read(&driver, 2, 1, driver_pages(&driver, PAGE));
	driver_ring(&driver, 2);
	take(&driver, 2, 1);
	driver_close(&driver);
}

/* Of the two pages only one leaves: neither is touched after that. */
static void test_one_page_leaves(void **state)
{
	(void)state;
	for (u32 gone = 0; gone < 2; gone++) {
		unsigned char *pages[2] = { aligned_alloc(PAGE, PAGE), aligned_alloc(PAGE, PAGE) };
		struct driver driver;

		open_offering(&driver, 1);
		for (u32 i = 0; i < 2; i++) {
			memset(pages[i], 0, PAGE);
			assert_int_equal(weir_dma_map_add(driver.dma, pages[i], PAGE), 0);
		}
		assert_int_equal(driver_admin(&driver, config(pages[0], pages[1])), 0);
		driver_add_queue(&driver, 1, 1, RING, RING);
		assert_int_equal(weir_dma_map_remove(driver.dma, pages[gone]), 0);
		driver_steps(&driver, 3);
		memset(pages[gone], 0x55, PAGE);
		put_read(&driver, 1, 1, driver_pages(&driver, PAGE));
		driver_ring(&driver, 1);
		assert_true(driver_nothing(&driver, 1));
		for (u32 i = 0; i < PAGE; i++)
			assert_int_equal(pages[gone][i], 0x55);
		driver_close(&driver);
		free(pages[0]);
		free(pages[1]);
	}
}

enum { STRESS = 60000, STRESS_S = 60 };

/* Has a controller that waits at @event to be rung for a move from @before to @now? (The ring has RING
 * entries.) */
static bool wanted(u32 event, u32 before, u32 now)
{
	return (now + RING - event - 1) % RING < (now + RING - before) % RING;
}

/* A thread beside us: none is lost though it sleeps as often as it can, and not each command is rung. Where
 * each of us gets a processor now and then only, those of a minute are enough. */
static void test_with_a_thread(void **state)
{
	u64 until = driver_now_ns() + STRESS_S * 1000000000ull;
	struct driver driver;
	struct pages pages;
	unsigned char *buffer;
	u32 rings = 0, commands = 0;

	(void)state;
	open_offering(&driver, 1);
	pages = configure(&driver);
	buffer = driver_pages(&driver, PAGE);
	driver_add_queue(&driver, 1, 1, RING, RING);
	driver_start(&driver);
	for (u32 i = 0; i < STRESS && driver_now_ns() < until; i += 2, commands = i) {
		for (u32 k = 0; k < 2; k++) {
			u32 before = driver.sq[1].tail;

			put_read(&driver, 1, (i + k) & 0xffff, buffer);
			store(&pages.shadow[2], driver.sq[1].tail);
			if (wanted(load(&pages.event[2]), before, driver.sq[1].tail)) {
				driver_ring(&driver, 1);
				rings++;
			}
		}
		for (u32 k = 0; k < 2; k++) {
			u32 before = driver.cq[1].head;

			take(&driver, 1, (i + k) & 0xffff);
			store(&pages.shadow[3], driver.cq[1].head);
			if (wanted(load(&pages.event[3]), before, driver.cq[1].head))
				driver_release(&driver, 1);
		}
	}
	driver_stop(&driver);
	assert_true(rings > 0 && (rings < commands || commands < STRESS));
	assert_int_equal(bad_doorbells(&driver), 0);
	driver_close(&driver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offer),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_too_many_queues),
		cmocka_unit_test(test_submission),
		cmocka_unit_test(test_one_ring_for_two),
		cmocka_unit_test(test_completion),
		cmocka_unit_test(test_live_queues),
		cmocka_unit_test(test_all_threads_know),
		cmocka_unit_test(test_admin_queue),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_pages_leave),
		cmocka_unit_test(test_one_page_leaves),
		cmocka_unit_test(test_with_a_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
