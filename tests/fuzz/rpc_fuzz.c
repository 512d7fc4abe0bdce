/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpc_fuzz.c: lines that anybody sends to the daemon's port, with engines that answer anything; and answers
 * of a daemon as a client reads them.
 *
 * Owns: a daemon with two engines. Bytes of the input up to the first zero byte are requests, one in each
 * line; what follows is what engines answer, and success with zeros behind its end. Each request gets an
 * answer that is JSON.
 */
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "volume/daemon/methods.h"
#include "volume/session_json.h"

#include "fuzz.h"

static struct fuzz answers;

static int link_open(struct volume_engine_link *link)
{
	(void)link;
	return 0;
}

/* One byte is the status; few of them are refusals. */
static int link_command(struct volume_engine_link *link, bool io, const struct nvme_sqe *sqe, void *data,
			uint32_t bytes, enum volume_way way, unsigned ms)
{
	uint8_t status = 0, length = 0;

	(void)link;
	(void)io;
	(void)ms;
	(void)fuzz_take(&answers, &status, 1);
	if (way == VOLUME_FROM_ENGINE) {
		memset(data, 0, bytes);
		(void)fuzz_take(&answers, &length, 1);
		(void)fuzz_take(&answers, data, length < bytes ? length : bytes);
	}
	if (!answers.bytes && sqe->cdw0 == NVME_ADMIN_VOLUME_LIST)
		((struct nvme_volume_list *)data)->next = ~0ull;
	if (!answers.bytes &&
	    (sqe->cdw0 == NVME_ADMIN_VOLUME_GET || sqe->cdw0 == NVME_ADMIN_VOLUME_GET_PERMISSION))
		return NVME_STATUS_VOLUME_UNKNOWN;
	return status == 0xff ? -5 : status > 0xf0 ? NVME_STATUS_VOLUME_UNKNOWN : 0;
}

static void link_close(struct volume_engine_link *link)
{
	free(link);
}

static int create(struct volume_linker *linker, const char *address, const char *nqn,
		  struct volume_engine_link **out)
{
	static const struct volume_engine_link_ops ops = { link_open, link_command, link_close };

	(void)linker;
	(void)address;
	(void)nqn;
	*out = calloc(1, sizeof(**out));
	fuzz_must(*out);
	(*out)->ops = &ops;
	return 0;
}

static uint64_t now_ms(void)
{
	static uint64_t now;

	return ++now;
}

static struct volumed *start(void)
{
	static struct volume_linker linker = { .create = create };
	struct volumed *d = NULL;

	fuzz_must(volumed_create(&(struct volumed_options){ .linker = &linker, .now_ms = now_ms }, &d) == 0);
	for (unsigned i = 0; i < 2; i++) {
		struct nvme_volume_engine info = { .domain = i, .weight = 100, .nqn = "nqn.engine" };

		snprintf(info.address, sizeof(info.address), "engine:%u", i);
		fuzz_must(volumed_engine_note(d, &info, false) == 0);
	}
	(void)volumed_gather(d);
	return d;
}

/* As a client reads what the daemon answers. */
static void read_answer(const json_t *answer)
{
	static struct nvme_volume_map map;
	struct weir_session session = { .keys = { .name = "v" } };
	uint64_t ms = 0;

	if (weir_session_read_map("v", answer, &map) == 0)
		fuzz_must(map.count <= NVME_VOLUME_MOST_ENGINES);
	(void)weir_session_read_volume(&session, answer, &ms);
}

static void ask(struct volumed *d, const char *line, size_t bytes)
{
	json_t *request = json_loadb(line, bytes, JSON_DECODE_ANY, NULL), *answer;
	char *text;

	if (!request)
		return;
	read_answer(request);
	answer = volumed_answer(d, NULL, request);
	if (answer) {
		text = json_dumps(answer, JSON_COMPACT);
		fuzz_must(text);
		free(text);
		read_answer(json_object_get(answer, "result"));
	}
	json_decref(answer);
	json_decref(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const uint8_t *zero = bytes ? memchr(data, 0, bytes) : NULL;
	size_t lines = zero ? (size_t)(zero - data) : bytes;
	struct volumed *d;

	answers = (struct fuzz){ NULL, 0 };
	d = start();
	if (zero)
		answers = (struct fuzz){ zero + 1, bytes - lines - 1 };
	for (size_t at = 0; at < lines;) {
		const uint8_t *end = memchr(data + at, '\n', lines - at);
		size_t length = end ? (size_t)(end - data) - at : lines - at;

		ask(d, (const char *)data + at, length);
		at += length + 1;
	}
	volumed_destroy(d);
	return 0;
}
