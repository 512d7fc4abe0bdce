/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h: what /proc says of a process, and its memory, read without its help. */
#ifndef WEIR_STAT_PROCESS_H
#define WEIR_STAT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct process - a process
 * @there: it runs, sleeps or is stopped; false of one that has ended and whose parent has not taken notice
 * @state: letter of /proc/PID/stat
 * @start: when it started (weir_publish_start())
 * @uid: its effective user
 */
struct process {
	bool there;
	char state;
	uint64_t start;
	unsigned uid;
	char program[64];
};

/** process_read() - what /proc says of @pid */
void process_read(int pid, struct process *process);
/** process_state_word() - "running", "sleeping", "stopped", ... */
const char *process_state_word(const struct process *process);
/** process_runtime_dir() - $XDG_RUNTIME_DIR that @pid was started with, if that can be known */
bool process_runtime_dir(int pid, char *path, size_t bytes);
/** process_peek() - @bytes of its memory, by process_vm_readv(2); 0 or a negative errno */
int process_peek(int pid, uint64_t address, void *to, size_t bytes);
/** process_ptrace_scope() - /proc/sys/kernel/yama/ptrace_scope, -1 without it */
int process_ptrace_scope(void);

#endif
