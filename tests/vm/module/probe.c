// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0
/*
 * probe: asks the kernel, and makes mistakes for it to find. In the guest, built against one of our kernels:
 *
 *   insmod probe.ko what=distance from=0000:05:00.0 to=0000:03:00.0   how far Linux says it is for DMA
 * between them insmod probe.ko what=overflow|freed|leak|order|sleep|shift|race   the mistake of that name;
 * nothing: none; echo race >/sys/module/probe/parameters/again   the same, once it is there
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci-p2pdma.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static char *what = "nothing", *from = "", *to = "";
module_param(what, charp, 0);
module_param(from, charp, 0);
module_param(to, charp, 0);

enum { BYTES = 40 };

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static DEFINE_SPINLOCK(spinning);

static struct pci_dev *function(const char *address)
{
	unsigned int domain, bus, slot, number;

	if (sscanf(address, "%x:%x:%x.%x", &domain, &bus, &slot, &number) != 4)
		return NULL;
	return pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, number));
}

static void distance(void)
{
	struct pci_dev *a = function(from), *b = function(to);

	if (a && b)
		pr_err("probe: from %s to %s: %d\n", from, to, pci_p2pdma_distance(a, &b->dev, false));
	else
		pr_err("probe: no such function\n");
	pci_dev_put(a);
	pci_dev_put(b);
}

/* The compiler is not to see what is wrong. */
static noinline void set(char *bytes, unsigned int at)
{
	OPTIMIZER_HIDE_VAR(at);
	WRITE_ONCE(bytes[at], 1);
}

static void overflow(void)
{
	char *bytes = kmalloc(BYTES, GFP_KERNEL);

	if (bytes)
		set(bytes, BYTES);
	kfree(bytes);
}

static void freed(void)
{
	char *bytes = kmalloc(BYTES, GFP_KERNEL), *hidden = bytes;

	OPTIMIZER_HIDE_VAR(hidden);
	kfree(bytes);
	if (hidden)
		set(hidden, 0);
}

static void leak(void)
{
	for (unsigned int i = 0; i < 10; i++) { /* some may be found in an old register */
		char *bytes = kmalloc(BYTES, GFP_KERNEL);

		if (bytes)
			set(bytes, i);
	}
}

static void order(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);
	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

static void sleep_while_spinning(void)
{
	spin_lock(&spinning);
	might_sleep();
	spin_unlock(&spinning);
}

static void shift(void)
{
	static int shifted;
	int by = 40;

	OPTIMIZER_HIDE_VAR(by);
	WRITE_ONCE(shifted, 1 << by);
}

static int raced;

static noinline void race_once(void)
{
	raced++;
}

static int race_thread(void *unused)
{
	while (!kthread_should_stop()) {
		race_once();
		cond_resched();
	}
	return 0;
}

static void race(void)
{
	struct task_struct *other = kthread_run(race_thread, NULL, "race");

	if (IS_ERR(other))
		return;
	for (unsigned int i = 0; i < 2000000; i++) {
		race_once();
		cond_resched();
	}
	kthread_stop(other);
}

static void nothing(void)
{
}

static const struct {
	const char *name;
	void (*make)(void);
} things[] = {
	{ "distance", distance }, { "overflow", overflow }, { "freed", freed },
	{ "leak", leak },         { "order", order },       { "sleep", sleep_while_spinning },
	{ "shift", shift },       { "race", race },         { "nothing", nothing },
};

static void make(const char *name)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(things); i++) {
		if (!sysfs_streq(things[i].name, name))
			continue;
		things[i].make();
		pr_err("probe: made %s\n", things[i].name);
	}
}

static int again_set(const char *name, const struct kernel_param *unused)
{
	make(name);
	return 0;
}

static const struct kernel_param_ops again = { .set = again_set };
module_param_cb(again, &again, NULL, 0200);

static int __init probe_init(void)
{
	make(what);
	return 0;
}

static void __exit probe_exit(void)
{
}

module_init(probe_init);
module_exit(probe_exit);

MODULE_DESCRIPTION("Questions to the kernel, and mistakes for it to find");
MODULE_LICENSE("Dual BSD/GPL");
