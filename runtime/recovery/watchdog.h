/* SPDX-License-Identifier: BSD-3-Clause */
/* watchdog.h: a host thread per storage for when its controller has failed, is gone, or does not answer. */
#ifndef WEIR_RUNTIME_WATCHDOG_H
#define WEIR_RUNTIME_WATCHDOG_H

#include "../device/context.h"

/**
 * weir_watchdog_start() - watch the controller of @storage, whose queues are created and begin at
 * @first_ticket
 *
 * Looks at CSTS several times a second. Once it says that the controller failed, or reads as all ones
 * (a PCI function that was removed), every queue pair is marked dead (struct weir_queue.dead): whoever
 * waits for a request or a slot returns with that status, at once instead of at the storage's deadline,
 * and nothing more is submitted. Base 2.0, sections 3.1.4.6 (CSTS) and 9.5 (controller fatal status).
 *
 * A controller that is not ready any more though nobody here disabled it was reset, or switched off, by
 * somebody else: it is started again (recover.h), a few times. All ones are what a function also reads as
 * meanwhile, and count once the transport says that this is over.
 *
 * A command that the controller has had for longer than weir_storage_options.command_timeout_us is ended
 * (recover.h), and the storage goes on if it can; if not it is dead, as above.
 *
 * With 0 as that time nothing is ended, and ages are still noted where the host reads queue words in their
 * place.
 *
 * A controller on the device itself has no registers to look at, and is not watched.
 */
int weir_watchdog_start(struct weir_storage *storage, uint64_t first_ticket);

/** weir_watchdog_tracker() - what it knows of commands' ages; NULL: nothing */
const struct weir_tracker *weir_watchdog_tracker(const struct weir_storage *storage);

/** weir_watchdog_stop() - the thread has ended when this returns; nothing if there is none */
void weir_watchdog_stop(struct weir_storage *storage);

#endif
