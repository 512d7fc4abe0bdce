/* SPDX-License-Identifier: BSD-3-Clause */
/* target_test.c: the target as a host sees it, PDU by PDU: what it serves, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "target_host.h"
#include "target/parts.h"

#define DNR NVME_STATUS_DNR

static struct weir_target *target;
static struct host admin, queue, other;
static u8 pattern[HOST_DATA_BYTES];

static int set_up(void **state)
{
	(void)state;
	target = host_target(1, NULL);
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (u8)(i * 7 + i / 256 + 1);
	return weir_target_start(target);
}

static int tear_down(void **state)
{
	(void)state;
	weir_target_stop(target, 10000);
	weir_target_destroy(target);
	return 0;
}

static void close_all(void)
{
	close(queue.socket);
	close(admin.socket);
}

static void open_both(u8 digests, u8 cattr)
{
	u16 cntlid = host_admin(&admin, target, digests);

	host_queue(&queue, target, cntlid, 1, digests, cattr);
}

static void writes_come_back(u8 digests, u8 cattr)
{
	open_both(digests, cattr);
	assert_int_equal(host_give(&queue, host_io(&queue, NVME_OPCODE_WRITE, 1, 8, 8), pattern, 4096, true),
			 0);
	assert_int_equal(
		host_give(&queue, host_io(&queue, NVME_OPCODE_WRITE, 1, 16, 200), pattern, 102400, false), 0);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 8, 8), 4096), 0);
	assert_memory_equal(queue.data, pattern, 4096);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 16, 200), 102400), 0);
	assert_memory_equal(queue.data, pattern, 102400);
	close_all();
}

static void reads_what_was_written(void **state)
{
	(void)state;
	writes_come_back(0, 0);
}

static void reads_with_digests(void **state)
{
	(void)state;
	writes_come_back(NVME_TCP_HDGST_ENABLE | NVME_TCP_DDGST_ENABLE, 0);
	writes_come_back(NVME_TCP_DDGST_ENABLE, 0);
	writes_come_back(NVME_TCP_HDGST_ENABLE, 0);
}

static void reads_without_flow_control(void **state)
{
	(void)state;
	writes_come_back(0, NVME_CATTR_SQ_FLOW_DISABLE);
	writes_come_back(NVME_TCP_DDGST_ENABLE, NVME_CATTR_SQ_FLOW_DISABLE);
}

static void flush_zeroes_compare_and_deallocate(void **state)
{
	struct {
		u32 attributes, blocks;
		u64 lba;
	} range = { 0, 8, 0 };
	u8 page[4096] = { 0 };
	struct nvme_sqe sqe;

	(void)state;
	open_both(0, 0);
	assert_int_equal(host_give(&queue, host_io(&queue, NVME_OPCODE_WRITE, 1, 0, 8), pattern, 4096, true),
			 0);
	assert_int_equal(
		host_give(&queue, host_io(&queue, NVME_OPCODE_COMPARE, 1, 0, 8), pattern, 4096, true), 0);
	assert_int_equal(
		host_give(&queue, host_io(&queue, NVME_OPCODE_COMPARE, 1, 0, 8), pattern + 1, 4096, false),
		NVME_STATUS_COMPARE_FAILURE | DNR);
	sqe = host_io(&queue, NVME_OPCODE_WRITE_ZEROES, 1, 1, 1);
	host_capsule(&queue, &sqe, NULL, 0);
	assert_int_equal(host_response(&queue, NULL), 0);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 0, 3), 1536), 0);
	assert_memory_equal(queue.data, pattern, 512);
	assert_memory_equal(queue.data + 512, page, 512);
	assert_memory_equal(queue.data + 1024, pattern + 1024, 512);
	sqe = host_command(&queue, NVME_OPCODE_FLUSH, 1);
	host_capsule(&queue, &sqe, NULL, 0);
	assert_int_equal(host_response(&queue, NULL), 0);
	memcpy(page, &range, sizeof(range)); /* a whole page, as Linux sends it */
	sqe = host_command(&queue, NVME_OPCODE_DSM, 1);
	sqe.cdw11 = NVME_DSM_DEALLOCATE;
	assert_int_equal(host_give(&queue, sqe, page, sizeof(page), true), 0);
	close_all();
}

/* No data goes with a status that is an error: without flow control that would say that all is well. */
static void give_wrong_commands(u8 cattr)
{
	struct nvme_sqe sqe;

	open_both(0, cattr);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 8192, 1), 512),
			 NVME_STATUS_LBA_OUT_OF_RANGE | DNR);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 3, 0, 1), 512),
			 NVME_STATUS_INVALID_NAMESPACE | DNR);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 0, 2), 512),
			 NVME_STATUS_SGL_INVALID_LENGTH | DNR);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 0, 1), 1024),
			 NVME_STATUS_SGL_INVALID_LENGTH | DNR);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 0, 512), 262144),
			 NVME_STATUS_INVALID_FIELD | DNR);
	assert_int_equal(host_take(&queue, host_io(&queue, 0xc2, 1, 0, 1), 512),
			 NVME_STATUS_INVALID_OPCODE | DNR);
	sqe = host_io(&queue, NVME_OPCODE_WRITE, 1, 0, 1);
	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 0x7ffff000); /* no room is made for it */
	host_capsule(&queue, &sqe, NULL, 0);
	assert_int_equal(host_response(&queue, NULL), NVME_STATUS_INVALID_FIELD | DNR);
	sqe = host_io(&queue, NVME_OPCODE_READ, 1, 0, 1);
	host_sgl(&sqe, NVME_SGL_KEYED, 512);
	host_capsule(&queue, &sqe, NULL, 0);
	assert_int_equal(host_response(&queue, NULL), NVME_STATUS_SGL_INVALID_TYPE | DNR);
	sqe = host_io(&queue, NVME_OPCODE_WRITE, 1, 0, 16);
	host_sgl(&sqe, NVME_SGL_DATA_BLOCK_OFFSET, 8192);
	host_capsule(&queue, &sqe, pattern, 512);
	assert_int_equal(host_response(&queue, NULL), NVME_STATUS_SGL_INVALID_OFFSET | DNR);
	sqe = host_io(&queue, NVME_OPCODE_WRITE, 1, 0, 1);
	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 512); /* is to be asked for, and comes by itself */
	host_capsule(&queue, &sqe, pattern, 512);
	assert_int_equal(host_response(&queue, NULL), NVME_STATUS_INVALID_FIELD | DNR);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 0, 1), 512),
			 0); /* and it goes on */
	close_all();
}

static void wrong_commands_get_a_status(void **state)
{
	(void)state;
	give_wrong_commands(0);
	give_wrong_commands(NVME_CATTR_SQ_FLOW_DISABLE);
}

/* Between CC.EN = 0 and 1 a controller carries nothing out. */
static void a_disabled_controller_serves_nothing(void **state)
{
	u64 cc = 0;

	(void)state;
	open_both(0, 0);
	assert_int_equal(host_property(&admin, false, NVME_REGISTER_CC, 0, 0, &cc), 0);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 0, 1), 512), 0);
	assert_int_equal(host_property(&admin, true, NVME_REGISTER_CC, 0, cc & ~(u64)NVME_CC_ENABLE, NULL),
			 0);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 0, 1), 512),
			 NVME_STATUS_COMMAND_SEQUENCE | DNR);
	close_all();
}

static void identifies_itself(void **state)
{
	struct nvme_sqe sqe;
	u32 list[2];

	(void)state;
	(void)host_admin(&admin, target, 0);
	sqe = host_command(&admin, NVME_ADMIN_IDENTIFY, 0);
	sqe.cdw10 = NVME_CNS_CONTROLLER;
	assert_int_equal(host_take(&admin, sqe, 4096), 0);
	assert_string_equal((char *)admin.data + NVME_ID_CTRL_SUBNQN, HOST_SUBSYSTEM);
	assert_int_equal(admin.data[NVME_ID_CTRL_CNTRLTYPE], NVME_CNTRLTYPE_IO);
	assert_int_not_equal(admin.data[NVME_ID_CTRL_KAS], 0);
	/* hosts wait for a shutdown that flushes a slow file, and not five seconds alone */
	assert_int_equal(admin.data[NVME_ID_CTRL_RTD3E] | admin.data[NVME_ID_CTRL_RTD3E + 1] << 8 |
				 admin.data[NVME_ID_CTRL_RTD3E + 2] << 16,
			 30000000 & 0xffffff);
	sqe = host_command(&admin, NVME_ADMIN_IDENTIFY, 0);
	sqe.cdw10 = NVME_CNS_ACTIVE_NAMESPACES;
	assert_int_equal(host_take(&admin, sqe, 4096), 0);
	memcpy(list, admin.data, sizeof(list));
	assert_int_equal(list[0], 1);
	assert_int_equal(list[1], 2);
	sqe = host_command(&admin, NVME_ADMIN_IDENTIFY, 2);
	assert_int_equal(host_take(&admin, sqe, 4096), 0);
	assert_int_equal(admin.data[0], 0); /* 256 blocks of 4096 */
	assert_int_equal(admin.data[1], 1);
	assert_int_equal(admin.data[130], 12);
	assert_int_equal(host_take(&admin, host_command(&admin, NVME_ADMIN_IDENTIFY, 9), 4096),
			 NVME_STATUS_INVALID_NAMESPACE | DNR);
	close(admin.socket);
}

static void connects_are_checked(void **state)
{
	u16 cntlid;
	u64 result;

	(void)state;
	host_adopt(&other, target);
	host_hello(&other, 0, 0);
	assert_int_equal(host_connect(&other, 0, 31, NVME_CNTLID_DYNAMIC, 0, "nqn.2026-11.org.example:none",
				      HOST_NAME, &result),
			 NVME_STATUS_CONNECT_INVALID_PARAMETERS | DNR);
	assert_int_equal(result,
			 NVME_CONNECT_IATTR_DATA | offsetof(struct nvme_fabrics_connect_data, subnqn));
	assert_int_equal(host_connect(&other, 0, 31, NVME_CNTLID_DYNAMIC, 0, HOST_OTHER, HOST_NAME, &result),
			 NVME_STATUS_CONNECT_INVALID_HOST | DNR);
	assert_int_equal(
		host_connect(&other, 0, 0, NVME_CNTLID_DYNAMIC, 0, HOST_SUBSYSTEM, HOST_NAME, &result),
		NVME_STATUS_CONNECT_INVALID_PARAMETERS | DNR);
	assert_int_equal(host_connect(&other, 0, 31, 5, 0, HOST_SUBSYSTEM, HOST_NAME, &result),
			 NVME_STATUS_CONNECT_INVALID_PARAMETERS | DNR);
	assert_int_equal(host_connect(&other, 1, 31, 0xff00, 0, HOST_SUBSYSTEM, HOST_NAME, &result),
			 NVME_STATUS_CONNECT_INVALID_PARAMETERS | DNR);
	host_again(&other, target);
	cntlid = host_admin(&admin, target, 0);
	host_queue(&queue, target, cntlid, 1, 0, 0);
	assert_int_equal(host_connect(&other, 1, 31, cntlid, 0, HOST_SUBSYSTEM, HOST_NAME, &result),
			 NVME_STATUS_COMMAND_SEQUENCE); /* the queue exists, and may end by then */
	assert_int_equal(host_connect(&other, 2, 31, cntlid, 0, HOST_SUBSYSTEM,
				      "nqn.2026-11.org.example:thief", &result),
			 NVME_STATUS_CONNECT_INVALID_PARAMETERS | DNR);
	assert_int_equal(host_connect(&other, 2, 31, cntlid, 0, HOST_SUBSYSTEM, HOST_NAME, &result), 0);
	close(other.socket);
	close_all();
}

static void commands_wait_for_connect(void **state)
{
	(void)state;
	host_adopt(&other, target);
	host_hello(&other, 0, 0);
	assert_int_equal(host_take(&other, host_io(&other, NVME_OPCODE_READ, 1, 0, 1), 512),
			 NVME_STATUS_COMMAND_SEQUENCE | DNR);
	assert_int_equal(host_property(&other, false, NVME_PROPERTY_CAP, 1, 0, NULL),
			 NVME_STATUS_COMMAND_SEQUENCE | DNR);
	close(other.socket);
}

static void discovery_lists_what_a_host_may_use(void **state)
{
	struct nvme_sqe sqe;
	u64 records;

	(void)state;
	host_adopt(&other, target);
	host_hello(&other, 0, 0);
	assert_int_equal(
		host_connect(&other, 0, 31, NVME_CNTLID_DYNAMIC, 0, NVME_DISCOVERY_NQN, HOST_NAME, NULL), 0);
	sqe = host_command(&other, NVME_ADMIN_GET_LOG_PAGE, 0);
	sqe.cdw10 = NVME_LOG_DISCOVERY | (1024 / 4 - 1) << 16;
	assert_int_equal(host_take(&other, sqe, 1024), 0);
	memcpy(&records, other.data + 8, sizeof(records));
	assert_int_equal(records, 0); /* it listens nowhere */
	assert_int_equal(host_take(&other, host_command(&other, NVME_ADMIN_IDENTIFY, 1), 4096),
			 NVME_STATUS_INVALID_FIELD | DNR);
	close(other.socket);
}

static void the_end_of_the_admin_queue_ends_all(void **state)
{
	(void)state;
	open_both(0, 0);
	close(admin.socket);
	assert_false(host_receive(&queue));
	close(queue.socket);
}

/* Of a bit, or 0; whatever comes behind it. */
static void a_wrong_data_digest_is_a_status(void **state)
{
	const u32 wrong[] = { 1, weir_crc32c(0, pattern, 512) };
	struct nvme_sqe sqe;
	u16 ttag;

	(void)state;
	open_both(NVME_TCP_DDGST_ENABLE, 0);
	for (unsigned i = 0; i < 2; i++) {
		sqe = host_io(&queue, NVME_OPCODE_WRITE, 1, 1000, 2);
		host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 1024);
		host_capsule(&queue, &sqe, NULL, 0);
		assert_true(host_receive(&queue));
		ttag = queue.header.r2t.ttag;
		host_h2c(&queue, (u16)(sqe.cdw0 >> 16), ttag, 0, pattern, 512, false, wrong[i]);
		host_h2c(&queue, (u16)(sqe.cdw0 >> 16), ttag, 512, pattern + 512, 512, true, 0);
		assert_int_equal(host_response(&queue, NULL), NVME_STATUS_TRANSIENT_TRANSPORT);
		assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 1000, 2), 1024), 0);
		for (unsigned byte = 0; byte < 1024; byte++)
			assert_int_equal(queue.data[byte], 0); /* nothing was written */
	}
	close_all();
}

/* ---- bad PDUs ---- */

/* A granted write, whose data then is wrong in one way. */
static struct nvme_tcp_r2t granted(void)
{
	struct nvme_sqe sqe;

	open_both(0, 0);
	sqe = host_io(&queue, NVME_OPCODE_WRITE, 1, 0, 8);
	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 4096);
	host_capsule(&queue, &sqe, NULL, 0);
	assert_true(host_receive(&queue));
	assert_int_equal(queue.header.common.type, NVME_TCP_R2T);
	return queue.header.r2t;
}

static void data_that_was_not_granted_ends_it(void **state)
{
	struct nvme_tcp_r2t r2t = granted();

	(void)state;
	host_h2c(&queue, r2t.cccid, (u16)(r2t.ttag + 1), 0, pattern, 4096, true, 0);
	assert_true(host_ended(&queue, NVME_TCP_FES_INVALID_HEADER));
	close_all();
	r2t = granted();
	host_h2c(&queue, (u16)(r2t.cccid + 1), r2t.ttag, 0, pattern, 4096, true, 0);
	assert_true(host_ended(&queue, NVME_TCP_FES_INVALID_HEADER));
	close_all();
	r2t = granted();
	host_h2c(&queue, r2t.cccid, r2t.ttag, 512, pattern, 512, false, 0);
	assert_true(host_ended(&queue, NVME_TCP_FES_OUT_OF_RANGE));
	close_all();
	r2t = granted();
	host_h2c(&queue, r2t.cccid, r2t.ttag, 0, pattern, 8192, true, 0);
	assert_true(host_ended(&queue, NVME_TCP_FES_OUT_OF_RANGE));
	close_all();
	r2t = granted();
	host_h2c(&queue, r2t.cccid, r2t.ttag, 0, pattern, 512, true, 0);
	assert_true(host_ended(&queue, NVME_TCP_FES_INVALID_HEADER));
	close_all();
	r2t = granted();
	host_h2c(&queue, r2t.cccid, 0xffff, 0, pattern, 512, true, 0);
	assert_true(host_ended(&queue, NVME_TCP_FES_INVALID_HEADER));
	close_all();
}

/* A slot that is free still knows its last command. */
static void data_for_a_command_that_has_ended_ends_it(void **state)
{
	struct nvme_sqe sqe;

	(void)state;
	open_both(0, 0);
	sqe = host_io(&queue, NVME_OPCODE_READ, 1, 0, 1);
	assert_int_equal(host_take(&queue, sqe, 512), 0);
	host_h2c(&queue, (u16)(sqe.cdw0 >> 16), 0, 0, pattern, 512, true, 0);
	assert_true(host_ended(&queue, NVME_TCP_FES_INVALID_HEADER));
	close_all();
}

static void pdus_out_of_turn_end_it(void **state)
{
	struct nvme_sqe sqe = { .cdw0 = NVME_OPCODE_FABRICS };
	union nvme_tcp_header header = { .icreq = { .pfv = 0 } };
	struct host *host = &other;

	(void)state;
	host_adopt(host, target);
	host_capsule(host, &sqe, NULL, 0); /* before ICReq */
	assert_true(host_ended(host, NVME_TCP_FES_SEQUENCE));
	close(host->socket);
	host_adopt(host, target);
	host_hello(host, 0, 0);
	host_send(host, &header, weir_tcp_build(&header, NVME_TCP_ICREQ, 0, &host->rules)); /* once more */
	assert_true(host_ended(host, NVME_TCP_FES_SEQUENCE));
	close(host->socket);
}

/* Each byte of each header, wrong: it is refused, or does no harm, and others are served all the while. */
static void each_byte_of_a_header_wrong(void **state)
{
	u64 refused = 0;
	struct weir_target_stats stats;

	(void)state;
	open_both(0, 0);
	for (unsigned at = 0; at < 128 + 72; at++) {
		union nvme_tcp_header header = { .icreq = { .pfv = 0 } };
		struct nvme_sqe sqe = { .cdw0 = NVME_OPCODE_FABRICS | NVME_PSDT_SGL };

		host_adopt(&other, target);
		if (at < 128) {
			weir_tcp_build(&header, NVME_TCP_ICREQ, 0, &other.rules);
			header.bytes[at] ^= 0xff;
			host_send(&other, &header, 128);
		} else {
			host_hello(&other, 0, 0);
			memset(&header, 0, sizeof(header));
			memcpy(header.cmd.sqe, &sqe, sizeof(sqe));
			weir_tcp_build(&header, NVME_TCP_CAPSULE_CMD, 0, &other.rules);
			header.bytes[at - 128] ^= 0xff;
			host_send(&other, &header, 72);
		}
		shutdown(other.socket, SHUT_WR);
		while (recv(other.socket, other.data, sizeof(other.data), 0) > 0)
			;
		close(other.socket);
	}
	assert_int_equal(host_give(&queue, host_io(&queue, NVME_OPCODE_WRITE, 1, 0, 8), pattern, 4096, true),
			 0);
	weir_target_stats(target, &stats);
	refused = stats.bad_pdus;
	assert_true(refused >= 16); /* at least the common headers */
	close_all();
}

/* More commands than the queue has entries. */
static void too_many_commands_end_it(void **state)
{
	struct nvme_sqe sqe;

	(void)state;
	open_both(0, 0);
	for (unsigned i = 0; i < 40; i++) {
		sqe = host_io(&queue, NVME_OPCODE_WRITE, 1, 0, 8);
		host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 4096);
		host_capsule(&queue, &sqe, NULL, 0);
	}
	assert_true(host_ended(&queue, NVME_TCP_FES_SEQUENCE));
	close_all();
}

/* A host that reads nothing, and one that stops in the middle of a PDU, delay nobody. */
static void a_dead_host_delays_nobody(void **state)
{
	struct nvme_sqe sqe;
	static struct host dead;

	(void)state;
	open_both(0, 0);
	host_adopt(&dead, target);
	host_hello(&dead, 0, 0);
	host_send(&dead, "\x04\x00\x48", 3);
	for (unsigned i = 0; i < 31; i++) {
		sqe = host_io(&queue, NVME_OPCODE_READ, 1, 0, 256);
		host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 131072);
		host_capsule(&queue, &sqe, NULL, 0);
	}
	other = admin; /* keeps the association of the one that reads nothing */
	host_queue(&admin, target, host_admin(&admin, target, 0), 1, 0, 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(host_take(&admin, host_io(&admin, NVME_OPCODE_READ, 1, i, 8), 4096),
				 NVME_STATUS_SUCCESS);
	close(dead.socket);
	close(other.socket);
	close_all();
}

/* Iterations of a server thread, and what happened in them, that commands of a host take. */
static unsigned steps_of_commands(struct host *host)
{
	unsigned before = host_steps;

	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(host_take(host, host_io(host, NVME_OPCODE_READ, 1, i, 8), 4096),
				 NVME_STATUS_SUCCESS);
	return host_steps - before;
}

/* The same number with a host that reads no answer, one in the middle of a PDU, and one that says nothing. */
static void slow_connections_cost_others_nothing(void **state)
{
	static struct host mine, commands, slow, slow_commands, half, silent;
	struct weir_target *stepped = host_target(1, NULL);
	unsigned alone;

	(void)state;
	host_stepped = stepped;
	host_queue(&commands, stepped, host_admin(&mine, stepped, 0), 1, 0, 0);
	(void)steps_of_commands(&commands);
	alone = steps_of_commands(&commands);
	host_queue(&slow_commands, stepped, host_admin(&slow, stepped, 0), 1, 0, 0);
	for (unsigned i = 0; i < 31; i++) {
		struct nvme_sqe sqe = host_io(&slow_commands, NVME_OPCODE_READ, 1, 0, 256);

		host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 131072);
		host_capsule(&slow_commands, &sqe, NULL, 0);
	}
	host_adopt(&half, stepped);
	host_hello(&half, 0, 0);
	host_send(&half, "\x04\x00\x48", 3);
	host_adopt(&silent, stepped);
	(void)steps_of_commands(&commands); /* what they had to do is done */
	assert_int_equal(steps_of_commands(&commands), alone);
	host_stepped = NULL;
	close(mine.socket), close(commands.socket), close(slow.socket), close(slow_commands.socket);
	close(half.socket), close(silent.socket);
	weir_target_destroy(stepped);
}

/* One that ends has its commands ended in every namespace: it is let go of. */
static void commands_end_with_their_queue(void **state)
{
	struct weir_target *stepped = host_target_of(1, NULL, "virt:1M?fault=late:us=1000000000");
	static struct host mine, commands;

	(void)state;
	host_stepped = stepped;
	host_queue(&commands, stepped, host_admin(&mine, stepped, 0), 1, 0, 0);
	for (u32 nsid = 1; nsid <= 2; nsid++) {
		struct nvme_sqe sqe = host_io(&commands, NVME_OPCODE_READ, nsid, 0, 1);

		host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 512);
		host_capsule(&commands, &sqe, NULL, 0);
	}
	assert_true(host_receive(&commands)); /* of the first; the second's takes a quarter of an hour */
	close(commands.socket);
	for (unsigned i = 0; i < HOST_MOST_STEPS && stepped->servers[0].connections->next; i++)
		weir_target_step(stepped, 0);
	assert_int_equal(stepped->servers[0].dead, 0);
	assert_null(stepped->servers[0].connections->next);
	host_stepped = NULL;
	close(mine.socket);
	weir_target_destroy(stepped);
}

/* What an I/O connection still holds when its association ends is not carried out: by then the host may have
 * written the same blocks by another one. */
static void nothing_begins_behind_the_end(void **state)
{
	struct weir_target *stepped = host_target(1, NULL);
	static struct host mine, commands, again, reader;
	struct nvme_sqe sqe;
	u16 cntlid;

	(void)state;
	host_stepped = stepped;
	host_queue(&commands, stepped, host_admin(&mine, stepped, 0), 1, 0, 0);
	while (weir_target_step(stepped, 0)) /* what comes next comes in its order */
		;
	close(mine.socket);
	sqe = host_io(&commands, NVME_OPCODE_WRITE, 1, 0, 1);
	host_sgl(&sqe, NVME_SGL_DATA_BLOCK_OFFSET, 512);
	host_capsule(&commands, &sqe, pattern, 512);
	for (unsigned i = 0; i < HOST_MOST_STEPS && stepped->servers[0].connections; i++)
		weir_target_step(stepped, 0);
	cntlid = host_admin(&again, stepped, 0);
	host_queue(&reader, stepped, cntlid, 1, 0, 0);
	assert_int_equal(host_take(&reader, host_io(&reader, NVME_OPCODE_READ, 1, 0, 1), 512), 0);
	for (unsigned i = 0; i < 512; i++)
		assert_int_equal(reader.data[i], 0);
	host_stepped = NULL;
	close(commands.socket), close(again.socket), close(reader.socket);
	weir_target_destroy(stepped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_was_written),
		cmocka_unit_test(reads_with_digests),
		cmocka_unit_test(reads_without_flow_control),
		cmocka_unit_test(flush_zeroes_compare_and_deallocate),
		cmocka_unit_test(wrong_commands_get_a_status),
		cmocka_unit_test(a_disabled_controller_serves_nothing),
		cmocka_unit_test(identifies_itself),
		cmocka_unit_test(connects_are_checked),
		cmocka_unit_test(commands_wait_for_connect),
		cmocka_unit_test(discovery_lists_what_a_host_may_use),
		cmocka_unit_test(the_end_of_the_admin_queue_ends_all),
		cmocka_unit_test(a_wrong_data_digest_is_a_status),
		cmocka_unit_test(data_that_was_not_granted_ends_it),
		cmocka_unit_test(data_for_a_command_that_has_ended_ends_it),
		cmocka_unit_test(pdus_out_of_turn_end_it),
		cmocka_unit_test(each_byte_of_a_header_wrong),
		cmocka_unit_test(too_many_commands_end_it),
		cmocka_unit_test(a_dead_host_delays_nobody),
		cmocka_unit_test(slow_connections_cost_others_nothing),
		cmocka_unit_test(commands_end_with_their_queue),
		cmocka_unit_test(nothing_begins_behind_the_end),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
