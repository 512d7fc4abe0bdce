/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pretended.h: what devices that are none have in common, for tests where there is no GPU.
 *
 * Preloaded into a test program, such a device stands in front of its run time and of libweir.
 * Its kernels are the cpu backend's of the same names, run at their launch, lane after lane, in
 * waves of one. So it shows the backend's host side, not the port: kinds of memory, doorbells,
 * arguments, teardown. Memory of the device can be touched by its own copies and kernels only:
 * anyone else who does dies of it.
 *
 * WEIR_PRETENDED_MEMORY=FILE has the devices' memory be parts of a file that can be mapped, such as a BAR in
 * sysfs, which is what it exports then; else an export is a file of zeros. WEIR_PRETENDED_WRONG_EXPORT=1: it
 * exports other memory than it is asked for. WEIR_PRETENDED_LAX=CHECK: a driver that lacks a check of those
 * that real ones make of registrations (unaligned, kind, gone, twice, use): controls, which tests have to
 * fail on.
 *
 * It shows itself as two. Whoever mixes them up dies of that: a stream, an event or memory of
 * the one while the other is the thread's current device.
 */
#ifndef WEIR_BACKENDS_PRETENDED_H
#define WEIR_BACKENDS_PRETENDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PRETENDED_DEVICES = 2,
	PRETENDED_UNITS = 3,
	PRETENDED_BLOCK_LANES = 1024,
	PRETENDED_REGISTERS = 40,
	PRETENDED_LOCAL_BYTES = 16,
};

#define PRETENDED_MEMORY_BYTES ((size_t)16 << 30)

/** pretended_current - the calling thread's device */
extern __thread int pretended_current;

/** pretended_complain() - say so and die */
void pretended_complain(const char *what, const void *address) __attribute__((noreturn));

/** pretended_own() - a stream or an event: something of the current device; freed with free() */
void *pretended_own(void);
/** pretended_owned() - false for NULL; dies if it is of another device than the current one */
bool pretended_owned(const void *owned);
/** pretended_recorded() - an event was recorded in a stream */
void pretended_recorded(const void *event, const void *stream);
/** pretended_awaits() - a stream waits for an event; false for one that was not recorded, or by the same
 * stream */
bool pretended_awaits(const void *stream, const void *event);
/** pretended_order() - the latest such wait: @behind waits for what was in @first; for tests */
__attribute__((visibility("default"))) void pretended_order(const void **first, const void **behind);

/** pretended_allocate() - memory of the current device, full of rubbish as that of a real one may be; or NULL
 */
void *pretended_allocate(size_t bytes);
/** pretended_release() - the same; NULL-safe */
void pretended_release(void *address);
/** pretended_unused() - bytes of the current device's memory that are free */
size_t pretended_unused(void);
/** pretended_pin() - host memory that the device sees from now on: for @everyone, or for the current device
 * alone */
void pretended_pin(void *address, size_t bytes, bool everyone);
/** pretended_unpin() - no longer; returns the size it had */
size_t pretended_unpin(void *address);

/** enum pretended_registered - what becomes of a registration */
enum pretended_registered {
	PRETENDED_GOOD,
	PRETENDED_UNALIGNED,  /* no whole pages */
	PRETENDED_WRONG_KIND, /* registers that are ordinary pages, or the other way round */
	PRETENDED_TWICE,      /* some of it is registered already */
	PRETENDED_REFUSED,    /* registers, which this driver does not map (WEIR_PRETENDED_NO_REGISTERS) */
	PRETENDED_GONE,       /* nothing is mapped there, or not all of it: it was revoked */
};

/**
 * pretended_register() - as drivers take pages of the process: device registers, or ordinary memory
 *
 * Registers are what is mapped of VFIO, of a PCI function in sysfs, or of a file whose name has "registers"
 * in it.
 */
__attribute__((visibility("default"))) enum pretended_registered pretended_register(void *address,
										    size_t bytes,
										    bool registers,
										    bool everyone);
/** pretended_unregister() - false: it is not what pretended_register() took. Waits for kernels, as drivers do
 */
__attribute__((visibility("default"))) bool pretended_unregister(void *address);
/**
 * pretended_export() - a file that stands for a dma-buf of the allocation that has all of the range; -1: no
 * allocation has
 * @offset: where in the file the range begins; NULL: at its beginning, and the file ends with it
 */
int pretended_export(uint64_t address, size_t bytes, uint64_t *offset);

/** pretended_device_of() - whose memory @address is, which need not be its first byte; -1: no device's */
int pretended_device_of(const void *address);
/** pretended_is_pinned() - likewise of host memory */
bool pretended_is_pinned(const void *address);

/** pretended_copy() - memcpy() by the current device */
void pretended_copy(void *to, const void *from, size_t bytes);
/** pretended_set() - memset() by the current device */
void pretended_set(void *address, int value, size_t bytes);

/** pretended_kernel() - the cpu backend's kernel of that name, or NULL */
void (*pretended_kernel(const char *name))(void *);
/** pretended_stays() - is it a persistent kernel? Nothing runs beside another here. */
bool pretended_stays(const char *name);
/** pretended_run() - run @kernel with its arguments at @args, on the current device; 0, or -1 without a cpu
 * backend */
__attribute__((visibility("default"))) int pretended_run(void (*kernel)(void *), uint32_t blocks,
							 uint32_t threads, void *args);

#endif
