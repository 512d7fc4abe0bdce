/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_model.h: random commands for an engine, and what it may hold after them whatever became of its
 * medium.
 *
 * Owns: commands that follow from a seed, one after the other. The first has version 1, each one more than
 * the one before; so a block of data says how far its writer was.
 */
#ifndef WEIR_TESTS_ENGINE_MODEL_H
#define WEIR_TESTS_ENGINE_MODEL_H

#include "engine_direct.h"

enum { MODEL = 120, MODEL_COMMANDS = 4096 };

/** struct model_command - one; @version: its place among all */
struct model_command {
	enum weir_io_kind kind; /* FLUSH, WRITE or ZERO */
	u64 vba;
	u64 version;
	bool durable;
};

/**
 * struct model - of each block: the newest version that was begun, acknowledged, acknowledged as durable
 * @trimmed: which versions of it are zeros
 * @next: version of the next command
 */
struct model {
	u64 begun[MODEL];
	u64 acknowledged[MODEL];
	u64 durable[MODEL];
	bool trimmed[MODEL][MODEL_COMMANDS];
	u64 next;
};

static inline struct model *model_create(void)
{
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	model->next = 1;
	return model;
}

/** model_begin() - the command that @lot draws */
static inline struct model_command model_begin(struct model *model, u64 lot)
{
	struct model_command command = { WEIR_IO_WRITE, lot % MODEL, model->next++, !(lot >> 20 & 31) };

	assert_true(command.version < MODEL_COMMANDS);
	if (!(lot >> 32 & 31))
		command.kind = WEIR_IO_FLUSH;
	else if (lot >> 16 & 1 && lot >> 17 & 1 && lot >> 18 & 1)
		command.kind = WEIR_IO_ZERO;
	if (command.kind == WEIR_IO_FLUSH)
		return command;
	model->begun[command.vba] = command.version;
	model->trimmed[command.vba][command.version] = command.kind == WEIR_IO_ZERO;
	return command;
}

static inline u32 model_carry_out(struct weir_engine *engine, const struct model_command *command)
{
	if (command->kind == WEIR_IO_FLUSH)
		return direct_flush(engine);
	if (command->kind == WEIR_IO_ZERO)
		return direct_trim(engine, command->vba, command->version, command->durable);
	return direct_write(engine, command->vba, command->version, command->durable);
}

/** model_flushed() - all that was acknowledged is durable */
static inline void model_flushed(struct model *model)
{
	memcpy(model->durable, model->acknowledged, sizeof(model->durable));
}

/** model_ended() - @command was acknowledged */
static inline void model_ended(struct model *model, const struct model_command *command)
{
	if (command->kind == WEIR_IO_FLUSH) {
		model_flushed(model);
		return;
	}
	model->acknowledged[command->vba] = command->version;
	if (command->durable)
		model->durable[command->vba] = command->version;
}

/** model_content() - for direct_fill(): what block @vba holds in @version */
static inline u64 model_content(const struct model *model, u64 vba, u64 version)
{
	return model->trimmed[vba][version] ? 0 : version;
}

/** model_found() - the version of block @vba; one past all that it may be: none of them */
static inline u64 model_found(struct weir_engine *engine, const struct model *model, u64 vba)
{
	unsigned char data[BLOCK], expected[BLOCK];
	u64 version = model->durable[vba];

	if (direct_io(engine, WEIR_IO_READ, vba, 1, 0, false, data))
		return model->begun[vba] + 1;
	for (; version <= model->begun[vba]; version++) {
		direct_fill(expected, vba, model_content(model, vba, version));
		if (!memcmp(data, expected, BLOCK))
			break;
	}
	return version;
}

/** model_wrong() - blocks that are not what was acknowledged as durable, nor wholly something begun later;
 * and what weir_engine_check() finds */
static inline u64 model_wrong(struct weir_engine *engine, const struct model *model)
{
	struct weir_engine_checked checked;
	u64 wrong;

	weir_engine_check(engine, &checked, NULL);
	wrong = checked.bad + checked.lost + checked.orphans + checked.miscounted;
	for (u64 vba = 0; vba < MODEL; vba++)
		wrong += model_found(engine, model, vba) > model->begun[vba];
	return wrong;
}

#endif
