/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slots.h: two checkpoints on one storage, of which at least one is whole at any time.
 *
 * Each half of the storage is a slot: a record of 4 KiB, the safetensors header, the tensors' data. A save
 * goes to the slot that has not the newest checkpoint: its record is cleared, header and data are written,
 * and the record last, each durable before the next begins. A record that is not whole, or whose header is
 * not the one that it was written for, is none. Beside a slot that cannot be read the other one is loaded,
 * though it is not known to be the newer one, and a save goes over the one that cannot be read: the other one
 * is whole until the new one is. Without any that can be read nothing is saved.
 */
#ifndef CHECKPOINT_SLOTS_H
#define CHECKPOINT_SLOTS_H

#include "../common/span_host.h"

enum { SLOTS = 2, SLOT_RECORD_BYTES = 4096 };

/**
 * struct slot_record - what is at a slot's beginning, little-endian
 * @magic: "weirckpt"
 * @step: of the checkpoint; the higher one is the newer
 * @header_bytes: of the safetensors header behind the record
 * @data_bytes: of the data behind that
 * @header_sum, @data_sum: of both
 * @record_sum: of all that is above
 */
struct slot_record {
	uint64_t magic;
	uint64_t step;
	uint64_t header_bytes;
	uint64_t data_bytes;
	uint64_t header_sum;
	uint64_t data_sum;
	uint64_t record_sum;
};

/**
 * struct slot - a checkpoint that is there
 * @index: which slot; SLOTS: none
 * @record: its record
 * @header: its header; slot_free() it
 * @unread: another slot could not be read: the negative errno
 */
struct slot {
	unsigned index;
	struct slot_record record;
	char *header;
	int unread;
};

/** slot_at() - where slot @index begins on the storage */
uint64_t slot_at(const struct sample_storage *storage, unsigned index);

/** slot_room() - bytes of a header and data that a slot has room for */
uint64_t slot_room(const struct sample_storage *storage);

/** slot_find() - the newest checkpoint of those that can be read; 0, also if there is none, or a negative
 * errno. With a sentence, also if slot->unread */
int slot_find(const struct sample_storage *storage, struct slot *slot, char *error);

/** slot_begin() - clear the record of slot @index, and write a header there */
int slot_begin(const struct sample_storage *storage, unsigned index, const char *header, uint64_t bytes,
	       char *error);

/** slot_commit() - make durable what was written, then write the record and make it durable; @record's sums
 * of header and data are set */
int slot_commit(const struct sample_storage *storage, unsigned index, struct slot_record record, char *error);

/** slot_sum() - of @bytes bytes */
uint64_t slot_sum(const void *data, uint64_t bytes);

/** slot_free() - fine for one that is all zeros, too */
void slot_free(struct slot *slot);

#endif
