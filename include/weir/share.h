/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share.h: lines in users' buffers that lanes share by pointer (AGILE, section 3.4.1).
 *
 * Owns: acquiring, changing and releasing a shared buffer. A cache has a Share Table if the
 * host made one for it (weir_share_create()). All kernels that use such a cache are built for it:
 * by including this header first, or with -DWEIR_SHARE_TABLE (-Dshare_table=true for all of a
 * build); others are refused their misses, with WEIR_E_SHARE_TABLE. Then, while a line is in a buffer, it is
 * not in the cache, and every access of this cache's arrays finds the buffer instead: elements and spans that
 * are read or written (array.h, writer.h), copies (async.h) and requests here. Prefetches and views leave
 * such lines out. disk.h knows nothing of it, as of the cache.
 *
 * The lane whose buffer it is, its owner, gets the buffer back when the last holder has let
 * go; weir_share_in_use() tells. Until then nobody may use the memory for anything else.
 *
 * A changed buffer goes to the cache, as a dirty line, when its last holder lets go: after
 * that it is read there, and durable after a flush. Nothing is held but the reference: an
 * entry waits for nobody, so lanes may hold any number of them, in any order.
 */
#ifndef WEIR_SHARE_H
#define WEIR_SHARE_H

#ifndef WEIR_SHARE_TABLE
#ifdef WEIR_CORE_LINE_H
#error "weir: include <weir/share.h> before <weir/array.h>, or build with -DWEIR_SHARE_TABLE"
#endif
#define WEIR_SHARE_TABLE
#endif

#include <weir/async.h>
#include <weir/core/share/share_policy.h>

/* What weir_share_acquire() got. */
enum {
	WEIR_SHARED_NOTHING = 0, /* an error */
	WEIR_SHARED_OWNER = 1,   /* this lane's buffer, which others may be given */
	WEIR_SHARED_GUEST = 2,   /* another's buffer */
	WEIR_SHARED_COPY =
		3, /* this lane's buffer, which nobody else sees: no room in the table, or its policy */
};

/**
 * struct weir_shared - a hold on a buffer with a line in it
 * @buffer: device address of the line's bytes
 * @line: line of the array
 * @position: of the entry
 * @event: WEIR_SHARED_COPY: struct weir_event of the copy
 * @kind: WEIR_SHARED_...
 * @status: why it is nothing, or WEIR_OK
 */
struct weir_shared {
	weir_addr buffer;
	u64 line;
	u64 position;
	weir_addr event;
	u32 kind;
	weir_status status;
};

WEIR_FN WEIR_GLOBAL struct weir_share *weir_array_share(WEIR_GLOBAL struct weir_array *array)
{
	return weir_at(weir_at(array->lines, struct weir_lines, 0)->share, struct weir_share, 0);
}

WEIR_FN struct weir_shared weir_shared_none(u64 line, weir_status status)
{
	struct weir_shared shared;

	shared.buffer = 0;
	shared.line = line;
	shared.position = 0;
	shared.event = 0;
	shared.kind = WEIR_SHARED_NOTHING;
	shared.status = status;
	return shared;
}

/*
 * One iteration with an entry that is there: join it, if the policy lets this lane.
 * Return: @shared, with its kind set as soon as it is known.
 */
WEIR_FN struct weir_shared weir_share_try_guest(WEIR_GLOBAL struct weir_share *share,
						WEIR_GLOBAL struct weir_disk *disk,
						struct weir_share_found found, struct weir_shared shared,
						u64 deadline)
{
	weir_status status = weir_share_probe(share, found);

	if (weir_status_retryable(status) &&
	    !weir_share_has_failed(share, found, weir_share_retries(share, disk, found, status, deadline)))
		status = WEIR_E_LOCKED;                     /* it is tried again, by whoever waits for it */
	if (status != WEIR_OK && status != WEIR_E_LOCKED) { /* it could not be filled, or it went just now */
		shared.status = status == WEIR_E_SHARED ? (u32)WEIR_OK : status;
	} else if (!weir_share_policy_join(shared.line, weir_thread(), weir_share_state(found.word),
					   weir_share_refs(found.word))) {
		weir_add_u64_relaxed_dev(&share->declined, 1);
		shared.kind = WEIR_SHARED_COPY;
	} else if (weir_share_refs(found.word) == WEIR_SHARE_MOST) {
		weir_add_u64_relaxed_dev(&share->unshared, 1);
		shared.kind = WEIR_SHARED_COPY;
	} else if (weir_share_try_join(share, found)) {
		weir_add_u64_relaxed_dev(&share->joined, 1);
		shared.kind = WEIR_SHARED_GUEST;
		shared.position = found.position;
		shared.buffer = weir_share_buffer(share, found);
	}
	return shared;
}

/* What registering this lane's buffer led to. */
WEIR_FN struct weir_shared weir_share_owned(WEIR_GLOBAL struct weir_share *share,
					    struct weir_registered registered, weir_addr buffer,
					    struct weir_shared shared)
{
	if (registered.outcome == WEIR_SHARE_DONE) {
		weir_add_u64_relaxed_dev(&share->registered, 1);
		shared.kind = WEIR_SHARED_OWNER;
		shared.position = registered.position;
		shared.buffer = buffer;
	} else if (registered.outcome == WEIR_SHARE_FULL) {
		weir_add_u64_relaxed_dev(&share->unshared, 1);
		shared.kind = WEIR_SHARED_COPY;
	}
	return shared;
}

/* The flat loop of weir_share_acquire(): until this lane is an owner, a guest, or to have a copy. */
WEIR_FN struct weir_shared weir_share_find_reference(u64 wave, WEIR_GLOBAL struct weir_array *array,
						     weir_addr buffer, struct weir_shared shared)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	WEIR_GLOBAL struct weir_share *share = weir_array_share(array);
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(&array->extent, shared.line);
	u64 deadline = weir_deadline(disk, 0), key = array->extent.key_base + shared.line;
	u32 admitted = weir_share_policy_admit(shared.line, weir_thread()) != 0;
	u32 done = shared.status != WEIR_OK || shared.kind == WEIR_SHARED_COPY;

	WEIR_WAIT_LOOP(wave, !done, iteration) {
		struct weir_share_found found;
		struct weir_registered registered;

		found = weir_share_find(share, key);
		if (!done && found.word) {
			shared = weir_share_try_guest(share, disk, found, shared, deadline);
		} else if (!done && !admitted) {
			weir_add_u64_relaxed_dev(&share->declined, 1);
			shared.kind = WEIR_SHARED_COPY;
		}
		weir_reconverge();
		registered = weir_share_try_register(wave, !done && !found.word && admitted, lines,
						     &array->extent, shared.line, buffer);
		shared = weir_share_owned(share, registered, buffer, shared);
		done |= shared.kind != WEIR_SHARED_NOTHING || shared.status != WEIR_OK;
		if (!done) {
			weir_status over = weir_share_over(disk, deadline, iteration);

			shared.status = over == WEIR_E_LOCKED ? (u32)WEIR_OK : over;
			done = over != WEIR_E_LOCKED;
		}
		weir_wait_help(wave, !done, disk, iteration, iteration);
	}
	return shared;
}

/**
 * weir_share_acquire() - hold a line in a buffer: another lane's if it is in one, else this lane's
 * @array: the array; its cache must have a Share Table, else this is weir_async_read()
 * @line: its line (weir_array_line())
 * @buffer: device address of room for a line, 4-byte aligned; used if the line is in no buffer yet
 * @event: used for a copy only; must stay until weir_share_wait() has returned, but for WEIR_E_TIMEOUT
 *
 * The table comes first, then the cache and its tier, from which the line moves to the buffer, dirty or not;
 * then storage, from which it is being read on return. So what is in the buffer counts only after
 * weir_share_wait(). Lanes that acquire one line at once end up with one buffer, and one command.
 * Waits for a queue slot, and for a command that is under way on the very line (a fetch, a write-back).
 *
 * A copy (kind WEIR_SHARED_COPY) is as of weir_async_read(), and need not be released.
 *
 * Return: the hold; kind WEIR_SHARED_NOTHING and a status if there is none, in which case
 * weir_sync() names the block. Whatever it got, the lane waits and releases in any order it likes.
 */
WEIR_FN struct weir_shared weir_share_acquire(WEIR_GLOBAL struct weir_array *array, u64 line,
					      weir_addr buffer, WEIR_GLOBAL struct weir_event *event)
{
	u64 wave = weir_active();
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	struct weir_shared shared = weir_shared_none(
		line, weir_async_check(array, line,
				       weir_async_request(array, NVME_OPCODE_READ, line, buffer, event)));

	if (shared.status == WEIR_OK)
		shared.status = weir_tier_refuses(lines);
	if (shared.status == WEIR_OK && !weir_policy_known(lines->policy))
		shared.status = WEIR_E_POLICY; /* a change will want room in the cache */
	if (!lines->share)
		shared.kind = WEIR_SHARED_COPY;
	weir_reconverge();
	shared = weir_share_find_reference(wave, array, buffer, shared);
	weir_reconverge();
	if (shared.kind == WEIR_SHARED_COPY) {
		shared.buffer = buffer;
		shared.event = WEIR_ADDR(event);
		shared.status = weir_async_read(array, line, buffer, event);
		shared.kind = shared.status == WEIR_OK ? shared.kind : (u32)WEIR_SHARED_NOTHING;
	} else if (shared.status != WEIR_OK) {
		(void)weir_async_refuse(array, line, shared.status);
	}
	return shared;
}

/* Has this lane a hold of an entry, rather than a copy or nothing? */
WEIR_FN u32 weir_shared_holds(struct weir_shared shared)
{
	return shared.kind == WEIR_SHARED_OWNER || shared.kind == WEIR_SHARED_GUEST;
}

/* The entry of a hold; word 0: it has none, or the table is gone. */
WEIR_FN struct weir_share_found weir_shared_entry(WEIR_GLOBAL struct weir_array *array,
						  struct weir_shared shared)
{
	struct weir_share_found found;

	found.word = 0;
	found.position = shared.position;
	if (weir_shared_holds(shared) && WEIR_ADDR(weir_array_share(array)) != 0)
		/* line.L1: pairs with line.L0 of the entry's command, or with share.T0 */
		found.word = weir_poll_u64_dev(weir_share_word(weir_array_share(array), shared.position),
					       WEIR_LINE_BIT_READY | WEIR_LINE_BIT_FAILED);
	return found;
}

/* How far a hold is: @found is its entry, @event the word of its event. */
WEIR_FN weir_status weir_shared_status(WEIR_GLOBAL struct weir_array *array, struct weir_shared shared,
				       struct weir_share_found found, u64 event)
{
	if (shared.kind == WEIR_SHARED_NOTHING)
		return shared.status;
	if (shared.kind == WEIR_SHARED_COPY)
		return event ? weir_event_status(event) : (u32)WEIR_E_LOCKED;
	if (found.word == 0) /* this lane's reference would keep it */
		return WEIR_E_CLOSED;
	if (weir_line_state(found.word) == WEIR_LINE_BUSY)
		return WEIR_E_LOCKED;
	/* relaxed: line.L1 came before, and this lane's reference keeps it */
	return weir_line_readable(found.word)
		       ? (u32)WEIR_OK
		       : weir_load_u32_relaxed_dev(
				 &weir_share_slot(weir_array_share(array), shared.position)->status);
}

/* One look at what this lane waits for, if @want; what failed is submitted again, as often as its storage
 * allows. */
WEIR_FN weir_status weir_share_try_wait(u64 wave, u32 want, WEIR_GLOBAL struct weir_array *array,
					struct weir_shared shared, u64 deadline)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(shared.event, struct weir_event, 0);
	struct weir_share_found found;
	weir_status status = WEIR_E_LOCKED;
	u64 word = 0;

	found.word = 0;
	found.position = 0;
	if (want) {
		word = shared.kind == WEIR_SHARED_COPY ? weir_event_peek(event) : 0;
		found = weir_shared_entry(array, shared);
	}
	weir_reconverge();
	word = weir_event_retry(wave, event, word, deadline);
	if (want)
		status = weir_shared_status(array, shared, found, word);
	weir_reconverge();
	if (weir_ballot(wave, found.word != 0) == 0) /* the cache may have no table */
		return status;
	return weir_share_retry(wave, status, found, weir_at(array->lines, struct weir_lines, 0),
				&array->extent, found.word ? shared.line : 0, deadline);
}

/**
 * weir_share_test() - is the buffer filled? Waits for nothing, helps nobody
 *
 * What failed and can be tried again is submitted again, as by weir_share_wait(). Acquire, as
 * weir_share_wait(). Return: WEIR_E_LOCKED not yet; WEIR_OK; why it could not be filled.
 */
WEIR_FN weir_status weir_share_test(WEIR_GLOBAL struct weir_array *array, struct weir_shared shared)
{
	return weir_share_try_wait(weir_active(), 1, array, shared, WEIR_FOREVER);
}

/* weir_share_over() of a hold; of a copy not before nobody writes to its event any more. */
WEIR_FN weir_status weir_shared_over(struct weir_shared shared, WEIR_GLOBAL struct weir_disk *disk,
				     u64 deadline, u32 iteration)
{
	if (shared.kind != WEIR_SHARED_COPY || weir_disk_over(disk) != WEIR_OK)
		return weir_share_over(disk, deadline, iteration);
	return weir_expired(deadline, iteration) ? WEIR_E_TIMEOUT : WEIR_E_LOCKED;
}

/**
 * weir_share_wait() - wait until the buffer is filled
 * @array: the array
 * @shared: from weir_share_acquire()
 * @timeout_us: 0 for the storage's timeout, WEIR_FOREVER for none
 *
 * A command that failed and is worth another try is submitted again, as by weir_wait(): by any lane that
 * waits for the buffer.
 *
 * Return: WEIR_OK: the line's bytes may be read; else why not. It is held either way.
 */
WEIR_FN weir_status weir_share_wait(WEIR_GLOBAL struct weir_array *array, struct weir_shared shared,
				    u64 timeout_us)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(&array->extent, shared.kind ? shared.line : 0);
	u64 wave = weir_active(), deadline = weir_deadline(disk, timeout_us);
	weir_status status = WEIR_E_LOCKED, found;

	WEIR_WAIT_LOOP(wave, status == WEIR_E_LOCKED, iteration) {
		found = weir_share_try_wait(wave, status == WEIR_E_LOCKED, array, shared, deadline);
		status = status == WEIR_E_LOCKED ? found : status;
		if (status == WEIR_E_LOCKED)
			status = weir_shared_over(shared, disk, deadline, iteration);
		weir_wait_help(wave, status == WEIR_E_LOCKED, disk, iteration, iteration);
	}
	return status;
}

/**
 * weir_share_modify() - this lane is about to write to the buffer
 * @writer: the array; only who has a writer can make a line dirty
 * @shared: from weir_share_acquire(), after weir_share_wait() was WEIR_OK
 *
 * Exclusive becomes Modified, Shared Owned. All holders see the same memory, so lanes that
 * write to the same words of it need an order of their own; what each wrote reaches the cache when
 * the last one has let go.
 *
 * Return: WEIR_OK; WEIR_E_UNSHARED for a copy, which nobody else sees: write it by
 * weir_async_write(); WEIR_E_READ_ONLY, of which weir_sync() names the block; WEIR_E_LOCKED: not filled yet.
 */
WEIR_FN weir_status weir_share_modify(WEIR_GLOBAL struct weir_writer *writer, struct weir_shared shared)
{
	WEIR_GLOBAL struct weir_array *array = &writer->array;
	u64 event = shared.kind == WEIR_SHARED_COPY
			    ? weir_event_test(weir_at(shared.event, struct weir_event, 0))
			    : 0;
	weir_status status = weir_shared_status(array, shared, weir_shared_entry(array, shared), event);

	if (status != WEIR_OK)
		return status;
	if (shared.kind == WEIR_SHARED_COPY)
		return WEIR_E_UNSHARED;
	if (weir_extent_disk(&array->extent, shared.line)->flags & WEIR_DISK_READ_ONLY)
		return weir_async_refuse(array, shared.line, WEIR_E_READ_ONLY);
	(void)weir_share_changed(weir_array_share(array), shared.position);
	return WEIR_OK;
}

/**
 * weir_share_release() - let go of a buffer
 * @array: the array
 * @shared: from weir_share_acquire()
 *
 * The last holder of a changed buffer propagates it: the line is in the cache, dirty, on return.
 * An owner that is not the last may leave all the same, unless the policy says otherwise; but its
 * memory stays in use (weir_share_in_use()). Waits, helping, for a command that still fills the
 * buffer and for a line of the cache; never for other holders.
 *
 * Return: WEIR_OK; WEIR_E_SHARED: the policy keeps the owner until the others have gone: held, call
 * again later; WEIR_E_CLOSED: the host has freed the table; else why a changed buffer could not be
 * propagated: held, and nothing is lost.
 */
WEIR_FN weir_status weir_share_release(WEIR_GLOBAL struct weir_array *array, struct weir_shared shared)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u64 wave = weir_active();
	weir_status status = WEIR_OK, left;
	u32 leaves;

	if (weir_shared_holds(shared) && !lines->share) {
		status = WEIR_E_CLOSED;
	} else if (shared.kind == WEIR_SHARED_OWNER) {
		/* relaxed: a guest that goes meanwhile will be seen next time; none of them can become an
		 * owner */
		u64 word =
			weir_load_u64_relaxed_dev(weir_share_word(weir_array_share(array), shared.position));

		if ((word & WEIR_SHARE_DIRTY) && weir_share_refs(word) > 1 &&
		    weir_share_policy_owner_stays(shared.line, weir_thread(), weir_share_refs(word)))
			status = WEIR_E_SHARED;
	}
	leaves = status == WEIR_OK && weir_shared_holds(shared);
	weir_reconverge();
	left = weir_share_leave(wave, leaves, lines, &array->extent, leaves ? shared.line : 0,
				leaves ? shared.position : 0);
	status = leaves ? left : status;
	weir_reconverge();
	if (status != WEIR_OK && status != WEIR_E_SHARED)
		(void)weir_async_refuse(array, shared.line, status);
	return status;
}

/**
 * weir_share_in_use() - does anybody hold this lane's buffer for a line still?
 * @array: the array
 * @line: its line
 * @buffer: what weir_share_acquire() was given
 *
 * One look; acquire. An owner asks before it uses the memory for anything else.
 */
WEIR_FN u32 weir_share_in_use(WEIR_GLOBAL struct weir_array *array, u64 line, weir_addr buffer)
{
	WEIR_GLOBAL struct weir_share *share = weir_array_share(array);
	struct weir_share_found found;

	if (!weir_at(array->lines, struct weir_lines, 0)->share)
		return 0;
	/* share.T1: pairs with share.T3 */
	found = weir_share_find(share, array->extent.key_base + line);
	weir_order_loads();
	return found.word && weir_share_buffer(share, found) == buffer;
}

#endif
