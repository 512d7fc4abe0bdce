/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics_fuzz.c: what a controller on a network sends to a host: whatever it is, no byte goes where no
 * command wants one, no command ends twice, and nothing is sent that a command does not have.
 */
#include <stdio.h>
#include <stdlib.h>

#include "transport/fabrics/nvmf.h"

#include "fuzz.h"

enum { ENTRIES = 8, READ_BYTES = 8192, WRITE_BYTES = 16384, GUARD = 4096, CHUNK = 64, READS = 3 };

static unsigned char memory[ENTRIES][GUARD + WRITE_BYTES + GUARD];
static struct nvme_cqe cq[ENTRIES];
static struct nvme_sqe sq[ENTRIES];

static struct nvmf *make(uint8_t choice)
{
	struct nvmf_keys keys = { .hosts = { .count = 1 },
				  .mdts = WRITE_BYTES,
				  .header_digest = choice & 1,
				  .data_digest = choice & 2 };
	struct nvmf_queue *queue;
	struct nvmf *nvmf;

	fuzz_must(nvmf_new("nvmf:fuzz", &keys, 1, &nvmf) == 0);
	queue = &nvmf->queues[1];
	fuzz_must(nvmf_connection_create(queue, ENTRIES) == 0);
	queue->requests = calloc(ENTRIES, sizeof(*queue->requests));
	nvmf_ring_open(queue, (u64)(uintptr_t)sq, (u64)(uintptr_t)cq, ENTRIES);
	queue->connection.in = (struct weir_tcp_rules){ .header_digest = keys.header_digest,
							.data_digest = keys.data_digest,
							.most_data = UINT32_MAX };
	queue->connection.out = queue->connection.in;
	return nvmf;
}

/* Commands that the controller has: the first few read, the others write; one entry stays free. */
static void begin(struct nvmf_queue *queue, struct iovec *segments)
{
	memset(memory, 0xa5, sizeof(memory));
	for (u32 i = 0; i < ENTRIES - 1; i++) {
		bool read = i < READS;

		segments[i] = (struct iovec){ memory[i] + GUARD, read ? READ_BYTES : WRITE_BYTES };
		queue->requests[i] = (struct nvmf_request){ .segments = &segments[i],
							    .segment_count = 1,
							    .bytes = (u32)segments[i].iov_len,
							    .cid = (u16)i,
							    .way = read ? NVMF_TO_HOST : NVMF_TO_CONTROLLER,
							    .carrier = queue,
							    .state = NVMF_SENT };
		queue->inflight++;
		queue->carried++;
		queue->cq_free--;
	}
}

static void check_line(const struct nvmf_connection *connection)
{
	for (u32 i = connection->line_head; i != connection->line_tail; i++) {
		const struct nvmf_pdu *pdu = &connection->line[i % connection->line_size];

		fuzz_must(pdu->type == NVME_TCP_H2C_DATA && pdu->request->way == NVMF_TO_CONTROLLER);
		fuzz_must((u64)pdu->offset + pdu->bytes <= pdu->request->bytes);
	}
}

static void check_memory(void)
{
	for (u32 i = 0; i < ENTRIES; i++) {
		u32 begin = GUARD, end = i < READS ? GUARD + READ_BYTES : GUARD;

		for (u32 at = 0; at < sizeof(memory[i]); at++)
			fuzz_must((at >= begin && at < end) || memory[i][at] == 0xa5);
	}
}

static void feed(struct nvmf_queue *queue, struct fuzz *fuzz)
{
	struct nvmf_reader *reader = &queue->connection.reader;

	while (fuzz->bytes && !queue->nvmf->lost) {
		u32 part = fuzz->bytes < CHUNK ? (u32)fuzz->bytes : CHUNK;

		fuzz_must(NVMF_BUFFER_BYTES - reader->end >= CHUNK || reader->begin);
		if (NVMF_BUFFER_BYTES - reader->end < CHUNK) {
			memmove(reader->buffer, reader->buffer + reader->begin, reader->end - reader->begin);
			reader->end -= reader->begin;
			reader->begin = 0;
		}
		fuzz_take(fuzz, reader->buffer + reader->end, part);
		reader->end += part;
		fuzz_must(nvmf_take(queue) != queue->nvmf->lost);
		fuzz_must(reader->begin == reader->end || queue->nvmf->lost); /* all of it was used */
		check_line(&queue->connection);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fuzz fuzz = { data, bytes };
	struct iovec segments[ENTRIES];
	struct nvmf *nvmf;
	uint8_t choice;

	fuzz_take(&fuzz, &choice, sizeof(choice));
	nvmf = make(choice);
	begin(&nvmf->queues[1], segments);
	feed(&nvmf->queues[1], &fuzz);
	fuzz_must(!nvmf->lost || nvmf->reason[0]);
	fuzz_must(nvmf->queues[1].cq_tail + nvmf->queues[1].inflight == ENTRIES - 1);
	check_memory();
	nvmf_free(nvmf);
	return 0;
}
