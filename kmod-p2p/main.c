// SPDX-License-Identifier: GPL-2.0-only
/* Module weir_p2p: SSDs read into GPU memory. Its beginning and end, and the control node. */
#include "p2p.h"

static struct miscdevice control = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "weir_p2p",
	.nodename = "weir_p2p/control",
	.fops = &weir_control_fops,
	.mode = 0600,
};

static int __init weir_begin(void)
{
	int error = weir_windows_begin();

	if (error)
		return error;
	error = misc_register(&control);
	if (error)
		weir_windows_end();
	return error;
}

static void __exit weir_end(void)
{
	misc_deregister(&control);
	weir_windows_end();
}

module_init(weir_begin);
module_exit(weir_end);
MODULE_DESCRIPTION("SSDs read into GPU memory: pages over BARs, dma-bufs for NVMe functions");
MODULE_AUTHOR("the weir authors");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
