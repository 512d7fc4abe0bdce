/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sleeper.h: threads of the host that sleep until somebody rings a doorbell.
 *
 * Owns: who sleeps behind which doorbells, and that no ring is lost between a thread's last look at them and
 * its sleep. Whoever rings by weir_mmio_store_u32() on the host wakes: lanes of the cpu backend, and the
 * runtime itself. Lanes of a GPU cannot, so whoever serves those polls.
 */
#ifndef WEIR_TRANSPORT_SLEEPER_H
#define WEIR_TRANSPORT_SLEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct weir_sleeper - a thread, and its doorbells: [@first, @end); none as long as @end is 0
 * @file: an eventfd that wakes it
 * @asleep: since weir_sleeper_begin() nobody has woken it
 * @begun: between weir_sleeper_begin() and weir_sleeper_end()
 * @owned: @file is its own
 */
struct weir_sleeper {
	int file;
	uint32_t asleep;
	bool begun;
	bool owned;
	uintptr_t first;
	uintptr_t end;
	struct weir_sleeper *next;
};

/** weir_sleeper_open() - no doorbell wakes it yet; 0, or a negative errno with a sentence, and @file is -1 */
int weir_sleeper_open(struct weir_sleeper *sleeper);

/** weir_sleeper_share() - the same, with @file, which is another's, and outlives it */
void weir_sleeper_share(struct weir_sleeper *sleeper, int file);

/** weir_sleeper_attach() - @bytes of @doorbells wake it from now on; once, before its thread begins */
void weir_sleeper_attach(struct weir_sleeper *sleeper, const volatile void *doorbells, size_t bytes);

/** weir_sleeper_close() - its thread has ended, or will not sleep by it any more. If it was not opened, its
 * @file is -1, and nothing is done */
void weir_sleeper_close(struct weir_sleeper *sleeper);

/**
 * weir_sleeper_begin() - whoever rings from now on wakes it
 *
 * Its thread, which alone calls this and the next three, then loads its doorbells once more: it sleeps only
 * if none was rung before.
 */
void weir_sleeper_begin(struct weir_sleeper *sleeper);

/** weir_sleeper_wait() - sleep, @ns at most */
void weir_sleeper_wait(struct weir_sleeper *sleeper, uint64_t ns);

/** weir_sleeper_wait_for() - the same, or until @descriptor polls as readable; -1: there is none */
void weir_sleeper_wait_for(struct weir_sleeper *sleeper, int descriptor, uint64_t ns);

/** weir_sleeper_drain() - what weir_sleeper_wait() does behind the wait; for whoever waits in another way */
void weir_sleeper_drain(const struct weir_sleeper *sleeper);

/** weir_sleeper_end() - it is awake, and polls its doorbells; without weir_sleeper_begin(): nothing */
void weir_sleeper_end(struct weir_sleeper *sleeper);

/** weir_sleeper_wake() - something happened that is no doorbell; any thread */
void weir_sleeper_wake(const struct weir_sleeper *sleeper);

#endif
