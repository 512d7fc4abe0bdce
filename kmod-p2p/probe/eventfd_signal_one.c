// SPDX-License-Identifier: GPL-2.0-only
/* Linux 6.8: eventfd_signal() counts by one. */
#include <linux/eventfd.h>

void weir_probe(struct eventfd_ctx *context);
void weir_probe(struct eventfd_ctx *context)
{
	eventfd_signal(context);
}
