/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * events.h: what hosts are notified of: the ANA state of the path they came by, and changes of namespaces.
 */
#ifndef WEIR_TARGET_EVENTS_H
#define WEIR_TARGET_EVENTS_H

#include "parts.h"

/** target_ana_state() - of @controller's namespaces; NVME_ANA_OPTIMIZED where it came by no listener */
u32 target_ana_state(const struct weir_target *target, const struct target_controller *controller);
/** target_ana_status() - of an I/O command in @state; 0: it may go on */
u32 target_ana_status(u32 state);
/** target_ana_log() - log page 0Ch into @page, WEIR_PAGE_ANA_BYTES; @groups_only: without namespaces */
void target_ana_log(const struct connection *connection, bool groups_only, u8 *page);
/** target_changed_list() - log page 04h, NVME_IDENTIFY_BYTES; @keep: it is read again */
void target_changed_list(struct target_controller *controller, bool keep, u8 *page);
/** target_event_seen() - the host has asked about an event: target_events_send() notifies it of the next one
 */
void target_event_seen(struct target_controller *controller, u32 event);
/** target_event_request() - Asynchronous Event Request */
void target_event_request(struct command *command);
/** target_events_send() - answer requests of an admin connection, for what has happened */
void target_events_send(struct connection *connection);
/** target_events_raise() - @event for hosts of @subsystem (NULL: all), that came by @listener
 * (TARGET_NO_LISTENER: any); @changed: namespaces; TARGET_EVENT_DISCOVERY is for hosts of the discovery
 * subsystem */
void target_events_raise(struct weir_target *target, const struct target_subsystem *subsystem, u16 listener,
			 u32 event, u64 changed);

#endif
