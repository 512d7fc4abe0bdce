/* SPDX-License-Identifier: BSD-3-Clause */
#include "tool.h"

#include <stdio.h>

#include "base/uri.h"

static json_int_t number(json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static const char *text(json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "";
}

static const char *size(json_t *object, const char *key, char room[WEIR_SIZE_TEXT_BYTES])
{
	return weir_size_text((uint64_t)number(object, key), room);
}

static void print_lease(json_t *volume)
{
	json_t *lease = json_object_get(volume, "lease");

	if (json_is_object(lease))
		printf("client %lld writes, lease %lld, %lld s left", (long long)number(lease, "client"),
		       (long long)number(lease, "epoch"), (long long)number(lease, "ms") / 1000);
	else
		printf("nobody writes");
}

void print_volumes(json_t *result)
{
	char room[WEIR_SIZE_TEXT_BYTES];
	json_t *volume;
	size_t i;

	json_array_foreach(json_object_get(result, "volumes"), i, volume)
	{
		printf("%-24s %8s  %lld replicas  ", text(volume, "name"), size(volume, "bytes", room),
		       (long long)number(volume, "replicas"));
		print_lease(volume);
		printf("\n");
	}
}

void print_volume(json_t *result)
{
	json_t *volume = json_object_get(result, "volume"), *host;
	char room[WEIR_SIZE_TEXT_BYTES];
	size_t i;

	printf("volume       %s, number %lld\nsize         %s\n", text(volume, "name"),
	       (long long)number(volume, "vid"), size(volume, "bytes", room));
	printf("replicas     %lld, stripe unit %s, weight %lld\nlease        ",
	       (long long)number(volume, "replicas"), size(volume, "unit_bytes", room),
	       (long long)number(volume, "weight"));
	print_lease(volume);
	printf("\n");
	if (json_is_true(json_object_get(volume, "unequal")))
		printf("replicas may differ in what a writer left; they are made equal for the next one\n");
	json_array_foreach(json_object_get(volume, "hosts"), i, host)
		printf("host         %-2s  client %lld  %s\n", text(host, "rights"),
		       (long long)number(host, "client"), text(host, "hostnqn"));
}

void print_engines(json_t *result)
{
	json_t *engine;
	size_t i;

	json_array_foreach(json_object_get(result, "engines"), i, engine)
	{
		double writes = (double)number(engine, "user_writes"),
		       medium = (double)number(engine, "medium_writes");

		printf("engine %-3lld %-16s %lld of %lld blocks, written %.2f times, %lld bad, %lld "
		       "repaired, %lld refused  "
		       "tcp://%s/%s\n",
		       (long long)number(engine, "id"), text(engine, "what"),
		       (long long)number(engine, "used"), (long long)number(engine, "blocks"),
		       writes > 0 ? medium / writes : 1.0, (long long)number(engine, "bad_blocks"),
		       (long long)number(engine, "repaired"), (long long)number(engine, "refused"),
		       text(engine, "address"), text(engine, "nqn"));
	}
}

void print_status(json_t *result)
{
	json_t *copy = json_object_get(result, "copy"), *counts = json_object_get(result, "counts"), *lease;
	size_t i;

	printf("map %lld%s: %lld of %lld engines are in; %lld volumes\n",
	       (long long)number(result, "map_epoch"),
	       json_is_true(json_object_get(result, "counted")) ? "" : " (too few engines have it)",
	       (long long)number(result, "engines_in"), (long long)number(result, "engines"),
	       (long long)number(result, "volumes"));
	if (number(copy, "blocks") && text(copy, "task")[0] != 'n')
		printf("%s: %lld of %lld blocks compared, %lld copied\n", text(copy, "task"),
		       (long long)number(copy, "compared"), (long long)number(copy, "blocks"),
		       (long long)number(copy, "copied"));
	else
		printf("all blocks are where the map places them\n");
	json_array_foreach(json_object_get(result, "leases"), i, lease)
		printf("lease %lld of volume %s: client %lld, %lld s left\n",
		       (long long)number(lease, "epoch"), text(lease, "name"),
		       (long long)number(lease, "client"), (long long)number(lease, "ms") / 1000);
	printf("since its start: %lld engines taken out, %lld taken in; %lld blocks copied, %lld made equal "
	       "after a writer's end, %lld repaired\n",
	       (long long)number(counts, "taken_out"), (long long)number(counts, "taken_in"),
	       (long long)number(counts, "blocks_copied"), (long long)number(counts, "blocks_equalized"),
	       (long long)number(counts, "blocks_repaired"));
}
