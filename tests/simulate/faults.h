/* SPDX-License-Identifier: BSD-3-Clause */
/* faults.h: single faults, for sequences of them (sequences.c). */
#ifndef WEIR_SIMULATE_FAULTS_H
#define WEIR_SIMULATE_FAULTS_H

#include "cluster.h"

/** fault_harm() - whether an engine may fail now, too; then it counts as harmed */
bool fault_harm(struct engine_node *node);
/** fault_silence() - whether an engine may be silent now, which loses nothing, beside those that have failed;
 * then it counts as harmed, unless the daemon has to wait for it */
bool fault_silence(struct engine_node *node);
/** fault_engines_well() - how many engines there are, if every block is on as many of them as it may be; 0:
 * it is not */
u32 fault_engines_well(void);
/** fault_draw_ns() - mostly near the least */
u64 fault_draw_ns(u64 least_ms, u64 most_ms);
/** fault_draw_engine() - one that runs, or NULL */
struct engine_node *fault_draw_engine(void);
/** fault_kill_engine() - a drawn one, if it may fail now; true: it did */
bool fault_kill_engine(bool power, bool wipe);
void fault_blackout(void);
/** fault_block() - messages do not pass from a node to another one for @ns */
void fault_block(unsigned from, unsigned to, u64 ns);
/** fault_operate() - a call of an operator; 0 or a negative errno */
int fault_operate(const char *method, json_t *params);

/* sequences.c */

/** sequence_relay() - disks are replaced one after the other, then the power fails everywhere */
void sequence_relay(void);
/** sequence_last() - an engine loses what it has while another one, with the last replica, is silent */
void sequence_last(void);
/** sequence_stale() - a client does not hear of new maps for long, while engines fail */
void sequence_stale(void);
/** sequence_leases() - leases end and are taken over, one soon after the other */
void sequence_leases(void);
/** sequence_lag() - commands to an engine are late */
void sequence_lag(void);
/** sequence_grow() - an operator makes the volume larger */
void sequence_grow(void);
/** sequence_fill() - another volume takes all the space that there is, until an operator deletes it */
void sequence_fill(void);
/** sequence_full() - an engine's file is on a file system that is full */
void sequence_full(void);

#endif
