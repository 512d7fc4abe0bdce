// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranges of windows: taken by one file, given back; map.c maps them. A range that is given back loses its
 * mappings at once; what it took is free again when nobody holds a reference to its pages (I/O in flight) any
 * more.
 */
#include <linux/capability.h>
#include <linux/sched/signal.h>
#include <linux/security.h>
#include <linux/slab.h>

#include "p2p.h"

/* How often the reaper looks: at first, and at most after it has found nothing for long. */
#define REAP_INTERVAL (HZ / 100 + 1)
#define REAP_LONGEST  HZ

/* How long a vendor's driver is kept waiting in its callback. */
static unsigned int revoke_s = 30;
module_param(revoke_s, uint, 0644);
MODULE_PARM_DESC(revoke_s, "seconds that memory which a vendor's driver takes back waits for its users, "
			   "before the process is killed (30)");

static void range_free(struct kref *refs)
{
	struct weir_range *range = container_of(refs, struct weir_range, refs);

	put_pid(range->owner);
	kvfree(range->pieces);
	kfree(range);
}

/* weir_p2p_pin.state, besides bit 0: range_ended() or weir_p2p_revoked() is through, and leaves the range to
 * the other one. */
#define PIN_LEFT 1

void weir_range_put(struct weir_range *range)
{
	kref_put(&range->refs, range_free);
}

/* The piece that holds a byte of the range: the last that does not begin behind it. */
static const struct weir_piece *piece_at(const struct weir_range *range, u64 offset)
{
	u32 low = 0, high = range->count - 1;

	while (low < high) {
		u32 middle = high - (high - low) / 2;

		if (range->pieces[middle].skip <= offset)
			low = middle;
		else
			high = middle - 1;
	}
	return &range->pieces[low];
}

/* The page at a byte of the range. */
struct page *weir_range_page(const struct weir_range *range, u64 offset, u64 *contiguous)
{
	const struct weir_piece *piece = piece_at(range, offset);
	u64 location;

	location = piece->node.start + (offset - piece->skip);
	*contiguous = piece->node.last + 1 - location;
	return range->window->first + PHYS_PFN(location);
}

/* Nobody has a reference to its pages but the window itself; mappings are gone before this is asked. Goes on
 * after @done pages. */
static bool piece_quiet(const struct weir_window *window, const struct weir_piece *piece, unsigned long *done)
{
	unsigned long first = PHYS_PFN(piece->node.start), count = PHYS_PFN(piece->node.last) + 1 - first;

	for (; *done < count; ++*done)
		if (page_ref_count(window->first + first + *done) != 1)
			return false;
	return true;
}

/* Of a dead range. A page that nobody has can be nobody's again, so the next call begins with the one that
 * somebody had. */
static bool range_quiet(struct weir_range *range)
{
	/* Acquire: pairs with weir_range_idle(): what that call did to the pages came before. */
	if (atomic_read_acquire(&range->busy))
		return false;
	for (; range->quiet < range->count; range->quiet++, range->quiet_pages = 0)
		if (!piece_quiet(range->window, &range->pieces[range->quiet], &range->quiet_pages))
			return false;
	return true;
}

/* Under the window's lock: somebody else may have its pieces. */
static void range_untake(struct weir_range *range)
{
	u32 i;

	for (i = 0; i < range->count; i++)
		interval_tree_remove(&range->pieces[i].node, &range->window->taken);
	list_del_init(&range->link);
}

/*
 * Its pieces are free again, or never were taken. No lock is held: the vendor's driver may call
 * weir_p2p_revoked() from its unpinning. If that came before, it waits for ended, and who of both comes last
 * puts the range.
 */
static void range_ended(struct weir_range *range)
{
	struct weir_window *window = range->window;
	bool mine = weir_shim_release(&range->pin);

	/* Release: pairs with the acquire of who waits: all this thread did to the range came before. */
	smp_store_release(&range->ended, true);
	wake_up_all(&window->reaped);
	if (mine || test_and_set_bit(PIN_LEFT, &range->pin.state))
		weir_range_put(range);
	weir_window_live_put(window);
}

/* No more mappings of it: later accesses get SIGBUS. Under the window's lock. */
static void range_kill(struct weir_range *range)
{
	if (range->dead)
		return;
	WRITE_ONCE(range->dead, true); /* read without the lock by is_leaving() */
	if (!range->handle)
		return;
	xa_erase(&range->window->ranges, range->handle);
	atomic_dec(&range->file->ranges);
	range->window->reap_after = REAP_INTERVAL;
	list_add_tail(&range->link, &range->window->dying);
	unmap_mapping_range(range->file->mapping, (loff_t)range->handle << WEIR_RANGE_SHIFT, range->bytes, 1);
}

/* Free those of the dying whose I/O has ended. */
static void reap(struct weir_window *window)
{
	struct weir_range *range, *next;
	LIST_HEAD(ended);

	down_write(&window->lock);
	list_for_each_entry_safe(range, next, &window->dying, link)
	{
		if (!range_quiet(range))
			continue;
		range_untake(range);
		list_add_tail(&range->link, &ended);
	}
	if (!list_empty(&window->dying) && queue_delayed_work(weir_work, &window->reaper, window->reap_after))
		window->reap_after = min(2 * window->reap_after, (unsigned long)REAP_LONGEST);
	up_write(&window->lock);
	list_for_each_entry_safe(range, next, &ended, link)
	{
		list_del_init(&range->link);
		range_ended(range);
	}
}

/**
 * weir_reap() - look after ranges that were given back while I/O was in flight
 * @work: a window's reaper
 */
void weir_reap(struct work_struct *work)
{
	reap(container_of(to_delayed_work(work), struct weir_window, reaper));
}

/**
 * weir_ranges_end() - give back all ranges of a file, or a window
 * @window: which
 * @file: of this one; NULL: all, and no more are given out
 */
void weir_ranges_end(struct weir_window *window, struct weir_file *file)
{
	struct weir_range *range;
	unsigned long handle;

	down_write(&window->lock);
	if (!file)
		window->gone = true;
	xa_for_each(&window->ranges, handle, range) if (!file || range->file == file) range_kill(range);
	up_write(&window->lock);
	reap(window);
}

static struct weir_range *range_alloc(struct weir_file *file, u64 bytes)
{
	struct weir_range *range = kzalloc(sizeof(*range), GFP_KERNEL_ACCOUNT);

	if (!range)
		return NULL;
	kref_init(&range->refs);
	range->window = file->window;
	range->file = file;
	range->bytes = bytes;
	range->owner = get_task_pid(current, PIDTYPE_TGID);
	atomic_set(&range->busy, 0);
	INIT_LIST_HEAD(&range->link);
	return range;
}

/* All extents are whole pages of the window, and as many bytes as the range has. */
static int check_extents(struct weir_range *range, const struct weir_p2p_extent *extents, u32 count)
{
	u64 bytes = 0;
	u32 i;

	for (i = 0; i < count; i++) {
		if (!extents[i].bytes || !IS_ALIGNED(extents[i].address | extents[i].bytes, PAGE_SIZE) ||
		    !weir_window_has(range->window, extents[i].address, extents[i].bytes))
			return weir_refuse(range->file, -ERANGE, "memory at 0x%llx is not in the window",
					   (u64)extents[i].address);
		bytes += extents[i].bytes;
	}
	return bytes == range->bytes ? 0
				     : weir_refuse(range->file, -EIO, "%llu bytes were pinned, not %llu",
						   bytes, range->bytes);
}

static bool goes_on(const struct weir_p2p_extent *extents, u32 i)
{
	return i && extents[i - 1].address + extents[i - 1].bytes == extents[i].address;
}

static u32 pieces_of(const struct weir_p2p_extent *extents, u32 count)
{
	u32 pieces = 0, i;

	for (i = 0; i < count; i++)
		pieces += !goes_on(extents, i);
	return pieces;
}

/* Where in the window memory of the GPU lies. Extents that follow one another are one piece. */
static int set_pieces(struct weir_range *range, const struct weir_p2p_extent *extents, u32 count)
{
	phys_addr_t first = page_to_phys(range->window->first);
	int error = check_extents(range, extents, count);
	struct weir_piece *piece;
	u64 skip = 0;
	u32 i;

	if (error)
		return error;
	range->count = pieces_of(extents, count);
	range->pieces = kvcalloc(range->count, sizeof(*range->pieces), GFP_KERNEL_ACCOUNT);
	if (!range->pieces)
		return -ENOMEM;
	for (piece = range->pieces - 1, i = 0; i < count; i++) {
		if (!goes_on(extents, i)) {
			piece++;
			piece->node.start = extents[i].address - first;
			piece->range = range;
			piece->skip = skip;
		}
		piece->node.last = extents[i].address - first + extents[i].bytes - 1;
		skip += extents[i].bytes;
	}
	return 0;
}

static int by_offset(struct weir_range *range, u64 offset)
{
	struct weir_window *window = range->window;
	struct weir_p2p_extent extent = { page_to_phys(window->first) + offset, range->bytes };

	if (offset >= window->bytes || range->bytes > window->bytes - offset)
		return weir_refuse(range->file, -ERANGE,
				   "%llu bytes from %llu are not in the window, which has %llu", range->bytes,
				   offset, window->bytes);
	if (READ_ONCE(window->pdev->dev.driver) && !capable(CAP_SYS_RAWIO))
		return weir_refuse(range->file, -EPERM,
				   "%s has a driver, which knows what its memory is used for: without "
				   "CAP_SYS_RAWIO, register by address",
				   pci_name(window->pdev));
	if (security_locked_down(LOCKDOWN_PCI_ACCESS))
		return weir_refuse(
			range->file, -EPERM,
			"the kernel is locked down, and %s may have registers there: register by address",
			pci_name(window->pdev));
	return set_pieces(range, &extent, 1);
}

static int by_address(struct weir_range *range, u64 address)
{
	int error = weir_shim_pin(range->file, range->window, address, range->bytes, &range->pin);

	return error ? error : set_pieces(range, range->pin.extents, range->pin.count);
}

/* Who has a part of it, under the window's lock. */
static int check_free(struct weir_range *range, u32 i)
{
	struct weir_window *window = range->window;
	const struct interval_tree_node *want = &range->pieces[i].node, *node;
	const struct weir_piece *other;

	node = interval_tree_iter_first(&window->taken, want->start, want->last);
	if (!node)
		return 0;
	other = container_of(node, struct weir_piece, node);
	if (other->range->file == range->file && !other->range->dead)
		return weir_refuse(range->file, -EEXIST,
				   "bytes %lu to %lu of the window are registered already, as %u",
				   node->start, node->last, other->range->handle);
	return weir_refuse(range->file, -EBUSY, "some of bytes %lu to %lu of the window are somebody else's",
			   want->start, want->last);
}

static int take_all(struct weir_range *range)
{
	int error = range->window->gone ? -ENODEV : 0;
	u32 i;

	for (i = 0; !error && i < range->count; i++) {
		error = check_free(range, i);
		if (!error)
			interval_tree_insert(&range->pieces[i].node, &range->window->taken);
	}
	while (error && i-- > 1)
		interval_tree_remove(&range->pieces[i - 1].node, &range->window->taken);
	return error;
}

static int range_take(struct weir_range *range)
{
	int error;

	down_write(&range->window->lock);
	error = take_all(range);
	up_write(&range->window->lock);
	return error;
}

/* What others left there is not for somebody without privileges. Memory pinned for this process is its own.
 */
static bool range_wipe(struct weir_range *range)
{
	u64 offset, bytes;

	if (range->pin.shim || capable(CAP_SYS_RAWIO))
		return false;
	for (offset = 0; offset < range->bytes; offset += bytes) {
		void *memory = page_address(weir_range_page(range, offset, &bytes));

		bytes = min_t(u64, bytes, 1 << 20);
		memset_io((void __iomem __force *)memory, 0, bytes);
		cond_resched();
	}
	return true;
}

/* From now on it can be mapped, unless it died meanwhile. */
static int range_show(struct weir_range *range, struct weir_p2p_register *arg)
{
	struct weir_window *window = range->window;
	int error = -ENODEV;

	down_write(&window->lock);
	if (!window->gone && !range->dead)
		error = xa_alloc_cyclic(&window->ranges, &range->handle, range, XA_LIMIT(1, WEIR_RANGES_MAX),
					&window->next, GFP_KERNEL_ACCOUNT);
	if (error < 0) {
		range->handle = 0;
		range_untake(range);
	}
	arg->handle = range->handle; /* once the lock is free another thread may give it back */
	arg->mmap_offset = (u64)range->handle << WEIR_RANGE_SHIFT;
	up_write(&window->lock);
	if (error == -EBUSY)
		return weir_refuse(range->file, -ENOSPC, "there are %u ranges in this window",
				   WEIR_RANGES_MAX);
	if (error == -ENODEV)
		return weir_refuse(range->file, -ENODEV, "%s is gone", pci_name(window->pdev));
	return min(error, 0);
}

static int register_range(struct weir_range *range, struct weir_p2p_register *arg)
{
	int error = arg->flags & WEIR_P2P_BY_ADDRESS ? by_address(range, arg->offset)
						     : by_offset(range, arg->offset);

	if (!error)
		error = range_take(range);
	if (error)
		return error;
	arg->wiped = range_wipe(range);
	return range_show(range, arg);
}

static int check_register(struct weir_file *file, const struct weir_p2p_register *arg)
{
	if (arg->flags & ~WEIR_P2P_BY_ADDRESS)
		return weir_refuse(file, -EINVAL, "flags 0x%x are not known", arg->flags);
	if (!arg->bytes || !IS_ALIGNED(arg->offset | arg->bytes, PAGE_SIZE))
		return weir_refuse(file, -EINVAL, "%llu bytes from %llu are no multiple of %lu, or nothing",
				   arg->bytes, arg->offset, PAGE_SIZE);
	if (arg->bytes > min(1ULL << WEIR_RANGE_SHIFT, file->window->bytes) ||
	    arg->offset + arg->bytes < arg->offset)
		return weir_refuse(file, -ERANGE, "%llu bytes from %llu are too many: the window has %llu",
				   arg->bytes, arg->offset, file->window->bytes);
	return 0;
}

static int register_new(struct weir_file *file, struct weir_p2p_register *arg)
{
	struct weir_range *range;
	int error;

	if (!atomic_inc_not_zero(&file->window->live))
		return weir_refuse(file, -ENODEV, "%s is gone", pci_name(file->window->pdev));
	range = range_alloc(file, arg->bytes);
	if (!range) {
		weir_window_live_put(file->window);
		return -ENOMEM;
	}
	error = register_range(range, arg);
	if (error)
		range_ended(range);
	return error;
}

int weir_register(struct weir_file *file, struct weir_p2p_register *arg)
{
	int error = check_register(file, arg);

	if (error)
		return error;
	if (atomic_inc_return(&file->ranges) > WEIR_RANGES_PER_FILE)
		error = weir_refuse(file, -ENOSPC, "this file has %u ranges already", WEIR_RANGES_PER_FILE);
	else
		error = register_new(file, arg);
	if (error)
		atomic_dec(&file->ranges);
	return error;
}

/* Of this file, alive; under the window's lock. */
struct weir_range *weir_range_find(struct weir_file *file, u32 handle)
{
	struct weir_range *range = xa_load(&file->window->ranges, handle);

	return range && range->file == file && !range->dead ? range : NULL;
}

/* Of this file, given back, but its I/O has not ended. */
static struct weir_range *find_dying(struct weir_file *file, u32 handle)
{
	struct weir_range *range;

	list_for_each_entry(range, &file->window->dying,
			    link) if (range->file == file && range->handle == handle) return range;
	return NULL;
}

static struct weir_range *kill_found(struct weir_file *file, u32 handle)
{
	struct weir_range *range;

	down_write(&file->window->lock);
	range = weir_range_find(file, handle);
	if (!range)
		range = find_dying(file, handle);
	if (range) {
		kref_get(&range->refs);
		range_kill(range);
	}
	up_write(&file->window->lock);
	return range;
}

int weir_deregister(struct weir_file *file, u32 handle)
{
	struct weir_range *range;
	int error;

	if (weir_pairs_any(file))
		return weir_refuse(file, -EBUSY,
				   "controllers may write to range %u, since this file has queue pairs: "
				   "remove them first",
				   handle);
	range = kill_found(file, handle);
	if (!range)
		return weir_refuse(file, -ENOENT, "this file has no range %u", handle);
	reap(file->window);
	/*
	 * Acquire: pairs with range_ended(). If there is work of the task's to be done, such as io_uring's
	 * letting go of these very pages, the call is begun again after it.
	 */
	error = wait_event_interruptible(file->window->reaped, smp_load_acquire(&range->ended));
	weir_range_put(range);
	return error;
}

/* Its user does not let go. What gets the memory next is not to be written to for longer than it takes to end
 * a process. */
static void end_owner(struct weir_range *range)
{
	pr_err("weir_p2p: process %d keeps pages of memory that the GPU's driver has taken back for %u s: it "
	       "is killed\n",
	       pid_nr(range->owner), READ_ONCE(revoke_s));
	kill_pid(range->owner, SIGKILL, 1);
}

/**
 * weir_p2p_revoked() - the vendor's driver takes memory back: see shim.h
 * @pin: which
 * Return: whether the core has forgotten it; else unpin() frees it.
 */
bool weir_p2p_revoked(struct weir_p2p_pin *pin)
{
	struct weir_range *range = container_of(pin, struct weir_range, pin);
	struct weir_window *window = range->window;
	struct weir_file *file = NULL;

	weir_window_get(window); /* before: once the bit is set the range may end, and its window with it */
	if (test_and_set_bit(0, &pin->state)) {
		weir_window_put(window);
		return false; /* nobody uses it any more */
	}
	atomic_inc(&range->busy); /* its memory is nobody else's before controllers have stopped */
	down_write(&window->lock);
	if (!range->dead) { /* else they have ended already, and perhaps the file, too */
		file = range->file;
		kref_get(&file->refs); /* it may be closed meanwhile, and is not to be another one then */
	}
	range_kill(range);
	up_write(&window->lock);
	if (file) {
		weir_pairs_end(file);
		weir_file_put(file);
	}
	weir_range_idle(range);
	reap(window);
	/* Acquire: pairs with range_ended(). */
	if (!wait_event_timeout(window->reaped, smp_load_acquire(&range->ended), READ_ONCE(revoke_s) * HZ))
		end_owner(range);
	if (test_and_set_bit(PIN_LEFT, &pin->state))
		weir_range_put(range);
	weir_window_put(window);
	return true;
}
EXPORT_SYMBOL(weir_p2p_revoked);

/**
 * weir_range_busy() - a range that is not to end while the kernel does I/O on it
 * @file: whose
 * @handle: its number
 * Return: to be given to weir_range_idle(); NULL if there is none.
 */
struct weir_range *weir_range_busy(struct weir_file *file, u32 handle)
{
	struct weir_range *range;

	down_read(&file->window->lock);
	range = weir_range_find(file, handle);
	if (range)
		atomic_inc(&range->busy);
	up_read(&file->window->lock);
	return range;
}

void weir_range_idle(struct weir_range *range)
{
	/* Release: pairs with range_quiet(). */
	atomic_dec_return_release(&range->busy);
}
