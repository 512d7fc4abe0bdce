/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p_rig.h: what the programs of the guest that use the kernel module weir_p2p share. */
#ifndef WEIR_TESTS_VM_P2P_RIG_H
#define WEIR_TESTS_VM_P2P_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "../../kmod-p2p/weir_p2p.h"

/** struct range - a registered range; @memory: where it is mapped, NULL if not */
struct range {
	int node;
	uint32_t handle;
	uint32_t wiped;
	uint64_t bytes;
	uint64_t mmap_offset;
	uint8_t *memory;
};

/** give_up() - say what is wrong, with errno's text, and end with status 1 */
__attribute__((format(printf, 1, 2), noreturn)) void give_up(const char *format, ...);

/** check() - give up unless @holds */
#define check(holds, ...)                                                                                    \
	do {                                                                                                 \
		if (!(holds))                                                                                \
			give_up(__VA_ARGS__);                                                                \
	} while (0)

/** expect() - the call has to have failed with @error; what: for the message */
void expect(int node, int result, int error, const char *what);

/** number() - of a text; gives up unless it is one */
uint64_t number(const char *text);

/** function_at() - PCI address DDDD:BB:DD.F and a BAR's number */
struct weir_p2p_function function_at(const char *address, unsigned bar);

/** open_node() - a node of /dev/weir_p2p, with close-on-exec; gives up if it cannot */
int open_node(const char *path);

/** try_register() - WEIR_P2P_REGISTER; return: as of ioctl() */
int try_register(int node, uint64_t offset, uint64_t bytes, uint32_t flags, struct range *range);

/** take() - register and map; gives up if it cannot */
struct range take(int node, uint64_t offset, uint64_t bytes);

/** try_deregister() - WEIR_P2P_DEREGISTER; return: as of ioctl() */
int try_deregister(int node, uint32_t handle);

/** drop() - unmap and deregister */
void drop(struct range *range);

/** bytes_of() - of the window of a node */
uint64_t bytes_of(int node);

/** signal_of() - run a function in a child; return: the signal that ends it, 0 if none, -status if it exits
 * with one */
int signal_of(void (*run)(void *), void *argument);

/** read_byte(), an argument of signal_of(): of the address */
void read_byte(void *address);

#endif
