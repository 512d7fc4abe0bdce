/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volumed_store_test.c: when weir-volumed renews its lease in etcd, and when it takes it for over.
 *
 * A stand-in answers for etcd, and moves the clock: no time goes by. Where the daemon may end, a child does.
 */
#include "capture.h"

#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

enum { SECONDS = 10, BEGIN_MS = 5000000, SENTENCE = 256 };

/**
 * struct etcd - a stand-in for it, which children share
 * @now_ms: everybody's clock; @over_ms: when its lease ends
 * @slow_ms: from a request, which has come at once, to its answer
 * @silences: requests that it does not answer, from now on
 * @ttl: what it says to a renewal, in seconds
 * @holder: whose key it is, in base64; NULL: nobody's; @overtaken: it was not when that was asked
 * @grants, @renewals, @revocations: carried out
 * @most_waits: after so many the daemon is told to stop; @late: of these, after which the lease was over
 */
struct etcd {
	uint64_t now_ms, over_ms;
	unsigned slow_ms, silences, ttl;
	const char *holder;
	bool overtaken;
	unsigned grants, renewals, revocations;
	unsigned waits, most_waits, late;
	int shortest_ms, longest_ms;
};

static struct etcd *etcd;

/* ---- what is asked ---- */

struct answer;
static size_t take_bytes(char *from, size_t size, size_t count, void *to);

static const char *url;
static long timeout_ms;
static const char *body; /* of what is asked */
static struct answer *answer_to;

static void note_CURLOPT_URL(const char *given)
{
	url = given;
}

static void note_CURLOPT_POSTFIELDS(const char *given)
{
	body = given;
}

static void note_CURLOPT_TIMEOUT_MS(long given)
{
	timeout_ms = given;
}

static void note_CURLOPT_WRITEDATA(struct answer *given)
{
	answer_to = given;
}

static bool asks(const char *what)
{
	return strstr(url, what) != NULL;
}

/** struct asked - a request, by the end of its URL, and its body, by which two daemons are never active: who
 * writes the key that nobody has, and that goes with the lease */
struct asked {
	const char *path, *body;
};

#define KEY "\"key\":\"d2Vpci92b2x1bWVkL2FycmF5L2FjdGl2ZQ==\"" /* weir/volumed/array/active */

static const struct asked requests[] = {
	{ "/v3/kv/range", "{" KEY "}" },
	{ "/v3/lease/grant", "{\"TTL\":10}" },
	{ "/v3/lease/keepalive", "{\"ID\":\"7\"}" },
	{ "/v3/lease/revoke", "{\"ID\":\"7\"}" },
	{ "/v3/kv/txn",
	  "{\"compare\":[{" KEY ",\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_revision\":\"0\"}],"
	  "\"success\":[{\"requestPut\":{" KEY ",\"value\":\"dGhpcyBvbmU=\",\"lease\":\"7\"}}],"
	  "\"failure\":[{\"requestRange\":{" KEY "}}]}" },
};

/* It is one of these, whatever the order of its members. */
static void check_body(void)
{
	for (unsigned i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		json_t *expected, *given;

		if (!asks(requests[i].path))
			continue;
		expected = json_loads(requests[i].body, 0, NULL);
		given = json_loads(body, 0, NULL);
		assert_true(json_equal(expected, given));
		assert_int_equal(timeout_ms, 1000);
		json_decref(expected);
		json_decref(given);
		return;
	}
	fail_msg("nobody asks for %s", url);
}

static void hold(unsigned seconds)
{
	etcd->over_ms = etcd->now_ms + 1000 * (uint64_t)seconds;
}

/* The JSON of an answer. */
static void carry_out(char text[SENTENCE])
{
	const char *holder = etcd->holder ? etcd->holder : "";

	(void)snprintf(text, SENTENCE, "{}");
	if (asks("/v3/lease/grant")) {
		etcd->grants++;
		hold(SECONDS);
		(void)snprintf(text, SENTENCE, "{\"ID\":\"7\",\"TTL\":\"%d\"}", SECONDS);
	} else if (asks("/v3/lease/keepalive")) {
		etcd->renewals++;
		hold(etcd->ttl);
		(void)snprintf(text, SENTENCE, "{\"result\":{\"ID\":\"7\",\"TTL\":\"%u\"}}", etcd->ttl);
	} else if (asks("/v3/lease/revoke")) {
		etcd->revocations++;
		hold(0);
	} else if (asks("/v3/kv/range") && *holder && !etcd->overtaken) {
		(void)snprintf(text, SENTENCE, "{\"kvs\":[{\"value\":\"%s\"}]}", holder);
	} else if (asks("/v3/kv/txn") && *holder) {
		(void)snprintf(text, SENTENCE,
			       "{\"responses\":[{\"response_range\":{\"kvs\":[{\"value\":\"%s\"}]}}]}",
			       holder);
	} else if (asks("/v3/kv/txn")) {
		(void)snprintf(text, SENTENCE, "{\"succeeded\":true}");
	}
}

static CURLcode perform(void)
{
	char text[SENTENCE];

	if (etcd->silences || !asks("http://here:1/")) {
		etcd->silences -= etcd->silences > 0;
		etcd->now_ms += (uint64_t)timeout_ms;
		return CURLE_OPERATION_TIMEDOUT;
	}
	check_body();
	carry_out(text);
	etcd->now_ms += etcd->slow_ms;
	return take_bytes(text, 1, strlen(text), answer_to) ? CURLE_OK : CURLE_WRITE_ERROR;
}

static int show_clock(clockid_t clock, struct timespec *now)
{
	assert_int_equal(clock, CLOCK_BOOTTIME);
	now->tv_sec = (time_t)(etcd->now_ms / 1000);
	now->tv_nsec = (long)(etcd->now_ms % 1000) * 1000000;
	return 0;
}

/* What the daemon waits for: to be told to stop, or that @ms go by. */
static int let_time_go_by(struct pollfd *stop, nfds_t count, int ms)
{
	(void)stop;
	(void)count;
	if (etcd->waits == etcd->most_waits)
		return 1;
	etcd->waits++;
	etcd->now_ms += (uint64_t)ms;
	etcd->late += etcd->now_ms >= etcd->over_ms;
	etcd->shortest_ms = etcd->waits == 1 || ms < etcd->shortest_ms ? ms : etcd->shortest_ms;
	etcd->longest_ms = ms > etcd->longest_ms ? ms : etcd->longest_ms;
	return 0;
}

/* The test does what that thread does. */
static int start_nothing(pthread_t *thread, const pthread_attr_t *attributes, void *(*call)(void *),
			 void *argument)
{
	(void)thread;
	(void)attributes;
	(void)call;
	(void)argument;
	return 0;
}

static int join_nothing(pthread_t thread, void **end)
{
	(void)thread;
	(void)end;
	return 0;
}

#undef curl_easy_setopt
#undef curl_easy_getinfo
#define curl_easy_init()                      ((CURL *)etcd)
#define curl_easy_cleanup(curl)               ((void)(curl))
#define curl_easy_setopt(curl, option, value) note_##option(value)
#define curl_easy_getinfo(curl, what, to)     (*(to) = 200)
#define curl_easy_perform(curl)               perform()
#define note_CURLOPT_NOSIGNAL(value)          ((void)(value))
#define note_CURLOPT_NOPROXY(value)           ((void)(value))
#define note_CURLOPT_WRITEFUNCTION(value)     ((void)(value))
#define clock_gettime                         show_clock
#define poll                                  let_time_go_by
#define pthread_create                        start_nothing
#define pthread_join                          join_nothing
#include "tools/weir-volumed/store_etcd.c"

/* ---- cases ---- */

static void *check(void *store)
{
	store_check(store);
	return NULL;
}

/* Whether @call ends the process as a daemon ends that may not be the active one. */
static bool ends(void *(*call)(void *), struct store *store)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		(void)call(store);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) == 1;
}

static struct store *opened(const char *uri)
{
	struct store *store;

	*etcd = (struct etcd){ .now_ms = BEGIN_MS, .ttl = SECONDS };
	assert_int_equal(store_open(uri, "this one", SECONDS, &store), 0);
	return store;
}

static struct store *taken(unsigned slow_ms)
{
	struct store *store = opened("etcd://here:1/array");

	etcd->slow_ms = slow_ms;
	assert_int_equal(store_take(store), 0);
	assert_int_equal(etcd->grants, 1);
	return store;
}

/* To the millisecond when etcd ends it, which counts from when a request came. */
static void held_as_long_as_etcd_says(struct store *store)
{
	uint64_t now_ms = etcd->now_ms;

	etcd->now_ms = etcd->over_ms - 1;
	assert_false(ends(check, store));
	etcd->now_ms = etcd->over_ms;
	assert_true(ends(check, store));
	etcd->now_ms = now_ms;
}

static void test_the_lease_is_over_when_etcd_says(void **state)
{
	struct store *store = taken(700);

	(void)state;
	held_as_long_as_etcd_says(store);
	etcd->now_ms += 1000;
	etcd->ttl = SECONDS / 2; /* whatever was asked for */
	assert_int_equal(renew(store), 0);
	held_as_long_as_etcd_says(store);
	etcd->silences = 1;
	assert_int_equal(renew(store), -EAGAIN);
	held_as_long_as_etcd_says(store);
	store_close(store);
}

/* Often enough for two that fail, and not much more often. */
static void test_the_lease_is_renewed_in_time(void **state)
{
	enum { WAITS = 30 };
	struct store *store = taken(100);

	(void)state;
	etcd->most_waits = WAITS;
	assert_false(ends(keep, store));
	assert_int_equal(etcd->renewals, WAITS);
	assert_int_equal(etcd->late, 0);
	assert_in_range(etcd->shortest_ms, 1000 * SECONDS / 4, 1000 * SECONDS / 2);
	assert_in_range(etcd->longest_ms, 1000 * SECONDS / 4, 1000 * SECONDS / 2);
	store_close(store);
}

static void test_a_renewal_that_fails_is_tried_again(void **state)
{
	enum { WAITS = 10, SILENCES = 3 };
	struct store *store = taken(0);

	(void)state;
	etcd->most_waits = WAITS;
	etcd->silences = SILENCES;
	assert_false(ends(keep, store));
	assert_int_equal(etcd->renewals, WAITS - SILENCES);
	assert_int_equal(etcd->late, 0);
	store_close(store);
}

/* At the end of the lease, or as soon as an answer that it waits for can come. */
static void test_without_renewals_it_ends(void **state)
{
	struct store *store = taken(0);

	(void)state;
	etcd->most_waits = etcd->silences = 1000;
	assert_true(ends(keep, store));
	assert_int_equal(etcd->renewals, 0);
	assert_in_range(etcd->now_ms, etcd->over_ms, etcd->over_ms + ANSWER_MS + AGAIN_MS);
	etcd->silences = 0;
	store_close(store);
}

static void test_with_a_lease_of_no_time_it_ends(void **state)
{
	struct store *store = taken(0);

	(void)state;
	etcd->most_waits = 1000;
	etcd->ttl = 0;
	assert_true(ends(keep, store));
	assert_int_equal(etcd->renewals, 1);
	store_close(store);
}

/* Whoever has the key when it is looked for, or by the time it is to be written: nothing of this daemon's
 * stays. */
static void test_another_daemon_is_active(void **state)
{
	(void)state;
	for (unsigned overtaken = 0; overtaken < 2; overtaken++) {
		struct store *store = opened("etcd://here:1/array");

		etcd->holder = "dGhhdCBvbmU=";
		etcd->overtaken = overtaken;
		assert_int_equal(store_take(store), -EAGAIN);
		assert_string_equal(weir_last_error(), "that one is active");
		assert_int_equal(etcd->grants, overtaken);
		assert_int_equal(etcd->revocations, overtaken);
		etcd->holder = NULL;
		assert_int_equal(store_take(store), 0);
		held_as_long_as_etcd_says(store);
		store_close(store);
		assert_int_equal(etcd->revocations, overtaken + 1);
	}
}

/* Of several members those that answer are enough. */
static void test_the_next_member_is_asked(void **state)
{
	struct store *store = opened("etcd://gone:1,here:1/array");

	(void)state;
	assert_int_equal(store_take(store), 0);
	assert_true(etcd->now_ms > BEGIN_MS);
	assert_false(ends(check, store));
	store_close(store);
	assert_int_equal(etcd->revocations, 1);
	store = opened("etcd://gone:1/array");
	assert_int_equal(store_take(store), -EAGAIN);
	store_close(store);
}

static int set_up(void **state)
{
	(void)state;
	etcd = mmap(NULL, sizeof(*etcd), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return etcd == MAP_FAILED ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	return munmap(etcd, sizeof(*etcd));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_lease_is_over_when_etcd_says),
		cmocka_unit_test(test_the_lease_is_renewed_in_time),
		cmocka_unit_test(test_a_renewal_that_fails_is_tried_again),
		cmocka_unit_test(test_without_renewals_it_ends),
		cmocka_unit_test(test_with_a_lease_of_no_time_it_ends),
		cmocka_unit_test(test_another_daemon_is_active),
		cmocka_unit_test(test_the_next_member_is_asked),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("volumed_store", tests, set_up, tear_down);
}
