/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_bounds_test.c: how much the target takes of a host, and gives it, where the host asks for the most
 * or for an unusual part; and what is counted of that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "target_host.h"
#include "target/parts.h"

#define DNR NVME_STATUS_DNR

enum { READS = 31, READ_BYTES = 1 << 17, READ_BLOCKS = READ_BYTES / 512, STEPS = 1000, NAMESPACES = 516 };

static struct weir_target *target;
static struct host admin, queue, other;
static u8 pattern[READS * READ_BYTES];

static int fill(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (u8)(i * 7 + i / 256 + i / 65536 + 1);
	return 0;
}

static int serve(void **state)
{
	(void)state;
	host_stepped = target =
		host_target_of(1, NULL, "virt:1M?block=512&fault=late:op=flush:us=1000000000");
	admin.socket = queue.socket = other.socket = -1;
	return 0;
}

static int end(void **state)
{
	(void)state;
	host_stepped = NULL;
	close(admin.socket), close(queue.socket), close(other.socket);
	weir_target_destroy(target);
	return 0;
}

static void open_both(u8 digests, u8 cattr)
{
	host_queue(&queue, target, host_admin(&admin, target, 0), 1, digests, cattr);
}

/* The connection that came last. */
static struct connection *last(void)
{
	return target->servers[0].connections;
}

static u32 read_back(u32 nsid, u64 lba, u32 bytes)
{
	return host_take(&queue, host_io(&queue, NVME_OPCODE_READ, nsid, lba, bytes / 512), bytes);
}

/* All that a capsule brings has room, though its command is for less. */
static void test_a_capsule_longer_than_its_descriptor(void **state)
{
	static const u8 zeros[512];
	struct nvme_sqe sqe;
	u32 room = 0;

	(void)state;
	open_both(0, 0);
	sqe = host_io(&queue, NVME_OPCODE_WRITE, 1, 0, 1);
	host_sgl(&sqe, NVME_SGL_DATA_BLOCK_OFFSET, 512);
	host_capsule(&queue, &sqe, pattern, TARGET_IN_CAPSULE_BYTES);
	assert_int_equal(host_response(&queue, NULL), 0);
	for (u32 i = 0; i < last()->entries; i++)
		room = last()->commands[i].data_room > room ? last()->commands[i].data_room : room;
	assert_true(room >= TARGET_IN_CAPSULE_BYTES);
	assert_int_equal(read_back(1, 0, 1024), 0);
	assert_memory_equal(queue.data, pattern, 512);
	assert_memory_equal(queue.data + 512, zeros, 512);
	host_capsule(&queue, &sqe, pattern, TARGET_IN_CAPSULE_BYTES + 1); /* more than was said */
	assert_true(host_ended(&queue, NVME_TCP_FES_LIMIT));
}

/* ICDOFF is 0: data in a capsule begins where the data begins. */
static void test_data_behind_an_offset_of_its_capsule(void **state)
{
	static const u8 zeros[512];
	struct nvme_sgl sgl = { .address = 512, .bytes = 512, .type = NVME_SGL_DATA_BLOCK_OFFSET };
	struct nvme_sqe sqe;

	(void)state;
	open_both(0, 0);
	sqe = host_io(&queue, NVME_OPCODE_WRITE, 1, 0, 1);
	host_sgl(&sqe, NVME_SGL_DATA_BLOCK_OFFSET, 512);
	memcpy(&sqe.prp1, &sgl, sizeof(sgl));
	host_capsule(&queue, &sqe, pattern, 1024);
	assert_int_equal(host_response(&queue, NULL), NVME_STATUS_SGL_INVALID_OFFSET | DNR);
	assert_int_equal(read_back(1, 0, 512), 0);
	assert_memory_equal(queue.data, zeros, 512);
}

/* A host says by which bytes data that it is sent begins. */
static void test_data_begins_where_the_host_wants(void **state)
{
	static const u8 alignments[] = { 0, 1, 6, 31 }, begins[] = { 28, 32, 28, 128 };
	u16 cntlid = host_admin(&admin, target, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(alignments); i++) {
		host_adopt(&queue, target);
		host_hello(&queue, NVME_TCP_HDGST_ENABLE | NVME_TCP_DDGST_ENABLE, alignments[i]);
		assert_int_equal(
			host_connect(&queue, (u16)(i + 1), 31, cntlid, 0, HOST_SUBSYSTEM, HOST_NAME, NULL),
			0);
		assert_int_equal(host_give(&queue, host_io(&queue, NVME_OPCODE_WRITE, 1, i, 1), pattern + i,
					   512, true),
				 0);
		assert_int_equal(read_back(1, i, 512), 0);
		assert_memory_equal(queue.data, pattern + i, 512);
		assert_int_equal(queue.layout.header_bytes + queue.layout.pad_bytes +
					 (queue.layout.header_digest ? NVME_TCP_DIGEST_BYTES : 0),
				 begins[i]);
		close(queue.socket);
		queue.socket = -1;
	}
}

/* As many answers as a queue can wait for are more than one call of the system sends, and than a socket
 * holds.
 */
static void test_a_host_that_reads_late_gets_all(void **state)
{
	u16 first;

	(void)state;
	open_both(NVME_TCP_DDGST_ENABLE, 0);
	for (u32 i = 0; i < READS; i++)
		assert_int_equal(
			host_give(&queue,
				  host_io(&queue, NVME_OPCODE_WRITE, 1, (u64)i * READ_BLOCKS, READ_BLOCKS),
				  pattern + (size_t)i * READ_BYTES, READ_BYTES, false),
			0);
	first = queue.next_cid;
	for (u32 i = 0; i < READS; i++) {
		struct nvme_sqe sqe = host_io(&queue, NVME_OPCODE_READ, 1, (u64)i * READ_BLOCKS, READ_BLOCKS);

		host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, READ_BYTES);
		host_capsule(&queue, &sqe, NULL, 0);
	}
	for (u32 i = 0; i < STEPS; i++)
		(void)weir_target_step(target, 0);
	for (u32 i = 0; i < READS; i++) {
		u32 cid;

		assert_true(host_receive(&queue));
		assert_int_equal(queue.header.common.type, NVME_TCP_C2H_DATA);
		cid = (u16)(queue.header.data.cccid - first);
		assert_in_range(cid, 0, READS - 1);
		assert_int_equal(queue.data_bytes, READ_BYTES);
		assert_memory_equal(queue.data, pattern + (size_t)cid * READ_BYTES, READ_BYTES);
		assert_int_equal(host_response(&queue, NULL), 0);
	}
	assert_int_equal(read_back(1, 0, 512), 0);
}

/* An I/O queue has as many entries as the target has said, and no more. */
static void test_queues_have_as_many_entries_as_was_said(void **state)
{
	u16 cntlid = host_admin(&admin, target, 0);
	u64 result;

	(void)state;
	host_adopt(&queue, target);
	host_hello(&queue, 0, 0);
	assert_int_equal(
		host_connect(&queue, 1, TARGET_QUEUE_ENTRIES, cntlid, 0, HOST_SUBSYSTEM, HOST_NAME, &result),
		NVME_STATUS_CONNECT_INVALID_PARAMETERS | DNR);
	assert_int_equal(result, offsetof(struct nvme_fabrics_connect, sqsize));
	assert_int_equal(
		host_connect(&queue, 1, TARGET_QUEUE_ENTRIES - 1, cntlid, 0, HOST_SUBSYSTEM, HOST_NAME, NULL),
		0);
	assert_int_equal(last()->entries, TARGET_QUEUE_ENTRIES);
}

/* What hosts go by: how much a PDU, a capsule and a queue take, and how long they are to wait. */
static void test_limits_are_told_as_they_are(void **state)
{
	struct nvme_sqe sqe;
	u32 capsule_units;
	u64 cap;

	(void)state;
	host_adopt(&queue, target);
	host_hello(&queue, NVME_TCP_HDGST_ENABLE, 0);
	assert_int_equal(queue.header.icresp.maxh2cdata, TARGET_TRANSFER_BYTES);
	assert_int_equal(queue.header.icresp.dgst, NVME_TCP_HDGST_ENABLE);
	(void)host_admin(&admin, target, 0);
	assert_int_equal(host_property(&admin, false, NVME_PROPERTY_CAP, 1, 0, &cap), 0);
	assert_int_equal((cap & 0xffff) + 1, TARGET_QUEUE_ENTRIES);
	assert_int_equal((cap >> 24 & 0xff) * 500, 10000); /* ms that a host waits for CSTS */
	assert_int_equal(cap >> 37 & 1, 1);
	sqe = host_command(&admin, NVME_ADMIN_IDENTIFY, 0);
	sqe.cdw10 = NVME_CNS_CONTROLLER;
	assert_int_equal(host_take(&admin, sqe, 4096), 0);
	memcpy(&capsule_units, admin.data + NVME_ID_CTRL_IOCCSZ, sizeof(capsule_units));
	assert_int_equal(capsule_units * 16, NVME_CAPSULE_COMMAND_BYTES + TARGET_IN_CAPSULE_BYTES);
	assert_int_equal(admin.data[NVME_ID_CTRL_MAXCMD] | admin.data[NVME_ID_CTRL_MAXCMD + 1] << 8,
			 TARGET_QUEUE_ENTRIES);
	assert_int_equal(admin.data[NVME_ID_CTRL_ANATT], TARGET_ANA_SECONDS);
	assert_int_equal(admin.data[NAMESPACES], WEIR_PAGE_NAMESPACES);
	sqe = host_command(&admin, NVME_ADMIN_SET_FEATURES, 0);
	sqe.cdw10 = NVME_FEATURE_KEEP_ALIVE_TIMER;
	sqe.cdw11 = TARGET_KATO_MS_MAX;
	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 0);
	host_capsule(&admin, &sqe, NULL, 0);
	assert_int_equal(host_response(&admin, NULL), 0);
}

static u32 sent_as_it_is(struct host *host, struct nvme_sqe sqe, u8 type, u32 bytes)
{
	host_sgl(&sqe, type, bytes);
	host_capsule(host, &sqe, NULL, 0);
	return host_response(host, NULL);
}

/* What there is not: fused commands, PRPs, data both ways, more data than a command may have on the admin
 * queue; properties of an I/O queue. */
static void test_commands_of_other_kinds_are_refused(void **state)
{
	const u32 invalid = NVME_STATUS_INVALID_FIELD | DNR;
	struct nvme_sqe sqe;

	(void)state;
	open_both(0, 0);
	for (u32 fused = 1; fused < 4; fused++) {
		sqe = host_io(&queue, NVME_OPCODE_READ, 1, 0, 1);
		sqe.cdw0 |= fused << 8;
		assert_int_equal(sent_as_it_is(&queue, sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 512), invalid);
		sqe = host_command(&queue, NVME_OPCODE_FLUSH, 1);
		sqe.cdw0 |= fused << 8;
		host_capsule(&queue, &sqe, NULL, 0);
		assert_int_equal(host_response(&queue, NULL), invalid);
	}
	sqe = host_io(&queue, NVME_OPCODE_READ, 1, 0, 1); /* by PRP */
	host_capsule(&queue, &sqe, NULL, 0);
	assert_int_equal(host_response(&queue, NULL), invalid);
	sqe = host_io(&queue, 0x83, 1, 0, 1); /* both ways */
	assert_int_equal(sent_as_it_is(&queue, sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 512), invalid);
	sqe = host_command(&queue, NVME_OPCODE_FLUSH, 1); /* with data, of which it has none */
	host_capsule(&queue, &sqe, pattern, 512);
	assert_int_equal(host_response(&queue, NULL), invalid);
	sqe = host_command(&admin, NVME_ADMIN_IDENTIFY, 0);
	sqe.cdw10 = NVME_CNS_CONTROLLER;
	assert_int_equal(sent_as_it_is(&admin, sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, TARGET_TRANSFER_BYTES + 4),
			 invalid);
	assert_int_equal(host_take(&admin, sqe, TARGET_TRANSFER_BYTES), 0);
	assert_int_equal(host_property(&queue, false, NVME_PROPERTY_CSTS, 0, 0, NULL), invalid);
	assert_int_equal(host_property(&queue, true, NVME_PROPERTY_CC, 0, 0, NULL), invalid);
	assert_int_equal(read_back(1, 0, 512), 0);
}

static u64 count_of(const atomic_ullong *counter)
{
	return atomic_load(counter);
}

/* Data of I/O commands is counted, either way: not the admin queue's, and not what was refused. */
static void test_data_is_counted_either_way(void **state)
{
	const struct target_counters *counters = &target->servers[0].counters;
	struct nvme_sqe sqe;
	u64 commands;

	(void)state;
	open_both(0, 0);
	sqe = host_command(&admin, NVME_ADMIN_IDENTIFY, 0);
	sqe.cdw10 = NVME_CNS_CONTROLLER;
	assert_int_equal(host_take(&admin, sqe, 4096), 0);
	assert_int_equal(count_of(&counters->bytes_in), 0);
	assert_int_equal(count_of(&counters->bytes_out), 0);
	commands = count_of(&counters->commands);
	assert_int_equal(host_give(&queue, host_io(&queue, NVME_OPCODE_WRITE, 1, 0, 8), pattern, 4096, true),
			 0);
	assert_int_equal(count_of(&counters->bytes_in), 4096);
	assert_int_equal(
		host_give(&queue, host_io(&queue, NVME_OPCODE_WRITE, 1, 0, 64), pattern, 32768, false), 0);
	assert_int_equal(count_of(&counters->bytes_in), 4096 + 32768);
	assert_int_equal(count_of(&counters->bytes_out), 0);
	assert_int_equal(read_back(1, 0, 8192), 0);
	assert_int_equal(count_of(&counters->bytes_out), 8192);
	assert_int_equal(read_back(1, 1 << 20, 512), NVME_STATUS_LBA_OUT_OF_RANGE | DNR);
	assert_int_equal(count_of(&counters->bytes_out), 8192);
	assert_int_equal(count_of(&counters->commands), commands + 4);
}

/* One that the storage does not end soon. */
static void begin_late(struct host *host)
{
	const struct nvme_sqe sqe = host_command(host, NVME_OPCODE_FLUSH, 2);

	host_capsule(host, &sqe, NULL, 0);
	for (u32 i = 0; i < STEPS && !last()->queue.inflight; i++)
		(void)weir_target_step(target, 0);
	assert_int_equal(last()->queue.inflight, 1);
}

static struct command *running(struct connection *connection)
{
	for (u32 i = 0; i < connection->entries; i++)
		if (target_is_running(connection->commands[i].state))
			return &connection->commands[i];
	return NULL;
}

static u64 oldest(void)
{
	target->servers[0].next_check_ms = 0;
	(void)weir_target_step(target, 0);
	return atomic_load(&target->servers[0].counters.oldest_ms);
}

/* What is told is the age of the oldest command of all connections, and of none when there is none. */
static void test_the_oldest_command_is_told(void **state)
{
	struct command *first, *second;

	(void)state;
	open_both(0, 0);
	assert_int_equal(oldest(), 0);
	begin_late(&queue);
	first = running(last());
	assert_non_null(first);
	assert_int_equal(oldest(), first->since_ms);
	host_queue(&other, target, host_admin(&admin, target, 0), 1, 0, 0);
	begin_late(&other);
	second = running(last());
	assert_non_null(second);
	first->since_ms = 7, second->since_ms = 9;
	assert_int_equal(oldest(), 7);
	second->since_ms = 5;
	assert_int_equal(oldest(), 5);
	close(other.socket);
	other.socket = -1;
	for (u32 i = 0; i < STEPS && running(last()) == second; i++)
		(void)weir_target_step(target, 0);
	assert_int_equal(oldest(), 7);
	close(queue.socket);
	queue.socket = -1;
	for (u32 i = 0; i < STEPS && oldest(); i++)
		;
	assert_int_equal(oldest(), 0);
}

static void write_that_waits(struct host *host)
{
	struct nvme_sqe sqe = host_io(host, NVME_OPCODE_WRITE, 2, 0, 1);

	host_sgl(&sqe, NVME_SGL_DATA_BLOCK_OFFSET, 512);
	host_capsule(host, &sqe, pattern, 512);
}

/* What waits for a storage does so no longer when its connection has ended, and nothing else does. */
static void test_what_waits_goes_with_its_connection(void **state)
{
	const struct command_list *waiting = &target->servers[0].waiting;
	struct connection *stays;
	u16 cntlid;

	(void)state;
	cntlid = host_admin(&admin, target, 0);
	host_queue(&other, target, cntlid, 2, 0, 0);
	stays = last();
	stays->queue.resume_ns = UINT64_MAX; /* as a fault has it */
	host_queue(&queue, target, cntlid, 1, 0, 0);
	last()->queue.resume_ns = UINT64_MAX;
	write_that_waits(&queue);
	write_that_waits(&other);
	for (u32 i = 0; i < STEPS && !(waiting->first && waiting->first->next); i++)
		(void)weir_target_step(target, 0);
	assert_non_null(waiting->first);
	assert_non_null(waiting->first->next);
	close(queue.socket);
	queue.socket = -1;
	for (u32 i = 0; i < STEPS && last() != stays; i++)
		(void)weir_target_step(target, 0);
	assert_ptr_equal(last(), stays);
	assert_non_null(waiting->first);
	assert_ptr_equal(waiting->first->connection, stays);
	assert_null(waiting->first->next);
	stays->queue.resume_ns = 0;
	assert_int_equal(host_response(&other, NULL), 0);
}

/* ---- until when ---- */

/* It ends @ms after what happened between @before and now, and not before. */
static void expect_end(struct connection *connection, u64 before, u64 ms)
{
	struct target_server *server = connection->server;
	u64 deadline = connection->deadline_ms;

	assert_in_range(deadline, before + ms, target_now_ms() + ms);
	server->now_ms = deadline - 1;
	target_connection_check(connection);
	assert_int_not_equal(connection->state, CONNECTION_DEAD);
	server->now_ms = deadline;
	target_connection_check(connection);
	assert_int_equal(connection->state, CONNECTION_DEAD);
	for (u32 i = 0; i < STEPS && last() == connection; i++)
		(void)weir_target_step(target, 0);
	assert_ptr_not_equal(last(), connection);
}

static void step_once(void)
{
	(void)weir_target_step(target, 0);
}

/* Who says nothing, or no Connect, has some seconds; who is connected has as long as it likes; who was told
 * why it is cut off, or that it has left, has a second to read that. */
static void test_each_stage_has_its_time(void **state)
{
	const struct nvme_sqe leave = { .cdw0 = NVME_OPCODE_FABRICS, .nsid = NVME_FCTYPE_DISCONNECT };
	u16 cntlid = host_admin(&admin, target, 0);
	u64 before;

	(void)state;
	assert_int_equal(last()->deadline_ms, 0);
	before = target_now_ms();
	host_adopt(&queue, target);
	step_once();
	expect_end(last(), before, TARGET_HELLO_MS);
	close(queue.socket);
	before = target_now_ms();
	host_adopt(&queue, target);
	host_hello(&queue, 0, 0);
	expect_end(last(), before, TARGET_HELLO_MS);
	close(queue.socket);
	host_queue(&queue, target, cntlid, 1, 0, 0);
	assert_int_equal(last()->deadline_ms, 0);
	before = target_now_ms();
	host_h2c(&queue, 0, 0, 0, pattern, 512, true, 0); /* of no command */
	assert_true(host_receive(&queue));
	assert_int_equal(queue.header.common.type, NVME_TCP_C2H_TERM_REQ);
	assert_int_equal(last()->state, CONNECTION_LINGERING);
	expect_end(last(), before, TARGET_LINGER_MS);
	close(queue.socket);
	host_queue(&queue, target, cntlid, 1, 0, 0);
	before = target_now_ms();
	host_capsule(&queue, &leave, NULL, 0);
	assert_int_equal(host_response(&queue, NULL), 0);
	assert_int_equal(last()->state, CONNECTION_LINGERING);
	expect_end(last(), before, TARGET_LINGER_MS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_capsule_longer_than_its_descriptor, serve, end),
		cmocka_unit_test_setup_teardown(test_data_behind_an_offset_of_its_capsule, serve, end),
		cmocka_unit_test_setup_teardown(test_data_begins_where_the_host_wants, serve, end),
		cmocka_unit_test_setup_teardown(test_a_host_that_reads_late_gets_all, serve, end),
		cmocka_unit_test_setup_teardown(test_queues_have_as_many_entries_as_was_said, serve, end),
		cmocka_unit_test_setup_teardown(test_limits_are_told_as_they_are, serve, end),
		cmocka_unit_test_setup_teardown(test_commands_of_other_kinds_are_refused, serve, end),
		cmocka_unit_test_setup_teardown(test_data_is_counted_either_way, serve, end),
		cmocka_unit_test_setup_teardown(test_the_oldest_command_is_told, serve, end),
		cmocka_unit_test_setup_teardown(test_what_waits_goes_with_its_connection, serve, end),
		cmocka_unit_test_setup_teardown(test_each_stage_has_its_time, serve, end),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("target_bounds", tests, fill, NULL);
}
