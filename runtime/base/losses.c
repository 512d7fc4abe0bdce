/* SPDX-License-Identifier: BSD-3-Clause */
#include "losses.h"

#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#include "../backend/error.h"

void weir_losses_add(struct weir_losses *losses, int error)
{
	size_t used = strlen(losses->text);

	if (!error)
		return;
	losses->error = losses->error ? losses->error : error;
	snprintf(losses->text + used, sizeof(losses->text) - used, "%s%s", used ? ". Also: " : "",
		 weir_last_error());
}

int weir_losses_end(const struct weir_losses *losses)
{
	return losses->error ? weir_fail(-losses->error, "%s", losses->text) : 0;
}
