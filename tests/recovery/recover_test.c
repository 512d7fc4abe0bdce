/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recover_test.c: which steps weir_recover() takes, in which order, and what it counts.
 *
 * recover.c alone is linked. Stand-ins note each call and answer as a case says. The clock advances in
 * nanosleep() only.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "storage/doorbells.h"
#include "backend/error.h"
#include "recovery/takeover.h"
#include "recovery/recover.h"

enum { QUEUES = 3, TIMEOUT_MS = 40, COMMAND_MS = 700 };

/**
 * struct controller - what the stand-ins answer
 * @aborted: the controller says of an Abort that it ends the command
 * @ends_after_ms: the command is pending until then; UINT64_MAX: until something else ends it
 * @abort_error, @delete_error, @stop_error, @restart_error, @take_error, @create_error: of these calls
 * @create_fails_at: which creation of a pair; 0: none
 * @granted: queue pairs after a reset
 * @passing_fails: restarts that fail, the first ones, for a reason that passes: @away, else another storage's
 * reset
 * @silences: resets, the first ones, behind which an admin command gets no answer
 */
static struct controller {
	bool aborted;
	uint64_t ends_after_ms;
	int abort_error, delete_error, stop_error, restart_error, take_error, create_error;
	unsigned create_fails_at, granted, passing_fails, silences;
	bool away;
} controller;

static char calls[512];
static uint64_t now_ns;
static uint64_t at_release; /* what was counted when the last queue pair was released */
static unsigned creations, restarts, held, most_held;
static unsigned command_ms_seen;
static struct weir_transport transport;
static struct weir_storage storage;
static struct weir_recovery recovery;

static void note(const char *call)
{
	size_t used = strlen(calls);

	snprintf(calls + used, sizeof(calls) - used, "%s%s", used ? " " : "", call);
}

static void note_queue(const char *call, unsigned queue)
{
	char text[40];

	snprintf(text, sizeof(text), "%s%u", call, queue);
	note(text);
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	now_ns += (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
	return 0;
}

uint64_t weir_tracker_now_ns(void)
{
	return now_ns;
}

bool weir_tracker_pending(struct weir_tracker *late, const struct weir_tracked_command *command)
{
	(void)late;
	assert_int_equal(command->slot, 5);
	return now_ns < controller.ends_after_ms * 1000000 || controller.ends_after_ms == UINT64_MAX;
}

unsigned weir_queue_id(const struct weir_storage *of, uint32_t index)
{
	assert_ptr_equal(of, &storage);
	return 100 + index;
}

int weir_admin_abort(struct weir_admin *admin, unsigned id, unsigned cid, bool *aborted)
{
	command_ms_seen = admin->command_ms;
	assert_int_equal(cid, 0x1234);
	note_queue("abort", id);
	*aborted = controller.aborted;
	return controller.abort_error ? weir_fail(-controller.abort_error, "no Abort") : 0;
}

int weir_admin_delete_queue(struct weir_admin *admin, unsigned id)
{
	assert_int_equal(admin->command_ms, TIMEOUT_MS);
	note_queue("delete", id);
	return controller.delete_error ? weir_fail(-controller.delete_error, "no deletion") : 0;
}

int weir_admin_stop(struct weir_admin *admin)
{
	(void)admin;
	note("stop");
	return controller.stop_error ? weir_fail(-controller.stop_error, "no stop") : 0;
}

int weir_admin_enable(struct weir_admin *admin, struct weir_transport *on, void *memory, uint64_t bus)
{
	assert_ptr_equal(on, &transport);
	assert_ptr_equal(memory, admin->memory);
	assert_true(bus == admin->bus);
	admin->command_ms = 60000; /* as CAP.TO has it */
	note("enable");
	return 0;
}

void weir_admin_retry_delays(struct weir_admin *admin, const struct weir_namespace *space)
{
	(void)admin;
	assert_ptr_equal(space, &storage.space);
	note("delays");
}

int weir_admin_queue_count(struct weir_admin *admin, unsigned wanted, unsigned *granted)
{
	assert_int_equal(admin->command_ms, TIMEOUT_MS);
	note_queue("count", wanted);
	*granted = controller.granted;
	return restarts <= controller.silences ? weir_fail(ETIMEDOUT, "no answer") : 0;
}

bool weir_admin_fell_silent(const struct weir_admin *admin)
{
	assert_ptr_equal(admin, &storage.admin);
	return restarts && restarts <= controller.silences;
}

int weir_admin_shadow(struct weir_admin *admin, void *pages, uint64_t bus)
{
	(void)admin;
	assert_ptr_equal(pages, storage.shadow_host);
	assert_true(bus == storage.shadow_memory);
	note("shadow");
	return 0;
}

int weir_takeover_take(struct weir_storage *of, uint32_t index, unsigned timeout_ms)
{
	(void)of;
	assert_int_equal(timeout_ms, TIMEOUT_MS);
	note_queue("take", index);
	if (controller.take_error)
		return weir_fail(-controller.take_error, "lanes did not let go");
	held |= 1u << index;
	most_held |= held;
	return 0;
}

void weir_takeover_release(struct weir_storage *of, uint32_t index)
{
	(void)of;
	if (!(held >> index & 1))
		fail_msg("queue %u is released without weir_takeover_take(): %s", index, calls);
	held &= ~(1u << index);
	at_release = weir_load_u64_relaxed_sys(&storage.recovered.queues) +
		     weir_load_u64_relaxed_sys(&storage.recovered.resets);
}

uint32_t weir_takeover_end_commands(struct weir_storage *of, uint32_t index)
{
	(void)of;
	if (!(held >> index & 1))
		fail_msg("commands of queue %u end without weir_takeover_take(): %s", index, calls);
	note_queue("end", index);
	controller.ends_after_ms = 0;
	return 1;
}

int weir_takeover_create(struct weir_storage *of, uint32_t index, unsigned timeout_ms)
{
	(void)of;
	assert_int_equal(timeout_ms, TIMEOUT_MS);
	if (!(held >> index & 1))
		fail_msg("queue %u is created without weir_takeover_take(): %s", index, calls);
	note_queue("create", index);
	return ++creations == controller.create_fails_at ? weir_fail(-controller.create_error, "no creation")
							 : 0;
}

void weir_doorbells_settle(struct weir_storage *of)
{
	(void)of;
	note("settle");
}

static int restart(struct weir_transport *of)
{
	assert_ptr_equal(of, &transport);
	note("restart");
	if (++restarts <= controller.passing_fails)
		return weir_fail(EAGAIN, "no restart yet");
	return controller.restart_error ? weir_fail(-controller.restart_error, "no restart") : 0;
}

static bool was_reset(struct weir_transport *of)
{
	assert_ptr_equal(of, &transport);
	return restarts && restarts <= controller.passing_fails && !controller.away;
}

static bool away(struct weir_transport *of)
{
	assert_ptr_equal(of, &transport);
	return restarts && restarts <= controller.passing_fails && controller.away;
}

static void begin(struct controller as)
{
	static const struct weir_transport_ops ops = {
		.size = sizeof(ops), .restart = restart, .was_reset = was_reset, .away = away
	};
	static unsigned char pages[2];

	controller = as;
	controller.granted = as.granted ? as.granted : QUEUES;
	calls[0] = 0;
	now_ns = 1000000;
	creations = restarts = held = most_held = 0;
	at_release = 0;
	transport = (struct weir_transport){ .ops = &ops };
	storage = (struct weir_storage){ .transport = &transport,
					 .uri = (char *)"test:it",
					 .queue_count = QUEUES,
					 .created = QUEUES,
					 .enabled = true,
					 .shadow_memory = 4096,
					 .shadow_host = pages,
					 .admin = { .memory = pages, .bus = 77, .command_ms = COMMAND_MS } };
	recovery = (struct weir_recovery){ .storage = &storage, .shared = true, .timeout_ms = TIMEOUT_MS };
}

static int recover(void)
{
	const struct weir_tracked_command command = {
		.queue = 1, .slot = 5, .sequence = 9, .cid = 0x1234, .age_ns = 3000000000
	};
	int error = weir_recover(&recovery, &command);

	assert_int_equal(held, 0);
	assert_int_equal(storage.admin.command_ms, COMMAND_MS);
	return error;
}

static void counted(uint64_t late, uint64_t aborted, uint64_t queues, uint64_t resets)
{
	assert_int_equal(weir_load_u64_relaxed_sys(&storage.recovered.late), late);
	assert_int_equal(weir_load_u64_relaxed_sys(&storage.recovered.aborted), aborted);
	assert_int_equal(weir_load_u64_relaxed_sys(&storage.recovered.queues), queues);
	assert_int_equal(weir_load_u64_relaxed_sys(&storage.recovered.resets), resets);
	assert_int_equal(at_release, queues + resets); /* before lanes see that it goes on */
}

#define A_RESET                                                                                              \
	"take0 take1 take2 restart settle stop end0 end1 end2 enable delays count3 shadow create0 create1 "  \
	"create2"
#define A_NEW_QUEUE "abort101 take1 settle delete101 end1"

static void test_an_abort_that_ends_it(void **state)
{
	(void)state;
	begin((struct controller){ .aborted = true, .ends_after_ms = 1 + TIMEOUT_MS });
	assert_int_equal(recover(), 0);
	assert_string_equal(calls, "abort101");
	assert_int_equal(command_ms_seen, TIMEOUT_MS);
	counted(1, 1, 0, 0);
}

/* The controller says that it did not abort the command: the next step follows at once. */
static void test_an_abort_that_was_refused(void **state)
{
	(void)state;
	begin((struct controller){ .aborted = false, .ends_after_ms = 2 });
	assert_int_equal(recover(), 0);
	assert_string_equal(calls, A_NEW_QUEUE " create1");
	counted(1, 0, 1, 0);
	assert_true(now_ns == 1000000); /* no wait */
	begin((struct controller){ .aborted = false, .ends_after_ms = UINT64_MAX });
	assert_int_equal(recover(), 0);
	assert_string_equal(calls, A_NEW_QUEUE " create1");
	counted(1, 0, 1, 0);
}

/* The command was completed just before the Abort: no further step, and nothing counts as aborted. */
static void test_an_abort_that_came_too_late(void **state)
{
	(void)state;
	begin((struct controller){ .aborted = false, .ends_after_ms = 0 });
	assert_int_equal(recover(), 0);
	assert_string_equal(calls, "abort101");
	counted(1, 0, 0, 0);
}

/*
 * The controller says that it aborted the command, but never completes it: the next step follows after
 * the timeout.
 */
static void test_an_abort_that_is_not_kept(void **state)
{
	uint64_t waited;

	(void)state;
	begin((struct controller){ .aborted = true, .ends_after_ms = UINT64_MAX });
	assert_int_equal(recover(), 0);
	waited = now_ns / 1000000 - 1;
	assert_string_equal(calls, A_NEW_QUEUE " create1");
	counted(1, 0, 1, 0);
	assert_true(waited >= TIMEOUT_MS && waited <= TIMEOUT_MS + 2);
}

/* Where a new queue pair fails, a reset follows. */
static void test_a_reset(void **state)
{
	(void)state;
	begin((struct controller){ .ends_after_ms = UINT64_MAX, .delete_error = -ETIMEDOUT });
	assert_int_equal(recover(), 0);
	assert_string_equal(calls, "abort101 take1 settle delete101 " A_RESET);
	counted(1, 0, 0, 1);
	assert_int_equal(most_held, (1 << QUEUES) - 1);
	begin((struct controller){ .ends_after_ms = UINT64_MAX, .create_error = -EIO, .create_fails_at = 1 });
	assert_int_equal(recover(), 0);
	assert_string_equal(calls, A_NEW_QUEUE " create1 " A_RESET);
	counted(1, 0, 0, 1);
	begin((struct controller){ .ends_after_ms = UINT64_MAX,
				   .abort_error = -ETIMEDOUT }); /* no further admin command */
	assert_int_equal(recover(), 0);
	assert_string_equal(calls, "abort101 " A_RESET);
	counted(1, 0, 0, 1);
	assert_true(storage.enabled && storage.created == QUEUES);
}

static void is_lost(int error, const char *sentence)
{
	assert_int_equal(recover(), error);
	assert_non_null(strstr(weir_last_error(), sentence));
	assert_false(storage.enabled);
	assert_int_equal(storage.created, 0);
	counted(1, 0, 0, 0);
}

static void test_a_reset_that_fails(void **state)
{
	(void)state;
	begin((struct controller){
		.ends_after_ms = UINT64_MAX, .abort_error = -ETIMEDOUT, .stop_error = -ETIMEDOUT });
	is_lost(-ETIMEDOUT, "no stop");
	assert_string_equal(calls, "abort101 take0 take1 take2 restart settle stop");
	begin((struct controller){
		.ends_after_ms = UINT64_MAX, .abort_error = -ETIMEDOUT, .restart_error = -ENODEV });
	is_lost(-ENODEV, "no restart");
	begin((struct controller){
		.ends_after_ms = UINT64_MAX, .abort_error = -ETIMEDOUT, .granted = QUEUES - 1 });
	is_lost(-EIO, "granted 2 queues after its reset; 3 are needed");
	begin((struct controller){ .ends_after_ms = UINT64_MAX,
				   .abort_error = -ETIMEDOUT,
				   .create_error = -EIO,
				   .create_fails_at = 2 });
	is_lost(-EIO, "no creation");
	assert_null(strstr(calls, "create2"));
	begin((struct controller){
		.ends_after_ms = UINT64_MAX, .abort_error = -ETIMEDOUT, .take_error = -ETIMEDOUT });
	is_lost(-ETIMEDOUT, "lanes did not let go");
	assert_string_equal(calls, "abort101 take0");
}

/* What fails for a reason that passes is tried sixteen times in all. */
static void test_a_reset_that_may_yet_succeed(void **state)
{
	(void)state;
	for (int is_away = 0; is_away < 2; is_away++) {
		struct controller as = { .ends_after_ms = UINT64_MAX,
					 .abort_error = -ETIMEDOUT,
					 .passing_fails = 15,
					 .away = is_away };

		begin(as);
		assert_int_equal(recover(), 0);
		assert_int_equal(restarts, 16);
		counted(1, 0, 0, 1);
		as.passing_fails = 16;
		begin(as);
		is_lost(-EAGAIN, "no restart yet");
		assert_int_equal(restarts, 16);
	}
}

/* A controller with a connection that says nothing behind a reset gets two more; any other one none. */
static void test_a_reset_that_ends_in_silence(void **state)
{
	static const struct weir_transport_ops no_connection = { .size = sizeof(no_connection),
								 .restart = restart };
	struct controller as = { .ends_after_ms = UINT64_MAX, .abort_error = -ETIMEDOUT, .silences = 2 };

	(void)state;
	begin(as);
	assert_int_equal(recover(), 0);
	assert_int_equal(restarts, 3);
	counted(1, 0, 0, 1);
	as.silences = 3;
	begin(as);
	is_lost(-ETIMEDOUT, "no answer");
	assert_int_equal(restarts, 3);
	begin(as);
	transport.ops = &no_connection;
	is_lost(-ETIMEDOUT, "no answer");
	assert_int_equal(restarts, 1);
}

/*
 * Where the host does not access queue words, the controller is stopped for good, unless Abort ended
 * the command.
 */
static void test_words_out_of_reach(void **state)
{
	(void)state;
	begin((struct controller){ .ends_after_ms = UINT64_MAX });
	recovery.shared = false;
	is_lost(-EIO, "was stopped");
	assert_string_equal(calls, "abort101 stop");
	begin((struct controller){ .aborted = true, .ends_after_ms = 3 });
	recovery.shared = false;
	assert_int_equal(recover(), 0);
	assert_string_equal(calls, "abort101");
	counted(1, 1, 0, 0);
}

static void test_an_enable_that_was_lost(void **state)
{
	(void)state;
	begin((struct controller){ .ends_after_ms = UINT64_MAX });
	assert_int_equal(weir_recover_enable(&recovery, 0), 0);
	assert_string_equal(calls, A_RESET);
	counted(0, 0, 0, 1);
	assert_int_equal(storage.admin.command_ms, COMMAND_MS);
	begin((struct controller){ .ends_after_ms = UINT64_MAX, .stop_error = -EIO });
	assert_int_equal(weir_recover_enable(&recovery, 0), -EIO);
	counted(0, 0, 0, 0);
	assert_false(storage.enabled);
	assert_int_equal(held, 0);
}

/* Where the host does not access queue words, one that was switched off stays off, and the storage is lost.
 */
static void test_an_enable_that_was_lost_elsewhere(void **state)
{
	(void)state;
	begin((struct controller){ .ends_after_ms = UINT64_MAX });
	recovery.shared = false;
	assert_int_equal(weir_recover_enable(&recovery, 0), -EIO);
	assert_non_null(strstr(weir_last_error(), "was stopped"));
	assert_string_equal(calls, "stop");
	counted(0, 0, 0, 0);
	assert_false(storage.enabled);
	assert_int_equal(storage.created, 0);
	assert_int_equal(storage.admin.command_ms, COMMAND_MS);
}

static void *shadow_of(struct weir_transport *of)
{
	(void)of;
	return storage.shadow_host;
}

/* Shadow doorbells that all storages of a controller have are not this one's to give it; nor has every
 * storage some. */
static void test_a_reset_with_shadows_of_others(void **state)
{
	static const struct weir_transport_ops shared_ops = { .size = sizeof(shared_ops),
							      .restart = restart,
							      .shadow = shadow_of };
	struct controller as = { .ends_after_ms = UINT64_MAX, .abort_error = -ETIMEDOUT };

	(void)state;
	for (unsigned none = 0; none < 2; none++) {
		begin(as);
		if (none)
			storage.shadow_memory = 0;
		else
			transport.ops = &shared_ops;
		assert_int_equal(recover(), 0);
		assert_null(strstr(calls, "shadow"));
		assert_non_null(strstr(calls, "count3 create0 create1 create2"));
		counted(1, 0, 0, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_abort_that_ends_it),
		cmocka_unit_test(test_an_abort_that_was_refused),
		cmocka_unit_test(test_an_abort_that_came_too_late),
		cmocka_unit_test(test_an_abort_that_is_not_kept),
		cmocka_unit_test(test_a_reset),
		cmocka_unit_test(test_a_reset_that_fails),
		cmocka_unit_test(test_a_reset_that_may_yet_succeed),
		cmocka_unit_test(test_a_reset_that_ends_in_silence),
		cmocka_unit_test(test_words_out_of_reach),
		cmocka_unit_test(test_an_enable_that_was_lost),
		cmocka_unit_test(test_an_enable_that_was_lost_elsewhere),
		cmocka_unit_test(test_a_reset_with_shadows_of_others),
	};

	return cmocka_run_group_tests_name("recover", tests, NULL, NULL);
}
