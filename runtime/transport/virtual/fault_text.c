/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/fault_text.c: fault tables as text, and what a table may say.
 *
 * Owns: the names of kinds and fields, their limits, and the sentences about
 * them. What is not understood is refused, by row and by name.
 */
#include "fault.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../backend/error.h"

enum {
	ROW_TEXT_BYTES = 256,
	LIST_TEXT_BYTES = 256,
	MOST_US = 1000000000,
	MOST_HELD = 4096,
};

static const char *const kind_names[] = { "status", "late",      "shuffle", "burst", "stall",
					  "drop",   "duplicate", "stray",   "phase", "misroute",
					  "fatal",  "gone",      "stuck",   "hung",  "off" };
static const char *const opcode_names[] = { "any", "read", "write", "flush" };

_Static_assert(sizeof(kind_names) / sizeof(*kind_names) == WEIR_VIRTUAL_FAULT_KINDS, "a name for each");
_Static_assert(sizeof(opcode_names) / sizeof(*opcode_names) == WEIR_VIRTUAL_FAULT_OPCODES, "likewise");

enum {
	KIND_STATUS = 1 << WEIR_VIRTUAL_FAULT_STATUS,
	KIND_TIMES = 1 << WEIR_VIRTUAL_FAULT_LATE | 1 << WEIR_VIRTUAL_FAULT_STALL,
	KIND_GROUPS = 1 << WEIR_VIRTUAL_FAULT_SHUFFLE | 1 << WEIR_VIRTUAL_FAULT_BURST,
	KIND_STRAY = 1 << WEIR_VIRTUAL_FAULT_STRAY,
	KIND_ALL = (1 << WEIR_VIRTUAL_FAULT_KINDS) - 1,
};

#define MEMBER(name) offsetof(struct weir_virtual_fault, name), sizeof(((struct weir_virtual_fault *)0)->name)

/* struct field - a field of the text: what it is called, whose it is, where it goes */
static const struct field {
	const char *name;
	uint32_t kinds;
	uint64_t least, most;
	size_t offset, bytes;
} fields[] = {
	{ "queue", KIND_ALL, 0, 65535, MEMBER(queue) },
	{ "after", KIND_ALL, 0, UINT64_MAX, MEMBER(after) },
	{ "every", KIND_ALL, 0, UINT64_MAX, MEMBER(every) },
	{ "count", KIND_ALL, 0, UINT64_MAX, MEMBER(count) },
	{ "chance", KIND_ALL, 0, 1000, MEMBER(chance) },
	{ "seed", KIND_ALL, 0, UINT64_MAX, MEMBER(seed) },
	{ "us", KIND_TIMES, 1, MOST_US, MEMBER(us) },
	{ "of", KIND_GROUPS, 2, MOST_HELD, MEMBER(of) },
	{ "code", KIND_STATUS, 1, 0x7ff, MEMBER(code) },
	{ "dnr", KIND_STATUS, 0, 1, MEMBER(dnr) },
	{ "crd", KIND_STATUS, 0, 3, MEMBER(crd) },
	{ "cid", KIND_STRAY, 0, 65535, MEMBER(cid) },
};

enum { FIELDS = sizeof(fields) / sizeof(*fields), FIELD_OP = FIELDS, FIELD_LBA };

/* struct place - a row being read, for messages: its number from 1 on and its text */
struct location {
	unsigned number;
	const char *text;
};

static uint64_t get(const struct weir_virtual_fault *row, const struct field *field)
{
	const unsigned char *at = (const unsigned char *)row + field->offset;
	uint64_t wide;
	uint32_t word;
	uint16_t half;

	switch (field->bytes) {
	case 8: return memcpy(&wide, at, sizeof(wide)), wide;
	case 4: return memcpy(&word, at, sizeof(word)), word;
	case 2: return memcpy(&half, at, sizeof(half)), half;
	default: return *at;
	}
}

static void set(struct weir_virtual_fault *row, const struct field *field, uint64_t value)
{
	unsigned char *at = (unsigned char *)row + field->offset;
	uint32_t word = (uint32_t)value;
	uint16_t half = (uint16_t)value;

	switch (field->bytes) {
	case 8: memcpy(at, &value, sizeof(value)); return;
	case 4: memcpy(at, &word, sizeof(word)); return;
	case 2: memcpy(at, &half, sizeof(half)); return;
	default: *at = (unsigned char)value; return;
	}
}

/* "a, b or c" */
static const char *list(const char *const *names, size_t count, char text[LIST_TEXT_BYTES])
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < count && used < LIST_TEXT_BYTES; i++) {
		const char *joint = !i ? "" : i + 1 < count ? ", " : " or ";

		used += (size_t)snprintf(text + used, LIST_TEXT_BYTES - used, "%s%s", joint, names[i]);
	}
	return text;
}

/* All fields of @kind. */
static const char *list_fields(enum weir_virtual_fault_kind kind, char text[LIST_TEXT_BYTES])
{
	const char *names[FIELDS + 2] = { "op", "lba" };
	size_t count = 2;

	for (size_t i = 0; i < FIELDS; i++)
		if (fields[i].kinds >> kind & 1)
			names[count++] = fields[i].name;
	return list(names, count, text);
}

static int check_field(const struct weir_virtual_fault *row, const struct field *field, unsigned number)
{
	uint64_t value = get(row, field);

	if (!(field->kinds >> row->kind & 1) || (value >= field->least && value <= field->most))
		return 0;
	if (!value)
		return weir_fail(EINVAL, "fault row %u: %s needs %s=, a number from %llu to %llu", number,
				 kind_names[row->kind], field->name, (unsigned long long)field->least,
				 (unsigned long long)field->most);
	return weir_fail(EINVAL, "fault row %u: %s=%llu is not accepted: %s is a number from %llu to %llu",
			 number, field->name, (unsigned long long)value, field->name,
			 (unsigned long long)field->least, (unsigned long long)field->most);
}

static int check_row(const struct weir_virtual_fault *row, unsigned number)
{
	if ((unsigned)row->kind >= WEIR_VIRTUAL_FAULT_KINDS)
		return weir_fail(EINVAL, "fault row %u: kind %u does not exist: give one below %u", number,
				 (unsigned)row->kind, WEIR_VIRTUAL_FAULT_KINDS);
	if ((unsigned)row->opcode >= WEIR_VIRTUAL_FAULT_OPCODES)
		return weir_fail(EINVAL, "fault row %u: opcode %u does not exist: give one below %u", number,
				 (unsigned)row->opcode, WEIR_VIRTUAL_FAULT_OPCODES);
	for (size_t i = 0; i < FIELDS; i++) {
		int error = check_field(row, &fields[i], number);

		if (error)
			return error;
	}
	return 0;
}

int weir_virtual_faults_check(const struct weir_virtual_fault *rows, unsigned count)
{
	if (count > WEIR_VIRTUAL_FAULTS)
		return weir_fail(EINVAL, "%u fault rows are too many: give at most %d", count,
				 WEIR_VIRTUAL_FAULTS);
	for (unsigned i = 0; i < count; i++) {
		int error = check_row(&rows[i], i + 1);

		if (error)
			return error;
	}
	return 0;
}

/* Decimal, or hexadecimal after 0x; returns what follows, NULL if it is no number. */
static const char *read_number(const char *text, uint64_t *value)
{
	int base = text[0] == '0' && text[1] == 'x' ? 16 : 10;
	const char *digits = base == 16 ? text + 2 : text;
	char *end;

	if (base == 16 ? !isxdigit((unsigned char)*digits) : !isdigit((unsigned char)*digits))
		return NULL;
	errno = 0;
	*value = strtoull(digits, &end, base);
	return errno ? NULL : end;
}

static int find_name(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return (int)i;
	return -1;
}

static int read_opcode(const struct location *location, const char *value, struct weir_virtual_fault *row)
{
	int opcode = find_name(opcode_names, WEIR_VIRTUAL_FAULT_OPCODES, value);
	char names[LIST_TEXT_BYTES];

	if (opcode < 0)
		return weir_fail(EINVAL, "fault row %u, '%s': op=%s is not accepted: op is %s",
				 location->number, location->text, value,
				 list(opcode_names, WEIR_VIRTUAL_FAULT_OPCODES, names));
	row->opcode = (enum weir_virtual_fault_opcode)opcode;
	return 0;
}

static int read_blocks(const struct location *location, const char *value, struct weir_virtual_fault *row)
{
	uint64_t first = 0, last = 0;
	const char *rest = read_number(value, &first);

	last = first;
	if (rest && *rest == '-')
		rest = read_number(rest + 1, &last);
	if (!rest || *rest || last < first || last - first == UINT64_MAX)
		return weir_fail(EINVAL,
				 "fault row %u, '%s': lba=%s is not accepted: lba is a block, such as 10, or "
				 "the first and the last of several, such as 10-19",
				 location->number, location->text, value);
	row->lba = first;
	row->blocks = last - first + 1;
	return 0;
}

static int read_value(const struct location *location, const struct field *field, const char *value,
		      struct weir_virtual_fault *row)
{
	uint64_t number = 0;
	const char *rest = read_number(value, &number);

	if (!rest || *rest || number < field->least || number > field->most)
		return weir_fail(
			EINVAL, "fault row %u, '%s': %s=%s is not accepted: %s is a number from %llu to %llu",
			location->number, location->text, field->name, value, field->name,
			(unsigned long long)field->least, (unsigned long long)field->most);
	set(row, field, number);
	if (field->offset == offsetof(struct weir_virtual_fault, cid))
		row->cid_given = true;
	return 0;
}

static size_t find_field(const char *name, enum weir_virtual_fault_kind kind)
{
	if (!strcmp(name, "op"))
		return FIELD_OP;
	if (!strcmp(name, "lba"))
		return FIELD_LBA;
	for (size_t i = 0; i < FIELDS; i++)
		if (!strcmp(fields[i].name, name) && (fields[i].kinds >> kind & 1))
			return i;
	return FIELD_LBA + 1;
}

/* @pair is key=value; @given has a bit for each field that was there before. */
static int read_field(const struct location *location, char *pair, struct weir_virtual_fault *row,
		      uint32_t *given)
{
	char *equals = strchr(pair, '='), names[LIST_TEXT_BYTES];
	size_t index;

	if (!equals)
		return weir_fail(EINVAL, "fault row %u, '%s': '%s' is not of the form key=value",
				 location->number, location->text, pair);
	*equals = '\0';
	index = find_field(pair, row->kind);
	if (index > FIELD_LBA)
		return weir_fail(EINVAL, "fault row %u, '%s': %s has no field '%s': it knows %s",
				 location->number, location->text, kind_names[row->kind], pair,
				 list_fields(row->kind, names));
	if (*given >> index & 1)
		return weir_fail(EINVAL, "fault row %u, '%s': %s is given twice: give it once",
				 location->number, location->text, pair);
	*given |= 1u << index;
	if (index == FIELD_OP)
		return read_opcode(location, equals + 1, row);
	if (index == FIELD_LBA)
		return read_blocks(location, equals + 1, row);
	return read_value(location, &fields[index], equals + 1, row);
}

static int read_kind(const struct location *location, const char *name, struct weir_virtual_fault *row)
{
	int kind = find_name(kind_names, WEIR_VIRTUAL_FAULT_KINDS, name);
	char names[LIST_TEXT_BYTES];

	if (kind < 0)
		return weir_fail(EINVAL, "fault row %u, '%s': '%s' is no kind of fault: write %s",
				 location->number, location->text, name,
				 list(kind_names, WEIR_VIRTUAL_FAULT_KINDS, names));
	row->kind = (enum weir_virtual_fault_kind)kind;
	return 0;
}

static int read_row(const char *text, size_t length, unsigned number, struct weir_virtual_fault *row)
{
	char whole[ROW_TEXT_BYTES], cut[ROW_TEXT_BYTES], *rest = cut;
	const struct location location = { number, whole };
	uint32_t given = 0;
	int error;

	*row = (struct weir_virtual_fault){ .kind = WEIR_VIRTUAL_FAULT_STATUS };
	if (length >= sizeof(whole))
		return weir_fail(EINVAL, "fault row %u is %zu bytes long: write at most %zu", number, length,
				 sizeof(whole) - 1);
	snprintf(whole, sizeof(whole), "%.*s", (int)length, text);
	memcpy(cut, whole, sizeof(cut));
	error = read_kind(&location, strsep(&rest, ":"), row);
	while (!error && rest)
		error = read_field(&location, strsep(&rest, ":"), row, &given);
	return error ? error : check_row(row, number);
}

int weir_virtual_faults_parse(const char *text, struct weir_virtual_fault *rows, unsigned most,
			      unsigned *count)
{
	unsigned number = 0;

	*count = 0;
	for (;; text++) {
		size_t length = strcspn(text, ",");
		int error;

		if (number == most)
			return weir_fail(EINVAL, "fault row %u is one too many: give at most %u", number + 1,
					 most);
		error = read_row(text, length, number + 1, &rows[number]);
		if (error)
			return error;
		number++;
		text += length;
		if (!*text)
			break;
	}
	*count = number;
	return 0;
}

static uint32_t opcode_of(enum weir_virtual_fault_opcode opcode)
{
	switch (opcode) {
	case WEIR_VIRTUAL_FAULT_READ: return NVME_OPCODE_READ;
	case WEIR_VIRTUAL_FAULT_WRITE: return NVME_OPCODE_WRITE;
	case WEIR_VIRTUAL_FAULT_FLUSH: return NVME_OPCODE_FLUSH;
	default: return WEIR_FAULT_ANY_OPCODE;
	}
}

struct weir_fault_row weir_virtual_fault_row(const struct weir_virtual_fault *fault)
{
	return (struct weir_fault_row){
		.kind = fault->kind,
		.opcode = opcode_of(fault->opcode),
		.queue = fault->queue,
		.chance = fault->chance,
		.lba = fault->lba,
		.blocks = fault->blocks,
		.after = fault->after,
		.every = fault->every ? fault->every : 1,
		.count = fault->count,
		.seed = fault->seed,
		.us = fault->us,
		.of = fault->of ? fault->of : 1,
		.code = fault->code | fault->crd << NVME_STATUS_CRD_SHIFT |
			(fault->dnr ? NVME_STATUS_DNR : 0),
		.cid = fault->cid_given ? fault->cid : WEIR_FAULT_IDLE_CID,
	};
}
