/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recovery/takeover.h: the host in the place of the lanes that work on a queue pair.
 *
 * Owns: both roles of a queue pair at once, combiner and reaper. Whoever has them rings its doorbells
 * and reads its completions alone. Lanes reserve and fill slots all the same, and wait for nobody.
 * Only where the host reaches queue words; the host is a wave of one lane.
 */
#ifndef WEIR_RUNTIME_TAKEOVER_H
#define WEIR_RUNTIME_TAKEOVER_H

#include "../device/context.h"

/** weir_takeover_take() - both roles, within @timeout_ms; 0 or -ETIMEDOUT with a sentence */
int weir_takeover_take(struct weir_storage *storage, uint32_t index, unsigned timeout_ms);

/** weir_takeover_release() - give both back; what was filled meanwhile is announced */
void weir_takeover_release(struct weir_storage *storage, uint32_t index);

/**
 * weir_takeover_end_commands() - end every command that was announced
 *
 * The controller no longer touches the rings. What it answered ends as it says, the others
 * with NVME_STATUS_ABORTED_BY_HOST.
 *
 * Return: how many of the others there were.
 */
uint32_t weir_takeover_end_commands(struct weir_storage *storage, uint32_t index);

/**
 * weir_takeover_create() - create the queue pair at the controller, in step with its tickets
 *
 * A new submission queue begins at entry 0, and lanes go on somewhere else. So the controller is led
 * there by reads of a block that nobody asked for. Its ring is still meanwhile, since every slot was
 * filled first, by lanes or with more such reads.
 *
 * Return: 0 or a negative errno with a sentence.
 */
int weir_takeover_create(struct weir_storage *storage, uint32_t index, unsigned timeout_ms);

#endif
