/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recover.h: what is done about a command that a controller does not answer.
 *
 * Owns: the steps: Abort, a new queue pair in the place of the old one, a reset of the controller.
 * Each is taken only where the one before has not ended the command.
 */
#ifndef WEIR_RUNTIME_RECOVER_H
#define WEIR_RUNTIME_RECOVER_H

#include "tracker.h"

/**
 * struct weir_recovery - a controller that is late
 * @storage: whose it is
 * @tracker: how long it has had its commands
 * @shared: the host reaches queue words, and can take a lane's part
 * @timeout_ms: what each step may take
 */
struct weir_recovery {
	struct weir_storage *storage;
	struct weir_tracker *tracker;
	bool shared;
	unsigned timeout_ms;
};

/**
 * weir_recover() - end @command
 *
 * Abort (Base 2.0, section 5.1) ends it alone. Else its queue pair is deleted, which no other one's
 * commands notice; else CC.EN = 0 ends those of all. Either way the controller has let go of memory
 * before a slot is freed: Delete I/O Completion Queue was completed, or CSTS.RDY is 0. So nothing
 * late can meet a new command that has the slot, or its identifier. Commands that got no completion
 * of their own by then end with NVME_STATUS_ABORTED_BY_HOST.
 *
 * Meanwhile lanes may submit: their commands are announced once the queue pair is there again, where
 * tickets, slots and phases go on as if nothing had happened.
 *
 * Where the host does not reach queue words, nothing can take a lane's part: after Abort comes
 * CC.EN = 0, and that is the end of the storage.
 *
 * Return: 0 if the storage goes on; a negative errno with a sentence: it is lost.
 */
int weir_recover(struct weir_recovery *recovery, const struct weir_tracked_command *command);

/**
 * weir_recover_enable() - the controller lost its enable: CSTS.RDY is 0, or its registers cannot be read,
 * since somebody else resets it, or has switched it off
 *
 * By the reset above: it knows no queue any more, and will not answer what it had. The transport is told
 * first. Needs neither @recovery->late nor a command.
 *
 * Return: as weir_recover().
 */
int weir_recover_enable(struct weir_recovery *recovery, uint32_t csts);

#endif
