/* SPDX-License-Identifier: BSD-3-Clause */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../rig/context.h"
#include "../rig/kernels.h"
#include "port_table.h"

struct port_table port_table;

bool port_wanted(const char *what)
{
	const char *pattern = getenv("WEIR_PORT_ROWS");

	return !pattern || fnmatch(pattern, what, 0) == 0;
}

struct port_row *port_row(const char *format, ...)
{
	struct port_row *row = &port_table.rows[port_table.count];
	va_list arguments;

	assert_true(port_table.count < PORT_MOST_ROWS);
	port_table.count++;
	va_start(arguments, format);
	vsnprintf(row->what, sizeof(row->what), format, arguments);
	va_end(arguments);
	return row;
}

void port_wrong(struct port_row *row, const char *format, ...)
{
	va_list arguments;

	if (row->result == PORT_FAILED)
		return;
	row->result = PORT_FAILED;
	va_start(arguments, format);
	vsnprintf(row->outcomes, sizeof(row->outcomes), format, arguments);
	va_end(arguments);
}

void port_saw(struct port_row *row, const char *format, ...)
{
	va_list arguments;

	if (row->result == PORT_FAILED)
		return;
	va_start(arguments, format);
	vsnprintf(row->outcomes, sizeof(row->outcomes), format, arguments);
	va_end(arguments);
}

void port_end_case(unsigned first)
{
	bool all_skipped = true;

	for (unsigned i = first; i < port_table.count; i++) {
		const struct port_row *row = &port_table.rows[i];

		if (row->result == PORT_FAILED)
			fail_msg("%s: %s", row->what, row->outcomes);
		all_skipped = all_skipped && row->result == PORT_SKIPPED;
	}
	if (all_skipped)
		skip();
}

void port_table_print(const char *device)
{
	static const char *const results[] = { "holds", "counted", "skipped", "FAILED" };

	printf("# port table: %s\n# %-56s %-8s %12s  %s\n", device, "primitive or litmus test", "result",
	       "iterations", "outcomes");
	for (unsigned i = 0; i < port_table.count; i++) {
		const struct port_row *row = &port_table.rows[i];

		printf("# %-56s %-8s %12llu  %s\n", row->what, results[row->result],
		       (unsigned long long)row->iterations, row->outcomes);
	}
	fflush(stdout);
}

struct weir_context *port_context(uint32_t width, uint32_t workers)
{
	struct weir_context *context;

	must(weir_context_open(test_context_name(),
			       WEIR_OPTIONS(context, .workers = workers, .wave_lanes = width), &context));
	return context;
}

uint64_t port_verdict(struct weir_context *context, uint64_t address, struct port_row *row)
{
	struct test_verdict verdict;

	must(weir_sync(context));
	must(weir_copy_from_device(context, &verdict, address, sizeof(verdict)));
	if (weir_load_u64_relaxed_sys(&verdict.bad))
		port_wrong(row, "%llu mistakes; first at %llu: %#llx instead of %#llx",
			   (unsigned long long)weir_load_u64_relaxed_sys(&verdict.bad),
			   (unsigned long long)verdict.where, (unsigned long long)verdict.found,
			   (unsigned long long)verdict.expected);
	return weir_load_u64_relaxed_sys(&verdict.good);
}
