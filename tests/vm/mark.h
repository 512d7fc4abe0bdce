/* SPDX-License-Identifier: BSD-3-Clause */
/* mark.h: places in a guest's program at which count.c counts. */
#ifndef WEIR_TESTS_VM_MARK_H
#define WEIR_TESTS_VM_MARK_H

/** mark() - a nop that count.c knows by its last bytes; @number, of one byte, is in it */
#define mark(number)                                                                                         \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, " #number ", 0x49, 0x45, 0x57" ::: "memory")

#endif
