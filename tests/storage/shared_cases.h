/* SPDX-License-Identifier: BSD-3-Clause */
/* shared_cases.h: users of a shared controller, what they have it do, and cases of other files. */
#ifndef WEIR_TESTS_SHARED_CASES_H
#define WEIR_TESTS_SHARED_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../rig/context.h"

enum {
	BLOCK = 512,
	QUEUES = 3,
	DEPTH = 8,
	PAIRS = 8,
	BLOCKS = 2,
	THREADS = 37,
	OUTSTANDING = 3,
	ROUNDS = 4,
	VICTIM = 7,
	LIMIT_US = 2000000,
	USERS = 2
};

#define NEVER_US ((uint64_t)600 * 1000000)
#define BY_HOST  (WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | NVME_STATUS_ABORTED_BY_HOST)
#define MADE     "virt:4M?block=512&queue_pairs=8&controller="

/** struct user - a context with a storage */
struct user {
	struct weir_context *context;
	struct weir_storage *storage;
};

/** struct load - writes and reads by many lanes of a user, in blocks that no other user has */
struct load {
	struct user *user;
	uint64_t verdict_at;
	uint64_t good, bad;
};

void must(int error);
/* It is @expected, and the sentence has @sentence. */
void must_say(int error, int expected, const char *sentence);
int open_storage(struct user *user, const char *uri, unsigned queues, bool tested);
void close_user(struct user *user);
void open_users(struct user *users, const char *uri);
uint32_t request(struct user *user, uint32_t opcode, uint64_t lba, char text[BLOCK]);
uint32_t read_block(struct user *user, uint64_t lba);
struct weir_stats stats_of(struct user *user);
uint64_t good_requests(void);
void start_load(struct load *load, struct user *user, unsigned number);
void end_load(struct load *load);
void check_usable(struct user *user, unsigned number);
void check_both(struct user *users);

/* Cases of shared_reset.c. */
void test_reset(void **state);
void test_many_resets(void **state);
void test_reset_under_load(void **state);
void test_new_queue(void **state);
void test_lost_alone(void **state);
void test_reset_from_outside(void **state);
void test_removal(void **state);
void test_fatal(void **state);
void test_gone(void **state);

#endif
