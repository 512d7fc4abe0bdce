// SPDX-License-Identifier: GPL-2.0-only
/* Linux 5.16: a kiocb that is through has one result. */
#include <linux/fs.h>

void weir_probe(struct kiocb *kiocb);
void weir_probe(struct kiocb *kiocb)
{
	kiocb->ki_complete(kiocb, 0);
}
