/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port_table.h: what the portability suite found, as one table.
 *
 * Owns: its rows. A case adds some, and fails at its end if one of them did.
 */
#ifndef WEIR_TESTS_PORT_TABLE_H
#define WEIR_TESTS_PORT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

enum port_result { PORT_HOLDS, PORT_COUNTED, PORT_SKIPPED, PORT_FAILED };

enum { PORT_MOST_ROWS = 160 };

/** struct port_row - @iterations of @what; @outcomes: what was seen, or the first thing wrong */
struct port_row {
	char what[72];
	enum port_result result;
	uint64_t iterations;
	char outcomes[200];
};

struct port_table {
	struct port_row rows[PORT_MOST_ROWS];
	unsigned count;
};

extern struct port_table port_table;

/** port_wanted() - the pattern WEIR_PORT_ROWS, if there is one, takes a row called @what */
bool port_wanted(const char *what);

/** port_row() - add one that holds so far */
struct port_row *port_row(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** port_wrong() - @row fails; the first reason stays */
void port_wrong(struct port_row *row, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** port_saw() - what @row's outcomes were, unless it failed */
void port_saw(struct port_row *row, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** port_end_case() - fail the case if one of its rows, from @first on, did; skip it if all were */
void port_end_case(unsigned first);

/** port_table_print() - every row, as remarks of TAP */
void port_table_print(const char *device);

/** port_context() - open the device; @width and @workers: the cpu's */
struct weir_context *port_context(uint32_t width, uint32_t workers);

/** port_verdict() - wait; into @row: a struct test_verdict at @address that is not without mistakes. Return:
 * its good */
uint64_t port_verdict(struct weir_context *context, uint64_t address, struct port_row *row);

/* The cases of port_litmus.c. */
void port_test_lock(void **state);
void port_test_messages(void **state);
void port_test_shapes(void **state);
void port_test_message(void **state);

#endif
