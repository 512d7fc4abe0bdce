/* SPDX-License-Identifier: BSD-3-Clause */
#include "recover.h"

#include <errno.h>
#include <time.h>

#include "../storage/doorbells.h"
#include "../backend/error.h"
#include "../base/timeout.h"
#include "takeover.h"

/* Of creating queue pairs anew while other storages have the controller reset, or it is away; of those that
 * end since it falls silent. */
enum { MOST_TRIES = 16, MOST_SILENCES = 3 };

static void say(const struct weir_recovery *recovery, const struct weir_tracked_command *command,
		const char *what)
{
	weir_report("storage \"%s\": no answer to command %#x of queue %u for %llu ms; %s",
		    recovery->storage->uri, command->cid, weir_queue_id(recovery->storage, command->queue),
		    (unsigned long long)(command->age_ns / 1000000), what);
}

static void say_enable(const struct weir_recovery *recovery, uint32_t csts, bool by_another_storage,
		       const char *what)
{
	if (by_another_storage)
		weir_report("storage \"%s\": another storage of this process had its controller reset; "
			    "%s",
			    recovery->storage->uri, what);
	else
		weir_report("storage \"%s\": somebody else has reset its controller, or switched it off "
			    "(CSTS %#x); %s",
			    recovery->storage->uri, csts, what);
}

static void count(weir_shared_u64 *counter)
{
	(void)weir_add_u64_relaxed_sys(counter, 1); /* relaxed: read as a snapshot */
}

static bool ends_in_time(struct weir_recovery *recovery, const struct weir_tracked_command *command)
{
	struct weir_timeout timeout = weir_timeout_from(weir_tracker_now_ns(), recovery->timeout_ms);

	while (weir_tracker_pending(recovery->tracker, command)) {
		if (!weir_timeout_left(&timeout, weir_tracker_now_ns()))
			return false;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return true;
}

/* Return: 1 if it has ended, 0 if not, a negative errno if admin commands are not answered either. */
static int abort_command(struct weir_recovery *recovery, const struct weir_tracked_command *command)
{
	struct weir_storage *storage = recovery->storage;
	bool aborted = false;
	int error = weir_admin_abort(&storage->admin, weir_queue_id(storage, command->queue), command->cid,
				     &aborted);

	if (error)
		return error;
	if (!aborted) /* it may just have been completed, which is why */
		return !weir_tracker_pending(recovery->tracker, command);
	if (!ends_in_time(recovery, command))
		return 0;
	say(recovery, command, "it was aborted");
	count(&storage->recovered.aborted);
	return 1;
}

/* With both roles: the old pair's commands end, and a new one goes on. Return: as abort_command(). */
static int replace_held(struct weir_recovery *recovery, const struct weir_tracked_command *command)
{
	struct weir_storage *storage = recovery->storage;
	int error;

	weir_doorbells_settle(storage); /* a register is not rung behind its queue's end */
	error = weir_admin_delete_queue(&storage->admin, weir_queue_id(storage, command->queue));

	if (error)
		return error;
	(void)weir_takeover_end_commands(storage, command->queue);
	error = weir_takeover_create(storage, command->queue, recovery->timeout_ms);
	if (error)
		return error;
	say(recovery, command, "its queue pair was deleted and created again");
	count(&storage->recovered.queues);
	return 1;
}

static int replace_queue(struct weir_recovery *recovery, const struct weir_tracked_command *command)
{
	int result = weir_takeover_take(recovery->storage, command->queue, recovery->timeout_ms);

	if (result)
		return result;
	result = replace_held(recovery, command);
	/* If it failed nothing is lost by ringing: the reset takes the roles again, or the storage is marked
	 * dead. */
	weir_takeover_release(recovery->storage, command->queue);
	return result;
}

static int start_again(struct weir_recovery *recovery)
{
	struct weir_storage *storage = recovery->storage;
	unsigned granted = 0;
	int error = weir_admin_enable(&storage->admin, storage->transport, storage->admin.memory,
				      storage->admin.bus);

	if (error)
		return error;
	storage->admin.command_ms = recovery->timeout_ms;
	weir_admin_retry_delays(&storage->admin, &storage->space);
	error = weir_admin_queue_count(&storage->admin, storage->queue_count, &granted);
	if (!error && storage->shadow_memory && !storage->transport->ops->shadow)
		error = weir_admin_shadow(&storage->admin, storage->shadow_host, storage->shadow_memory);
	if (!error && granted < storage->queue_count)
		error = weir_fail(
			EIO,
			"storage \"%s\": the controller granted %u queues after its reset; %u are needed",
			storage->uri, granted, storage->queue_count);
	return error;
}

/* Another storage of this process had the controller reset, which ends what was created since the last one.
 */
static bool was_reset(const struct weir_storage *storage)
{
	struct weir_transport *transport = storage->transport;

	return transport->ops->was_reset && transport->ops->was_reset(transport);
}

/*
 * What failed has a reason that passes. A controller that has a connection, and says nothing by it, may have
 * left without a word: a further reset connects to it, or finds that it is away. @silences: how often it did.
 */
static bool may_yet_succeed(const struct weir_storage *storage, unsigned *silences)
{
	struct weir_transport *transport = storage->transport;

	if (was_reset(storage))
		return true;
	if (!transport->ops->away)
		return false;
	return transport->ops->away(transport) ||
	       (weir_admin_fell_silent(&storage->admin) && ++*silences < MOST_SILENCES);
}

/* With all roles of all queue pairs. */
static int reset_held(struct weir_recovery *recovery)
{
	struct weir_storage *storage = recovery->storage;
	struct weir_transport *transport = storage->transport;
	int error = transport->ops->restart ? transport->ops->restart(transport) : 0;

	weir_doorbells_settle(storage);
	if (!error)
		error = weir_admin_stop(&storage->admin);
	if (error)
		return error;
	for (uint32_t i = 0; i < storage->queue_count; i++)
		(void)weir_takeover_end_commands(storage, i);
	error = start_again(recovery);
	for (uint32_t i = 0; i < storage->queue_count && !error; i++)
		error = weir_takeover_create(storage, i, recovery->timeout_ms);
	return error;
}

/* It is counted before anybody goes on, so that whoever sees what a reset brought back sees the reset. */
static int reset(struct weir_recovery *recovery)
{
	struct weir_storage *storage = recovery->storage;
	uint32_t held = 0;
	unsigned tries = MOST_TRIES, silences = 0;
	int error = 0;

	while (held < storage->queue_count &&
	       !(error = weir_takeover_take(storage, held, recovery->timeout_ms)))
		held++;
	if (!error)
		do
			error = reset_held(recovery);
		while (error && may_yet_succeed(storage, &silences) && --tries);
	if (!error)
		count(&storage->recovered.resets);
	while (held > 0)
		weir_takeover_release(storage, --held);
	return error;
}

static int reset_for(struct weir_recovery *recovery, const struct weir_tracked_command *command)
{
	int error = reset(recovery);

	if (error)
		return error;
	say(recovery, command, "the controller was reset");
	return 0;
}

/* What no recovery brought back: nothing more of it is asked, not even when it is closed. */
static int give_up(struct weir_recovery *recovery, int error)
{
	struct weir_storage *storage = recovery->storage;

	storage->created = 0;
	storage->enabled = false;
	return error;
}

/* Queue words are out of reach: stop the controller, which ends what it does with memory. */
static int stop_for_good(struct weir_recovery *recovery)
{
	struct weir_storage *storage = recovery->storage;
	int error = weir_admin_stop(&storage->admin);

	return error ? error
		     : weir_fail(EIO,
				 "storage \"%s\": the controller was stopped; the host does not reach this "
				 "device's queues, so it "
				 "cannot start them again",
				 storage->uri);
}

static int escalate(struct weir_recovery *recovery, const struct weir_tracked_command *command)
{
	int result = abort_command(recovery, command);

	if (result > 0)
		return 0;
	if (!recovery->shared)
		return stop_for_good(recovery);
	if (result == 0 && replace_queue(recovery, command) > 0)
		return 0;
	return reset_for(recovery, command);
}

int weir_recover(struct weir_recovery *recovery, const struct weir_tracked_command *command)
{
	struct weir_admin *admin = &recovery->storage->admin;
	unsigned command_ms = admin->command_ms;
	int error;

	count(&recovery->storage->recovered.late);
	admin->command_ms = recovery->timeout_ms;
	error = escalate(recovery, command);
	admin->command_ms = command_ms;
	if (!error)
		return 0;
	say(recovery, command, weir_last_error());
	return give_up(recovery, error);
}

int weir_recover_enable(struct weir_recovery *recovery, uint32_t csts)
{
	struct weir_admin *admin = &recovery->storage->admin;
	unsigned command_ms = admin->command_ms;
	bool by_another_storage = was_reset(recovery->storage);
	int error = recovery->shared ? reset(recovery) : stop_for_good(recovery);

	admin->command_ms = command_ms;
	say_enable(recovery, csts, by_another_storage,
		   error ? weir_last_error() : "it was started again, and what it had ends with an error");
	return error ? give_up(recovery, error) : 0;
}
