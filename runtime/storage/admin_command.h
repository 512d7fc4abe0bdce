/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admin_command.h: what admin.c offers admin_identify.c.
 *
 * Owns: one admin command with what goes before and after it; private to admin*.c.
 */
#ifndef WEIR_RUNTIME_ADMIN_COMMAND_H
#define WEIR_RUNTIME_ADMIN_COMMAND_H

#include "admin.h"

enum { WEIR_ADMIN_LEAST_SHUTDOWN_MS = 5000 }; /* also of controllers that do not say what they need */

/** weir_admin_is_kept() - of a controller that another driver keeps */
bool weir_admin_is_kept(const struct weir_admin *admin);
/**
 * weir_admin_command() - send @sqe, by the driver that keeps the controller if there is one, and wait for it
 * @what: its name, for sentences
 * @result: receives dw0 of its completion; may be NULL
 *
 * Return: 0; a negative errno with a sentence, also for a status that is not success.
 */
int weir_admin_command(struct weir_admin *admin, struct nvme_sqe sqe, const char *what, uint32_t *result);

#endif
