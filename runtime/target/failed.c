/* SPDX-License-Identifier: BSD-3-Clause */
#include "failed.h"

static bool has_failed(const struct target_namespace *space)
{
	bool gone;

	return weir_virtual_failed(space->core, &gone);
}

bool target_subsystem_failed(const struct target_subsystem *subsystem)
{
	bool failed = false;

	for (u32 nsid = 1; nsid <= target_namespaces(subsystem); nsid++) {
		const struct target_namespace *space = target_namespace_of(subsystem, nsid);

		if (space && !has_failed(space))
			return false;
		failed |= space != NULL;
	}
	return failed;
}

bool target_namespace_failed(const struct target_subsystem *subsystem, const struct target_namespace *space)
{
	return has_failed(space) && !target_subsystem_failed(subsystem);
}
