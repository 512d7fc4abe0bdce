/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"

#include <errno.h>
#include <string.h>

int command_flush(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return COMMAND_OK;
	return tool_complain("cannot write to standard output: %s; check where it goes", strerror(errno));
}
