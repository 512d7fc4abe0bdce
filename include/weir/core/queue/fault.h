/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/queue/fault.h: the first device error of a context, for weir_sync() to tell.
 *
 * Owns: writing the context's fault record, once. Reading it is the host's.
 */
#ifndef WEIR_CORE_FAULT_H
#define WEIR_CORE_FAULT_H

#include <weir/abi.h>

/* Record a fault unless one is there already. Any lane. */
WEIR_FN void weir_fault_report(weir_addr address, weir_status status, u32 disk, u32 source, u64 position,
			       u64 limit)
{
	WEIR_GLOBAL struct weir_fault *fault = weir_at(address, struct weir_fault, 0);

	/* relaxed look first: once a fault stands, others need not fight for it */
	if (weir_load_u32_relaxed_dev(&fault->claimed) != 0 ||
	    weir_cas_u32_acq_rel_dev(&fault->claimed, 0, 1) != 0)
		return;
	fault->status = status;
	fault->thread = weir_thread();
	fault->disk = disk;
	fault->source = source;
	fault->position = position;
	fault->limit = limit;
	weir_store_u32_release_sys(&fault->claimed, 2); /* fault.F0: pairs with the host's load after sync */
}

#endif
