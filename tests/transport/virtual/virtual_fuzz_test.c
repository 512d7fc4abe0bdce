/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_fuzz_test.c: random commands and doorbells; no byte outside the DMA map may suffer. */
#include "virtual_driver.h"

enum { PAGE = NVME_PAGE_BYTES };

static u32 *shadow; /* of the doorbells, then their EventIdx; NULL: none */

/* To a doorbell, and to its shadow, as a host that rings too often does. */
static void notify(struct driver *driver, u32 index, u32 value)
{
	if (shadow)
		__atomic_store_n(&shadow[index], value, __ATOMIC_RELEASE); /* doorbell.D1, doorbell.D2 */
	driver_doorbell(driver, index, value);
}

static void begin_shadow(struct driver *driver)
{
	shadow = driver_pages(driver, 2 * PAGE);
	assert_int_equal(driver_admin(driver, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_DOORBELL_BUFFER_CONFIG,
								 .prp1 = driver_bus(shadow),
								 .prp2 = driver_bus(shadow) + PAGE }),
			 0);
}

static u64 next_random(u64 *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* An address that is often nearly right. */
static u64 random_address(struct driver *driver, u64 *seed)
{
	u64 random = next_random(seed);

	switch (random & 7) {
	case 0: return next_random(seed);
	case 1: return driver_bus(driver->arena) + DRIVER_ARENA_BYTES - (random >> 3) % 8192;
	case 2: return driver_bus(driver->arena) + (random >> 3) % DRIVER_ARENA_BYTES;
	default:
		/* the last quarter: no rings there, so that the fuzz can go on */
		return (driver_bus(driver->arena) + DRIVER_ARENA_BYTES / 4 * 3 +
			(random >> 3) % (DRIVER_ARENA_BYTES / 4 - PAGE)) &
		       ((random & 8) ? ~(u64)4095 : ~(u64)0);
	}
}

static struct nvme_sqe random_sqe(struct driver *driver, u64 *seed)
{
	static const u32 opcodes[] = { 0, 1, 2, 5, 8, 9 };
	struct nvme_sqe sqe;
	u32 *words = (u32 *)(void *)&sqe;

	for (u32 i = 0; i < 16; i++)
		words[i] = (u32)next_random(seed);
	if (next_random(seed) & 15)
		sqe.cdw0 = (sqe.cdw0 & 0xffff0000) | opcodes[next_random(seed) % 6];
	if (next_random(seed) & 15)
		sqe.nsid = 1;
	if (next_random(seed) & 7)
		sqe.cdw11 = (sqe.cdw0 & 0xff) == NVME_OPCODE_DSM ? 4 : 0;
	if (next_random(seed) & 7)
		sqe.cdw10 %= 8192;
	if (next_random(seed) & 7)
		sqe.cdw12 %= 300;
	sqe.prp1 = random_address(driver, seed);
	sqe.prp2 = random_address(driver, seed);
	return sqe;
}

static void random_lists(struct driver *driver, u64 *seed)
{
	u64 *words = (u64 *)(void *)(driver->arena + DRIVER_ARENA_BYTES / 4 * 3);

	for (size_t i = 0; i < DRIVER_ARENA_BYTES / 4 / 8; i++)
		words[i] = random_address(driver, seed);
}

/* One hostile command; its queue is made anew when it has destroyed the ring under itself. */
static void fuzz_one(struct driver *driver, u32 queue, struct nvme_sqe sqe)
{
	struct nvme_cqe cqe;

	driver_put(driver, queue, &sqe);
	notify(driver, 2 * queue, driver->sq[queue].tail);
	driver_steps(driver, 2);
	while (driver_peek(driver, driver->sq[queue].cq, &cqe))
		notify(driver, 2 * driver->sq[queue].cq + 1, driver->cq[driver->sq[queue].cq].head);
}

static void test_fuzz_io(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct weir_virtual_stats stats;
	struct driver driver;
	u64 seed = 88172645463325252ull;
	u32 commands = 0;

	(void)state;
	options.shadow_doorbells = true;
	driver_open(&driver, options);
	while (commands < 120000) {
		driver_enable(&driver);
		shadow = NULL;
		if (next_random(&seed) & 1)
			begin_shadow(&driver);
		random_lists(&driver, &seed);
		driver_add_queue(&driver, 1, 1, 16, 16);
		driver_add_queue(&driver, 2, 2, 7, 5);
		for (u32 i = 0; i < 2000; i++, commands++) {
			fuzz_one(&driver, 1 + i % 2, random_sqe(&driver, &seed));
			if (i % 64 == 0)
				notify(&driver, (u32)next_random(&seed) % 6, (u32)next_random(&seed) % 20);
		}
		weir_virtual_write32(driver.controller, NVME_REGISTER_CC, 0);
		driver_wait_csts(&driver, ~0u, 0);
	}
	weir_virtual_stats(driver.controller, &stats);
	print_message("# %llu commands, %llu errors, %llu bad doorbells\n",
		      (unsigned long long)stats.commands, (unsigned long long)stats.errors,
		      (unsigned long long)stats.bad_doorbells);
	assert_true(stats.commands > 100000);
	assert_in_range(stats.errors, stats.commands / 10, stats.commands / 10 * 9);
	driver_close(&driver);
}

static void test_fuzz_admin(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct driver driver;
	u64 seed = 1442695040888963407ull;

	(void)state;
	options.threads = 2;
	options.shadow_doorbells = true;
	shadow = NULL;
	driver_open(&driver, options);
	for (u32 round = 0; round < 40; round++) {
		driver_enable(&driver);
		random_lists(&driver, &seed);
		for (u32 i = 0; i < 1000; i++) {
			struct nvme_sqe sqe = random_sqe(&driver, &seed);

			sqe.cdw0 = (sqe.cdw0 & 0xffff0000) | (next_random(&seed) & 15);
			if (!(next_random(&seed) & 255))
				sqe.cdw0 = (sqe.cdw0 & 0xffff0000) | NVME_ADMIN_DOORBELL_BUFFER_CONFIG;
			sqe.cdw10 = (u32)next_random(&seed) & 0x001f000f;
			sqe.cdw11 = (u32)next_random(&seed) & 0x00030007;
			fuzz_one(&driver, 0, sqe);
			if (i % 16 == 0)
				driver_doorbell(&driver, (u32)next_random(&seed) % 12 + 2,
						(u32)next_random(&seed) % 20);
		}
		driver_disable(&driver);
	}
	driver_close(&driver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fuzz_io),
		cmocka_unit_test(test_fuzz_admin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
