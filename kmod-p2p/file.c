// SPDX-License-Identifier: GPL-2.0-only
/* Open nodes: their calls, and why the last one failed. What calls do is elsewhere. */
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "p2p.h"

/* Any call's structure; each begins with its size. */
union weir_arg {
	u32 size;
	struct weir_p2p_info info;
	struct weir_p2p_claim claim;
	struct weir_p2p_register range;
	struct weir_p2p_deregister handle;
	struct weir_p2p_verdict verdict;
	struct weir_p2p_import import;
	struct weir_p2p_prp prp;
	struct weir_p2p_io io;
	struct weir_p2p_queue queue;
	struct weir_p2p_locate locate;
	struct weir_p2p_flush flush;
	struct weir_p2p_reason reason;
};

/**
 * weir_refuse() - say why a call fails
 * @file: whose call; NULL: only the kernel's log is told
 * @error: negative
 * @format: as of printf(): a sentence without its end
 * Return: @error.
 */
int weir_refuse(struct weir_file *file, int error, const char *format, ...)
{
	char text[WEIR_P2P_TEXT_BYTES];
	va_list args;

	va_start(args, format);
	vscnprintf(text, sizeof(text), format, args);
	va_end(args);
	pr_info_ratelimited("weir_p2p: %s (%d)\n", text, error);
	if (file) {
		mutex_lock(&file->reason_lock);
		file->error = -error;
		strscpy(file->reason, text, sizeof(file->reason));
		mutex_unlock(&file->reason_lock);
	}
	return error;
}

static int call_reason(struct weir_file *file, union weir_arg *arg)
{
	mutex_lock(&file->reason_lock);
	arg->reason.error = file->error;
	memcpy(arg->reason.text, file->reason, sizeof(arg->reason.text));
	mutex_unlock(&file->reason_lock);
	return 0;
}

static int call_info(struct weir_file *file, union weir_arg *arg)
{
	struct weir_window *window = file->window;
	struct weir_p2p_info *info = &arg->info;

	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	info->abi = WEIR_P2P_ABI;
	info->features = WEIR_P2P_FEATURE_WINDOWS | WEIR_P2P_FEATURE_IMPORT | WEIR_P2P_FEATURE_FILE_IO |
			 WEIR_P2P_FEATURE_PRP | WEIR_P2P_FEATURE_QUEUES | weir_pages_feature;
	if (weir_shim_any())
		info->features |= WEIR_P2P_FEATURE_ADDRESSES;
	info->page_bytes = PAGE_SIZE;
	info->windows = weir_windows_count();
	if (!window)
		return 0;
	info->window.domain = pci_domain_nr(window->pdev->bus);
	info->window.bus = window->pdev->bus->number;
	info->window.device = PCI_SLOT(window->pdev->devfn);
	info->window.function = PCI_FUNC(window->pdev->devfn);
	info->window.bar = window->bar;
	info->bytes = window->bytes;
	info->offset = window->offset;
	info->address_align = weir_shim_align(window->pdev->vendor);
	return 0;
}

static int call_claim(struct weir_file *file, union weir_arg *arg)
{
	return weir_claim(file, &arg->claim);
}

static int call_unclaim(struct weir_file *file, union weir_arg *arg)
{
	return weir_unclaim(file, &arg->claim);
}

static int call_register(struct weir_file *file, union weir_arg *arg)
{
	return weir_register(file, &arg->range);
}

static int call_deregister(struct weir_file *file, union weir_arg *arg)
{
	return file->window ? weir_deregister(file, arg->handle.handle)
			    : weir_unimport(file, arg->handle.handle);
}

static int call_verdict(struct weir_file *file, union weir_arg *arg)
{
	return weir_verdict(file, &arg->verdict);
}

static int call_import(struct weir_file *file, union weir_arg *arg)
{
	return weir_import(file, &arg->import);
}

static int call_prp(struct weir_file *file, union weir_arg *arg)
{
	return weir_prp(file, &arg->prp);
}

static int call_io(struct weir_file *file, union weir_arg *arg)
{
	return weir_io(file, &arg->io);
}

static int call_queue_add(struct weir_file *file, union weir_arg *arg)
{
	return weir_queue_add(file, &arg->queue);
}

static int call_queue_remove(struct weir_file *file, union weir_arg *arg)
{
	return weir_queue_remove(file, arg->handle.handle);
}

static int call_locate(struct weir_file *file, union weir_arg *arg)
{
	return weir_locate(file, &arg->locate);
}

static int call_flush(struct weir_file *file, union weir_arg *arg)
{
	return weir_flush(file, &arg->flush);
}

/* On which nodes a call is there. */
#define ON_CONTROL 1
#define ON_WINDOW  2

/*
 * The calls, by number. bytes is the structure's size here, least that of the oldest program's.
 */
static const struct weir_call {
	u32 bytes;
	u32 least;
	int nodes;
	int (*run)(struct weir_file *file, union weir_arg *arg);
} calls[] = {
	[_IOC_NR(WEIR_P2P_INFO)] = { sizeof(struct weir_p2p_info), 48, ON_CONTROL | ON_WINDOW, call_info },
	[_IOC_NR(WEIR_P2P_CLAIM)] = { sizeof(struct weir_p2p_claim), 32, ON_CONTROL, call_claim },
	[_IOC_NR(WEIR_P2P_UNCLAIM)] = { sizeof(struct weir_p2p_claim), 32, ON_CONTROL, call_unclaim },
	[_IOC_NR(WEIR_P2P_REGISTER)] = { sizeof(struct weir_p2p_register), 40, ON_WINDOW, call_register },
	[_IOC_NR(WEIR_P2P_DEREGISTER)] = { sizeof(struct weir_p2p_deregister), 8, ON_CONTROL | ON_WINDOW,
					   call_deregister },
	[_IOC_NR(WEIR_P2P_VERDICT)] = { sizeof(struct weir_p2p_verdict), 304, ON_CONTROL, call_verdict },
	[_IOC_NR(WEIR_P2P_IMPORT)] = { sizeof(struct weir_p2p_import), 56, ON_CONTROL, call_import },
	[_IOC_NR(WEIR_P2P_PRP)] = { sizeof(struct weir_p2p_prp), 48, ON_CONTROL, call_prp },
	[_IOC_NR(WEIR_P2P_IO)] = { sizeof(struct weir_p2p_io), 48, ON_CONTROL | ON_WINDOW, call_io },
	[_IOC_NR(WEIR_P2P_QUEUE_ADD)] = { sizeof(struct weir_p2p_queue), 120, ON_WINDOW, call_queue_add },
	[_IOC_NR(WEIR_P2P_QUEUE_REMOVE)] = { sizeof(struct weir_p2p_deregister), 8, ON_WINDOW,
					     call_queue_remove },
	[_IOC_NR(WEIR_P2P_LOCATE)] = { sizeof(struct weir_p2p_locate), 32, ON_WINDOW, call_locate },
	[_IOC_NR(WEIR_P2P_FLUSH)] = { sizeof(struct weir_p2p_flush), 8, ON_WINDOW, call_flush },
	[_IOC_NR(WEIR_P2P_REASON)] = { sizeof(struct weir_p2p_reason), 264, ON_CONTROL | ON_WINDOW,
				       call_reason },
};

static const struct weir_call *find_call(struct weir_file *file, unsigned int number)
{
	const struct weir_call *call;
	u32 index = _IOC_NR(number);

	if (_IOC_TYPE(number) != WEIR_P2P_MAGIC || _IOC_DIR(number) != (_IOC_READ | _IOC_WRITE))
		return NULL;
	if (index >= ARRAY_SIZE(calls))
		return NULL;
	call = &calls[array_index_nospec(index, ARRAY_SIZE(calls))];
	return call->run && call->nodes & (file->window ? ON_WINDOW : ON_CONTROL) ? call : NULL;
}

static long weir_ioctl(struct file *filp, unsigned int number, unsigned long address)
{
	struct weir_file *file = filp->private_data;
	const struct weir_call *call = find_call(file, number);
	void __user *user = (void __user *)address;
	union weir_arg arg = {};
	u32 size;
	int error;

	if (!call)
		return weir_refuse(file, -ENOTTY, "call 0x%x is not known on this node", number);
	if (get_user(size, (u32 __user *)user))
		return -EFAULT;
	if (size < call->least || size > PAGE_SIZE)
		return weir_refuse(file, -EINVAL, "call %u has a structure of %u bytes; it is of %u",
				   _IOC_NR(number), size, call->bytes);
	error = copy_struct_from_user(&arg, call->bytes, user, size);
	if (error)
		return error;
	error = call->run(file, &arg);
	if (error)
		return error;
	arg.size = size;
	return copy_to_user(user, &arg, min(size, call->bytes)) ? -EFAULT : 0;
}

static void file_free(struct kref *refs)
{
	kfree(container_of(refs, struct weir_file, refs));
}

/**
 * weir_file_put() - let go of an open node
 * @file: which; as long as somebody has it no other one is where it was
 */
void weir_file_put(struct weir_file *file)
{
	kref_put(&file->refs, file_free);
}

static int open_node(struct file *filp, struct weir_window *window)
{
	struct weir_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return -ENOMEM;
	kref_init(&file->refs);
	file->window = window;
	file->mapping = filp->f_mapping;
	xa_init_flags(&file->imports, XA_FLAGS_ALLOC1);
	mutex_init(&file->imports_lock);
	mutex_init(&file->reason_lock);
	if (window)
		weir_window_get(window);
	filp->private_data = file;
	return nonseekable_open(file_inode(filp), filp);
}

static int open_control(struct inode *inode, struct file *filp)
{
	return open_node(filp, NULL);
}

/* Under the lock of all such nodes, which removing one takes, too: the window is there. */
static int open_window(struct inode *inode, struct file *filp)
{
	struct miscdevice *misc = filp->private_data;

	return open_node(filp, container_of(misc, struct weir_window, misc));
}

static int close_node(struct inode *inode, struct file *filp)
{
	struct weir_file *file = filp->private_data;

	if (file->window) {
		weir_pairs_end(file); /* first: controllers may write to any of its ranges until then */
		weir_ranges_end(file->window, file);
		weir_window_put(file->window);
	}
	weir_imports_end(file);
	xa_destroy(&file->imports);
	mutex_destroy(&file->imports_lock);
	mutex_destroy(&file->reason_lock);
	weir_file_put(file);
	return 0;
}

static int map_node(struct file *filp, struct vm_area_struct *vma)
{
	return weir_doorbell_meant(vma) ? weir_doorbell_map(filp->private_data, vma)
					: weir_map(filp->private_data, vma);
}

const struct file_operations weir_control_fops = {
	.owner = THIS_MODULE,
	.open = open_control,
	.release = close_node,
	.unlocked_ioctl = weir_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

const struct file_operations weir_window_fops = {
	.owner = THIS_MODULE,
	.open = open_window,
	.release = close_node,
	.unlocked_ioctl = weir_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = map_node,
	.llseek = noop_llseek,
};
