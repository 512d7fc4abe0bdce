// SPDX-License-Identifier: GPL-2.0-only
/* Before Linux 6.13: namespaces of symbols are words, not strings. */
#include <linux/module.h>

MODULE_LICENSE("GPL");
MODULE_IMPORT_NS(DMA_BUF);
