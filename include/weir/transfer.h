/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transfer.h: lines to and from buffers, and from storage to storage, without waiting for anything.
 *
 * Owns: transfers that share commands. The model is AGILE's async_issue() (section 3.1): lanes that ask for a
 * line which is already on its way share that command. The line goes through the cache, and whoever asked
 * copies it from there when they look: weir_async_read() (<weir/async.h>) is faster where nobody else wants
 * the line, for it takes no line and copies nothing.
 *
 * A transfer is a structure in device memory that one lane has to itself. Starting one makes a few tries and
 * returns; what is left is done by weir_transfer_test() and weir_transfer_wait(), and by nobody else. Between
 * calls a lane holds no lock, no queue slot, no pin. Every function may be called by any subset of a wave's
 * lanes, with different arguments in each.
 */
#ifndef WEIR_TRANSFER_H
#define WEIR_TRANSFER_H

#include <weir/async.h>

enum {
	/* Tries of one call; a lane that gets nowhere in so many iterations leaves the rest to the next call.
	 */
	WEIR_TRANSFER_ITERATIONS = 8,
	/* Times that a line was brought in and gone again before it was copied; then it goes straight to the
	   buffer. */
	WEIR_TRANSFER_REFETCHES = 2,
};

/* What is left of a transfer. */
enum {
	WEIR_TRANSFER_DONE = 0,
	WEIR_TRANSFER_READ = 1,  /* copy the line, once it is in the cache */
	WEIR_TRANSFER_SENT = 2,  /* a command of its own brings it to the buffer */
	WEIR_TRANSFER_WRITE = 3, /* put the buffer into the cache */
};

/**
 * struct weir_transfer - a line under way; one lane's
 * @event: of a command of its own
 * @buffer: device address of a line's bytes
 * @line: of the array that is given to each call
 * @state: WEIR_TRANSFER_..., what is left
 * @status: how it ended
 * @brought: how often this lane found the line absent; of one that writes, how often it tried
 * @commands: that this lane started for it
 */
struct weir_transfer {
	struct weir_event event;
	weir_addr buffer;
	u64 line;
	u32 state;
	weir_status status;
	u32 brought;
	u32 commands;
};

WEIR_ASSERT_SIZE(struct weir_transfer, 40);

WEIR_FN void weir_transfer_end(WEIR_GLOBAL struct weir_transfer *transfer, weir_status status)
{
	transfer->state = WEIR_TRANSFER_DONE;
	transfer->status = status;
}

/* The same of one whose event has no command: it is done, too. */
WEIR_FN void weir_transfer_refuse(WEIR_GLOBAL struct weir_array *array,
				  WEIR_GLOBAL struct weir_transfer *transfer, weir_status status)
{
	weir_event_refuse(&transfer->event, status);
	weir_transfer_end(transfer, weir_async_refuse(array, transfer->line, status));
}

/* Fill in. */
WEIR_FN void weir_transfer_begin(WEIR_GLOBAL struct weir_array *array, u64 line, weir_addr buffer,
				 WEIR_GLOBAL struct weir_transfer *transfer, u32 state)
{
	u32 opcode = state == WEIR_TRANSFER_WRITE ? (u32)NVME_OPCODE_WRITE : (u32)NVME_OPCODE_READ;
	struct weir_request request = weir_async_request(array, opcode, line, buffer, &transfer->event);
	weir_status status = weir_async_start(array, line, request, &transfer->event);

	transfer->buffer = buffer;
	transfer->line = line;
	transfer->state = state;
	transfer->status = WEIR_OK;
	transfer->brought = 0;
	transfer->commands = 0;
	if (status != WEIR_OK)
		weir_transfer_end(transfer, weir_async_refuse(array, line, status));
}

/* Line @line of @array where its set has it: its word says whether it is there, on its way, or could not be
 * fetched. */
WEIR_FN struct weir_found weir_transfer_find(WEIR_GLOBAL struct weir_array *array, u64 line)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u64 key = array->extent.key_base + line;

	return weir_set_find(weir_lines_set(lines, weir_lines_index(lines, key)), key);
}

/*
 * One step of those that read: @seen is where the line was just now. A line that nobody brings gets a
 * command, the first lane's of those that want it. A line that could not be fetched, that has no room, or
 * that is gone again and again, is read straight into the buffer, which tells its error, too. While another
 * lane has the set's lock it is not known whether there is room: that lane may be bringing this very line.
 * None of a dead storage: nobody would fill the line, nor the buffer.
 */
WEIR_FN void weir_transfer_fetch(u64 wave, u32 absent, WEIR_GLOBAL struct weir_array *array,
				 WEIR_GLOBAL struct weir_transfer *transfer, u64 line, u32 last)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(&array->extent, line);
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u64 index = weir_lines_index(lines, array->extent.key_base + line);
	u32 bring = absent && transfer->brought < WEIR_TRANSFER_REFETCHES, direct, locked, sent;
	struct weir_request request;
	struct weir_found found;

	sent = weir_prefetch_try(wave, bring, array, line);
	/* policy.P0: pairs with policy.P1: a lock that is free again has its line's word before it */
	locked = weir_load_u32_acquire_dev(&weir_lines_policy(lines, index)->lock);
	found = weir_transfer_find(array, line);
	if (bring && (sent || found.way != WEIR_WAYS))
		transfer->brought++; /* by this lane's command, or another's */
	direct = absent && !sent && (!bring || (last && !locked && found.way == WEIR_WAYS));
	request = weir_async_request(array, NVME_OPCODE_READ, line, absent ? transfer->buffer : 0,
				     &transfer->event);
	if (weir_disk_try_submit(wave, direct, disk, request))
		transfer->state = WEIR_TRANSFER_SENT;
	if (absent)
		transfer->commands += sent || transfer->state == WEIR_TRANSFER_SENT;
	weir_reconverge();
}

/* Copy what is in the cache, or see to it that it comes. */
WEIR_FN void weir_transfer_read_step(u64 wave, u32 reads, WEIR_GLOBAL struct weir_array *array,
				     WEIR_GLOBAL struct weir_transfer *transfer, u64 line, u32 last)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(&array->extent, line);
	struct weir_request request = weir_async_request(array, NVME_OPCODE_READ, line, 0, &transfer->event);
	u32 bytes = request.blocks << disk->block_log2, seen;
	struct weir_found found;

	if (weir_ballot(wave, reads) == 0)
		return;
	seen = weir_async_try_copy(wave, reads, array, line, &transfer->event, reads ? transfer->buffer : 0,
				   reads ? bytes : 0, weir_deadline(disk, 0));
	if (reads && seen == WEIR_COPY_DONE)
		weir_transfer_end(transfer, WEIR_OK);
	if (reads && seen == WEIR_COPY_FAILED) {
		weir_status why = weir_async_share_error(array, line);

		/* else it went meanwhile, and the line is looked for again */
		if (why != WEIR_OK)
			weir_transfer_refuse(array, transfer, why);
	}
	weir_reconverge();
	found = weir_transfer_find(array, line);
	if (reads && weir_line_state(found.word) == WEIR_LINE_FAILED)
		transfer->brought = WEIR_TRANSFER_REFETCHES; /* its own command says why */
	weir_transfer_fetch(
		wave,
		reads && seen == WEIR_COPY_ABSENT && weir_disk_dead(disk) == WEIR_OK &&
			(found.way == WEIR_WAYS || weir_line_state(found.word) == WEIR_LINE_FAILED),
		array, transfer, line, last);
}

/* The line's write-back, if it is dirty and nobody is at it: it waits for no flush. */
WEIR_FN void weir_transfer_write_back(u64 wave, u32 some, WEIR_GLOBAL struct weir_array *array, u64 line)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	u64 index = weir_lines_index(lines, array->extent.key_base + line);
	struct weir_found found = weir_transfer_find(array, line);
	u32 begun = some && found.way != WEIR_WAYS && weir_line_state(found.word) == WEIR_LINE_MODIFIED &&
		    weir_line_evictable(found.word) &&
		    weir_line_try_write_back(lines, index, found.way, found.word);

	weir_reconverge();
	weir_lines_write_back(wave, lines, index, begun ? found.way + 1 : 0);
}

/* Put the buffer into the cache if there is room just now, and begin the line's write-back. */
WEIR_FN void weir_transfer_write_step(u64 wave, u32 writes, WEIR_GLOBAL struct weir_array *array,
				      WEIR_GLOBAL struct weir_transfer *transfer, u64 line)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	struct weir_request request = weir_async_request(array, NVME_OPCODE_WRITE, line, 0, &transfer->event);
	struct weir_access access;
	weir_status status;
	u32 done;

	if (weir_ballot(wave, writes) == 0)
		return;
	access.offset = 0;
	access.length = writes ? request.blocks << weir_extent_disk(&array->extent, line)->block_log2 : 0;
	access.buffer = writes ? transfer->buffer : 0;
	access.value.low = 0;
	access.value.high = 0;
	status = weir_lines_access_within(wave, lines, &array->extent, line, WEIR_ACCESS_WRITE, access,
					  writes ? transfer->brought++ : 0, 1)
			 .status;
	weir_reconverge();
	if (WEIR_SHARE_KNOWN) { /* in a shared buffer it takes what it takes until that is free */
		access.length = status == WEIR_E_SHARED ? access.length : 0;
		if (weir_ballot(wave, access.length != 0)) {
			weir_status shared =
				weir_lines_reach(wave, lines, &array->extent, line, WEIR_ACCESS_WRITE, access)
					.status;

			status = access.length ? shared : status;
		}
		weir_reconverge();
	}
	done = writes && status == WEIR_OK;
	weir_transfer_write_back(wave, done, array, line);
	if (done) {
		weir_event_finish(&transfer->event, WEIR_PATH_CACHE);
		weir_transfer_end(transfer, WEIR_OK);
	} else if (writes && status != WEIR_E_LOCKED) {
		weir_transfer_refuse(array, transfer, status);
	}
	weir_reconverge();
}

/* How the command of this transfer's own ended, if it has. */
WEIR_FN void weir_transfer_sent_step(u64 wave, u32 sent, WEIR_GLOBAL struct weir_array *array,
				     WEIR_GLOBAL struct weir_transfer *transfer)
{
	u64 word;

	if (weir_ballot(wave, sent) == 0)
		return;
	/* of a stripe's storages the one that has the line: if that is dead, nobody answers */
	word = sent ? weir_event_poll(weir_disks_one(weir_extent_disk(&array->extent, transfer->line)),
				      &transfer->event)
		    : 0;
	word = weir_event_retry(wave, &transfer->event, word, WEIR_FOREVER);
	if (sent && word)
		weir_transfer_end(transfer, weir_event_status(word));
	weir_reconverge();
}

/* One iteration of everything that is left. @kind: WEIR_TRANSFER_READ or _WRITE, of transfers that have just
 * begun so and go no further here; 0: any. It is a constant: the others' steps are not compiled. */
WEIR_FN void weir_transfer_step(u64 wave, u32 some, WEIR_GLOBAL struct weir_array *array,
				WEIR_GLOBAL struct weir_transfer *transfer, u32 last, u32 kind)
{
	u32 state = some ? transfer->state : (u32)WEIR_TRANSFER_DONE;
	u64 line = state ? transfer->line : 0;

	if (!kind)
		weir_transfer_sent_step(wave, state == WEIR_TRANSFER_SENT, array, transfer);
	if (kind != WEIR_TRANSFER_WRITE)
		weir_transfer_read_step(wave, state == WEIR_TRANSFER_READ, array, transfer, line, last);
	if (kind != WEIR_TRANSFER_READ)
		weir_transfer_write_step(wave, state == WEIR_TRANSFER_WRITE, array, transfer, line);
	if (state && state != WEIR_TRANSFER_SENT && transfer->state == state &&
	    weir_disk_dead(weir_extent_disk(&array->extent, line)) != WEIR_OK)
		weir_transfer_refuse(array, transfer, weir_disk_dead(weir_extent_disk(&array->extent, line)));
	weir_reconverge();
}

/* Whom a lane helps that waits for a transfer: the line's storage, or whose line is to make room for it. */
WEIR_FN WEIR_GLOBAL struct weir_disk *weir_transfer_disk(WEIR_GLOBAL struct weir_array *array, u32 waits,
							 WEIR_GLOBAL struct weir_transfer *transfer,
							 u32 iteration)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);
	WEIR_GLOBAL struct weir_disk *disk = weir_disks_pick(weir_array_disks(array), iteration);

	if (!waits || transfer->state != WEIR_TRANSFER_WRITE || !(weir_popcount(iteration) & 1))
		return disk;
	return weir_set_disk(lines, weir_lines_index(lines, array->extent.key_base + transfer->line),
			     iteration, disk);
}

/* Does this transfer still have to try something itself, rather than wait for a command? */
WEIR_FN u32 weir_transfer_tries(WEIR_GLOBAL struct weir_array *array,
				WEIR_GLOBAL struct weir_transfer *transfer)
{
	return transfer->state == WEIR_TRANSFER_WRITE ||
	       (transfer->state == WEIR_TRANSFER_READ && !weir_array_resident(array, transfer->line));
}

/* The first tries, of transfers of @kind. */
WEIR_FN weir_status weir_transfer_start(u64 wave, WEIR_GLOBAL struct weir_array *array,
					WEIR_GLOBAL struct weir_transfer *transfer, u32 kind)
{
	u32 tries = 1;

	for (u32 iteration = 0; iteration < WEIR_TRANSFER_ITERATIONS && weir_ballot(wave, tries) != 0;
	     iteration++) {
		weir_reconverge();
		weir_transfer_step(wave, tries && transfer->state, array, transfer,
				   iteration == WEIR_TRANSFER_ITERATIONS - 1, kind);
		tries = transfer->state && weir_transfer_tries(array, transfer);
	}
	return transfer->state ? (u32)WEIR_OK : transfer->status;
}

/**
 * weir_transfer_read() - start copying a line of an array into a buffer, by a command that everybody shares
 * who wants the line
 * @array: the array
 * @line: its line (weir_array_line())
 * @buffer: device address of a line's bytes in memory from weir_alloc(), 4-byte aligned; 16 is faster
 * @transfer: this lane's, in device memory; it and the buffer stay until it is done
 *
 * The line comes into the cache if it is not there. Of all lanes of the device that ask before it has come
 * one submits a command. The copy is made by this lane's later calls, and is as new as anything written
 * before this call, or newer. Where the cache has no room for the line, it is read straight into the buffer.
 *
 * Return: WEIR_OK; WEIR_E_RANGE, WEIR_E_ALIGNMENT: nothing was started, and weir_sync() names the block; so
 * does a wait.
 */
WEIR_FN weir_status weir_transfer_read(WEIR_GLOBAL struct weir_array *array, u64 line, weir_addr buffer,
				       WEIR_GLOBAL struct weir_transfer *transfer)
{
	u64 wave = weir_active();

	weir_transfer_begin(array, line, buffer, transfer, WEIR_TRANSFER_READ);
	weir_reconverge();
	return weir_transfer_start(wave, array, transfer, WEIR_TRANSFER_READ);
}

/**
 * weir_transfer_write() - start writing a buffer over a line of an array, to its storage
 * @writer: the array
 * @line: its line
 * @buffer: device address of a line's bytes
 * @transfer: as for weir_transfer_read()
 *
 * Where the cache has room, or has the line, the buffer is copied there and the line's command to storage is
 * begun, both before the return. Where it has none this lane's later calls try again; none of them waits for
 * room. When the transfer is done, all lanes read what was in the buffer, which may be changed; it is durable
 * after weir_writer_flush().
 *
 * Return: as weir_transfer_read(); WEIR_E_READ_ONLY.
 */
WEIR_FN weir_status weir_transfer_write(WEIR_GLOBAL struct weir_writer *writer, u64 line, weir_addr buffer,
					WEIR_GLOBAL struct weir_transfer *transfer)
{
	u64 wave = weir_active();

	weir_transfer_begin(&writer->array, line, buffer, transfer, WEIR_TRANSFER_WRITE);
	weir_reconverge();
	return weir_transfer_start(wave, &writer->array, transfer, WEIR_TRANSFER_WRITE);
}

/**
 * weir_transfer_test() - go on with a transfer, without waiting
 * @array: as it was given when the transfer was started, or the writer's
 * @transfer: this lane's
 *
 * Return: 1 once it is done; transfer->status then says how it ended.
 */
WEIR_FN u32 weir_transfer_test(WEIR_GLOBAL struct weir_array *array,
			       WEIR_GLOBAL struct weir_transfer *transfer)
{
	u64 wave = weir_active(), needy;
	u32 iteration = (u32)weir_broadcast_u64(wave, weir_clock_ns() >> 10);

	weir_transfer_step(wave, 1, array, transfer, 1, 0);
	needy = weir_ballot(wave, transfer->state != WEIR_TRANSFER_DONE);
	if (needy)
		(void)weir_disk_help(wave, needy, weir_transfer_disk(array, 1, transfer, iteration),
				     iteration);
	weir_reconverge();
	return transfer->state == WEIR_TRANSFER_DONE;
}

/**
 * weir_transfer_wait() - wait until several transfers are done
 * @array: as for weir_transfer_test(), the same for all of them
 * @transfers: struct weir_transfer[count], this lane's
 * @count: of these; may differ from lane to lane, 0 is done at once
 * @timeout_us: 0 for the storage's timeout, WEIR_FOREVER for none
 *
 * Return: WEIR_OK, or the first status in their order that is not; WEIR_E_TIMEOUT if one has not ended in
 * time: a buffer may be the controller's still, if the transfer's state is WEIR_TRANSFER_SENT.
 */
WEIR_FN weir_status weir_transfer_wait(WEIR_GLOBAL struct weir_array *array,
				       WEIR_GLOBAL struct weir_transfer *transfers, u32 count, u64 timeout_us)
{
	struct weir_disks disks = weir_array_disks(array);
	u64 deadline = weir_deadline(weir_at(disks.first, struct weir_disk, 0), timeout_us),
	    wave = weir_active();
	weir_status status = WEIR_OK;
	u32 at = 0;

	WEIR_WAIT_LOOP(wave, at < count, iteration) {
		weir_transfer_step(wave, at < count, array, transfers + (at < count ? at : 0), 1, 0);
		if (at < count && transfers[at].state == WEIR_TRANSFER_DONE) {
			status = status == WEIR_OK ? transfers[at].status : status;
			at++;
		} else if (at < count && weir_expired(deadline, iteration)) {
			status = status == WEIR_OK ? (u32)WEIR_E_TIMEOUT : status;
			at = count;
		}
		weir_wait_help(wave, at < count,
			       weir_transfer_disk(array, at < count, transfers + at, iteration), iteration,
			       iteration);
	}
	return status;
}

/* What @room holds of line @line behind the end of its storage is zeros, and not of another line. */
WEIR_FN void weir_transfer_clear(WEIR_GLOBAL struct weir_array *array, u64 line, weir_addr room)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(array->lines, struct weir_lines, 0);

	for (u32 at = weir_extent_bytes(lines, &array->extent, line); at < 1u << lines->line_log2; at += 4)
		weir_data_store_u32(room + at, 0);
}

/**
 * weir_transfer_lines() - copy lines from one array to another, storage to storage
 * @from: the array to read
 * @from_line: its first line
 * @to: the array to write, of a cache with lines as long; the ranges do not overlap
 * @to_line: its first line
 * @count: lines; 0: this lane copies nothing, but helps
 * @room: device address of this lane's buffer of one line, from weir_alloc()
 * @transfer: this lane's
 *
 * Each line is read by a shared command and written as a whole; write-backs go on while the next line is
 * read. Where the storages of @from end within a line, the rest of it is written as zeros.
 *
 * Return: WEIR_OK, or the first error, after which the rest was not copied.
 */
WEIR_FN weir_status weir_transfer_lines(WEIR_GLOBAL struct weir_array *from, u64 from_line,
					WEIR_GLOBAL struct weir_writer *to, u64 to_line, u64 count,
					weir_addr room, WEIR_GLOBAL struct weir_transfer *transfer)
{
	u64 wave = weir_active();
	weir_status status = WEIR_OK;

	transfer->state = WEIR_TRANSFER_DONE;
	for (u64 i = 0; weir_ballot(wave, i < count && status == WEIR_OK) != 0; i++) {
		u32 goes = i < count && status == WEIR_OK;

		weir_reconverge();
		if (goes)
			weir_transfer_begin(from, from_line + i, room, transfer, WEIR_TRANSFER_READ);
		weir_reconverge();
		status = weir_transfer_wait(from, transfer, goes, 0) | (goes ? (u32)WEIR_OK : status);
		goes &= status == WEIR_OK;
		if (goes) {
			weir_transfer_clear(from, from_line + i, room);
			weir_transfer_begin(&to->array, to_line + i, room, transfer, WEIR_TRANSFER_WRITE);
		}
		weir_reconverge();
		status = weir_transfer_wait(&to->array, transfer, goes, 0) | (goes ? (u32)WEIR_OK : status);
	}
	return status;
}

/**
 * weir_transfer_buffers() - copy from one buffer of the device to another
 * @to: device address
 * @from: device address
 * @bytes: any number; 0: this lane copies nothing, but helps
 *
 * All lanes that call together copy all of their blocks together, 16 bytes per access where alignments allow.
 * Afterwards all of them see what any of them copied.
 */
WEIR_FN void weir_transfer_buffers(weir_addr to, weir_addr from, u32 bytes)
{
	u64 wave = weir_active();

	weir_wave_sync(wave);
	weir_wave_move(wave, to, from, bytes);
	weir_wave_sync(wave);
}

#endif
