/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_storage.h: a storage in front of a scripted controller (fabrics_peer.h), each byte of it compared.
 */
#ifndef WEIR_TESTS_PEER_STORAGE_H
#define WEIR_TESTS_PEER_STORAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "device/context.h"
#include "transport/fabrics/nvmf.h"
#include "fabrics_peer.h"

enum {
	BYTES = 256 << 10,
	QUEUES = 2,
	DEPTH = 16,
	TRANSFER = 16384,
	BRIEF_TRIES = 50, /* where commands have a few seconds: a busy machine is late now and then */
};

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

static struct weir_context *context;
static struct peer peer;
static unsigned char wrote[BYTES], found[BYTES];

static int open_context(void **state)
{
	(void)state;
	return weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context);
}

static int close_context(void **state)
{
	(void)state;
	weir_context_close(context);
	return 0;
}

/* What is not given takes as long as it does on a busy machine. */
static int open_storage(const char *keys, struct weir_storage **out)
{
	char uri[PEER_URI_BYTES], all[PEER_URI_BYTES / 2];

	snprintf(all, sizeof(all), "%s%s%s", *keys ? keys : "ro=0",
		 strstr(keys, "connect_ms") ? "" : "&connect_ms=60000",
		 strstr(keys, "keep_alive_ms") ? "" : "&keep_alive_ms=15000");
	return weir_storage_open(
		context, peer_uri(&peer, all, uri),
		WEIR_OPTIONS(storage, .queues = QUEUES, .depth = DEPTH, .max_transfer_bytes = TRANSFER), out);
}

static void fill(unsigned char *to, size_t bytes, uint32_t seed)
{
	for (size_t i = 0; i < bytes; i++) {
		seed = seed * 1664525 + 1013904223;
		to[i] = (unsigned char)(seed >> 24);
	}
}

/* What the peer's blocks hold from the start: each word its own offset. */
static int pristine(const unsigned char *bytes, uint64_t offset, size_t count)
{
	for (size_t i = 0; i < count; i += 8)
		if (*(const uint64_t *)(const void *)(bytes + i) != offset + i)
			return 0;
	return 1;
}

/* Return: nothing failed; what was found then is to be compared. */
static int try_round(struct weir_storage *storage, uint64_t offset, size_t bytes, uint32_t seed)
{
	fill(wrote, bytes, seed);
	memset(found, 0xa5, bytes);
	return weir_storage_write(storage, offset, wrote, bytes) == 0 && weir_storage_flush(storage) == 0 &&
	       weir_storage_read(storage, offset, found, bytes) == 0;
}

static void check_round(struct weir_storage *storage, uint64_t offset, size_t bytes, uint32_t seed)
{
	if (!try_round(storage, offset, bytes, seed))
		fail_msg("%s", weir_last_error());
	assert_memory_equal(wrote, found, bytes);
}

#endif
