/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store_etcd.c: etcd as the store, by its JSON gateway (etcd 3.4 and later, API reference: Lease, KV).
 *
 * The lease is taken for over from the moment that the last request that renewed it was sent, plus its time:
 * never later than etcd does. The clock goes on while the machine is suspended.
 */
#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#include "backend/error.h"
#include "store.h"

enum {
	MOST_ENDPOINTS = 8,
	NAME_BYTES = 256,
	BASE64_BYTES = 2 * NAME_BYTES,
	ANSWER_BYTES = 1 << 16,
	ANSWER_MS = 1000,
	AGAIN_MS = 100, /* after a request to renew that failed */
};

struct store {
	char urls[MOST_ENDPOINTS][NAME_BYTES];
	unsigned count;
	char key[BASE64_BYTES];
	char who[BASE64_BYTES];
	unsigned seconds;
	char lease[32]; /* "": none */
	_Atomic(uint64_t) until_ms;
	pthread_t keeper;
	bool keeping;
	int stop; /* an eventfd */
};

/** struct answer - what came, as text */
struct answer {
	size_t bytes;
	char text[ANSWER_BYTES];
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool has_lease(const struct store *store)
{
	/* relaxed: a moment, and nothing that goes with it */
	return now_ms() < atomic_load_explicit(&store->until_ms, memory_order_relaxed);
}

static void lost(const char *why)
{
	fprintf(stderr, "weir-volumed: %s: another daemon may be active; this one ends\n", why);
	_exit(1);
}

void store_check(const struct store *store)
{
	if (store && !has_lease(store))
		lost("the lease in the store is over");
}

static size_t take_bytes(char *from, size_t size, size_t count, void *to)
{
	struct answer *answer = to;
	size_t bytes = size * count;

	if (bytes >= sizeof(answer->text) - answer->bytes)
		return 0; /* curl fails with it */
	memcpy(answer->text + answer->bytes, from, bytes);
	answer->bytes += bytes;
	answer->text[answer->bytes] = 0;
	return bytes;
}

/* Return: 0, -EAGAIN: this endpoint does not answer, or -EPROTO; the last two with a sentence. */
static int post(const char *url, const char *path, const char *body, unsigned ms, json_t **reply)
{
	struct answer *answer = calloc(1, sizeof(*answer));
	CURL *curl = curl_easy_init();
	char whole[NAME_BYTES + 64];
	CURLcode result;
	long status = 0;
	int error = 0;

	*reply = NULL;
	if (!answer || !curl) {
		free(answer);
		curl_easy_cleanup(curl);
		return weir_fail(ENOMEM, "no memory for a request to %s", url);
	}
	snprintf(whole, sizeof(whole), "%s%s", url, path);
	curl_easy_setopt(curl, CURLOPT_URL, whole);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)ms);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
	result = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	if (result != CURLE_OK)
		error = weir_fail(EAGAIN, "%s: %s", url, curl_easy_strerror(result));
	else if (status != 200)
		error = weir_fail(status >= 500 ? EAGAIN : EPROTO, "%s answers %ld: %.200s", whole, status,
				  answer->text);
	else if (!(*reply = json_loads(answer->text, 0, NULL)))
		error = weir_fail(EPROTO, "%s answers what is no JSON; is it etcd?", url);
	curl_easy_cleanup(curl);
	free(answer);
	return error;
}

/* Of the first endpoint that answers; @body's reference is taken. */
static int ask(const struct store *store, const char *path, json_t *body, json_t **reply)
{
	char *text = json_dumps(body, JSON_COMPACT);
	int error = text ? -EAGAIN : weir_fail(ENOMEM, "no memory for a request to the store");

	for (unsigned i = 0; i < store->count && error == -EAGAIN; i++)
		error = post(store->urls[i], path, text, ANSWER_MS, reply);
	free(text);
	json_decref(body);
	return error;
}

static int to_base64(const char *text, char *to)
{
	size_t bytes = strlen(text);

	if (bytes >= NAME_BYTES)
		return weir_fail(ENAMETOOLONG, "the store: '%.40s...' has more than %d bytes", text,
				 NAME_BYTES - 1);
	EVP_EncodeBlock((unsigned char *)to, (const unsigned char *)text, (int)bytes);
	return 0;
}

/* The text of kvs[0] of a RangeResponse; "": there is none. */
static void holder_of(json_t *range, char *to, size_t bytes)
{
	const char *value =
		json_string_value(json_object_get(json_array_get(json_object_get(range, "kvs"), 0), "value"));
	unsigned char text[BASE64_BYTES] = "";

	if (value && strlen(value) < sizeof(text))
		(void)EVP_DecodeBlock(text, (const unsigned char *)value, (int)strlen(value));
	snprintf(to, bytes, "%s", value ? (char *)text : "");
}

static int is_held(const char *holder)
{
	return weir_fail(EAGAIN, "%s is active", *holder ? holder : "another daemon");
}

static int find_holder(const struct store *store)
{
	char holder[NAME_BYTES];
	json_t *reply;
	int error = ask(store, "/v3/kv/range", json_pack("{s:s}", "key", store->key), &reply);

	if (error)
		return error;
	holder_of(reply, holder, sizeof(holder));
	if (json_array_size(json_object_get(reply, "kvs")))
		error = is_held(holder);
	json_decref(reply);
	return error;
}

static void give_back(struct store *store)
{
	json_t *reply = NULL;

	if (*store->lease)
		(void)ask(store, "/v3/lease/revoke", json_pack("{s:s}", "ID", store->lease), &reply);
	json_decref(reply);
	*store->lease = 0;
}

static int grant(struct store *store)
{
	uint64_t sent_ms = now_ms();
	const char *id;
	json_t *reply;
	int error =
		ask(store, "/v3/lease/grant", json_pack("{s:I}", "TTL", (json_int_t)store->seconds), &reply);

	if (error)
		return error;
	id = json_string_value(json_object_get(reply, "ID"));
	if (!id || strlen(id) >= sizeof(store->lease))
		error = weir_fail(EPROTO, "the store gives a lease without a number");
	else
		strcpy(store->lease, id);
	atomic_store_explicit(&store->until_ms, sent_ms + 1000ull * store->seconds, memory_order_relaxed);
	json_decref(reply);
	return error;
}

/* The key, if nobody has it. */
static int put(const struct store *store)
{
	char holder[NAME_BYTES];
	json_t *reply, *response;
	int error =
		ask(store, "/v3/kv/txn",
		    json_pack("{s:[{s:s, s:s, s:s, s:s}], s:[{s:{s:s, s:s, s:s}}], s:[{s:{s:s}}]}", "compare",
			      "key", store->key, "target", "CREATE", "result", "EQUAL", "create_revision",
			      "0", "success", "requestPut", "key", store->key, "value", store->who, "lease",
			      store->lease, "failure", "requestRange", "key", store->key),
		    &reply);

	if (error)
		return error;
	if (!json_is_true(json_object_get(reply, "succeeded"))) {
		response = json_array_get(json_object_get(reply, "responses"), 0);
		holder_of(json_object_get(response, "response_range"), holder, sizeof(holder));
		error = is_held(holder);
	}
	json_decref(reply);
	return error;
}

/* Once more. A lease that is over is one of no time. */
static int renew(struct store *store)
{
	uint64_t sent_ms = now_ms();
	json_t *reply, *ttl;
	int error = ask(store, "/v3/lease/keepalive", json_pack("{s:s}", "ID", store->lease), &reply);

	if (error)
		return error;
	ttl = json_object_get(json_object_get(reply, "result"), "TTL");
	if (!json_is_string(ttl) || atoi(json_string_value(ttl)) <= 0)
		lost("the store has ended the lease");
	atomic_store_explicit(&store->until_ms, sent_ms + 1000ull * (unsigned)atoi(json_string_value(ttl)),
			      memory_order_relaxed);
	json_decref(reply);
	return 0;
}

/* Wait @ms, or until it is to stop. Return: whether it goes on. */
static bool wait_ms(const struct store *store, unsigned ms)
{
	struct pollfd stop = { .fd = store->stop, .events = POLLIN };

	return poll(&stop, 1, (int)ms) <= 0;
}

static void *keep(void *argument)
{
	struct store *store = argument;
	unsigned third_ms = store->seconds * 1000 / 3;
	int error = 0;

	while (wait_ms(store, error ? AGAIN_MS : third_ms)) {
		error = renew(store);
		if (!has_lease(store))
			lost(error ? weir_last_error() : "the lease in the store is over");
	}
	return NULL;
}

static int start_keeper(struct store *store)
{
	int error = pthread_create(&store->keeper, NULL, keep, store);

	store->keeping = !error;
	return error ? weir_fail(error, "cannot start the thread that renews the lease: %s", strerror(error))
		     : 0;
}

int store_take(struct store *store)
{
	int error = find_holder(store);

	if (!error)
		error = grant(store);
	if (!error)
		error = put(store);
	if (!error)
		error = start_keeper(store);
	if (error)
		give_back(store);
	return error;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	(void)eventfd_write(store->stop, 1);
	if (store->keeping)
		pthread_join(store->keeper, NULL);
	give_back(store);
	(void)close(store->stop);
	free(store);
	curl_global_cleanup();
}

static int take_endpoints(struct store *store, char *list, const char *scheme, const char *uri)
{
	char *save;

	for (char *one = strtok_r(list, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
		if (store->count == MOST_ENDPOINTS)
			return weir_fail(E2BIG, "--store %s: at most %d members may be named", uri,
					 MOST_ENDPOINTS);
		if (!strrchr(one, ':'))
			return weir_fail(EINVAL, "--store %s: '%s' has no port: write etcd://HOST:PORT", uri,
					 one);
		snprintf(store->urls[store->count++], NAME_BYTES, "%s%.*s", scheme, NAME_BYTES - 16, one);
	}
	return store->count
		       ? 0
		       : weir_fail(EINVAL, "--store %s: write etcd://HOST:PORT[,HOST:PORT...][/ARRAY]", uri);
}

static int parse(struct store *store, const char *uri, const char *who)
{
	bool secure = !strncmp(uri, "etcds://", 8);
	const char *rest = uri + (secure ? 8 : 7), *slash;
	char list[MOST_ENDPOINTS * NAME_BYTES], key[NAME_BYTES];
	int error;

	if (!secure && strncmp(uri, "etcd://", 7) != 0)
		return weir_fail(EINVAL, "--store %s: a store is etcd://HOST:PORT[,HOST:PORT...][/ARRAY]",
				 uri);
	if (strlen(rest) >= NAME_BYTES)
		return weir_fail(ENAMETOOLONG, "--store: at most %d characters", NAME_BYTES);
	slash = strchr(rest, '/');
	snprintf(list, sizeof(list), "%.*s", slash ? (int)(slash - rest) : (int)strlen(rest), rest);
	snprintf(key, sizeof(key), "weir/volumed/%.200s/active", slash && slash[1] ? slash + 1 : "array");
	error = take_endpoints(store, list, secure ? "https://" : "http://", uri);
	if (!error)
		error = to_base64(key, store->key);
	return error ? error : to_base64(who, store->who);
}

int store_open(const char *uri, const char *who, unsigned seconds, struct store **out)
{
	struct store *store = calloc(1, sizeof(*store));
	int error;

	*out = NULL;
	if (!store)
		return weir_fail(ENOMEM, "no memory for --store");
	store->seconds = seconds;
	error = parse(store, uri, who);
	if (!error && (store->stop = eventfd(0, EFD_CLOEXEC)) < 0)
		error = weir_fail(errno, "--store: no eventfd: %s", strerror(errno));
	if (error) {
		free(store);
		return error;
	}
	curl_global_init(CURL_GLOBAL_DEFAULT);
	*out = store;
	return 0;
}
