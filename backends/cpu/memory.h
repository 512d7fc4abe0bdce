/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.h: device memory that is a file's, such as a BAR of another device: cpu:memory=PATH. Any thread. */
#ifndef WEIR_CPU_MEMORY_H
#define WEIR_CPU_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPU_MEMORY_PAGE ((size_t)4096)

struct cpu_memory;

/** cpu_memory_open() - map all of the file @path; a negative errno with a sentence */
int cpu_memory_open(const char *path, struct cpu_memory **out);
/** cpu_memory_close() - unmap it; NULL is fine */
void cpu_memory_close(struct cpu_memory *memory);
/** cpu_memory_take() - zeroed pages of it; -ENOMEM with a sentence */
int cpu_memory_take(struct cpu_memory *memory, size_t bytes, void **out);
/** cpu_memory_give() - what cpu_memory_take() gave at @address is free again */
void cpu_memory_give(struct cpu_memory *memory, void *address);
/** cpu_memory_room() - how much it has, and how much of that is free */
void cpu_memory_room(struct cpu_memory *memory, uint64_t *bytes, uint64_t *free_bytes);

#endif
