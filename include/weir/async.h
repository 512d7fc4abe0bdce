/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * async.h: lines of an array, ahead of their use: into the cache, or into buffers.
 *
 * Owns: prefetches, and copies of whole lines that agree with the cache. The model is
 * AGILE's prefetch() and async_issue() (section 3.1). disk.h has the same for blocks of a
 * storage, past the cache and without regard to it.
 *
 * The unit is a line of the array's cache: weir_array_line() says which one an element is
 * in, weir_array_line_bytes() how long a buffer must be. A copy that was started holds no
 * line, no queue slot after its completion, and never a lock; a lane may start any number
 * of them, whatever the depth of the queues, before it waits for the first.
 *
 * Every function here may be called by any subset of a wave's lanes, with different
 * arguments in each. Lanes that want the same line are not coalesced: each has its own
 * command (<weir/transfer.h> shares them).
 */
#ifndef WEIR_ASYNC_H
#define WEIR_ASYNC_H

#include <weir/wait.h>
#include <weir/writer.h>

/* Iterations without a queue slot, or without a line to claim, after which a prefetch gives up. */
enum { WEIR_PREFETCH_ITERATIONS = 8 };

/** weir_array_line_log2() - line size of the array's cache, as a power of two */
WEIR_FN u32 weir_array_line_log2(WEIR_GLOBAL struct weir_array *array)
{
	return weir_at(array->lines, struct weir_lines, 0)->line_log2;
}

/** weir_array_line() - line that element @index begins in */
WEIR_FN u64 weir_array_line(WEIR_GLOBAL struct weir_array *array, u64 index)
{
	return (array->first_byte + index * array->element_bytes) >> weir_array_line_log2(array);
}

/** weir_array_at() - byte of a line's buffer at which element @index of that line begins */
WEIR_FN u32 weir_array_at(WEIR_GLOBAL struct weir_array *array, u64 index)
{
	return weir_array_offset(array, array->first_byte + index * array->element_bytes);
}

/** weir_array_disks() - the storages of an array, for waits */
WEIR_FN struct weir_disks weir_array_disks(WEIR_GLOBAL struct weir_array *array)
{
	struct weir_disks disks;

	disks.first = array->extent.disks;
	disks.count = array->extent.disk_count;
	return disks;
}

/*
 * One step of a prefetch. @want: this lane wants the line, and nobody brings it yet. The first
 * lane of those that want the same line claims it; a claim that gets no queue slot is taken
 * back at once, so that nothing is held from one iteration to the next. A kernel without the cache's policy
 * claims none: which line goes is not for another policy to say, nor its state to be written over.
 *
 * Return: 1 if this lane's command is under way.
 */
WEIR_FN u32 weir_prefetch_try(u64 wave, u32 want, WEIR_GLOBAL struct weir_array *array, u64 line)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u64 key = array->extent.key_base + line, index = weir_lines_index(lines, key);
	u32 may = want && weir_policy_known(lines->policy);
	struct weir_reservation reservation = weir_fetch_reserve(wave, may, lines, index, key, 1);
	u32 mine = reservation.way != WEIR_WAYS && !reservation.up;
	u32 sent = weir_disk_try_submit(
		wave, mine, weir_extent_disk(&array->extent, line),
		weir_line_request(lines, &array->extent, line, index, reservation.way, NVME_OPCODE_READ));

	if (mine)
		weir_add_u64_relaxed_dev(&lines->misses, 1);
	if (reservation.up || (mine && sent))
		weir_line_unpin(weir_lines_set(lines, index), reservation.way); /* nobody waits for it */
	else if (mine)
		weir_line_cancel(lines, index, reservation.way);
	weir_lines_write_back(wave, lines, index, reservation.writing);
	return sent;
}

/* Is line @line of @array there, or on its way? */
WEIR_FN u32 weir_array_resident(WEIR_GLOBAL struct weir_array *array, u64 line)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u64 key = array->extent.key_base + line;
	struct weir_found found = weir_set_find(weir_lines_set(lines, weir_lines_index(lines, key)), key);

	return found.way != WEIR_WAYS && weir_line_state(found.word) != WEIR_LINE_FAILED;
}

/* Is there anything to do for line @line? Not if it is in a buffer: those behind it are not to wait for that.
 */
WEIR_FN u32 weir_prefetch_wants(WEIR_GLOBAL struct weir_array *array, u64 line)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u32 held = 0;

	if (WEIR_SHARE_KNOWN)
		held = weir_share_holds(lines, array->extent.key_base + line);
	return !held && !weir_array_resident(array, line) &&
	       weir_disk_dead(weir_extent_disk(&array->extent, line)) == WEIR_OK;
}

/* The lines from @first on; or, if @list is not 0, those of the elements u64[count] there. */
WEIR_FN u64 weir_prefetch_lines(WEIR_GLOBAL struct weir_array *array, weir_addr list, u64 first, u64 count)
{
	u64 wave = weir_active(), started = 0, at = 0;
	u32 tries = 0;

	if (WEIR_ONLY_SERVICE && !(weir_extent_disk(&array->extent, 0)->flags & WEIR_DISK_SERVICE))
		count = 0;
	WEIR_WAIT_LOOP(wave, at < count, iteration) {
		u64 index = at < count && list ? *weir_at(list, u64, at) : 0;
		u64 line = at < count ? (list ? weir_array_line(array, index) : first + at) : 0;
		u32 want, sent;

		want = at < count && index < array->count && weir_prefetch_wants(array, line);
		sent = weir_prefetch_try(wave, want, array, line);
		started += sent;
		tries = want && !sent ? tries + 1 : 0;
		at += at < count && tries == 0;
		if (tries == WEIR_PREFETCH_ITERATIONS)
			at = count;
		weir_wait_help(wave, tries != 0 && at < count, weir_extent_disk(&array->extent, line),
			       iteration, 0); /* after WEIR_PREFETCH_ITERATIONS the lane goes on */
	}
	return started;
}

/**
 * weir_prefetch() - start bringing elements into the cache
 * @array: the array
 * @index: first element
 * @count: elements; those past the end of the array are left out
 *
 * A hint: lines that are there, or on their way, cost a look each; those in the cache's tier in host memory
 * are copied up; of the others each gets a command, unless queues or set stay full for
 * WEIR_PREFETCH_ITERATIONS iterations: then this lane's call leaves the rest out. It waits for nothing else,
 * nobody waits for its commands, and their lines are pinned by nobody: in a cache smaller than what is
 * fetched ahead they go unread. A line that cannot be read is told to whoever reads it later. A kernel
 * that was built without the cache's policy (WEIR_POLICY_USER) brings none.
 *
 * Return: commands that this lane started.
 */
WEIR_FN u64 weir_prefetch(WEIR_GLOBAL struct weir_array *array, u64 index, u64 count)
{
	u64 room = index < array->count ? array->count - index : 0;
	u64 first = weir_array_line(array, index), last;

	count = count < room ? count : room;
	last = count ? (array->first_byte + (index + count) * array->element_bytes - 1) >>
			       weir_array_line_log2(array)
		     : first;
	return weir_prefetch_lines(array, 0, first, count ? last - first + 1 : 0);
}

/**
 * weir_prefetch_list() - weir_prefetch() for elements anywhere
 * @array: the array
 * @indices: device address of u64[count]: elements; those past the end of the array are left out
 * @count: elements
 *
 * Brings the line in which an element begins.
 */
WEIR_FN u64 weir_prefetch_list(WEIR_GLOBAL struct weir_array *array, weir_addr indices, u64 count)
{
	return weir_prefetch_lines(array, indices, 0, count);
}

/* The command that moves line @line between its storage and @buffer, and tells @event. */
WEIR_FN struct weir_request weir_async_request(WEIR_GLOBAL struct weir_array *array, u32 opcode, u64 line,
					       weir_addr buffer, WEIR_GLOBAL struct weir_event *event)
{
	struct weir_request request = weir_line_request(weir_at(array->lines, struct weir_lines, 0),
							&array->extent, line, 0, 0, NVME_OPCODE_READ);

	request.opcode = opcode;
	request.target_kind = WEIR_TARGET_EVENT;
	request.buffer = buffer;
	request.target = WEIR_ADDR(event);
	request.status = 0;
	return request;
}

/* What is wrong with a request of line @line before anything is done for it; 0 if nothing. */
WEIR_FN weir_status weir_async_check(WEIR_GLOBAL struct weir_array *array, u64 line,
				     struct weir_request request)
{
	if (line >= array->extent.lines)
		return WEIR_E_RANGE;
	return weir_disk_check(weir_extent_disk(&array->extent, line), request);
}

/* Start the event of a copy; of one that cannot be made it is done. Return: WEIR_OK, or why there is no copy.
 */
WEIR_FN weir_status weir_async_start(WEIR_GLOBAL struct weir_array *array, u64 line,
				     struct weir_request request, WEIR_GLOBAL struct weir_event *event)
{
	weir_status status = weir_event_start(event);

	if (status != WEIR_OK)
		return status;
	status = weir_async_check(array, line, request);
	if (status != WEIR_OK)
		weir_event_refuse(event, status);
	return status;
}

/* An asynchronous copy of line @line that was not started: weir_sync() names the block. */
WEIR_FN weir_status weir_async_refuse(WEIR_GLOBAL struct weir_array *array, u64 line, weir_status status)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(&array->extent, line);
	u32 block_log2 = weir_array_line_log2(array) - disk->block_log2;

	weir_fault_report(array->fault, status, disk->id, WEIR_FAULT_LBA,
			  weir_extent_line(&array->extent, line) << block_log2, disk->blocks);
	return status;
}

/*
 * Resident lines into buffers, all lanes of @wave together. @found: this lane's line, of which
 * @bytes are copied; 0: it has none.
 *
 * Return: 1 if the line stayed what it was until all of it was copied.
 */
WEIR_FN u32 weir_line_copy_to(u64 wave, WEIR_GLOBAL struct weir_set *set, struct weir_found found,
			      weir_addr data, weir_addr buffer, u32 bytes)
{
	u64 word;

	weir_order_loads();
	weir_wave_sync(wave); /* what each lane saw of its line (line.L1) all lanes have seen */
	weir_wave_copy(wave, buffer, data, bytes);
	weir_order_loads();
	weir_wave_sync(wave); /* line.L2: every lane's part before this lane's second look */
	/* relaxed: ordered above */
	word = bytes ? weir_load_u64_relaxed_dev(&set->word[found.way % WEIR_WAYS]) : ~found.word;
	return weir_line_same(word, found.word);
}

/* What a copy found out about where its line is. */
enum {
	WEIR_COPY_ABSENT = 0, /* not here: storage has it */
	WEIR_COPY_DONE = 1,
	WEIR_COPY_RETRY = 2,  /* it went meanwhile, or is on its way into a shared buffer */
	WEIR_COPY_FAILED = 3, /* the shared buffer could not be filled, or nobody here can look there */
};

/*
 * Line @line of each lane that wants it into its buffer, as far as the cache has it now.
 *
 * Return: WEIR_COPY_ABSENT, _DONE or _AGAIN.
 */
WEIR_FN u32 weir_async_try_cache(u64 wave, u32 want, WEIR_GLOBAL struct weir_array *array, u64 line,
				 weir_addr buffer, u32 bytes)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u64 key = array->extent.key_base + line, index = weir_lines_index(lines, key);
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, index);
	struct weir_found found = weir_set_find(set, key);
	u32 there = want && weir_line_readable(found.word), good;

	if (weir_ballot(wave, there) == 0)
		return WEIR_COPY_ABSENT;
	good = weir_line_copy_to(wave, set, found, weir_line_data(lines, index, found.way % WEIR_WAYS),
				 buffer, there ? bytes : 0);
	if (good && there)
		weir_policy_hit(set, found.way, found.word);
	if (!there)
		return WEIR_COPY_ABSENT;
	return good ? WEIR_COPY_DONE : WEIR_COPY_RETRY;
}

/*
 * The same, as far as the cache's tier has it now. After weir_async_try_cache() found it absent: what is in
 * the tier then is as new as storage was at that moment, or newer. Return: whether it was.
 */
WEIR_FN u32 weir_async_try_tier(u64 wave, u32 want, WEIR_GLOBAL struct weir_array *array, u64 line,
				WEIR_GLOBAL struct weir_event *event, weir_addr buffer, u32 bytes)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	WEIR_GLOBAL struct weir_set *set = weir_lines_set(lines, 0);
	u64 key = array->extent.key_base + line, position;
	weir_addr data = buffer;
	struct weir_found found;
	u32 there = 0;

	if (!WEIR_TIER_KNOWN)
		return 0;
	found.word = 0;
	found.way = 0;
	if (want && lines->tier) {
		position = weir_tier_slot(lines, weir_lines_index(lines, key), key);
		set = weir_tier_set(weir_lines_tier(lines), position);
		found = weir_set_find(set, key);
		there = weir_line_readable(found.word);
		data = weir_tier_data(lines, position + found.way % WEIR_WAYS);
	}
	bytes = there ? bytes : 0;
	weir_reconverge();
	if (weir_ballot(wave, there) == 0)
		return 0;
	there &= weir_line_copy_to(wave, set, found, data, buffer, bytes);
	if (there) {
		weir_add_u64_relaxed_dev(&weir_lines_tier(lines)->hits, 1);
		weir_event_finish(event, WEIR_PATH_TIER);
	}
	weir_reconverge();
	return there;
}

/* The same, as far as a shared buffer has it now. */
WEIR_FN u32 weir_async_try_share(u64 wave, u32 want, WEIR_GLOBAL struct weir_array *array, u64 line,
				 weir_addr buffer, u32 bytes, u64 deadline)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	WEIR_GLOBAL struct weir_share *share = weir_lines_share(lines);
	struct weir_share_found found = weir_share_find(share, array->extent.key_base + line);
	weir_status status = want ? weir_share_probe(share, found) : (u32)WEIR_E_SHARED;
	weir_addr from = weir_share_buffer(share, found);
	u32 there;

	weir_reconverge();
	status = weir_share_retry(wave, status, found, lines, &array->extent, want ? line : 0, deadline);
	there = status == WEIR_OK;
	weir_reconverge();
	if (weir_ballot(wave, there)) {
		weir_order_loads();
		weir_wave_sync(wave); /* what each lane's look guards (share.T1) is all lanes' to load */
		weir_wave_copy(wave, buffer, from, there ? bytes : 0);
		weir_order_loads();
		weir_wave_sync(wave); /* every lane's part before this lane's second look */
		if (there && !weir_share_unchanged(share, found))
			status = WEIR_E_LOCKED;
	}
	if (status == WEIR_E_SHARED)
		return WEIR_COPY_ABSENT;
	if (status != WEIR_OK && status != WEIR_E_LOCKED)
		return WEIR_COPY_FAILED;
	return status == WEIR_OK ? WEIR_COPY_DONE : WEIR_COPY_RETRY;
}

/* As weir_async_try_cache(), and the event. */
WEIR_FN u32 weir_async_try_plain(u64 wave, u32 want, WEIR_GLOBAL struct weir_array *array, u64 line,
				 WEIR_GLOBAL struct weir_event *event, weir_addr buffer, u32 bytes)
{
	u32 seen = weir_async_try_cache(wave, want, array, line, buffer, bytes);

	if (seen == WEIR_COPY_DONE)
		weir_event_finish(event, WEIR_PATH_CACHE);
	weir_reconverge();
	if (weir_async_try_tier(wave, want && seen == WEIR_COPY_ABSENT, array, line, event, buffer, bytes))
		seen = WEIR_COPY_DONE;
	if (want && seen == WEIR_COPY_ABSENT && weir_at(array->lines, struct weir_lines, 0)->share)
		return WEIR_COPY_FAILED;
	return seen;
}

/*
 * As weir_async_try_cache(), with precedence for the Share Table if there is one (AGILE, section
 * 3.4.1). Lines go from one to the other, and who looks at both may miss one on its way, twice: so
 * a line that was seen in neither counts as absent only if it is with the set's lock held, too.
 */
WEIR_FN u32 weir_async_try_copy(u64 wave, u32 want, WEIR_GLOBAL struct weir_array *array, u64 line,
				WEIR_GLOBAL struct weir_event *event, weir_addr buffer, u32 bytes,
				u64 deadline)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u32 seen = WEIR_COPY_ABSENT, path = WEIR_PATH_SHARE;

	if (!WEIR_SHARE_KNOWN)
		return weir_async_try_plain(wave, want, array, line, event, buffer, bytes);
	if (weir_ballot(wave, lines->share != 0))
		seen = weir_async_try_share(wave, want && lines->share, array, line, buffer, bytes, deadline);
	if (weir_ballot(wave, want && seen == WEIR_COPY_ABSENT)) {
		u32 cached = weir_async_try_cache(wave, want && seen == WEIR_COPY_ABSENT, array, line, buffer,
						  bytes);

		path = seen == WEIR_COPY_ABSENT ? (u32)WEIR_PATH_CACHE : path;
		seen = seen == WEIR_COPY_ABSENT ? cached : seen;
	}
	if (want && seen == WEIR_COPY_ABSENT && lines->share &&
	    !weir_share_try_absent(lines, array->extent.key_base + line))
		seen = WEIR_COPY_RETRY;
	if (want && seen == WEIR_COPY_DONE)
		weir_event_finish(event, path);
	weir_reconverge();
	if (weir_async_try_tier(wave, want && seen == WEIR_COPY_ABSENT, array, line, event, buffer, bytes))
		seen = WEIR_COPY_DONE;
	return seen;
}

/* Why the shared buffer of line @line has no data. */
WEIR_FN weir_status weir_async_share_error(WEIR_GLOBAL struct weir_array *array, u64 line)
{
	WEIR_GLOBAL struct weir_share *share = weir_lines_share(weir_at(array->lines, struct weir_lines, 0));
	weir_status status;

	if (!WEIR_SHARE_KNOWN)
		return WEIR_E_SHARE_TABLE;
	status = weir_share_probe(share, weir_share_find(share, array->extent.key_base + line));
	return status == WEIR_E_SHARED || status == WEIR_E_LOCKED ? (u32)WEIR_OK
								  : status; /* it went meanwhile */
}

/**
 * weir_async_read() - start copying a line of an array into a buffer
 * @array: the array
 * @line: its line (weir_array_line())
 * @buffer: device address of a line's bytes in memory from weir_alloc(), 4-byte aligned; 16 is faster
 * @event: told when the copy is there; must stay until then, as the buffer must
 *
 * A line that the cache or its tier has, clean or dirty, or that is in a shared buffer, is copied at once,
 * and the event is done on return. It stays where it is. Any other is read from its storage straight into the
 * buffer, without a line of the cache: it is up to date there, for a dirty line stays in the cache until its
 * write-back has completed. The copy is as new as anything written before this call began, and does not
 * change with what is written after the event. Of the last line of a storage only what there is.
 *
 * Return: WEIR_OK; WEIR_E_RANGE, WEIR_E_ALIGNMENT, WEIR_E_QUEUE_FULL, or the status of a storage that is
 * dead: nothing was started, weir_sync() names the block, and a wait for the event returns that status at
 * once.
 */
WEIR_FN weir_status weir_async_read(WEIR_GLOBAL struct weir_array *array, u64 line, weir_addr buffer,
				    WEIR_GLOBAL struct weir_event *event)
{
	u64 wave = weir_active();
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(&array->extent, line);
	struct weir_request request = weir_async_request(array, NVME_OPCODE_READ, line, buffer, event);
	u32 bytes = request.blocks << disk->block_log2, started = 0, done;
	u64 deadline = weir_deadline(disk, 0);
	weir_status status = weir_async_start(array, line, request, event);

	started = status == WEIR_OK;
	done = !started;
	WEIR_WAIT_LOOP(wave, !done, iteration) {
		u32 seen, sends;

		seen = weir_async_try_copy(wave, !done, array, line, event, buffer, bytes, deadline);
		done |= seen == WEIR_COPY_DONE;
		/* a dead storage would not end it, or end it for nothing */
		sends = !done && seen == WEIR_COPY_ABSENT && weir_disk_dead(disk) == WEIR_OK;
		done |= weir_disk_try_submit_by(wave, sends, disk, request, weir_age(deadline, iteration));
		if (!done && seen == WEIR_COPY_FAILED)
			status = weir_async_share_error(array, line);
		if (!done && status == WEIR_OK && (status = weir_disk_dead(disk)) == WEIR_OK &&
		    weir_expired(deadline, iteration))
			status = WEIR_E_QUEUE_FULL;
		done |= status != WEIR_OK;
		weir_wait_help(wave, !done, disk, iteration, iteration);
	}
	/* it may have come another way */
	weir_sq_withdraw(wave, started, weir_disk_queue(disk, weir_wave()), deadline);
	if (status == WEIR_OK)
		return status;
	if (started)
		weir_event_refuse(event, status);
	return weir_async_refuse(array, line, status);
}

/**
 * weir_async_write() - start copying a buffer over a line of an array
 * @writer: the array
 * @line: its line (weir_array_line())
 * @buffer: device address of a line's bytes
 * @event: told when the buffer may be changed again and all lanes read what was in it
 *
 * By way of the cache: the line is overwritten there, without reading it first, and is dirty;
 * of a shared line, the buffer. So the event is done on return, and it is durable after
 * weir_writer_flush(). A command from the buffer to storage would be told later, and a reader's
 * miss could fetch the line before that command and keep it after; to prevent that the line would have
 * to be held for as long as the command takes. Waits for a line of the set that is clean: where
 * there is none, for the write-back of one.
 *
 * Return: WEIR_OK; WEIR_E_RANGE, WEIR_E_ALIGNMENT, WEIR_E_READ_ONLY, WEIR_E_TIMEOUT: weir_sync() names
 * the block, and a wait for the event returns that status at once.
 */
WEIR_FN weir_status weir_async_write(WEIR_GLOBAL struct weir_writer *writer, u64 line, weir_addr buffer,
				     WEIR_GLOBAL struct weir_event *event)
{
	WEIR_GLOBAL struct weir_array *array = &writer->array;
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	struct weir_request request = weir_async_request(array, NVME_OPCODE_WRITE, line, buffer, event);
	weir_status status = weir_async_start(array, line, request, event);
	u64 wave = weir_active();
	struct weir_access access;
	weir_status reached;
	u32 started = status == WEIR_OK;

	access.offset = 0;
	access.length = started ? request.blocks << weir_extent_disk(&array->extent, line)->block_log2 : 0;
	access.buffer = buffer;
	access.value.low = 0;
	access.value.high = 0;
	/* who has nothing to write only helps */
	reached = weir_lines_reach(wave, lines, &array->extent, started ? line : 0, WEIR_ACCESS_WRITE, access)
			  .status;
	status = started ? reached : status;
	weir_reconverge();
	if (status == WEIR_OK) {
		weir_event_finish(event, WEIR_PATH_CACHE);
		return status;
	}
	if (started)
		weir_event_refuse(event, status);
	return weir_async_refuse(array, line, status);
}

/** weir_async_test() - weir_test() for a copy of an array's line */
WEIR_FN u64 weir_async_test(WEIR_GLOBAL struct weir_array *array, WEIR_GLOBAL struct weir_event *event)
{
	return weir_disks_test(weir_array_disks(array), event);
}

/** weir_async_wait() - weir_wait() for a copy of an array's line */
WEIR_FN weir_status weir_async_wait(WEIR_GLOBAL struct weir_array *array,
				    WEIR_GLOBAL struct weir_event *event, u64 timeout_us)
{
	return weir_disks_wait_all(weir_array_disks(array), event, 1, timeout_us);
}

/**
 * weir_async_finish() - weir_async_wait() for whoever started the copy with weir_async_read(): one that the
 * controller says is worth another try is started again
 * @array: as for weir_async_read(), like all that follow
 * @line: of the copy
 * @buffer: of the copy
 * @event: of the copy; nobody else may wait for it
 * @timeout_us: of all tries together; 0 for the storage's timeout, WEIR_FOREVER for none
 *
 * As weir_block_wait(). What storage has is as new as it was when the copy was started, or newer.
 *
 * Return: the copy's status; WEIR_E_TIMEOUT if it has not ended in time.
 */
WEIR_FN weir_status weir_async_finish(WEIR_GLOBAL struct weir_array *array, u64 line, weir_addr buffer,
				      WEIR_GLOBAL struct weir_event *event, u64 timeout_us)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(&array->extent, line);
	u64 deadline = weir_deadline(disk, timeout_us);
	weir_status status = weir_async_wait(array, event, timeout_us);

	if (status != WEIR_OK && (weir_event_peek(event) & WEIR_EVENT_LOST))
		status = weir_request_retry(disk,
					    weir_async_request(array, NVME_OPCODE_READ, line, buffer, event),
					    status, deadline);
	weir_reconverge();
	return status;
}

/** weir_async_wait_all() - weir_wait_all() for copies of an array's lines */
WEIR_FN weir_status weir_async_wait_all(WEIR_GLOBAL struct weir_array *array,
					WEIR_GLOBAL struct weir_event *events, u32 count, u64 timeout_us)
{
	return weir_disks_wait_all(weir_array_disks(array), events, count, timeout_us);
}

/** weir_async_wait_any() - weir_wait_any() for copies of an array's lines */
WEIR_FN struct weir_any weir_async_wait_any(WEIR_GLOBAL struct weir_array *array,
					    WEIR_GLOBAL struct weir_event *events, u32 count, u64 timeout_us)
{
	return weir_disks_wait_any(weir_array_disks(array), events, count, timeout_us);
}

#endif
