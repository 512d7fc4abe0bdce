/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * failed.h: storages that have failed, of a subsystem that may have others.
 *
 * Owns: what a host learns of them. Commands to a namespace whose storage has failed end with an error as
 * long as another namespace works, and the controller goes on; once none does, the controller has failed.
 */
#ifndef WEIR_TARGET_FAILED_H
#define WEIR_TARGET_FAILED_H

#include "parts.h"

/** target_subsystem_failed() - the storages of all its namespaces that hosts see have failed */
bool target_subsystem_failed(const struct target_subsystem *subsystem);
/** target_namespace_failed() - its storage has failed, and the subsystem has not */
bool target_namespace_failed(const struct target_subsystem *subsystem, const struct target_namespace *space);

#endif
