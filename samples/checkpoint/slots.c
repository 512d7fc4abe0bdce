/* SPDX-License-Identifier: BSD-3-Clause */
#include "slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x74706b6372696577u /* "weirckpt" */

/* FNV-1a, 64 bits. */
uint64_t slot_sum(const void *data, uint64_t bytes)
{
	const unsigned char *byte = data;
	uint64_t sum = 0xcbf29ce484222325u;

	for (uint64_t i = 0; i < bytes; i++)
		sum = (sum ^ byte[i]) * 0x100000001b3u;
	return sum;
}

static uint64_t slot_bytes(const struct sample_storage *storage)
{
	return storage->info.bytes / SLOTS / SLOT_RECORD_BYTES * SLOT_RECORD_BYTES;
}

uint64_t slot_at(const struct sample_storage *storage, unsigned index)
{
	return index * slot_bytes(storage);
}

uint64_t slot_room(const struct sample_storage *storage)
{
	return slot_bytes(storage) > SLOT_RECORD_BYTES ? slot_bytes(storage) - SLOT_RECORD_BYTES : 0;
}

static bool is_record(const struct sample_storage *storage, const struct slot_record *record)
{
	uint64_t room = slot_room(storage);

	return record->magic == MAGIC &&
	       record->record_sum == slot_sum(record, offsetof(struct slot_record, record_sum)) &&
	       record->header_bytes % SLOT_RECORD_BYTES == 0 && record->header_bytes <= room &&
	       record->data_bytes <= room - record->header_bytes;
}

/* Slot @index, if it is a whole checkpoint's; else its header is NULL. */
static int read_slot(const struct sample_storage *storage, unsigned index, struct slot *slot, char *error)
{
	static unsigned char block[SLOT_RECORD_BYTES];
	uint64_t at = slot_at(storage, index);
	int code = sample_pass(error, weir_storage_read(storage->storage, at, block, sizeof(block)));

	*slot = (struct slot){ .index = index };
	memcpy(&slot->record, block, sizeof(slot->record));
	if (code || !is_record(storage, &slot->record) || !slot->record.header_bytes)
		return code;
	slot->header = malloc(slot->record.header_bytes);
	if (!slot->header)
		return sample_fail(error, -ENOMEM, "no memory for a header of %llu bytes",
				   (unsigned long long)slot->record.header_bytes);
	code = sample_pass(error, weir_storage_read(storage->storage, at + SLOT_RECORD_BYTES, slot->header,
						    slot->record.header_bytes));
	if (code || slot_sum(slot->header, slot->record.header_bytes) != slot->record.header_sum)
		slot_free(slot);
	return code;
}

int slot_find(const struct sample_storage *storage, struct slot *slot, char *error)
{
	struct slot other;
	int code = 0, unread = 0;

	*slot = (struct slot){ .index = SLOTS };
	for (unsigned i = 0; i < SLOTS && code != -ENOMEM; i++) {
		code = read_slot(storage, i, &other, error);
		unread = code ? code : unread;
		if (!code && other.header && (!slot->header || other.record.step > slot->record.step)) {
			slot_free(slot);
			*slot = other;
		} else {
			slot_free(&other);
		}
	}
	if (code == -ENOMEM)
		slot_free(slot);
	slot->unread = unread;
	return slot->header ? 0 : unread;
}

static int write_block(const struct sample_storage *storage, unsigned index, const struct slot_record *record)
{
	static unsigned char block[SLOT_RECORD_BYTES];
	int code;

	memset(block, 0, sizeof(block));
	memcpy(block, record, sizeof(*record));
	code = weir_storage_write(storage->storage, slot_at(storage, index), block, sizeof(block));
	return code ? code : weir_storage_flush(storage->storage);
}

int slot_begin(const struct sample_storage *storage, unsigned index, const char *header, uint64_t bytes,
	       char *error)
{
	struct slot_record none = { .magic = 0 };
	int code = write_block(storage, index, &none);

	return sample_pass(error, code ? code
				       : weir_storage_write(storage->storage,
							    slot_at(storage, index) + SLOT_RECORD_BYTES,
							    header, bytes));
}

int slot_commit(const struct sample_storage *storage, unsigned index, struct slot_record record, char *error)
{
	int code = weir_storage_flush(storage->storage);

	record.magic = MAGIC;
	record.record_sum = slot_sum(&record, offsetof(struct slot_record, record_sum));
	return sample_pass(error, code ? code : write_block(storage, index, &record));
}

void slot_free(struct slot *slot)
{
	free(slot->header);
	slot->header = NULL;
}
