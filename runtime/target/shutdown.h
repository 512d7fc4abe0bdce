/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shutdown.h: the shutdown of a controller, whose host wrote to namespaces.
 *
 * Owns: nothing; shutdown.c does the work.
 */
#ifndef WEIR_TARGET_SHUTDOWN_H
#define WEIR_TARGET_SHUTDOWN_H

#include "parts.h"

/** target_shutdown_new() - of a controller; NULL: no memory; free() ends it */
struct target_shutdown *target_shutdown_new(void);
/** target_shutdown_note() - @command goes to its namespace, which is perhaps to be flushed in the end */
void target_shutdown_note(const struct command *command);
/** target_shutdown_begin() - flush what the host of this admin connection wrote; CSTS says when that is over
 */
void target_shutdown_begin(struct connection *admin);
/** target_shutdown_has() - @command is no host's: it is the flush of a shutdown */
bool target_shutdown_has(const struct command *command);
/** target_shutdown_end() - that one has ended */
void target_shutdown_end(struct command *command, u32 status);

#endif
