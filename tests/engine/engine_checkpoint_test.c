/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_checkpoint_test.c: what is written and trimmed while a checkpoint is, and what is read of one.
 *
 * Owns: an engine whose checkpoint has many pages, and the moment between two of them.
 */
#include "engine_direct.h"

enum { BYTES = 160 << 20, USED = 28000, CHANGED = 40 };

/**
 * struct scene - what happens while a checkpoint is written
 * @engine: NULL: nothing, now
 * @version: of the blocks that change; those of before have one less, and are durable
 * @next: block that changes next
 * @heads: checkpoints whose head was written
 */
struct scene {
	struct weir_engine *engine;
	u64 version;
	u64 next;
	u32 heads;
	bool trims;
};

static bool is_of_checkpoint(const struct engine_shape *shape, u64 block)
{
	return block >= shape->checkpoint && block < shape->data;
}

static bool is_head(const struct engine_shape *shape, u64 block)
{
	return block == shape->checkpoint || block == shape->checkpoint + shape->checkpoint_blocks;
}

/* Between two pages of a checkpoint blocks all over the volume are written, or trimmed; when its head is
 * there, the power fails. */
static void change(struct lossy *lossy, const struct weir_io *io)
{
	struct scene *scene = lossy->argument;
	const struct engine_shape *shape = &scene->engine->shape;

	if (!is_of_checkpoint(shape, io->offset_bytes / BLOCK))
		return;
	if (is_head(shape, io->offset_bytes / BLOCK)) {
		scene->heads++;
		lossy->off = true;
		return;
	}
	for (u32 i = 0; i < CHANGED; i++, scene->next = (scene->next + 701) % USED) {
		if (scene->trims)
			assert_int_equal(direct_trim(scene->engine, scene->next, scene->version, false), 0);
		else
			assert_int_equal(direct_write(scene->engine, scene->next, scene->version, false), 0);
	}
}

/* All blocks, again and again, until garbage has been collected: what is written lies anywhere. */
static u64 fill(struct weir_engine *engine, u32 erases)
{
	u64 version = 0;

	while (direct_status(engine).erases < erases) {
		version++;
		for (u64 vba = 0; vba < USED; vba++)
			assert_int_equal(direct_write(engine, vba * 7919 % USED, version, false), 0);
	}
	assert_int_equal(direct_flush(engine), 0);
	return version;
}

/* Until the next checkpoint has its head. */
static void write_until_off(struct weir_engine *engine, struct lossy *lossy)
{
	for (u64 i = 1; !lossy->off; i++)
		if (direct_write(engine, USED, i, false) == 0 && i % 1000 == 0)
			(void)direct_flush(engine);
}

static void lose_power_behind_checkpoint(bool trims, u32 erases)
{
	struct scene scene = { .trims = trims };
	struct lossy lossy;
	struct weir_engine *engine = direct_begin(&lossy, BYTES);
	u64 version = fill(engine, erases);
	u32 lost = 0;

	scene.version = version + 1;
	scene.engine = engine;
	lossy.argument = &scene;
	lossy.meanwhile = change;
	write_until_off(engine, &lossy);
	assert_true(scene.heads == 1 && scene.next != 0);
	direct_close(engine);
	lossy.meanwhile = NULL;
	lossy_crash(&lossy, 1);
	engine = direct_open(&lossy);
	assert_non_null(engine);
	assert_int_equal(direct_map(engine, MAP), 0);
	for (u64 vba = 0; vba < USED; vba++)
		lost += !direct_holds(engine, vba, version) &&
			!direct_holds(engine, vba, trims ? 0 : version + 1);
	assert_int_equal(lost, 0);
	direct_close(engine);
	lossy_destroy(&lossy);
}

static void test_written_meanwhile(void **state)
{
	(void)state;
	for (u32 erases = 200; erases < 1400; erases += 150)
		lose_power_behind_checkpoint(false, erases);
}

static void test_trimmed_meanwhile(void **state)
{
	(void)state;
	for (u32 erases = 200; erases < 1400; erases += 150)
		lose_power_behind_checkpoint(true, erases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written_meanwhile),
		cmocka_unit_test(test_trimmed_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
