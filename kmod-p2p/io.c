// SPDX-License-Identifier: GPL-2.0-only
/* File I/O on ranges and imports by the kernel's own I/O vectors, where a user's pointer to such pages is
 * refused. */
#include <linux/bvec.h>
#include <linux/completion.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "p2p.h"

#define VECTORS   64
#define STEP_MOST (8U << 20)

/**
 * struct io_target - the buffer of a transfer
 * @range: or
 * @import: one of both
 * @window: that an import's bytes lie in
 */
struct io_target {
	struct weir_range *range;
	struct weir_import *import;
	struct weir_window *window;
};

/* By the extent that holds it: the last that does not begin behind it. */
static phys_addr_t import_address(const struct weir_import *import, u64 offset, u64 *contiguous)
{
	const struct weir_extent *extent = import->extents;
	u32 low = 0, high = import->count - 1;

	while (low < high) {
		u32 middle = high - (high - low) / 2;

		if (import->extents[middle].skip <= offset)
			low = middle;
		else
			high = middle - 1;
	}
	extent = &import->extents[low];
	*contiguous = extent->bytes - (offset - extent->skip);
	return extent->address + (offset - extent->skip);
}

/* Whether somebody waits for it to end: a transfer does not go on then. Relaxed: who does not see it does a
 * step more. */
static bool is_leaving(const struct io_target *target)
{
	if (target->range)
		return READ_ONCE(target->range->dead);
	return READ_ONCE(target->import->leaving) || READ_ONCE(target->window->leaving);
}

static struct page *target_page(const struct io_target *target, u64 offset, u64 *contiguous)
{
	if (target->range)
		return weir_range_page(target->range, offset, contiguous);
	return pfn_to_page(PHYS_PFN(import_address(target->import, offset, contiguous)));
}

/* Vectors for at most @bytes from @offset. Return: how many bytes they hold. */
static u64 fill(const struct io_target *target, u64 offset, u64 bytes, struct bio_vec *vectors,
		unsigned int *count)
{
	u64 done = 0, contiguous;

	for (*count = 0; *count < VECTORS && done < bytes; ++*count) {
		struct bio_vec *vector = &vectors[*count];

		vector->bv_page = target_page(target, offset + done, &contiguous);
		vector->bv_offset = offset_in_page(offset + done);
		vector->bv_len = min_t(u64, contiguous, bytes - done);
		done += vector->bv_len;
	}
	return done;
}

/**
 * struct step - one request to a file
 * @kiocb: it
 * @over: it is
 * @moved: bytes, or an errno
 */
struct step {
	struct kiocb kiocb;
	struct completion over;
	ssize_t moved;
};

WEIR_KIOCB_COMPLETE(on_over)
{
	struct step *step = container_of(kiocb, struct step, kiocb);

	step->moved = result;
	complete(&step->over);
}

/*
 * It is over when this returns. Network file systems let go of a process that is killed, and go on with its
 * request, if that is a synchronous one, so it is none; and no signal ends the waiting, since the pages are
 * somebody else's soon after.
 */
static ssize_t transfer(struct file *file, u64 at, bool write, struct bio_vec *vectors, unsigned int count,
			u64 bytes)
{
	struct iov_iter iterator;
	struct step step;
	ssize_t done;

	init_sync_kiocb(&step.kiocb, file);
	step.kiocb.ki_complete = on_over;
	init_completion(&step.over);
	/* As it was when it was checked, whatever fcntl() has done since. */
	step.kiocb.ki_flags |= write ? IOCB_DIRECT | IOCB_WRITE : IOCB_DIRECT;
	step.kiocb.ki_flags &= ~IOCB_APPEND;
	step.kiocb.ki_pos = at;
	iov_iter_bvec(&iterator, write ? WRITE : READ, vectors, count, bytes);
	if (write)
		file_start_write(file);
	done = write ? vfs_iocb_iter_write(file, &step.kiocb, &iterator)
		     : vfs_iocb_iter_read(file, &step.kiocb, &iterator);
	if (done == -EIOCBQUEUED) {
		wait_for_completion(&step.over);
		done = step.moved;
	}
	if (write)
		file_end_write(file);
	return done;
}

/* Step by step, until an error, the file's end, a signal to end the process, or the end of the buffer. */
static ssize_t transfer_all(const struct io_target *target, struct file *file, struct weir_p2p_io *arg,
			    struct bio_vec *vectors)
{
	unsigned int count;
	u64 bytes;
	ssize_t moved = 0;

	arg->done = 0;
	while (arg->done < arg->bytes && !fatal_signal_pending(current)) {
		bytes = fill(target, arg->buffer_offset + arg->done,
			     min_t(u64, arg->bytes - arg->done, STEP_MOST), vectors, &count);
		moved = transfer(file, arg->file_offset + arg->done, arg->flags & WEIR_P2P_WRITE, vectors,
				 count, bytes);
		if (moved <= 0)
			break;
		arg->done += moved;
		if (moved < bytes || is_leaving(target))
			break;
	}
	return arg->done ? 0 : moved;
}

static int check_file(struct weir_file *owner, const struct weir_p2p_io *arg, struct file *file)
{
	bool write = arg->flags & WEIR_P2P_WRITE;

	if (!(file->f_flags & O_DIRECT))
		return weir_refuse(owner, -EINVAL, "file %d was opened without O_DIRECT: a CPU would copy",
				   arg->fd);
	if (!(file->f_mode & (write ? FMODE_WRITE : FMODE_READ)))
		return weir_refuse(owner, -EBADF, "file %d is not open for %s", arg->fd,
				   write ? "writing" : "reading");
	if (write && file->f_flags & O_APPEND)
		return weir_refuse(owner, -EBADF,
				   "file %d is open with O_APPEND, so that no write goes to its offset",
				   arg->fd);
	if (!S_ISREG(file_inode(file)->i_mode) && !S_ISBLK(file_inode(file)->i_mode))
		return weir_refuse(owner, -EINVAL, "%d is neither a file nor a block device", arg->fd);
	return 0;
}

static int check_part(struct weir_file *owner, const struct weir_p2p_io *arg, u64 all)
{
	if (arg->flags & ~WEIR_P2P_WRITE)
		return weir_refuse(owner, -EINVAL, "flags 0x%x are not known", arg->flags);
	if (!arg->bytes || (arg->bytes | arg->buffer_offset | arg->file_offset) % 512)
		return weir_refuse(
			owner, -EINVAL,
			"%llu bytes at %llu of the file, %llu of the buffer: nothing, or no multiples of 512",
			arg->bytes, arg->file_offset, arg->buffer_offset);
	if (arg->buffer_offset >= all || arg->bytes > all - arg->buffer_offset)
		return weir_refuse(owner, -ERANGE,
				   "%llu bytes from %llu are not in buffer %u, which has %llu", arg->bytes,
				   arg->buffer_offset, arg->handle, all);
	if (arg->file_offset > LLONG_MAX || arg->bytes > LLONG_MAX - arg->file_offset)
		return weir_refuse(owner, -EINVAL, "%llu bytes at %llu are beyond any file", arg->bytes,
				   arg->file_offset);
	return 0;
}

static int with_file(struct weir_file *owner, const struct io_target *target, struct weir_p2p_io *arg)
{
	struct bio_vec *vectors = kcalloc(VECTORS, sizeof(*vectors), GFP_KERNEL_ACCOUNT);
	struct file *file = fget(arg->fd);
	int error = -EBADF;

	if (!file)
		weir_refuse(owner, -EBADF, "%d is no open file", arg->fd);
	else if (!vectors)
		error = -ENOMEM;
	else
		error = check_file(owner, arg, file);
	if (!error)
		error = transfer_all(target, file, arg, vectors);
	if (file)
		fput(file);
	kfree(vectors);
	return error;
}

static int range_io(struct weir_file *file, struct weir_p2p_io *arg)
{
	struct io_target target = { .range = weir_range_busy(file, arg->handle) };
	int error;

	if (!target.range)
		return weir_refuse(file, -ENOENT, "this file has no range %u", arg->handle);
	error = check_part(file, arg, target.range->bytes);
	if (!error)
		error = with_file(file, &target, arg);
	weir_range_idle(target.range);
	return error;
}

/* The window that all extents lie in, which stays until the I/O is over. */
static struct weir_window *hold_extents(const struct weir_import *import)
{
	struct weir_window *window = weir_window_hold(import->extents[0].address, import->extents[0].bytes);
	u32 i;

	for (i = 1; window && i < import->count; i++)
		if (!weir_window_has(window, import->extents[i].address, import->extents[i].bytes)) {
			weir_window_release(window);
			return NULL;
		}
	return window;
}

static int import_io(struct weir_file *file, struct weir_p2p_io *arg)
{
	struct io_target target = { .import = weir_import_enter(file, arg->handle) };
	int error;

	if (IS_ERR(target.import))
		return PTR_ERR(target.import);
	error = check_part(file, arg, target.import->bytes);
	if (!error) {
		target.window = hold_extents(target.import);
		error = target.window ? with_file(file, &target, arg)
				      : weir_refuse(file, -ENOTBLK,
						    "import %u is not in a claimed window: it has no pages",
						    arg->handle);
	}
	if (target.window)
		weir_window_release(target.window);
	weir_import_leave(target.import);
	return error;
}

int weir_io(struct weir_file *file, struct weir_p2p_io *arg)
{
	return file->window ? range_io(file, arg) : import_io(file, arg);
}
