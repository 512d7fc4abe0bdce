/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits_test.c: a refusal that says "from A to B" is right about A and B. Each option is refused once far
 * out of its range; both ends of what that sentence says are accepted then, and what is one beyond them is
 * refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/weir.h>

enum { TEXT_BYTES = 256 };

static struct weir_context *context;

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

/** struct setting - a number that a user gives: @set() uses @value; @powers: only powers of two are accepted
 */
struct setting {
	const char *name;
	int (*set)(const char *name, uint64_t value);
	int powers;
};

static int set_key(const char *key, uint64_t value)
{
	struct weir_storage *storage;
	char uri[TEXT_BYTES];
	int error;

	snprintf(uri, sizeof(uri), "%s%llu", key, (unsigned long long)value);
	error = weir_storage_open(context, uri, WEIR_OPTIONS(storage, .queues = 1, .depth = 2), &storage);
	weir_storage_close(storage);
	return error;
}

/* The last word of @name says which option; the storage is small where the value is not. */
static int set_storage(const char *name, uint64_t value)
{
	struct weir_storage_options options = {
		.size = sizeof(options), .queues = 1, .depth = 2, .max_transfer_bytes = 4096
	};
	struct weir_storage *storage;
	int error;

	if (!strcmp(name, "queues"))
		options.queues = (uint32_t)value;
	else if (!strcmp(name, "depth"))
		options.depth = (uint32_t)value;
	else if (!strcmp(name, "retries"))
		options.retries = (uint32_t)value + 1;
	else
		options.max_transfer_bytes = (uint32_t)value;
	error = weir_storage_open(context, "virt:1M", &options, &storage);
	weir_storage_close(storage);
	return error;
}

static int set_context(const char *name, uint64_t value)
{
	struct weir_context_options options = { .size = sizeof(options), .workers = 1 };
	struct weir_context *other;
	int error;

	if (!strcmp(name, "workers"))
		options.workers = (uint32_t)value;
	else if (!strcmp(name, "wave_lanes"))
		options.wave_lanes = (uint32_t)value;
	else
		options.service_waves = (uint32_t)value;
	error = weir_context_open("cpu", &options, &other);
	weir_context_close(other);
	return error;
}

static int set_line(const char *name, uint64_t value)
{
	struct weir_cache *cache;
	int error = weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 4, .line_bytes = (uint32_t)value),
				      &cache);

	(void)name;
	if (!error)
		weir_cache_destroy(cache);
	return error;
}

/* The numbers after " from " and " to " in the last sentence; sizes may have their letters. */
static int read_range(uint64_t *least, uint64_t *most)
{
	char low[TEXT_BYTES], high[TEXT_BYTES];
	const char *from = NULL, *next = weir_last_error();

	while ((next = strstr(next, " from ")) != NULL) /* the last one: a URI may have the word, too */
		from = next++;
	if (!from || sscanf(from, " from %250[0-9KMGT] to %250[0-9KMGT]", low, high) != 2)
		return -1;
	return weir_parse_bytes(low, least) || weir_parse_bytes(high, most) ? -1 : 0;
}

static void accepts(const struct setting *setting, uint64_t value)
{
	int error = setting->set(setting->name, value);

	if (error)
		fail_msg("%s: %llu is within what it said, yet: %s", setting->name, (unsigned long long)value,
			 weir_last_error());
}

static void refuses(const struct setting *setting, uint64_t value)
{
	uint64_t least, most;

	if (setting->set(setting->name, value) != -EINVAL)
		fail_msg("%s: %llu is beyond what it said and not refused: %s", setting->name,
			 (unsigned long long)value, weir_last_error());
	if (read_range(&least, &most))
		fail_msg("%s: %llu: no range in: %s", setting->name, (unsigned long long)value,
			 weir_last_error());
}

static void check(const struct setting *settings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct setting *setting = &settings[i];
		uint64_t least = 0, most = 0;

		refuses(setting, 4000000000);
		(void)read_range(&least, &most);
		assert_true(least < most || (least == most && least));
		accepts(setting, least);
		accepts(setting, most);
		refuses(setting, setting->powers ? most * 2 : most + 1);
		if (least > 1)
			refuses(setting, setting->powers ? least / 2 : least - 1);
	}
}

static void keys_of_storages(void **state)
{
	static const struct setting settings[] = {
		{ "virt:1M?threads=", set_key, 0 },
		{ "virt:1M?lat_us=", set_key, 0 },
		{ "virt:1M?iops=", set_key, 0 },
		{ "virt:1M?mdts=", set_key, 1 },
		{ "virt:1M?retries=", set_key, 0 },
		{ "virt:1M?timeout_ms=", set_key, 0 },
		{ "virt:1M?block=", set_key, 1 },
		{ "virt:1M?fault=late:us=", set_key, 0 },
		{ "virt:1M?fault=drop:count=1:queue=", set_key, 0 },
		{ "virt:1M?fault=drop:count=1:after=100000:chance=", set_key, 0 },
		{ "virt:1M?fault=shuffle:count=1:after=100000:of=", set_key, 0 },
		{ "virt:1M?fault=status:count=1:after=100000:code=", set_key, 0 },
		{ "virt:1M?fault=status:code=1:count=1:after=100000:crd=", set_key, 0 },
		{ "virt:1M?fault=stray:count=1:after=100000:cid=", set_key, 0 },
	};

	(void)state;
	check(settings, sizeof(settings) / sizeof(settings[0]));
}

/* A size by itself: both ends exist, as far as the machine has addresses. */
static void size_of_virt(void **state)
{
	static const struct setting setting = { "virt:", set_key, 0 };
	uint64_t least, most;

	(void)state;
	assert_int_equal(set_key("virt:", (uint64_t)1 << 60), -EINVAL);
	assert_int_equal(read_range(&least, &most), 0);
	accepts(&setting, least);
	refuses(&setting, most + 512);
	if (set_key("virt:", most) != 0) /* a sanitizer has most addresses for itself */
		assert_non_null(strstr(weir_last_error(), "cannot map"));
}

static void options_of_storages(void **state)
{
	static const struct setting settings[] = {
		{ "queues", set_storage, 0 },
		{ "depth", set_storage, 1 },
		{ "retries", set_storage, 0 },
		{ "max_transfer_bytes", set_storage, 1 },
	};

	(void)state;
	check(settings, sizeof(settings) / sizeof(settings[0]));
}

static void options_of_contexts_and_caches(void **state)
{
	static const struct setting settings[] = {
		{ "wave_lanes", set_context, 1 },
		{ "service_waves", set_context, 0 },
		{ "line_bytes", set_line, 1 },
	};

	(void)state;
	check(settings, sizeof(settings) / sizeof(settings[0]));
	assert_int_equal(set_context("workers", 1025),
			 -EINVAL); /* a thousand threads are not started for a test */
	assert_non_null(strstr(weir_last_error(), "from 1 to 1024"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_storages),
		cmocka_unit_test(size_of_virt),
		cmocka_unit_test(options_of_storages),
		cmocka_unit_test(options_of_contexts_and_caches),
	};

	return cmocka_run_group_tests(tests, open_context, close_context);
}
