/* SPDX-License-Identifier: BSD-3-Clause */
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/nvme.h>
#include <weir/nvme_fabrics.h>
#include <weir/weir.h>

json_t *json_text(const char *text)
{
	json_t *string = text ? json_string(text) : json_null();
	char *plain;

	if (string)
		return string;
	plain = strdup(text);
	for (char *c = plain; plain && *c; c++)
		*c = *c & 0x80 ? '?' : *c;
	string = json_string(plain ? plain : "?");
	free(plain);
	return string;
}

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *known(bool is, uint64_t value)
{
	return is ? number(value) : json_null();
}

static json_t *opcode_json(const struct snapshot_command *command)
{
	char text[8];

	if (!command->read)
		return json_null();
	snprintf(text, sizeof(text), "%#04x", command->opcode);
	return json_string(command->opcode == NVME_OPCODE_READ    ? "read"
			   : command->opcode == NVME_OPCODE_WRITE ? "write"
			   : command->opcode == NVME_OPCODE_FLUSH ? "flush"
								  : text);
}

static json_t *command_json(const struct snapshot_command *command)
{
	static const char *const locations[SNAPSHOT_SLOTS] = { "unannounced", "controller", "answered" };

	return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "ticket", number(command->ticket),
			 "slot", number(command->slot), "cid", number(command->cid), "where",
			 locations[command->location], "opcode", opcode_json(command), "lba",
			 known(command->read && command->blocks, command->lba), "blocks",
			 known(command->read && command->blocks, command->blocks), "age_ms",
			 known(command->aged, command->age_ns / 1000000));
}

static json_t *dead_json(uint64_t status)
{
	char text[80];

	if (!status)
		return json_null();
	weir_status_text((uint32_t)status, text);
	return json_text(text);
}

static json_t *moved_json(enum snapshot_moved moved)
{
	return moved == SNAPSHOT_MOVED_UNKNOWN ? json_null() : json_boolean(moved == SNAPSHOT_MOVED);
}

/* What the words say. */
static json_t *words_json(const struct snapshot_queue *queue)
{
	const struct snapshot_plain *words = &queue->words;

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s}", "id",
			 number(queue->id), "dead", dead_json(words->dead), "tail", number(words->tail),
			 "committed", number(words->committed), "head", number(words->reap >> 1), "rung",
			 number(words->rung), "pending", number(words->pending), "completed",
			 number(words->completed), "failed", number(words->failed), "rogue",
			 number(words->rogue), "retried", number(words->retried), "rings",
			 known(words->shadow != 0, words->rings), "combiner",
			 words->pending ? "held" : "free", "reaper", words->reap & 1 ? "held" : "free");
}

/* What slots and ring say beside them. */
static json_t *queue_json(const struct snapshot_queue *queue)
{
	const uint32_t *count = queue->count;
	json_t *object = words_json(queue);
	json_t *more = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "in_use",
		known(queue->counted,
		      count[SNAPSHOT_UNANNOUNCED] + count[SNAPSHOT_CONTROLLER] + count[SNAPSHOT_ANSWERED]),
		"reserved", known(queue->counted, queue->reserved), "unannounced",
		known(queue->counted, count[SNAPSHOT_UNANNOUNCED]), "with_controller",
		known(queue->counted, count[SNAPSHOT_CONTROLLER]), "answered",
		known(queue->counted, count[SNAPSHOT_ANSWERED]), "steady",
		queue->counted ? json_boolean(queue->steady) : json_null(), "moved", moved_json(queue->moved),
		"oldest", queue->any ? command_json(&queue->oldest) : json_null());

	json_object_update(object, more);
	json_decref(more);
	return object;
}

static json_t *queues_json(const struct note_storage *storage, const struct snapshot_storage *snapshot)
{
	json_t *list = json_array();

	for (uint32_t i = 0; snapshot->words != SNAPSHOT_NONE && i < storage->count; i++)
		json_array_append_new(list, queue_json(&snapshot->queues[i]));
	return list;
}

static json_t *path_state(uint64_t state)
{
	switch (state) {
	case 0: return json_string("not known");
	case NVME_ANA_OPTIMIZED: return json_string("optimized");
	case NVME_ANA_NON_OPTIMIZED: return json_string("non-optimized");
	case NVME_ANA_INACCESSIBLE: return json_string("inaccessible");
	case NVME_ANA_PERSISTENT_LOSS: return json_string("persistent-loss");
	case NVME_ANA_CHANGE: return json_string("change");
	default: return json_string("lost");
	}
}

/* What a network costs a storage; null for one without. */
static json_t *network_json(const struct snapshot_storage *snapshot)
{
	static const char *const names[] = { "connections", "reconnects",    "bytes_received", "bytes_sent",
					     "resent",      "digest_errors", "moves",          "path" };
	const uint64_t *values = snapshot->network, *paths = values + WEIR_NETWORK_SCALARS;
	json_t *object, *list, *carried;

	if (!snapshot->network_read)
		return json_null();
	object = json_object();
	list = json_array();
	carried = json_array();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		json_object_set_new(object, names[i], number(values[i]));
	for (size_t i = 0; i < values[WEIR_NETWORK_SCALARS - 1] && i < WEIR_NETWORK_PATHS; i++) {
		json_array_append_new(list, path_state(paths[i]));
		json_array_append_new(carried, number(paths[WEIR_NETWORK_PATHS + i]));
	}
	json_object_set_new(object, "paths", list);
	json_object_set_new(object, "path_commands", carried);
	return object;
}

json_t *json_target(const struct snapshot_target *target)
{
	static const char *const names[SNAPSHOT_TARGET_SUMS] = { "connections",    "accepted",  "refused",
								 "wrong_pdus",     "commands",  "reconnects",
								 "bytes_received", "bytes_sent" };
	json_t *object = json_object();

	for (size_t i = 0; i < SNAPSHOT_TARGET_SUMS; i++)
		json_object_set_new(object, names[i], number(target->sums[i]));
	json_object_set_new(object, "oldest_command_ms", number(target->age_ms));
	return object;
}

json_t *json_storage(const struct note_storage *storage, const struct snapshot_storage *snapshot)
{
	static const char *const words[] = { "live", "copied by the watchdog", "not readable from outside" };
	static const char *const recovered[] = { "late", "aborted", "queues_replaced", "resets" };
	json_t *object = json_pack(
		"{s:o, s:o, s:o, s:o, s:s, s:b, s:o, s:o, s:s, s:o}", "uri", json_text(storage->uri),
		"queue_count", number(storage->count), "depth", number(storage->depth), "block_bytes",
		number(storage->block_bytes), "path", storage->pull ? "pull" : "direct", "service",
		(int)storage->service, "timeout_ms", number(storage->wait_ms), "command_timeout_ms",
		number(storage->answer_ms), "words", words[snapshot->words], "polled_ms",
		known(snapshot->snapped, snapshot->polled_ns / 1000000));

	for (size_t i = 0; i < sizeof(recovered) / sizeof(recovered[0]); i++)
		json_object_set_new(object, recovered[i],
				    known(snapshot->recovered_read, snapshot->recovered[i]));
	json_object_set_new(object, "network", network_json(snapshot));
	json_object_set_new(object, "queues", queues_json(storage, snapshot));
	return object;
}

json_t *json_cache(const struct note_cache *cache, const struct snapshot_cache *snapshot)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "line_bytes", number(cache->line_bytes),
			 "bytes", number(cache->bytes), "misses", known(snapshot->read, snapshot->misses),
			 "evictions", known(snapshot->read, snapshot->evictions), "retracted",
			 known(snapshot->read, snapshot->retracted), "writebacks",
			 known(snapshot->read, snapshot->writebacks), "write_errors",
			 known(snapshot->read, snapshot->write_errors));
}
