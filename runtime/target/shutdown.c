/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shutdown.c: the shutdown of a controller, Base 2.0 section 3.6.
 *
 * Owns: its flushes. Namespaces that the controller's host wrote to are flushed one after the other, by
 * commands as hosts send them; CSTS says that shutdown occurs until the last of them has ended. What the
 * host asks meanwhile is answered. Engines are left out: a Flush of theirs is of one volume, by whoever has
 * it.
 */
#include "shutdown.h"

#include <stdlib.h>

#include "../transport/opcode.h"

enum { CSTS_SHUTDOWN_OCCURRING = 1 << 2 };

/**
 * struct target_shutdown - of the admin connection's thread but for
 * @written: a bit for each namespace that was written to since it was flushed here; atomic
 * @unflushed: of those, the ones that are still to be flushed
 * @flushing: @flush is under way
 */
struct target_shutdown {
	atomic_ullong written;
	u64 unflushed;
	bool flushing;
	struct command flush;
};

struct target_shutdown *target_shutdown_new(void)
{
	return calloc(1, sizeof(struct target_shutdown));
}

/* Relaxed: a host that shuts down has the answers to what it wrote. */
void target_shutdown_note(const struct command *command)
{
	const struct target_controller *controller = command->connection->controller;
	struct target_shutdown *shutdown = controller->shutdown;
	u64 bit = (u64)1 << (command->space->nsid - 1);

	if (weir_opcode_changes(target_opcode(command)) && !controller->subsystem->engine &&
	    !(atomic_load_explicit(&shutdown->written, memory_order_relaxed) & bit))
		atomic_fetch_or_explicit(&shutdown->written, bit, memory_order_relaxed);
}

/* A controller that was reset meanwhile is none that shuts down. */
static bool is_occurring(const struct target_controller *controller)
{
	return (controller->csts & NVME_CSTS_SHUTDOWN_MASK) == CSTS_SHUTDOWN_OCCURRING;
}

/* Flush the next namespace, or end. */
static void go_on(struct connection *admin)
{
	struct target_controller *controller = admin->controller;
	struct target_shutdown *shutdown = controller->shutdown;
	unsigned next;

	shutdown->flushing = shutdown->unflushed != 0;
	if (!shutdown->flushing) {
		if (is_occurring(controller))
			controller->csts ^= CSTS_SHUTDOWN_OCCURRING | NVME_CSTS_SHUTDOWN_DONE;
		return;
	}
	next = (unsigned)__builtin_ctzll(shutdown->unflushed);
	shutdown->unflushed &= shutdown->unflushed - 1;
	shutdown->flush = (struct command){ .connection = admin,
					    .space = &controller->subsystem->namespaces[next],
					    .sqe = { .cdw0 = NVME_OPCODE_FLUSH } };
	(void)target_command_begin(&shutdown->flush);
}

void target_shutdown_begin(struct connection *admin)
{
	struct target_shutdown *shutdown = admin->controller->shutdown;

	admin->controller->csts |= CSTS_SHUTDOWN_OCCURRING;
	/* Relaxed, as above. */
	shutdown->unflushed |= atomic_exchange_explicit(&shutdown->written, 0, memory_order_relaxed);
	if (!shutdown->flushing)
		go_on(admin);
}

bool target_shutdown_has(const struct command *command)
{
	const struct target_controller *controller = command->connection->controller;

	return controller && command == &controller->shutdown->flush;
}

void target_shutdown_end(struct command *command, u32 status)
{
	struct connection *admin = command->connection;

	target_command_set(command, COMMAND_FREE);
	if (admin->state == CONNECTION_DEAD)
		return;
	if (status && is_occurring(admin->controller))
		admin->controller->csts |= NVME_CSTS_FATAL;
	go_on(admin);
}
