/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shared_stop_test.c: what another storage of a shared controller sees while that is stopped for a reset: it
 * is not ready, and that is no stranger's doing. One that comes back with fewer queues is not used. Of one
 * that was given up all storages see that it failed; of one that does not start nothing is left.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "device/context.h"
#include "transport/nvme/shared_state.h"

enum { STORAGES = 2 };

#define URI "virt:1M?block=512&queue_pairs=4&controller=stopped"

static struct weir_context *context;
static struct weir_storage *storages[STORAGES];
static const struct weir_transport_ops *as_they_were;

/* What the other storage saw when the controller had stopped. */
static unsigned stops;
static uint32_t csts;
static bool was_reset;

static void write32(struct weir_transport *raw, uint32_t offset, uint32_t value)
{
	struct weir_transport *other = storages[1]->transport;

	as_they_were->write32(raw, offset, value);
	if (offset != NVME_REGISTER_CC || (value & NVME_CC_ENABLE) || stops++)
		return;
	while (as_they_were->read32(raw, NVME_REGISTER_CSTS) & NVME_CSTS_READY)
		sched_yield();
	csts = other->ops->read32(other, NVME_REGISTER_CSTS);
	was_reset = other->ops->was_reset(other);
}

/* Return: the controller itself, of two storages. */
static struct weir_transport *open_two(void)
{
	struct weir_transport *raw;

	assert_int_equal(weir_context_open("cpu", NULL, &context), 0);
	for (unsigned i = 0; i < STORAGES; i++)
		assert_int_equal(
			weir_storage_open(context, URI, WEIR_OPTIONS(storage, .queues = 1), &storages[i]), 0);
	raw = ((struct weir_nvme_member *)storages[0]->transport)->controller->raw.transport;
	as_they_were = raw->ops;
	return raw;
}

static void a_stop_is_not_a_strangers(void **state)
{
	struct weir_transport *raw = open_two(), *first = storages[0]->transport;
	struct weir_transport_ops watched = *as_they_were;

	(void)state;
	watched.write32 = write32;
	assert_false(storages[1]->transport->ops->was_reset(storages[1]->transport));
	raw->ops = &watched;
	assert_int_equal(first->ops->reset(first), 0);
	assert_true(stops > 0);
	assert_int_equal(csts & NVME_CSTS_READY, 0);
	assert_true(was_reset);
	raw->ops = as_they_were;
	/* The first has lost its queue pairs unawares: last, it is not asked to flush by them. */
	for (unsigned i = STORAGES; i-- > 0;)
		(void)weir_storage_close(storages[i]);
	assert_int_equal(weir_context_close(context), 0);
}

/* Storages have numbers of pairs that it would not take any more. */
static void fewer_queues_are_too_few(void **state)
{
	struct weir_transport *raw = open_two(), *first = storages[0]->transport;

	(void)state;
	assert_int_equal(raw->most_queues, 4);
	raw->most_queues = 3;
	assert_int_equal(first->ops->reset(first), -EIO);
	assert_non_null(strstr(weir_last_error(), "granted 3 queues after its reset, and 4 before"));
	for (unsigned i = STORAGES; i-- > 0;)
		(void)weir_storage_close(storages[i]);
	assert_int_equal(weir_context_close(context), 0);
}

static unsigned disables;

static void count_disables(struct weir_transport *raw, uint32_t offset, uint32_t value)
{
	disables += offset == NVME_REGISTER_CC && !(value & NVME_CC_ENABLE);
	as_they_were->write32(raw, offset, value);
}

static _Thread_local bool resets;
static bool held;

/* A storage's own thread, which looks at the controller all the time, sees nothing before the test has done:
 * it would make the reset, or be the one for whom that ends half-way. */
static uint32_t hold_others(struct weir_transport *raw, uint32_t offset)
{
	while (!resets && __atomic_load_n(&held, __ATOMIC_ACQUIRE))
		sched_yield();
	return as_they_were->read32(raw, offset);
}

/* A reset that ended half-way is none for the next storage: it makes one of its own. */
static void half_a_reset_is_none(void **state)
{
	struct weir_transport *raw = open_two();
	struct weir_transport_ops watched = *as_they_were;

	(void)state;
	watched.write32 = count_disables;
	watched.read32 = hold_others;
	resets = held = true;
	raw->ops = &watched;
	raw->most_queues = 3;
	assert_int_equal(storages[0]->transport->ops->reset(storages[0]->transport), -EIO);
	raw->most_queues = 4;
	disables = 0;
	assert_int_equal(storages[1]->transport->ops->reset(storages[1]->transport), 0);
	assert_int_not_equal(disables, 0);
	__atomic_store_n(&held, false, __ATOMIC_RELEASE);
	raw->ops = as_they_were;
	for (unsigned i = STORAGES; i-- > 0;)
		(void)weir_storage_close(storages[i]);
	assert_int_equal(weir_context_close(context), 0);
}

/* Of two that close at once neither is the last one: that is said when the queues of one have gone. */
static void two_leave_at_once(void **state)
{
	(void)state;
	(void)open_two();
	for (unsigned i = 0; i < STORAGES; i++)
		assert_true(storages[i]->transport->ops->leave(storages[i]->transport));
	for (unsigned i = 0; i < STORAGES; i++)
		assert_int_equal(weir_storage_close(storages[i]), 0);
	assert_int_equal(weir_context_close(context), 0);
}

static _Thread_local bool fails;

/* The controller says that it failed to whoever gives it up, and to nobody else. */
static uint32_t read32(struct weir_transport *raw, uint32_t offset)
{
	uint32_t value = as_they_were->read32(raw, offset);

	return offset != NVME_REGISTER_CSTS ? value
	       : fails                      ? value | NVME_CSTS_FATAL
					    : value & ~NVME_CSTS_FATAL;
}

/* All of its storages are lost with it, whatever its registers say. */
static void what_was_given_up_has_failed(void **state)
{
	struct weir_transport *raw = open_two();
	struct weir_transport_ops watched = *as_they_were;

	(void)state;
	watched.read32 = read32;
	raw->ops = &watched;
	for (unsigned i = 0; i < STORAGES; i++) {
		struct weir_transport *member = storages[i]->transport;

		assert_int_equal(member->ops->read32(member, NVME_REGISTER_CSTS) & NVME_CSTS_FATAL, 0);
	}
	fails = true;
	(void)storages[0]->transport->ops->halt(storages[0]->transport);
	fails = false;
	for (unsigned i = 0; i < STORAGES; i++) {
		struct weir_transport *member = storages[i]->transport;

		assert_int_not_equal(member->ops->read32(member, NVME_REGISTER_CSTS) & NVME_CSTS_FATAL, 0);
	}
	raw->ops = as_they_were;
	for (unsigned i = 0; i < STORAGES; i++)
		(void)weir_storage_close(storages[i]);
	assert_int_equal(weir_context_close(context), 0);
}

static pthread_t resetter;
static _Thread_local bool opens;
static bool stopped, opener_polled;

/* The controller is not ready before who opens a storage has polled it, or will not. */
static void stop_and_wait(struct weir_transport *raw, uint32_t offset, uint32_t value)
{
	as_they_were->write32(raw, offset, value);
	if (offset != NVME_REGISTER_CC || value & NVME_CC_ENABLE || stopped)
		return;
	while (as_they_were->read32(raw, NVME_REGISTER_CSTS) & NVME_CSTS_READY)
		sched_yield();
	__atomic_store_n(&stopped, true, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < 200 && !__atomic_load_n(&opener_polled, __ATOMIC_ACQUIRE); i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static uint32_t note_poll(struct weir_transport *raw, uint32_t offset)
{
	if (opens)
		__atomic_store_n(&opener_polled, true, __ATOMIC_RELEASE);
	return as_they_were->read32(raw, offset);
}

static void *reset_first(void *first)
{
	struct weir_transport *transport = first;

	return transport->ops->reset(transport) ? first : NULL;
}

/* In the middle of opening one, which has no queue pairs yet. */
static int map_and_reset(struct weir_transport *raw, void **registers)
{
	(void)raw;
	*registers = NULL;
	assert_int_equal(pthread_create(&resetter, NULL, reset_first, storages[0]->transport), 0);
	while (!__atomic_load_n(&stopped, __ATOMIC_ACQUIRE))
		sched_yield();
	opens = true;
	return 0;
}

/* One that is opened meanwhile has no queue pair that could be lost: it waits, and goes on. */
static void a_reset_is_over_for_who_opens(void **state)
{
	struct weir_transport *raw = open_two();
	struct weir_nvme_shared *controller = ((struct weir_nvme_member *)storages[0]->transport)->controller;
	struct weir_transport_ops watched = *as_they_were;
	struct weir_storage *third;
	void *failed;

	(void)state;
	watched.write32 = stop_and_wait;
	watched.read32 = note_poll;
	raw->ops = &watched;
	controller->raw.map_registers = map_and_reset;
	if (weir_storage_open(context, URI, WEIR_OPTIONS(storage, .queues = 1), &third) != 0)
		fail_msg("%s", weir_last_error());
	controller->raw.map_registers = NULL;
	opens = false;
	assert_int_equal(pthread_join(resetter, &failed), 0);
	assert_null(failed);
	raw->ops = as_they_were;
	assert_int_equal(weir_storage_close(third), 0);
	/* The first has lost its queue pairs, as above. */
	for (unsigned i = STORAGES; i-- > 0;)
		(void)weir_storage_close(storages[i]);
	assert_int_equal(weir_context_close(context), 0);
}

static void *polled;

/* In software it polls its shadows until here. */
static void polled_close(struct weir_transport *raw)
{
	assert_int_equal(msync(polled, WEIR_ADMIN_SHADOW_BYTES, MS_ASYNC), 0);
	polled = NULL;
	as_they_were->close(raw);
}

static void shadows_stay_until_the_close(void **state)
{
	struct weir_transport_ops watched;
	struct weir_transport *raw;
	struct weir_nvme_member *member;

	(void)state;
	assert_int_equal(weir_context_open("cpu", NULL, &context), 0);
	assert_int_equal(weir_storage_open(context, URI "&shadow=on", WEIR_OPTIONS(storage, .queues = 1),
					   &storages[0]),
			 0);
	member = (struct weir_nvme_member *)storages[0]->transport;
	raw = member->controller->raw.transport;
	polled = member->controller->shadow_pages;
	assert_non_null(polled);
	as_they_were = raw->ops;
	watched = *as_they_were;
	watched.close = polled_close;
	raw->ops = &watched;
	assert_int_equal(weir_storage_close(storages[0]), 0);
	assert_null(polled);
	assert_int_equal(weir_context_close(context), 0);
}

/* Where a device had shadow doorbells mapped nothing else is put: who reads there reads nobody's memory. */
static void shadows_keep_their_addresses(void **state)
{
	struct weir_nvme_member *member;
	void *shadow;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(weir_context_open("cpu", NULL, &context), 0);
	assert_int_equal(weir_storage_open(context, URI "&shadow=on", WEIR_OPTIONS(storage, .queues = 1),
					   &storages[0]),
			 0);
	member = (struct weir_nvme_member *)storages[0]->transport;
	shadow = member->shadow;
	assert_non_null(shadow);
	assert_ptr_not_equal(shadow, member->controller->shadow_pages);
	assert_int_equal(write(ends[1], shadow, 1), 1);
	member->base.keep_addresses = true;
	assert_int_equal(weir_storage_close(storages[0]), 0);
	for (unsigned at = 0; at < WEIR_ADMIN_SHADOW_BYTES; at += NVME_PAGE_BYTES) {
		assert_int_equal(msync((char *)shadow + at, NVME_PAGE_BYTES, MS_ASYNC), 0);
		assert_int_equal(write(ends[1], (char *)shadow + at, 1), -1);
		assert_int_equal(errno, EFAULT);
	}
	munmap(shadow, WEIR_ADMIN_SHADOW_BYTES);
	assert_int_equal(weir_context_close(context), 0);
	close(ends[0]);
	close(ends[1]);
}

static unsigned closes;

static uint64_t nobody_read64(struct weir_transport *raw, uint32_t offset)
{
	(void)raw;
	(void)offset;
	return UINT64_MAX;
}

static void nobody_close(struct weir_transport *raw)
{
	(void)raw;
	closes++;
}

static const struct weir_transport_ops nobody_ops = { .size = sizeof(nobody_ops),
						      .read64 = nobody_read64,
						      .close = nobody_close };
static struct weir_transport nobody = { .ops = &nobody_ops };

static int open_nobody(void *of, struct weir_nvme_raw *out)
{
	*out = (struct weir_nvme_raw){ .transport = &nobody, .dma = of };
	return 0;
}

/* Each time it is opened anew, closed again, and may touch nothing any more. */
static void what_does_not_start_is_closed(void **state)
{
	static char text[] = "test:";
	struct weir_uri uri = { .text = text };
	struct weir_dma_view view = { .count = 0 };
	struct weir_dma_map *dma;

	(void)state;
	assert_int_equal(weir_dma_map_create(&dma), 0);
	for (unsigned i = 0; i < 3; i++) {
		struct weir_transport_request request = { .uri = &uri, .dma = dma };
		struct weir_transport base = { .registers = true }, *out;
		const struct weir_nvme_source source = {
			.key = text, .name = "nobody", .of = dma, .open = open_nobody
		};

		assert_int_equal(weir_nvme_shared_open(&request, &base, &source, &out), -EIO);
		assert_int_equal(closes, i + 1);
		(void)weir_dma_view_refresh(dma, &view);
		assert_int_equal(view.count, 0);
	}
	weir_dma_view_release(&view);
	weir_dma_map_destroy(dma);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stop_is_not_a_strangers),
		cmocka_unit_test(fewer_queues_are_too_few),
		cmocka_unit_test(half_a_reset_is_none),
		cmocka_unit_test(two_leave_at_once),
		cmocka_unit_test(what_was_given_up_has_failed),
		cmocka_unit_test(what_does_not_start_is_closed),
		cmocka_unit_test(shadows_stay_until_the_close),
		cmocka_unit_test(shadows_keep_their_addresses),
		cmocka_unit_test(a_reset_is_over_for_who_opens),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
