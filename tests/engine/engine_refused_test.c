/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_refused_test.c: what an engine refuses of its daemon and of its medium, and what it has then: as
 * before.
 */
#include <errno.h>

#include "../rig/leaks.h"
#include "engine_direct.h"

enum {
	BYTES = 2 << 20,
	BLOCKS = 40,
	MOST_ENTRIES = 1000,
	MOST_CALLS = 1000,
	VOLUMES = 12000, /* on more pages than are written at once */
	VOLUMES_GIB = 4, /* whose checkpoint has room for them */
	SLACK = 64 << 10,
};

#define FINAL(status) ((status) | NVME_STATUS_DNR)
#define INVALID       FINAL(NVME_STATUS_INVALID_FIELD)

static struct lossy lossy;

static struct nvme_volume good(void)
{
	return (struct nvme_volume){
		.vid = VID, .replicas = 1, .unit_log2 = 4, .weight = 1, .blocks = 1 << 20, .name = "volume"
	};
}

static u32 add(struct weir_engine *engine, const struct nvme_volume *volume)
{
	struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_VOLUME_ADD, .cdw10 = volume->vid, .cdw13 = MAP };
	unsigned char page[BLOCK] = { 0 };

	memcpy(page, volume, sizeof(*volume));
	return weir_engine_admin(engine, NULL, &sqe, page);
}

/* Fields of a volume beside those that are allowed. */
static void test_volumes_that_are_none(void **state)
{
	struct weir_engine *engine = direct_begin(&lossy, BYTES);
	struct nvme_volume volume = good(), there;

	(void)state;
#define REFUSED(field, value)                                                                                \
	do {                                                                                                 \
		volume = good();                                                                             \
		volume.field = (value);                                                                      \
		assert_int_equal(add(engine, &volume), INVALID);                                             \
	} while (0)
	REFUSED(vid, 0);
	REFUSED(vid, NVME_VOLUME_MOST + 1);
	REFUSED(replicas, 0);
	REFUSED(replicas, NVME_VOLUME_MOST_REPLICAS + 1);
	REFUSED(unit_log2, 21);
	REFUSED(unit_log2, 3); /* of one that is there: its blocks would be elsewhere */
	REFUSED(blocks, 0);
	REFUSED(blocks, ((u64)1 << 32) + 1);
	REFUSED(weight, 0);
	REFUSED(weight, 1001);
	REFUSED(lease_client, NVME_VOLUME_MOST + 1);
	REFUSED(lease_epoch, NVME_VOLUME_LAST_EPOCH + 1);
	REFUSED(lease_epoch, ~(u32)0);
	volume = good();
	memset(volume.name, 'n', sizeof(volume.name));
	assert_int_equal(add(engine, &volume), INVALID);
	volume = good();
	volume.vid = VID + 1; /* of another number than the command's */
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_ADD, 0, 0, &volume), INVALID);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_GET, 0, 0, &there), 0);
	assert_int_equal(there.vid, VID);
	assert_int_equal(there.lease_epoch, LEASE);
	assert_int_equal(direct_status(engine).volumes, 1);
	volume = good();
	volume.blocks = (u64)1 << 32;
	volume.replicas = NVME_VOLUME_MOST_REPLICAS;
	volume.weight = 1000;
	assert_int_equal(add(engine, &volume), 0);
	direct_close(engine);
	lossy_destroy(&lossy);
}

static u32 chmod_as(struct weir_engine *engine, struct nvme_volume_permission permission, u32 vid)
{
	struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_VOLUME_CHMOD, .cdw10 = vid, .cdw13 = MAP };
	unsigned char page[BLOCK] = { 0 };

	memcpy(page, &permission, sizeof(permission));
	return weir_engine_admin(engine, NULL, &sqe, page);
}

static void test_permissions_and_leases_that_are_none(void **state)
{
	struct weir_engine *engine = direct_begin(&lossy, BYTES);
	struct nvme_volume_permission permission = {
		.vid = VID, .client = 9, .rights = 3, .hostnqn = "nqn.b"
	};

	(void)state;
	assert_int_equal(chmod_as(engine, permission, VID + 1), INVALID);
	permission.client = 0;
	assert_int_equal(chmod_as(engine, permission, VID), INVALID);
	permission.client = NVME_VOLUME_MOST + 1;
	assert_int_equal(chmod_as(engine, permission, VID), INVALID);
	permission.client = 9;
	permission.rights = 4;
	assert_int_equal(chmod_as(engine, permission, VID), INVALID);
	permission.rights = 3;
	memset(permission.hostnqn, 'n', sizeof(permission.hostnqn));
	assert_int_equal(chmod_as(engine, permission, VID), INVALID);
	permission = (struct nvme_volume_permission){
		.vid = VID + 1, .client = 9, .rights = 3, .hostnqn = "nqn.b"
	};
	assert_int_equal(chmod_as(engine, permission, VID + 1), FINAL(NVME_STATUS_VOLUME_UNKNOWN));
	assert_int_equal(engine->volumes[VID]->permission_count, 1);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_LEASE, LEASE + 1, NVME_VOLUME_MOST + 1, NULL),
			 INVALID);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_LEASE, ~(u32)0, CLIENT, NULL), INVALID);
	assert_int_equal(
		direct_admin(engine, NVME_ADMIN_VOLUME_LEASE, NVME_VOLUME_LAST_EPOCH + 1, CLIENT, NULL),
		INVALID);
	assert_int_equal(engine->volumes[VID]->is.lease_epoch, LEASE);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_LEASE, NVME_VOLUME_LAST_EPOCH, CLIENT, NULL),
			 0);
	direct_close(engine);
	lossy_destroy(&lossy);
}

static void test_maps_that_are_none(void **state)
{
	struct weir_engine *engine = direct_begin(&lossy, BYTES);
	struct nvme_volume_map map = { .epoch = MAP + 1, .count = 0 };

	(void)state;
	map.engines[0] = (struct nvme_volume_engine){ .id = 1, .weight = 100 };
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_MAP, 0, 0, &map), INVALID);
	map.count = NVME_VOLUME_MOST_ENGINES + 1;
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_MAP, 0, 0, &map), INVALID);
	map.count = map.self = 1;
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_MAP, 0, 0, &map), INVALID);
	map.self = 0;
	map.count = 2; /* both by one number */
	map.engines[1] = map.engines[0];
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_MAP, 0, 0, &map), INVALID);
	assert_int_equal(direct_status(engine).map_epoch, MAP);
	assert_int_equal(direct_write(engine, 1, 1, false), 0); /* by the map of before */
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* What there is no volume for. */
static void test_volumes_that_are_not_there(void **state)
{
	static const u32 opcodes[] = { NVME_ADMIN_VOLUME_DELETE, NVME_ADMIN_VOLUME_LEASE,
				       NVME_ADMIN_VOLUME_LIST, NVME_ADMIN_VOLUME_GET_PERMISSION };
	struct weir_engine *engine = direct_begin(&lossy, BYTES);
	unsigned char page[BLOCK] = { 0 };

	(void)state;
	for (u32 i = 0; i < 4; i++)
		for (u32 vid = 0; vid <= 0xffff; vid += vid == VID - 1 ? 2 : vid > VID ? 0xffff - vid : 1) {
			struct nvme_sqe sqe = { .cdw0 = opcodes[i], .cdw10 = vid, .cdw13 = MAP };

			assert_int_equal(weir_engine_admin(engine, NULL, &sqe, page),
					 FINAL(NVME_STATUS_VOLUME_UNKNOWN));
			if (vid == 0xffff)
				break;
		}
	assert_int_equal(direct_status(engine).volumes, 1);
	direct_close(engine);
	lossy_destroy(&lossy);
}

void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

static bool no_memory;

/* In place of realloc(). */
void *__wrap_realloc(void *memory, size_t bytes)
{
	return no_memory ? NULL : __real_realloc(memory, bytes);
}

static u32 permit(struct weir_engine *engine, u32 client, u32 rights)
{
	struct nvme_volume_permission permission = { .vid = VID, .client = (u16)client, .rights = rights };

	memset(permission.hostnqn, 'n', sizeof(permission.hostnqn) - 1);
	return chmod_as(engine, permission, VID);
}

/* As many permissions as a checkpoint has room for: all of them are there after the next start. */
static void test_as_many_permissions_as_there_is_room_for(void **state)
{
	struct weir_engine *engine = direct_begin(&lossy, BYTES);
	struct nvme_volume another = good();
	u32 client = 100, count;

	(void)state;
	another.vid = VID + 1;
	while (permit(engine, client, 1) == 0)
		assert_true(++client < MOST_ENTRIES);
	assert_int_equal(permit(engine, client, 1), NVME_STATUS_CAPACITY_EXCEEDED);
	assert_int_equal(add(engine, &another), NVME_STATUS_CAPACITY_EXCEEDED);
	assert_int_equal(permit(engine, 100, 3), 0); /* it has one */
	count = engine->volumes[VID]->permission_count;
	assert_int_equal(permit(engine, 101, 0), 0);
	assert_int_equal(permit(engine, 101, 0), 0); /* which makes no room */
	assert_int_equal(permit(engine, client, 1), 0);
	assert_int_equal(permit(engine, 101, 1), NVME_STATUS_CAPACITY_EXCEEDED);
	direct_close(engine);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	assert_int_equal(engine->volumes[VID]->permission_count, count);
	for (u32 i = 0; i < count; i++)
		assert_int_equal(engine->volumes[VID]->permissions[i].client, i ? i + 99 + (i > 1) : CLIENT);
	assert_int_equal(permit(engine, 101, 1), NVME_STATUS_CAPACITY_EXCEEDED);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_DELETE, 0, 0, NULL), 0);
	assert_int_equal(direct_prepare(engine), 0);
	for (u32 i = 1; i < count; i++)
		assert_int_equal(permit(engine, 100 + i, 1), 0);
	assert_int_equal(permit(engine, 100, 1), NVME_STATUS_CAPACITY_EXCEEDED);
	direct_close(engine);
	lossy_destroy(&lossy);
}

static const struct weir_medium_ops *sparse_ops;
static u64 most_bytes; /* of a write */

static bool submit_measured(struct weir_medium *medium, struct weir_io *io)
{
	if (io->kind == WEIR_IO_WRITE && io->bytes > most_bytes)
		most_bytes = io->bytes;
	return sparse_ops->submit(medium, io);
}

static void never_closed(struct weir_medium *medium)
{
	(void)medium;
}

static struct weir_engine *open_many(struct weir_medium *medium, bool format)
{
	const struct weir_engine_options options = { .behind = medium, .threads = 1, .format = format };
	struct weir_engine *engine;

	assert_int_equal(weir_engine_open(&options, &engine), 0);
	return engine;
}

/* Volumes that nobody may use are as many pages of a checkpoint as others. */
static void test_many_volumes_without_permissions(void **state)
{
	struct nvme_volume volume = good();
	struct weir_medium_ops ops;
	struct weir_medium *medium;
	struct weir_engine *engine;

	(void)state;
	assert_int_equal(weir_medium_sparse_open((u64)VOLUMES_GIB << 30, BLOCK, &medium), 0);
	ops = *(sparse_ops = medium->ops);
	ops.submit = submit_measured;
	ops.close = never_closed;
	medium->ops = &ops;
	engine = open_many(medium, true);
	engine_lock(engine);
	for (volume.vid = 1; volume.vid <= VOLUMES; volume.vid++)
		assert_int_equal(engine_volume_set(engine, &volume), 0);
	engine_unlock(engine);
	most_bytes = 0;
	assert_int_equal(engine_checkpoint(engine), 0);
	assert_in_range(most_bytes, 1, ENGINE_BUFFER_BYTES);
	direct_close(engine);
	engine = open_many(medium, false);
	assert_int_equal(direct_status(engine).volumes, VOLUMES);
	direct_close(engine);
	sparse_ops->close(medium);
}

/* Permissions that there is no memory for take no room of others. */
static void test_permissions_without_memory(void **state)
{
	struct weir_engine *engine = direct_begin(&lossy, BYTES);
	u32 client = 100, count;

	(void)state;
	while (permit(engine, client, 1) == 0)
		assert_true(++client < MOST_ENTRIES);
	count = client;
	assert_int_equal(permit(engine, --client, 0), 0);
	no_memory = true;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(permit(engine, client, 1), NVME_STATUS_INTERNAL_ERROR);
	no_memory = false;
	assert_int_equal(permit(engine, client, 1), 0);
	assert_int_equal(permit(engine, count, 1), NVME_STATUS_CAPACITY_EXCEEDED);
	direct_close(engine);
	lossy_destroy(&lossy);
}

int __real_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);

static const pthread_cond_t *woken;

/* In place of pthread_cond_broadcast(). */
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
	woken = condition;
	return __real_pthread_cond_broadcast(condition);
}

/* A change that cannot be noted: there will be no commit, and whoever waits for one is woken. */
static void test_a_change_that_there_is_no_memory_for(void **state)
{
	struct weir_engine *engine = direct_begin(&lossy, BYTES);
	u64 commit;

	(void)state;
	engine_lock(engine);
	commit = engine_want_commit(engine);
	woken = NULL;
	no_memory = true;
	for (unsigned i = 0; i < 10 * MOST_ENTRIES && !engine->failed; i++)
		engine_record_erase(engine, 0);
	no_memory = false;
	assert_true(engine->failed);
	assert_ptr_equal(woken, &engine->changed);
	engine_unlock(engine);
	assert_false(engine_wait_commit(engine, commit));
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* Entries of blocks @vba and on, @count of them; and their number. */
static u32 list_range(struct weir_engine *engine, u32 vba, u32 count, struct nvme_volume_list *list)
{
	struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_VOLUME_LIST, .cdw10 = count << 16 | VID, .cdw13 = vba };

	assert_int_equal(weir_engine_admin(engine, NULL, &sqe, list), 0);
	assert_true(list->next == ~(u64)0);
	return list->count;
}

/* Which version an engine has of a block is what a repair goes by. */
static void test_lists_of_a_few_blocks(void **state)
{
	struct weir_engine *engine = direct_begin(&lossy, BYTES);
	struct nvme_volume_list list;

	(void)state;
	for (u64 vba = 10; vba < 20; vba++)
		assert_int_equal(direct_write(engine, vba, 100 + vba, false), 0);
	assert_int_equal(direct_trim(engine, 12, 500, false), 0);
	assert_int_equal(list_range(engine, 9, 1, &list), 0);
	assert_int_equal(list_range(engine, 11, 1, &list), 1);
	assert_int_equal(list.entries[0].vba, 11);
	assert_int_equal(list.entries[0].version, direct_version(111));
	assert_int_equal(list_range(engine, 8, 6, &list), 4);
	assert_true(list.entries[2].vba == (12 | (u64)1 << 32) &&
		    list.entries[2].version == direct_version(500));
	assert_int_equal(list_range(engine, 19, 8, &list), 1);
	direct_close(engine);
	lossy_destroy(&lossy);
}

/* A command has not ended well before the journal has it. */
static void test_a_change_that_is_not_kept_is_refused(void **state)
{
	struct weir_engine *engine = direct_begin(&lossy, BYTES);
	struct nvme_volume there;

	(void)state;
	lossy.off = true;
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_LEASE, LEASE + 1, CLIENT, NULL),
			 NVME_STATUS_WRITE_FAULT);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_DELETE, 0, 0, NULL), NVME_STATUS_WRITE_FAULT);
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_GET, 0, 0, &there), 0); /* it is there */
	assert_true(direct_status(engine).write_faults > 0);
	direct_close(engine);
	lossy_crash(&lossy, NOTHING_IS_KEPT);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	assert_int_equal(engine->volumes[VID]->is.lease_epoch, LEASE);
	direct_close(engine);
	lossy_destroy(&lossy);
}

static const struct weir_medium_ops *lossy_ops;
static struct weir_medium_ops failing_ops;
static u64 calls, fails_at;
static enum weir_io_kind fails;

static bool submit_but_one(struct weir_medium *medium, struct weir_io *io)
{
	if (io->kind != fails || ++calls != fails_at)
		return lossy_ops->submit(medium, io);
	io->status = fails == WEIR_IO_READ ? NVME_STATUS_UNRECOVERED_READ : NVME_STATUS_WRITE_FAULT;
	io->done(io);
	return true;
}

static void check_all(struct weir_engine *engine)
{
	assert_non_null(engine);
	if (!direct_status(engine).has_map)
		assert_int_equal(direct_map(engine, MAP), 0);
	for (u64 vba = 0; vba < BLOCKS; vba++)
		assert_true(direct_holds(engine, vba, 1 + vba));
	assert_int_equal(direct_status(engine).volumes, 1);
}

/* Start over a copy of @from, of whose calls of a kind the @nth fails. Return: whether there were so many. */
static bool start_failing(const struct lossy *from, enum weir_io_kind kind, u64 nth)
{
	struct weir_engine *engine;

	lossy_copy(&lossy, from);
	lossy_ops = lossy.medium.ops;
	failing_ops = *lossy_ops;
	failing_ops.submit = submit_but_one;
	lossy.medium.ops = &failing_ops;
	fails = kind;
	fails_at = nth;
	calls = 0;
	engine = direct_open(&lossy);
	if (engine && calls >= fails_at)
		fail_msg("call %llu of %llu failed, and the engine has started", (unsigned long long)nth,
			 (unsigned long long)calls);
	lossy.medium.ops = lossy_ops;
	if (engine)
		direct_close(engine);
	lossy_crash(&lossy, NOTHING_IS_KEPT);
	engine = direct_open(&lossy);
	check_all(engine);
	direct_close(engine);
	lossy_destroy(&lossy);
	return calls >= fails_at;
}

/* An engine that cannot read all that it has, or cannot note that it is open, does not start; nor does it
 * take its medium for an empty one. With the medium well again it has everything. No start leaves memory
 * behind. */
static void test_each_call_fails_at_a_start(void **state)
{
	static const enum weir_io_kind kinds[] = { WEIR_IO_READ, WEIR_IO_WRITE, WEIR_IO_FLUSH };
	struct weir_engine *engine = direct_begin(&lossy, BYTES);
	struct lossy in_order, in_doubt;
	struct test_has before;

	(void)state;
	for (u64 vba = 0; vba < BLOCKS; vba++)
		assert_int_equal(direct_write(engine, vba, 1 + vba, false), 0);
	assert_int_equal(direct_flush(engine), 0);
	lossy_copy(&in_doubt, &lossy);
	direct_close(engine);
	assert_int_equal(lossy.off, false);
	lossy_copy(&in_order, &lossy);
	lossy_destroy(&lossy);
	assert_true(start_failing(&in_order, WEIR_IO_READ, 1));
	before = test_has();
	for (unsigned i = 0; i < 3; i++) {
		u64 nth[2] = { 1, 1 };

		while (start_failing(&in_order, kinds[i], nth[0]))
			assert_true(++nth[0] < MOST_CALLS);
		while (start_failing(&in_doubt, kinds[i], nth[1]))
			assert_true(++nth[1] < MOST_CALLS);
		assert_true(nth[0] > 1 && nth[1] > 1);
	}
	test_keeps(before, SLACK);
	lossy_destroy(&in_order);
	lossy_destroy(&in_doubt);
}

static void test_an_empty_medium_is_not_read(void **state)
{
	struct weir_engine *engine = NULL;

	(void)state;
	lossy_create(&lossy, BYTES);
	assert_int_equal(weir_engine_open(&(struct weir_engine_options){ .behind = &lossy.medium,
									 .threads = 1,
									 .read_only = true },
					  &engine),
			 -ENODATA);
	assert_int_equal(lossy.writes, 0);
	lossy_destroy(&lossy);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_volumes_that_are_none),
		cmocka_unit_test(test_permissions_and_leases_that_are_none),
		cmocka_unit_test(test_maps_that_are_none),
		cmocka_unit_test(test_volumes_that_are_not_there),
		cmocka_unit_test(test_as_many_permissions_as_there_is_room_for),
		cmocka_unit_test(test_many_volumes_without_permissions),
		cmocka_unit_test(test_permissions_without_memory),
		cmocka_unit_test(test_a_change_that_there_is_no_memory_for),
		cmocka_unit_test(test_lists_of_a_few_blocks),
		cmocka_unit_test(test_a_change_that_is_not_kept_is_refused),
		cmocka_unit_test(test_each_call_fails_at_a_start),
		cmocka_unit_test(test_an_empty_medium_is_not_read),
	};

	return cmocka_run_group_tests_name("engine_refused", tests, NULL, NULL);
}
