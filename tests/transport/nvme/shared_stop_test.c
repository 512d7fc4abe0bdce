/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shared_stop_test.c: what another storage of a shared controller sees while that is stopped for a reset: it
 * is not ready, and that is no stranger's doing.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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

static void a_stop_is_not_a_strangers(void **state)
{
	struct weir_transport_ops watched;
	struct weir_transport *first, *raw;

	(void)state;
	assert_int_equal(weir_context_open("cpu", NULL, &context), 0);
	for (unsigned i = 0; i < STORAGES; i++)
		assert_int_equal(
			weir_storage_open(context, URI, WEIR_OPTIONS(storage, .queues = 1), &storages[i]), 0);
	first = storages[0]->transport;
	raw = ((struct weir_nvme_member *)first)->controller->raw.transport;
	as_they_were = raw->ops;
	watched = *as_they_were;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stop_is_not_a_strangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
