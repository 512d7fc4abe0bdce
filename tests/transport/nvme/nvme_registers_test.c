/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvme_registers_test.c: the registers and doorbells of a controller on PCI Express, as BAR 0 has them.
 *
 * transport_nvme.c alone is linked. BAR 0 is an array, VFIO a stand-in, and what storages share is opened at
 * once.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/nvme.h>

#include "backend/error.h"
#include "transport/nvme/shared.h"
#include "transport/nvme/transport_nvme.h"

enum { PAGE = 4096, BAR_BYTES = 4 * PAGE };

static uint32_t bar[BAR_BYTES / 4] __attribute__((aligned(4096)));
static size_t bar_bytes;
static unsigned opens, closes;
static int open_error, halt_error;
static struct weir_vfio *const vfio = (struct weir_vfio *)bar; /* nobody looks into it */
static struct weir_nvme_raw raw;

int weir_vfio_open(const struct weir_pcie *function, enum weir_vfio_choice choice, struct weir_vfio **out)
{
	(void)function, (void)choice;
	if (open_error)
		return weir_fail(-open_error, "no function");
	opens++;
	*out = vfio;
	return 0;
}

void weir_vfio_close(struct weir_vfio *of)
{
	assert_ptr_equal(of, vfio);
	closes++;
}

volatile uint32_t *weir_vfio_registers(struct weir_vfio *of, size_t *bytes)
{
	assert_ptr_equal(of, vfio);
	*bytes = bar_bytes;
	return bar;
}

int weir_vfio_halt(struct weir_vfio *of)
{
	assert_ptr_equal(of, vfio);
	return halt_error ? weir_fail(-halt_error, "no configuration space") : 0;
}

const char *weir_vfio_way(const struct weir_vfio *of)
{
	(void)of;
	return "a stand-in";
}

bool weir_vfio_by_group(const struct weir_vfio *of)
{
	(void)of;
	return true;
}

struct weir_dma_map *weir_vfio_map(struct weir_vfio *of)
{
	(void)of;
	return NULL;
}

int weir_vfio_map_bar(struct weir_vfio *of, void **out)
{
	(void)of, (void)out;
	return -ENOTSUP;
}

void weir_vfio_unmap_bar(struct weir_vfio *of, void *address, bool keep_addresses)
{
	(void)of, (void)address, (void)keep_addresses;
}

int weir_vfio_restart(struct weir_vfio *of)
{
	(void)of;
	return 0;
}

bool weir_vfio_wanted(struct weir_vfio *of)
{
	(void)of;
	return false;
}

void weir_vfio_give_way(struct weir_vfio *of)
{
	(void)of;
}

int weir_pcie_read(const char *root, const char *storage, struct weir_pci address, struct weir_pcie *out)
{
	(void)address;
	*out = (struct weir_pcie){ .root = root, .storage = storage, .address = "0000:01:00.0" };
	return 0;
}

bool weir_pci_parse(const char *text, struct weir_pci *out)
{
	(void)text;
	*out = (struct weir_pci){ .packed = 256 };
	return true;
}

/** struct key - of the URI, and its value; of words, which of them */
struct key {
	const char *name;
	unsigned value;
};

static const struct key *keys;          /* as far as they are given; a name of NULL ends them */
static struct weir_transport base_seen; /* what came of them */
static struct weir_nvme_keys keys_seen;

static const struct key *key_of(const char *name)
{
	for (const struct key *key = keys; key && key->name; key++)
		if (!strcmp(key->name, name))
			return key;
	return NULL;
}

int weir_uri_take_u64(struct weir_uri *uri, const char *key, uint64_t least, uint64_t most, uint64_t *value)
{
	(void)uri, (void)least, (void)most;
	*value = key_of(key) ? key_of(key)->value : *value;
	return 0;
}

int weir_uri_take_choice(struct weir_uri *uri, const char *key, const char *const *choices, unsigned *value)
{
	(void)uri, (void)choices;
	*value = key_of(key) ? key_of(key)->value : *value;
	return 0;
}

int weir_uri_finish(const struct weir_uri *uri, const char *known_keys)
{
	(void)uri, (void)known_keys;
	return 0;
}

int weir_nvme_kernel_open(struct weir_transport_request *request, const struct weir_transport *base,
			  const struct weir_nvme_keys *of, struct weir_transport **out)
{
	(void)request, (void)out;
	base_seen = *base;
	keys_seen = *of;
	return -ENOTSUP;
}

/* The first storage, which opens the controller. */
int weir_nvme_shared_open(struct weir_transport_request *request, const struct weir_transport *base,
			  const struct weir_nvme_source *source, struct weir_transport **out)
{
	int error = source->open(source->of, &raw);

	(void)request;
	base_seen = *base;
	if (!error)
		*out = raw.transport;
	return error;
}

static int open_it(struct weir_transport **out)
{
	struct weir_uri uri = { .text = "nvme:01:00.0", .body = "01:00.0" };
	struct weir_transport_request request = { .uri = &uri, .peer_memory = true };

	*out = NULL;
	return weir_transport_nvme.open(&request, out);
}

/* @stride: CAP.DSTRD */
static struct weir_transport *opened(uint64_t stride, size_t bytes)
{
	uint64_t cap = stride << 32 | 1023;
	struct weir_transport *transport;

	memset(bar, 0, sizeof(bar));
	memcpy(bar, &cap, sizeof(cap));
	bar_bytes = bytes;
	if (open_it(&transport))
		fail_msg("%s", weir_last_error());
	return transport;
}

static void closed(struct weir_transport *transport)
{
	transport->ops->close(transport);
	assert_int_equal(closes, opens);
}

/* Both halves of those of 64 bits, each where it belongs. */
static void registers(void **state)
{
	const uint64_t wide = 0x123456789abcdef0u;
	struct weir_transport *transport = opened(0, BAR_BYTES);
	const struct weir_transport_ops *ops = transport->ops;

	(void)state;
	ops->write64(transport, NVME_REGISTER_ASQ, wide);
	assert_int_equal(bar[NVME_REGISTER_ASQ / 4], 0x9abcdef0);
	assert_int_equal(bar[NVME_REGISTER_ASQ / 4 + 1], 0x12345678);
	assert_int_equal(bar[NVME_REGISTER_ASQ / 4 - 1], 0);
	assert_int_equal(bar[NVME_REGISTER_ASQ / 4 + 2], 0);
	assert_true(ops->read64(transport, NVME_REGISTER_ASQ) == wide);
	ops->write32(transport, NVME_REGISTER_CC, 77);
	assert_int_equal(bar[NVME_REGISTER_CC / 4], 77);
	bar[NVME_REGISTER_CSTS / 4] = 0xfffffffe;
	assert_int_equal(ops->read32(transport, NVME_REGISTER_CSTS), 0xfffffffe);
	closed(transport);
}

/* As far apart as CAP.DSTRD says, and as many queue pairs as BAR 0 has room for behind the admin queue's. */
static void doorbells(void **state)
{
	(void)state;
	for (uint64_t stride = 0; stride < 5; stride++) {
		uint64_t apart = (uint64_t)4 << stride, pairs = (BAR_BYTES - PAGE) / (2 * apart) - 1;
		struct weir_transport *transport = opened(stride, BAR_BYTES);

		assert_int_equal(transport->doorbell_bytes, apart);
		assert_int_equal(transport->most_queues,
				 pairs < WEIR_NVME_MOST_QUEUES ? pairs : WEIR_NVME_MOST_QUEUES);
		for (unsigned i = 0; i < 100; i++)
			assert_true(transport->ops->doorbell(transport, i) ==
				    (uintptr_t)bar + PAGE + i * apart);
		closed(transport);
	}
}

/* It is closed again. One that is gone has as many as it takes to be started, which says so. */
static void a_bar_that_is_too_small(void **state)
{
	static const struct {
		uint64_t cap;
		size_t bytes;
	} small[] = { { 0, PAGE + 12 },
		      { (uint64_t)9 << 32, PAGE + 4096 },
		      { (uint64_t)2 << 32, PAGE + 63 } };
	struct weir_transport *transport;

	(void)state;
	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++) {
		memcpy(bar, &small[i].cap, sizeof(small[i].cap));
		bar_bytes = small[i].bytes;
		assert_int_equal(open_it(&transport), -ENOTSUP);
		assert_non_null(strstr(weir_last_error(), "BAR 0"));
		assert_null(transport);
		assert_int_equal(closes, opens);
	}
	memset(bar, 0xff, sizeof(bar));
	bar_bytes = BAR_BYTES;
	assert_int_equal(open_it(&transport), 0);
	assert_int_equal(transport->most_queues, 1);
	closed(transport);
	open_error = -EBUSY;
	assert_int_equal(open_it(&transport), -EBUSY);
	assert_int_equal(closes, opens);
	open_error = 0;
}

/* One that was pulled out does no DMA any more, though its configuration space is gone, too. */
static void what_is_gone_is_halted(void **state)
{
	struct weir_transport *transport = opened(0, BAR_BYTES);

	(void)state;
	bar[NVME_REGISTER_CSTS / 4] = NVME_CSTS_READY | NVME_CSTS_FATAL;
	assert_int_equal(transport->ops->halt(transport), 0);
	halt_error = -EIO;
	assert_int_equal(transport->ops->halt(transport), -EIO);
	bar[NVME_REGISTER_CSTS / 4] = UINT32_MAX;
	assert_int_equal(transport->ops->halt(transport), 0);
	halt_error = 0;
	closed(transport);
}

static void check_base(void)
{
	assert_int_equal(base_seen.nsid, 5);
	assert_int_equal(base_seen.most_queues, 3);
	assert_true(base_seen.read_only);
	assert_int_equal(base_seen.mover, WEIR_MOVER_PULL);
	assert_int_equal(base_seen.shadow, WEIR_SHADOW_OFF);
	assert_int_equal(base_seen.doorbell, WEIR_DOORBELL_HOST);
	assert_int_equal(base_seen.gpu_memory, WEIR_GPU_MEMORY_QUEUES);
	assert_true(base_seen.registers);
}

/* What a URI says is what is gone by, whosever the controller is; what it does not say is as it always is. */
static void each_key_is_gone_by(void **state)
{
	struct key given[] = { { "driver", 0 }, { "nsid", 5 },   { "queues", 3 },   { "ro", 1 },
			       { "mover", 2 },  { "shadow", 1 }, { "doorbell", 2 }, { "gpu_memory", 2 },
			       { "in_use", 1 }, { "vfio", 1 },   { NULL, 0 } };
	struct weir_transport *transport;

	(void)state;
	keys = given;
	closed(opened(0, BAR_BYTES));
	check_base();
	given[0].value = WEIR_NVME_OWNER_KERNEL;
	assert_int_equal(open_it(&transport), -ENOTSUP);
	check_base();
	assert_int_equal(keys_seen.owner, WEIR_NVME_OWNER_KERNEL);
	assert_int_equal(keys_seen.in_use, WEIR_NVME_IN_USE_ALLOW);
	assert_int_equal(keys_seen.choice, WEIR_VFIO_GROUP);
	assert_int_equal(keys_seen.address.packed, 256);
	assert_true(keys_seen.memory_given);
	given[1].name = NULL;
	assert_int_equal(open_it(&transport), -ENOTSUP);
	assert_false(keys_seen.memory_given);
	assert_int_equal(keys_seen.in_use, WEIR_NVME_IN_USE_REFUSE);
	assert_int_equal(keys_seen.choice, WEIR_VFIO_AUTO);
	assert_int_equal(base_seen.gpu_memory, WEIR_GPU_MEMORY_NONE);
	assert_int_equal(base_seen.nsid + base_seen.most_queues + base_seen.read_only, 0);
	keys = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers),
		cmocka_unit_test(doorbells),
		cmocka_unit_test(a_bar_that_is_too_small),
		cmocka_unit_test(what_is_gone_is_halted),
		cmocka_unit_test(each_key_is_gone_by),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("nvme_registers", tests, NULL, NULL);
}
