/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume_security_test.c: a host with a volume of its own, and a key, gets nothing of another's volume; a
 * stranger gets nothing at all. Bob intrudes; Alice's mark must be in nothing that he receives.
 */
#include "volume_people.h"

static struct host stranger;
static struct host_record recorded;

static int begin(void **state)
{
	(void)state;
	serve();
	connect_person(&manager);
	make_array();
	connect_person(&alice);
	connect_person(&bob);
	for (u32 i = 0; i < BLOCKS; i++) {
		struct access access = alices(NVME_OPCODE_WRITE, i, VERSION);

		assert_int_equal(write_marked(&alice.io, &access), 0);
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	disconnect(&bob);
	disconnect(&alice);
	disconnect(&manager);
	weir_target_stop(target, 10000);
	weir_target_destroy(target);
	return 0;
}

/* ---- what Bob tries ---- */

static const u8 opcodes[] = { NVME_OPCODE_READ, NVME_OPCODE_COMPARE, NVME_OPCODE_WRITE,
			      NVME_OPCODE_WRITE_ZEROES, NVME_OPCODE_DSM };

enum { OPCODES = sizeof(opcodes) };

static void every_number_is_refused(void **state)
{
	static const struct {
		u16 volume, client;
		u32 status;
	} table[] = {
		{ FOREIGN, ALICE, NVME_STATUS_VOLUME_CLIENT },
		{ FOREIGN, BOB, NVME_STATUS_VOLUME_CLIENT }, /* which is Carol there */
		{ FOREIGN, NOBODY, NVME_STATUS_VOLUME_DENIED },
		{ FOREIGN, 0xffff, NVME_STATUS_VOLUME_DENIED },
		{ FOREIGN, NVME_VOLUME_MANAGER, NVME_STATUS_VOLUME_CLIENT },
		{ OWN, NVME_VOLUME_MANAGER, NVME_STATUS_VOLUME_CLIENT },
		{ OWN, ALICE, NVME_STATUS_VOLUME_DENIED },
		{ 0, BOB, NVME_STATUS_VOLUME_UNKNOWN },
		{ 3, BOB, NVME_STATUS_VOLUME_UNKNOWN },
		{ 0xffff, NVME_VOLUME_MANAGER, NVME_STATUS_VOLUME_UNKNOWN },
	};
	enum { ROWS = sizeof(table) / sizeof(*table) };
	u64 before = refusals();

	(void)state;
	for (unsigned i = 0; i < ROWS * OPCODES; i++) {
		struct access access = { opcodes[i % OPCODES],
					 table[i / OPCODES].volume,
					 table[i / OPCODES].client,
					 7,
					 VERSION + 1,
					 LEASE,
					 MAP };

		assert_int_equal(try_access(&bob.io, &access), FINAL(table[i / OPCODES].status));
		assert_int_equal(bob.io.data_bytes, 0);
	}
	assert_int_equal(refusals() - before, ROWS * OPCODES);
	assert_alices_blocks(VERSION);
}

/* The same commands are carried out where they are the sender's: it is not for other reasons that they are
 * refused. */
static void its_own_volume_is_open(void **state)
{
	(void)state;
	for (unsigned i = 0; i < OPCODES; i++) {
		struct access access = bobs(opcodes[i], 7, VERSION + i);
		bool compares = access.opcode == NVME_OPCODE_COMPARE;

		assert_int_equal(try_access(&bob.io, &access),
				 compares ? FINAL(NVME_STATUS_COMPARE_FAILURE) : 0);
		assert_unmarked(&bob.io);
	}
}

static void other_opcodes_do_nothing(void **state)
{
	(void)state;
	for (unsigned opcode = 1; opcode < 256; opcode++) {
		struct access access = alices((u8)opcode, 3, VERSION + 1);

		if (opcode == NVME_OPCODE_FABRICS)
			continue;
		assert_int_not_equal(try_access(&bob.io, &access), 0);
		assert_int_equal(bob.io.data_bytes, 0);
	}
	assert_alices_blocks(VERSION);
}

/* Numbers that would be another volume's if they were carried over. */
static void no_range_reaches_out(void **state)
{
	const struct access last = bobs(NVME_OPCODE_READ, BLOCKS - 1, 0),
			    end = bobs(NVME_OPCODE_READ, ~0u, 0), behind = bobs(NVME_OPCODE_READ, BLOCKS, 0);
	const struct access *accesses[] = { &last, &end, &behind };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct nvme_sqe sqe = access_sqe(&bob.io, accesses[i]);

		sqe.cdw12 = 1; /* two blocks */
		assert_int_equal(command(&bob.io, sqe, data, 2 * BLOCK), FINAL(NVME_STATUS_LBA_OUT_OF_RANGE));
		assert_int_equal(bob.io.data_bytes, 0);
	}
}

/* A data buffer that is larger than the blocks would show what was in the target's memory. */
static void no_more_data_than_blocks(void **state)
{
	struct access access = bobs(NVME_OPCODE_READ, 0, 0);

	(void)state;
	for (u32 bytes = 2 * BLOCK; bytes <= 32 * BLOCK; bytes *= 2) {
		assert_int_not_equal(command(&bob.io, access_sqe(&bob.io, &access), NULL, bytes), 0);
		assert_int_equal(bob.io.data_bytes, 0);
	}
}

/* One foreign range among its own: none is deallocated. */
static void ranges_are_refused_together(void **state)
{
	struct access mine = bobs(NVME_OPCODE_WRITE, 1, VERSION + 10), theirs = alices(NVME_OPCODE_DSM, 1, 0);
	struct nvme_sqe sqe;

	(void)state;
	assert_int_equal(try_access(&bob.io, &mine), 0);
	mine.opcode = NVME_OPCODE_DSM;
	mine.version = theirs.version = VERSION + 11;
	sqe = access_sqe(&bob.io, &mine);
	sqe.cdw10 = 1; /* two ranges */
	set_range(0, &mine);
	set_range(1, &theirs);
	assert_int_equal(command(&bob.io, sqe, data, BLOCK), FINAL(NVME_STATUS_VOLUME_CLIENT));
	mine.opcode = NVME_OPCODE_READ;
	assert_int_equal(try_access(&bob.io, &mine), 0);
	assert_int_equal(bob.io.data[17], 0x66);
	assert_alices_blocks(VERSION);
}

/* ---- admin commands ---- */

static bool everybody_may(unsigned opcode)
{
	return opcode == NVME_ADMIN_IDENTIFY || opcode == NVME_ADMIN_GET_LOG_PAGE ||
	       opcode == NVME_ADMIN_GET_FEATURES || opcode == NVME_ADMIN_SET_FEATURES ||
	       opcode == NVME_ADMIN_ABORT || opcode == NVME_ADMIN_ASYNC_EVENT ||
	       opcode == NVME_ADMIN_KEEP_ALIVE || opcode == NVME_OPCODE_FABRICS;
}

/* The data of each is what would open Alice's volume to Bob, or be the number of her volume. */
static void admin_commands_are_the_managers(void **state)
{
	static const u8 volumes[] = { NVME_ADMIN_VOLUME_ADD,   NVME_ADMIN_VOLUME_DELETE,
				      NVME_ADMIN_VOLUME_CHMOD, NVME_ADMIN_VOLUME_LEASE,
				      NVME_ADMIN_VOLUME_MAP,   NVME_ADMIN_VOLUME_GET_MAP,
				      NVME_ADMIN_VOLUME_GET,   NVME_ADMIN_VOLUME_GET_PERMISSION,
				      NVME_ADMIN_VOLUME_LIST,  NVME_ADMIN_VOLUME_STATUS,
				      NVME_ADMIN_VOLUME_FENCE };
	struct nvme_volume_permission open = { FOREIGN, BOB, NVME_VOLUME_READ, "" };

	(void)state;
	snprintf(open.hostnqn, sizeof(open.hostnqn), "%s", bob.nqn);
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		bool known = memchr(volumes, (int)opcode, sizeof(volumes));
		struct nvme_sqe sqe = host_command(&bob.admin, (u8)opcode, 1);
		u32 status;

		if (everybody_may(opcode))
			continue;
		sqe.cdw10 = FOREIGN;
		memset(data, 0, sizeof(data));
		memcpy(data, &open, sizeof(open));
		status = command(&bob.admin, sqe, data, BLOCK);
		if (known)
			assert_int_equal(status, FINAL(NVME_STATUS_VOLUME_DENIED));
		assert_int_not_equal(status, 0);
		assert_int_equal(bob.admin.data_bytes, 0);
	}
	assert_alices_blocks(VERSION);
}

static void pages_show_nothing_foreign(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 512; i++) {
		struct nvme_sqe sqe =
			host_command(&bob.admin, i < 256 ? NVME_ADMIN_IDENTIFY : NVME_ADMIN_GET_LOG_PAGE, 1);

		sqe.cdw10 = i < 256 ? i : (i & 0xff) | 0x3ffu << 16;
		(void)command(&bob.admin, sqe, NULL, BLOCK);
		assert_unmarked(&bob.admin);
	}
}

/* ---- commands that are sent again ---- */

/* The bytes of a command of Alice's, which she does not send. */
static void withhold(const struct access *access, struct host *as)
{
	struct nvme_sqe sqe = access_sqe(as, access);
	int socket = as->socket;

	memset(data, 0x66, sizeof(data));
	host_sgl(&sqe, NVME_SGL_DATA_BLOCK_OFFSET, BLOCK);
	as->socket = -1;
	host_record = &recorded;
	host_capsule(as, &sqe, data, BLOCK);
	host_record = NULL;
	as->socket = socket;
}

static u32 resend(struct host *host)
{
	host_send(host, recorded.bytes, recorded.count);
	return host_response(host, NULL);
}

static void overheard_commands_are_refused(void **state)
{
	const struct access access = alices(NVME_OPCODE_WRITE, 9, VERSION + 1);
	u32 status;

	(void)state;
	recorded.count = 0;
	withhold(&access, &alice.io);
	assert_int_equal(resend(&bob.io), FINAL(NVME_STATUS_VOLUME_CLIENT));
	host_adopt(&stranger, target);
	host_hello(&stranger, 0, 0);
	status = resend(&stranger);
	assert_int_equal(status, FINAL(NVME_STATUS_COMMAND_SEQUENCE));
	close(stranger.socket);
	assert_alices_blocks(VERSION);
}

/* Of a connection before, by its own host: an older version, lease or map has passed for good. */
static void older_commands_are_refused(void **state)
{
	const struct access access = alices(NVME_OPCODE_WRITE, 9, VERSION - 1);

	(void)state;
	recorded.count = 0;
	withhold(&access, &alice.io);
	disconnect(&alice);
	connect_person(&alice);
	assert_int_equal(resend(&alice.io), FINAL(NVME_STATUS_VOLUME_OLD_VERSION));
	recorded.count = 0;
	withhold(&(struct access){ NVME_OPCODE_WRITE, FOREIGN, ALICE, 9, VERSION + 1, LEASE, MAP },
		 &alice.io);
	assert_int_equal(set_lease(FOREIGN, LEASE + 1, ALICE), 0);
	assert_int_equal(resend(&alice.io), FINAL(NVME_STATUS_VOLUME_STALE_LEASE));
	recorded.count = 0;
	withhold(&(struct access){ NVME_OPCODE_WRITE, FOREIGN, ALICE, 9, VERSION_OF(LEASE + 1), LEASE + 1,
				   MAP - 1 },
		 &alice.io);
	assert_int_equal(resend(&alice.io), FINAL(NVME_STATUS_VOLUME_STALE_MAP));
	assert_alices_blocks(VERSION);
}

/* A whole connection once more, proof and all: its challenge is another one. */
static void a_connection_is_not_repeated(void **state)
{
	const struct access access = { NVME_OPCODE_WRITE,     FOREIGN,   ALICE, 9,
				       VERSION_OF(LEASE + 1), LEASE + 1, MAP };
	static struct host queue;
	unsigned good = 0;

	(void)state;
	if (!weir_chap_available())
		skip();
	recorded.count = 0;
	host_record = &recorded;
	assert_true(connect_queue(&queue, &alice, &alice.secret, 2, alice.cntlid, NULL));
	host_record = NULL;
	withhold(&access, &queue);
	close(queue.socket);
	host_adopt(&stranger, target);
	host_send(&stranger, recorded.bytes, recorded.count);
	while (host_receive(&stranger)) {
		if (stranger.header.common.type != NVME_TCP_CAPSULE_RESP)
			continue;
		good += host_status(&stranger, NULL) == 0;
	}
	close(stranger.socket);
	assert_int_equal(good, 5); /* Connect, two messages each way; the last says that it failed */
	assert_alices_blocks(VERSION);
}

/* ---- who Bob says he is ---- */

static void assert_unproved(struct host *host, bool io)
{
	struct access access = alices(NVME_OPCODE_READ, 0, 0);
	u32 status = io ? try_access(host, &access)
			: command(host, host_command(host, NVME_ADMIN_VOLUME_GET, 1), NULL, BLOCK);

	assert_int_equal(status & NVME_STATUS_CODE_MASK, NVME_STATUS_AUTHENTICATION_REQUIRED);
	assert_int_equal(host->data_bytes, 0);
}

static void another_name_wants_its_key(void **state)
{
	const struct person *names[] = { &alice, &manager };
	char byte;

	(void)state;
	if (!weir_chap_available())
		skip();
	for (unsigned i = 0; i < 4; i++) {
		const struct person *as = names[i % 2];
		bool io = i >= 2;
		u16 cntlid = io ? as->cntlid : NVME_CNTLID_DYNAMIC;

		host_adopt(&stranger, target);
		host_hello(&stranger, 0, 0);
		assert_int_equal(
			host_connect(&stranger, io ? 3 : 0, 31, cntlid, 0, HOST_SUBSYSTEM, as->nqn, NULL), 0);
		assert_unproved(&stranger, io);
		close(stranger.socket);
		assert_false(connect_queue(&stranger, as, &bob.secret, io ? 4 : 0, cntlid, NULL));
		assert_int_equal(recv(stranger.socket, &byte, 1, 0), 0); /* it is closed */
		close(stranger.socket);
	}
}

static void a_queue_of_anothers_controller(void **state)
{
	(void)state;
	host_adopt(&stranger, target);
	host_hello(&stranger, 0, 0);
	assert_int_equal(host_connect(&stranger, 2, 31, alice.cntlid, 0, HOST_SUBSYSTEM, bob.nqn, NULL),
			 FINAL(NVME_STATUS_CONNECT_INVALID_PARAMETERS));
	close(stranger.socket);
}

static void a_stranger_is_refused(void **state)
{
	static const char *const names[] = { "nqn.2026-11.org.example:eve", "nqn.2026-11.org.example:alic",
					     "nqn.2026-11.org.example:alicee",
					     "nqn.2026-11.org.example:Alice" };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		host_adopt(&stranger, target);
		host_hello(&stranger, 0, 0);
		assert_int_equal(host_connect(&stranger, 0, 31, NVME_CNTLID_DYNAMIC, 0, HOST_SUBSYSTEM,
					      names[i], NULL),
				 FINAL(NVME_STATUS_CONNECT_INVALID_HOST));
		close(stranger.socket);
	}
}

/* ---- rights that end ---- */

static void rights_end_on_open_connections(void **state)
{
	const struct access read = bobs(NVME_OPCODE_READ, 0, 0);

	(void)state;
	assert_int_equal(try_access(&bob.io, &read), 0);
	assert_int_equal(set_rights(OWN, BOB, NVME_VOLUME_WRITE, bob.nqn), 0);
	assert_int_equal(try_access(&bob.io, &read), FINAL(NVME_STATUS_VOLUME_DENIED));
	assert_int_equal(set_rights(OWN, BOB, NVME_VOLUME_READ, carol.nqn), 0);
	assert_int_equal(try_access(&bob.io, &read), FINAL(NVME_STATUS_VOLUME_CLIENT));
	assert_int_equal(set_rights(OWN, BOB, NVME_VOLUME_READ, bob.nqn), 0);
	assert_int_equal(try_access(&bob.io, &read), 0);
}

/* What Alice's volume held is not in one that gets its number, nor in blocks that are free again. */
static void a_deleted_volume_leaves_nothing(void **state)
{
	static const u8 zeros[BLOCK];
	struct access access = { NVME_OPCODE_READ, FOREIGN, BOB, 0, 0, 0, MAP };

	(void)state;
	assert_int_equal(manage(NVME_ADMIN_VOLUME_DELETE, FOREIGN, 0, 0, NULL, 0), 0);
	assert_int_equal(try_access(&bob.io, &access), FINAL(NVME_STATUS_VOLUME_UNKNOWN));
	assert_int_equal(add_volume(FOREIGN, "bobs-too"), 0);
	assert_int_equal(try_access(&bob.io, &access), FINAL(NVME_STATUS_VOLUME_DENIED));
	assert_int_equal(set_rights(FOREIGN, BOB, NVME_VOLUME_READ, bob.nqn), 0);
	for (access.vba = 0; access.vba < BLOCKS; access.vba++) {
		assert_int_equal(try_access(&bob.io, &access), 0);
		assert_memory_equal(bob.io.data, zeros, BLOCK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_number_is_refused),
		cmocka_unit_test(its_own_volume_is_open),
		cmocka_unit_test(other_opcodes_do_nothing),
		cmocka_unit_test(no_range_reaches_out),
		cmocka_unit_test(no_more_data_than_blocks),
		cmocka_unit_test(ranges_are_refused_together),
		cmocka_unit_test(admin_commands_are_the_managers),
		cmocka_unit_test(pages_show_nothing_foreign),
		cmocka_unit_test(overheard_commands_are_refused),
		cmocka_unit_test(older_commands_are_refused),
		cmocka_unit_test(a_connection_is_not_repeated),
		cmocka_unit_test(another_name_wants_its_key),
		cmocka_unit_test(a_queue_of_anothers_controller),
		cmocka_unit_test(a_stranger_is_refused),
		cmocka_unit_test(rights_end_on_open_connections),
		cmocka_unit_test(a_deleted_volume_leaves_nothing),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, begin, end);
}
