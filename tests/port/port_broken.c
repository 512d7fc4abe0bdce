/* SPDX-License-Identifier: BSD-3-Clause */
/* Which mistake port_broken.h makes. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/port.h>

enum { YIELD_EVERY = 16 };

enum port_break port_break;

void port_break_dawdle(void)
{
	static __thread unsigned times;

	if (++times % YIELD_EVERY == 0)
		sched_yield();
	for (u64 i = 0; i < 200; i++)
		i = weir_opaque(i);
}

__attribute__((constructor)) static void choose(void)
{
	static const char *const names[] = {
		"nothing", "ballot", "sync", "mmio", "narrow", "release", "cas"
	};
	const char *name = getenv("WEIR_PORT_BREAK");

	for (unsigned i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i])) {
			port_break = (enum port_break)i;
			return;
		}
	if (name) {
		fprintf(stderr, "WEIR_PORT_BREAK=%s: no such mistake\n", name);
		exit(2);
	}
}
