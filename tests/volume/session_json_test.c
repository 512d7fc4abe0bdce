/* SPDX-License-Identifier: BSD-3-Clause */
/* session_json_test.c: what a client takes of a daemon's answers, field by field, and what it does not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "volume/session.h"
#include "volume/session_json.h"

static const char good_volume[] =
	"{\"volume\": {\"vid\": 9, \"blocks\": 512, \"replicas\": 2, \"unit_log2\": 2}, \"client\": 3, "
	"\"lease\": {\"epoch\": 5, \"ms\": 1000}}";
static const char good_map[] = "{\"map\": {\"epoch\": 4, \"rebuilding\": true, \"engines\": [{\"id\": 1, "
			       "\"state\": \"in\", \"domain\": 2, "
			       "\"weight\": 100, \"address\": \"a:1\", \"nqn\": \"nqn.a\"}, {\"id\": 2, "
			       "\"state\": \"out\", \"domain\": 3, "
			       "\"weight\": 50, \"address\": \"b:1\", \"nqn\": \"nqn.b\"}]}}";

/* The answer @good where @field, one of all objects', has @value; NULL: it is not there. */
static json_t *with(const char *good, const char *object, const char *field, json_t *value)
{
	json_t *answer = json_loads(good, 0, NULL), *at = answer;

	assert_non_null(answer);
	if (object)
		at = json_object_get(answer, object);
	if (object && json_is_array(json_object_get(at, "engines")) && strcmp(field, "epoch") != 0 &&
	    strcmp(field, "engines") != 0)
		at = json_array_get(json_object_get(at, "engines"), 1);
	assert_non_null(json_object_get(at, field));
	if (value)
		json_object_set_new(at, field, value);
	else
		json_object_del(at, field);
	return answer;
}

static int read_volume(json_t *answer, struct weir_session *session)
{
	uint64_t ms;
	int error;

	memset(session, 0, sizeof(*session));
	error = weir_session_read_volume(session, answer, &ms);
	json_decref(answer);
	return error;
}

static int read_map(json_t *answer, struct nvme_volume_map *map)
{
	int error = weir_session_read_map("v", answer, map);

	json_decref(answer);
	return error;
}

/** struct range - of a field */
struct range {
	const char *object;
	const char *field;
	json_int_t least, most;
};

static void test_volumes(void **state)
{
	static const struct range ranges[] = {
		{ "volume", "vid", 1, NVME_VOLUME_MOST },
		{ "volume", "blocks", 1, (json_int_t)1 << 32 },
		{ "volume", "replicas", 1, NVME_VOLUME_MOST_REPLICAS },
		{ "volume", "unit_log2", 0, 16 },
		{ NULL, "client", 1, NVME_VOLUME_MOST },
		{ "lease", "epoch", 1, (1 << 24) - 1 },
		{ "lease", "ms", 1, (json_int_t)1 << 40 },
	};
	static struct weir_session session;

	(void)state;
	assert_int_equal(read_volume(json_loads(good_volume, 0, NULL), &session), 0);
	assert_int_equal(session.volume.vid, 9);
	assert_int_equal(session.volume.blocks, 512);
	assert_int_equal(session.volume.replicas, 2);
	assert_int_equal(session.volume.unit_log2, 2);
	assert_int_equal(session.client, 3);
	assert_int_equal(session.lease_epoch, 5);
	assert_int_equal(read_volume(with(good_volume, NULL, "lease", json_null()), &session), 0);
	assert_int_equal(session.lease_epoch, 0);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct range *range = &ranges[i];
		const json_int_t wrong[] = { range->least - 1, range->most + 1, -1, INT64_MIN };
		const json_int_t right[] = { range->least, range->most };

		for (unsigned j = 0; j < 4; j++)
			assert_int_equal(read_volume(with(good_volume, range->object, range->field,
							  json_integer(wrong[j])),
						     &session),
					 -EPROTO);
		for (unsigned j = 0; j < 2; j++)
			assert_int_equal(read_volume(with(good_volume, range->object, range->field,
							  json_integer(right[j])),
						     &session),
					 0);
		assert_int_equal(read_volume(with(good_volume, range->object, range->field, json_string("7")),
					     &session),
				 -EPROTO);
		assert_int_equal(
			read_volume(with(good_volume, range->object, range->field, json_real(7.5)), &session),
			-EPROTO);
		assert_int_equal(read_volume(with(good_volume, range->object, range->field, NULL), &session),
				 -EPROTO);
	}
}

static void test_maps(void **state)
{
	static const struct range ranges[] = {
		{ "map", "epoch", 1, UINT32_MAX },
		{ "map", "id", 0, UINT16_MAX },
		{ "map", "domain", 0, UINT32_MAX },
		{ "map", "weight", 0, UINT32_MAX },
	};
	static const char *const texts[] = { "address", "nqn", "state" };
	struct nvme_volume_map map;

	(void)state;
	assert_int_equal(read_map(json_loads(good_map, 0, NULL), &map), 0);
	assert_int_equal(map.epoch, 4);
	assert_int_equal(map.count, 2);
	assert_int_equal(map.rebuilding, 1);
	assert_int_equal(map.engines[0].state, NVME_VOLUME_ENGINE_IN);
	assert_int_equal(map.engines[1].state, NVME_VOLUME_ENGINE_OUT);
	assert_int_equal(map.engines[1].id, 2);
	assert_int_equal(map.engines[1].domain, 3);
	assert_int_equal(map.engines[1].weight, 50);
	assert_string_equal(map.engines[1].nqn, "nqn.b");
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct range *range = &ranges[i];
		const json_int_t wrong[] = { range->least - 1, range->most + 1, INT64_MIN };

		for (unsigned j = 0; j < 3; j++)
			assert_int_equal(
				read_map(with(good_map, range->object, range->field, json_integer(wrong[j])),
					 &map),
				-EPROTO);
		assert_int_equal(
			read_map(with(good_map, range->object, range->field, json_integer(range->most)),
				 &map),
			0);
		assert_int_equal(read_map(with(good_map, range->object, range->field, NULL), &map), -EPROTO);
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(read_map(with(good_map, "map", texts[i], NULL), &map), -EPROTO);
		assert_int_equal(read_map(with(good_map, "map", texts[i], json_integer(1)), &map), -EPROTO);
	}
}

/* A text that has no room, and more engines than a map has: nothing behind a field is written. */
static void test_maps_without_room(void **state)
{
	static const char *const texts[] = { "address", "nqn" };
	const size_t rooms[] = { sizeof(((struct nvme_volume_engine *)0)->address),
				 sizeof(((struct nvme_volume_engine *)0)->nqn) };
	json_t *answer, *engines;
	struct nvme_volume_map map;
	char text[512];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		memset(text, 'x', sizeof(text));
		text[rooms[i]] = '\0';
		assert_int_equal(read_map(with(good_map, "map", texts[i], json_string(text)), &map), -EPROTO);
		text[rooms[i] - 1] = '\0';
		assert_int_equal(read_map(with(good_map, "map", texts[i], json_string(text)), &map), 0);
	}
	assert_int_equal(read_map(with(good_map, "map", "engines", json_object()), &map), -EPROTO);
	assert_int_equal(read_map(with(good_map, "map", "engines", NULL), &map), -EPROTO);
	answer = json_loads(good_map, 0, NULL);
	engines = json_object_get(json_object_get(answer, "map"), "engines");
	while (json_array_size(engines) < NVME_VOLUME_MOST_ENGINES)
		json_array_append(engines, json_array_get(engines, 0));
	assert_int_equal(weir_session_read_map("v", answer, &map), 0);
	assert_int_equal(map.count, NVME_VOLUME_MOST_ENGINES);
	json_array_append(engines, json_array_get(engines, 0));
	assert_int_equal(weir_session_read_map("v", answer, &map), -EPROTO);
	json_decref(answer);
	assert_int_equal(read_map(json_object(), &map), -EPROTO);
}

static void reached(const struct weir_session *session, unsigned queues, const char *expected)
{
	static const struct nvme_volume_engine engine = { .id = 3,
							  .address = "192.0.2.1:4420",
							  .nqn = "nqn.e" };
	char uri[WEIR_SESSION_URI_BYTES];

	weir_session_uri(session, &engine, queues, uri);
	assert_string_equal(uri, expected);
}

#define ENGINE(queues)                                                                                       \
	"nvmf:tcp://192.0.2.1:4420/nqn.e?nsid=1&queues=" queues                                              \
	"&ctrl_loss_s=0&connect_ms=1000&keep_alive_ms=2000&hostnqn=nqn.host&"                                \
	"hostid=01020304-0506-0708-090a-0b0c0d0e0f10"

/* Engines are reached as the volume's URI says: by this host's name, with its secrets and keys. */
static void test_how_engines_are_reached(void **state)
{
	static struct weir_session session;
	struct weir_session_keys *keys = &session.keys;

	(void)state;
	memset(&session, 0, sizeof(session));
	strcpy(keys->host.nqn, "nqn.host");
	for (unsigned i = 0; i < 16; i++)
		keys->host.id[i] = (uint8_t)(i + 1);
	reached(&session, 1, ENGINE("1"));
	strcpy(keys->daemon_key, "/daemon"); /* which engines have nothing to do with */
	strcpy(keys->secret, "/secret");
	reached(&session, 8, ENGINE("8") "&dhchap_secret=/secret");
	strcpy(keys->controller_secret, "/engine");
	reached(&session, 2, ENGINE("2") "&dhchap_secret=/secret&dhchap_ctrl_secret=/engine");
	strcpy(keys->engine_key, "/key");
	reached(&session, 2, ENGINE("2") "&dhchap_secret=/secret&dhchap_ctrl_secret=/engine&tls_psk=/key");
	keys->secret[0] = keys->controller_secret[0] = '\0';
	reached(&session, 3, ENGINE("3") "&tls_psk=/key");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_volumes),
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_maps_without_room),
		cmocka_unit_test(test_how_engines_are_reached),
	};

	return cmocka_run_group_tests_name("session_json", tests, NULL, NULL);
}
