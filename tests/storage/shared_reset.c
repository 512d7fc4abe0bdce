/* SPDX-License-Identifier: BSD-3-Clause */
/* shared_reset.c: a shared controller is reset, fails or is gone, and what that is to each of its storages.
 */
#include "shared_cases.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <weir/disk.h>

enum { MOST_STARTS = 12 };

/* Until its watchdog has seen that its queue pairs are gone, what a storage is asked for ends with them. */
static void await_resets(struct user *user, uint64_t resets)
{
	for (unsigned i = 0; i < 60000 && stats_of(user).resets < resets; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* A reset that one needs ends what the other has under way, which is tried again: it goes on with queue pairs
 * created anew. */
void test_reset(void **state)
{
	struct user users[USERS];

	(void)state;
	if (!test_on_cpu() || test_given())
		return;
	for (unsigned victim = 0; victim < USERS; victim++) {
		open_users(users, MADE "reset&fault=stuck:op=read:lba=7:count=1");
		check_both(users);
		assert_int_equal(read_block(&users[victim], VICTIM), WEIR_OK);
		await_resets(&users[0], 1);
		await_resets(&users[1], 1);
		check_both(users);
		for (unsigned i = 0; i < USERS; i++) {
			assert_int_equal(stats_of(&users[i]).resets, 1);
			assert_int_equal(stats_of(&users[i]).late, i == victim);
		}
		close_user(&users[victim]);
		check_usable(&users[!victim], 0);
		close_user(&users[!victim]);
	}
}

/* Again and again, which would be too often if somebody else did it. Each has seen one before the next. */
void test_many_resets(void **state)
{
	struct user users[USERS];
	char text[BLOCK] = "";

	(void)state;
	if (!test_on_cpu() || test_given())
		return;
	open_users(users, MADE "resets&fault=stuck:op=write:lba=7:count=7");
	for (unsigned resets = 1; resets <= 7; resets++) {
		assert_int_equal(request(&users[0], NVME_OPCODE_WRITE, VICTIM, text), BY_HOST);
		for (unsigned i = 0; i < USERS; i++) {
			await_resets(&users[i], resets);
			assert_int_equal(stats_of(&users[i]).resets, resets);
		}
	}
	check_both(users);
	for (unsigned i = 0; i < USERS; i++)
		assert_int_equal(stats_of(&users[i]).resets, 7);
	close_user(&users[1]);
	close_user(&users[0]);
}

/* While the other one is busy: what it has under way is read again, or its write may not have happened. */
void test_reset_under_load(void **state)
{
	struct user users[USERS];
	struct load load;
	uint64_t lost;

	(void)state;
	if (!test_on_cpu() || test_given())
		return;
	open_users(users, MADE "load&fault=stuck:op=read:lba=7:count=1");
	start_load(&load, &users[1], 1);
	assert_int_equal(read_block(&users[0], VICTIM), WEIR_OK);
	end_load(&load);
	await_resets(&users[0], 1);
	await_resets(&users[1], 1);
	lost = stats_of(&users[1]).failed - stats_of(&users[1]).retried;
	assert_true(load.bad <= 2 * lost);
	assert_true(load.good >= good_requests() - lost);
	check_both(users);
	assert_int_equal(stats_of(&users[0]).resets, 1);
	assert_int_equal(stats_of(&users[1]).resets, 1);
	close_user(&users[1]);
	close_user(&users[0]);
}

/* A queue pair of one that is created anew is no business of the other's. */
void test_new_queue(void **state)
{
	struct user users[USERS];

	(void)state;
	if (!test_on_cpu() || test_given())
		return;
	open_users(users, MADE "queue&fault=drop:op=read:lba=7:count=1");
	assert_int_equal(read_block(&users[1], VICTIM), WEIR_OK);
	assert_int_equal(stats_of(&users[1]).queues_replaced, 1);
	assert_int_equal(stats_of(&users[0]).resets + stats_of(&users[1]).resets, 0);
	check_both(users);
	close_user(&users[0]);
	close_user(&users[1]);
}

static void await_dead(struct user *user)
{
	for (unsigned i = 0; i < 60000 && read_block(user, 0) == WEIR_OK; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* The host reaches the queues of neither device: the second one is lost with the first. Both open again. */
static void check_lost_together(struct user users[USERS])
{
	await_dead(&users[1]);
	for (unsigned i = 0; i < USERS; i++) {
		assert_int_equal(read_block(&users[i], 0), WEIR_E_DEVICE_DEAD);
		(void)weir_storage_close(users[i].storage);
	}
	for (unsigned i = 0; i < USERS; i++)
		must(open_storage(&users[i], MADE "together", 2, true));
	check_both(users);
	close_user(&users[0]);
	close_user(&users[1]);
}

/* Where the host does not see a device's queues it cannot go on with them: that storage is lost, and the
 * other one goes on. */
void test_lost_alone(void **state)
{
	struct user users[USERS];
	uint64_t resets;
	uint32_t status;

	(void)state;
	if (test_on_cpu() || test_given())
		return;
	open_users(users, MADE "alone&fault=stuck:op=read:lba=7:count=1");
	status = read_block(&users[0], VICTIM);
	if (status == WEIR_OK &&
	    stats_of(&users[0]).resets) { /* memory is shared: it goes on, as in test_reset() */
		close_user(&users[0]);
		close_user(&users[1]);
		return;
	}
	assert_int_equal(status, WEIR_E_DEVICE_DEAD);
	if (getenv("WEIR_TEST_SECOND")) {
		check_lost_together(users);
		return;
	}
	await_resets(&users[1], 1);
	check_usable(&users[1], 1);
	(void)weir_storage_close(users[0].storage);
	resets = stats_of(&users[1]).resets;
	assert_in_range(resets, 1, 2);
	check_usable(&users[1], 1);
	must(open_storage(&users[0], MADE "alone&fault=stuck:op=read:lba=7:count=1", 2, true));
	check_both(users);
	assert_int_equal(stats_of(&users[1]).resets, resets);
	close_user(&users[0]);
	close_user(&users[1]);
}

/* The threads of a new controller may have no core for as long as it says that its start takes. */
static int open_in_the_end(struct user *user, const char *uri)
{
	int error = -ETIMEDOUT;

	for (unsigned i = 0; i < MOST_STARTS && error == -ETIMEDOUT; i++)
		error = open_storage(user, uri, 1, false);
	return error;
}

/* One that fails is lost to both; it is refused until both are closed, and there again afterwards. */
static void fails(const char *uri, uint32_t status)
{
	struct user users[USERS], third;

	open_users(users, uri);
	assert_int_equal(read_block(&users[0], VICTIM), status);
	await_dead(&users[1]);
	assert_int_equal(read_block(&users[1], VICTIM), status);
	(void)weir_storage_close(users[1].storage);
	third.context = users[1].context;
	if (status == WEIR_E_DEVICE_DEAD)
		must_say(open_storage(&third, uri, 1, false), -EBUSY,
			 "failed, and a storage of this process still has it open; close that");
	(void)weir_storage_close(users[0].storage);
	must(open_in_the_end(&third, uri));
	assert_int_equal(read_block(&third, 0), WEIR_OK);
	close_user(&third);
	weir_context_close(users[0].context);
}

/* Where a machine can: WEIR_TEST_RESET is a command that resets the controller's PCI function. All go on. */
void test_reset_from_outside(void **state)
{
	const char *command = getenv("WEIR_TEST_RESET");
	struct user users[USERS];

	(void)state;
	if (!command)
		skip();
	open_users(users, MADE "outside");
	check_both(users);
	assert_int_equal(system(command), 0);
	for (unsigned i = 0; i < USERS; i++)
		await_resets(&users[i], 1);
	check_both(users);
	close_user(&users[0]);
	check_usable(&users[1], 1);
	close_user(&users[1]);
}

/* WEIR_TEST_REMOVE has the system ask for it, and waits until it has it: all are ended, and it is let go of.
 */
void test_removal(void **state)
{
	const char *command = getenv("WEIR_TEST_REMOVE");
	struct user users[USERS];

	(void)state;
	if (!command)
		skip();
	open_users(users, MADE "removal");
	check_both(users);
	assert_int_equal(system(command), 0);
	for (unsigned i = 0; i < USERS; i++) {
		await_dead(&users[i]);
		assert_int_equal(read_block(&users[i], 0), WEIR_E_DEVICE_GONE);
	}
	for (unsigned i = 0; i < USERS; i++) {
		(void)weir_storage_close(users[i].storage);
		weir_context_close(users[i].context);
	}
}

void test_fatal(void **state)
{
	(void)state;
	if (!getenv("WEIR_TEST_SHADOW") && !test_given())
		fails(MADE "fatal&fault=fatal:op=read:lba=7:count=1", WEIR_E_DEVICE_DEAD);
}

void test_gone(void **state)
{
	(void)state;
	if (!getenv("WEIR_TEST_SHADOW") && !test_given())
		fails(MADE "gone&fault=gone:op=read:lba=7:count=1", WEIR_E_DEVICE_GONE);
}
