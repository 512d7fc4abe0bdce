/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writer_rig.h: storages with known contents behind a cache, and a model of what must be
 * on them afterwards.
 *
 * Owns: byte b of the dataset is in model[b], wherever the stripe puts it.
 */
#ifndef WEIR_TESTS_WRITER_RIG_H
#define WEIR_TESTS_WRITER_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../rig/context.h"
#include "writer_kernels.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

enum { MOST_DISKS = 4, TIMEOUT_US = 30000000 };

/** struct shape - what a rig is made of; zeros are the defaults */
struct shape {
	uint32_t width;      /* lanes per wave */
	uint64_t lines;      /* of the cache; 4 */
	uint32_t line_bytes; /* 512 */
	uint64_t tier;       /* lines in host memory; none */
	bool inclusive;      /* that tier */
	unsigned disks;      /* 1 */
	uint64_t bytes_each; /* 64 KiB */
	uint64_t stripe;     /* 64 KiB */
	uint32_t depth;      /* 16 */
	uint64_t timeout_us; /* TIMEOUT_US */
	const char *fault;   /* what each storage does wrong: "" or "&fault=..." */
	const char *trace;   /* a path; storage n notes its requests in path.n; NULL: none */
	const char *uri;     /* of each storage; virt: of @bytes_each, with @fault */
};

/** struct rig - a context, a cache, and a dataset over some storages */
struct rig {
	struct shape shape;
	struct weir_context *context;
	struct weir_cache *cache;
	struct weir_storage *storages[MOST_DISKS];
	uint64_t bytes, verdict;
	unsigned char *model;
};

static inline struct shape completed(struct shape shape)
{
	shape.lines = shape.lines ? shape.lines : 4;
	shape.line_bytes = shape.line_bytes ? shape.line_bytes : 512;
	shape.disks = shape.disks ? shape.disks : 1;
	shape.bytes_each = shape.bytes_each ? shape.bytes_each : 65536;
	shape.stripe = shape.stripe ? shape.stripe : 65536;
	shape.depth = shape.depth ? shape.depth : 16;
	shape.timeout_us = shape.timeout_us ? shape.timeout_us : test_patient_us(TIMEOUT_US);
	shape.fault = shape.fault ? shape.fault : "";
	return shape;
}

/* One unit after the other, from storage to storage: @visit is told where in the dataset and on which. */
static inline void each_unit(struct rig *rig, void (*visit)(struct rig *rig, uint64_t at, uint64_t bytes,
							    struct weir_storage *storage, uint64_t offset))
{
	uint64_t unit = rig->shape.disks == 1 ? rig->bytes : rig->shape.stripe;

	for (uint64_t at = 0; at < rig->bytes; at += unit)
		visit(rig, at, unit, rig->storages[at / unit % rig->shape.disks],
		      at / unit / rig->shape.disks * unit);
}

static inline void fill_unit(struct rig *rig, uint64_t at, uint64_t bytes, struct weir_storage *storage,
			     uint64_t offset)
{
	must(weir_storage_write(storage, offset, rig->model + at, bytes));
}

static inline void check_unit(struct rig *rig, uint64_t at, uint64_t bytes, struct weir_storage *storage,
			      uint64_t offset)
{
	unsigned char *found = malloc(bytes);

	must(weir_storage_read(storage, offset, found, bytes));
	for (uint64_t i = 0; i < bytes; i++)
		if (found[i] != rig->model[at + i])
			fail_msg("byte %llu of the dataset is %#x on storage, not %#x",
				 (unsigned long long)(at + i), found[i], rig->model[at + i]);
	free(found);
}

/** check_storages() - they hold exactly what the model has */
static inline void check_storages(struct rig *rig)
{
	each_unit(rig, check_unit);
}

static inline void open_rig(struct rig *rig, struct shape shape)
{
	char uri[256];

	memset(rig, 0, sizeof(*rig));
	rig->shape = shape = completed(shape);
	rig->bytes = shape.bytes_each * shape.disks;
	rig->model = malloc(rig->bytes);
	for (uint64_t i = 0; i < rig->bytes; i++)
		rig->model[i] = (unsigned char)test_mix(i);
	must(weir_context_open(test_context_name(),
			       WEIR_OPTIONS(context, .workers = 2, .resident_lanes = 256,
					    .service_waves = test_service(), .wave_lanes = shape.width),
			       &rig->context));
	for (unsigned i = 0; i < shape.disks; i++) {
		int used = shape.uri ? snprintf(uri, sizeof(uri), "%s", shape.uri)
				     : snprintf(uri, sizeof(uri), "virt:%llu?block=512%s",
						(unsigned long long)shape.bytes_each, shape.fault);

		if (shape.trace)
			snprintf(uri + used, sizeof(uri) - (size_t)used, "&trace=%s.%u", shape.trace, i);
		must(test_storage_open(rig->context, uri,
				       WEIR_OPTIONS(storage, .queues = 2, .depth = shape.depth,
						    .timeout_us = shape.timeout_us),
				       &rig->storages[i]));
	}
	must(weir_cache_create(rig->context,
			       WEIR_OPTIONS(cache, .lines = shape.lines, .line_bytes = shape.line_bytes,
					    .tier_bytes = shape.tier * shape.line_bytes,
					    .tier_inclusive = shape.inclusive),
			       &rig->cache));
	must(weir_alloc(rig->context, sizeof(struct test_verdict), &rig->verdict));
	each_unit(rig, fill_unit);
}

/* What is left after the cache was destroyed. */
static inline void close_storages(struct rig *rig)
{
	for (unsigned i = rig->shape.disks; i > 0; i--)
		weir_storage_close(rig->storages[i - 1]);
	weir_context_close(rig->context);
	free(rig->model);
}

/** close_rig() - a clean close: afterwards the storages hold what the model has */
static inline void close_rig(struct rig *rig)
{
	must(weir_cache_destroy(rig->cache));
	check_storages(rig);
	close_storages(rig);
}

static inline void open_writer(struct rig *rig, uint32_t element, uint64_t first, struct weir_writer *writer)
{
	must(weir_writer_open(rig->cache, rig->storages, rig->shape.disks,
			      WEIR_OPTIONS(array, .element_bytes = element, .first_byte = first,
					   .stripe_bytes = rig->shape.stripe),
			      writer));
	assert_int_equal(writer->array.count, (rig->bytes - first) / element);
}

/* An element as lanes see it: little-endian bytes of the model. */
static inline void model_put(struct rig *rig, const struct weir_writer *writer, uint64_t index,
			     const void *value)
{
	memcpy(rig->model + writer->array.first_byte + index * writer->array.element_bytes, value,
	       writer->array.element_bytes);
}

static inline struct test_verdict judge(struct rig *rig)
{
	struct test_verdict verdict, none;

	must(weir_sync(rig->context));
	must(weir_copy_from_device(rig->context, &verdict, rig->verdict, sizeof(verdict)));
	if (weir_load_u64_relaxed_sys(&verdict.bad))
		fail_msg("%llu mistakes; at %llu: %#llx instead of %#llx",
			 (unsigned long long)weir_load_u64_relaxed_sys(&verdict.bad),
			 (unsigned long long)verdict.where, (unsigned long long)verdict.found,
			 (unsigned long long)verdict.expected);
	memset(&none, 0, sizeof(none));
	must(weir_copy_to_device(rig->context, rig->verdict, &none, sizeof(none)));
	return verdict;
}

static inline struct weir_cache_stats stats_of(struct rig *rig)
{
	struct weir_cache_stats stats = { .size = sizeof(stats) };

	must(weir_cache_stats(rig->cache, &stats));
	return stats;
}

#endif
