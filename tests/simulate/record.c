/* SPDX-License-Identifier: BSD-3-Clause */
/* record.c: lines of a history, as JSON or EDN. */
#include "record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim.h"

static FILE *file;
static bool edn;
static u64 lines;
static i64 processes;

int record_open(const char *path)
{
	size_t length = strlen(path);

	edn = length > 4 && !strcmp(path + length - 4, ".edn");
	lines = 0;
	processes = 0;
	file = fopen(path, "w");
	return file ? 0 : -errno;
}

i64 record_process(void)
{
	return ++processes;
}

/* The name of a member, with what stands before its value. */
static void begin_member(const char *name)
{
	fprintf(file, edn ? ", :%s " : ", \"%s\": ", name);
}

static void add_number(const char *name, u64 value)
{
	begin_member(name);
	fprintf(file, "%llu", (unsigned long long)value);
}

static void add_word(const char *name, const char *value)
{
	begin_member(name);
	fprintf(file, edn ? ":%s" : "\"%s\"", value);
}

void record_add(const struct record_line *line)
{
	if (!file)
		return;
	fprintf(file, edn ? "{:index %llu" : "{\"index\": %llu", (unsigned long long)lines++);
	add_number("time", sim.now - 1000 * SIM_S);
	if (line->process == RECORD_NEMESIS)
		add_word("process", "nemesis");
	else
		add_number("process", (u64)line->process);
	add_word("type", line->type);
	add_word("f", line->what);
	if (line->key != RECORD_NO_KEY)
		add_number("key", (u64)line->key);
	if (!line->unknown)
		add_number("value", line->value);
	if (line->lease)
		add_number("lease", line->lease);
	if (line->durable)
		add_number("durable", 1);
	if (line->outsider)
		add_number("outsider", 1);
	fprintf(file, "}\n");
}

int record_close(void)
{
	bool failed;

	if (!file)
		return 0;
	failed = ferror(file);
	failed |= fclose(file) != 0;
	file = NULL;
	return failed ? -EIO : 0;
}
