/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-stat: the queues of processes that run weir, looked at from outside, whether they run or hang. */
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <weir/abi.h>
#include <weir/weir.h>

#include "find.h"
#include "json.h"
#include "tool_options.h"

/** enum status - how this program ends */
enum status {
	STATUS_GOOD,
	STATUS_FAILED,
	STATUS_USAGE,
	STATUS_NO_PROCESS,
	STATUS_NO_CONTEXT,
	STATUS_NOT_PERMITTED,
	STATUS_STALE,
	STATUS_VERSION,
};

enum {
	DEFAULT_OVER_MS = 100,
	MOST_OVER_MS = 60000,
	MOST_TRIES = 20,
	RETRY_MS = 2,
	SENTENCE = 768,
	MOST_PID = 1 << 30
};

static const char about[] =
	"usage: weir-stat list\n"
	"       weir-stat dump [--over MS] [PID]\n"
	"\n"
	"list: the processes that have a weir context open, and their storages. Files that\n"
	"ended processes left are removed.\n"
	"dump: one JSON object: every queue of the process, or of all of them: tickets, slots in\n"
	"use, the oldest command, locks that are held, counters. The process does not take part:\n"
	"it may be stopped, or its lanes may wait for ever. docs/hardware.md has the keys.\n";

static const char notes[] =
	"Each open context leaves a file in $XDG_RUNTIME_DIR/weir, else /run/user/UID/weir,\n"
	"/dev/shm/weir-UID or /tmp/weir-UID, a folder that must be the user's alone. A program that can\n"
	"write to none of them runs all the same, and is not seen here. Root sees everybody's.\n"
	"\n"
	"Exit status: 0 done; 1 memory of the process could not be read, for a reason not listed\n"
	"here; 2 bad usage; 3 no such process; 4 no weir context in it, or in none; 5 not\n"
	"permitted (another user's, or the system's rules for ptrace); 6 the file is stale or\n"
	"damaged; 7 the process has another version of weir.";

static uint32_t over_ms = DEFAULT_OVER_MS;
static char **words;

static const struct tool_option options[] = {
	{ "over", "MS", TOOL_U32, &over_ms, 0, MOST_OVER_MS,
	  "take two snapshots, so far apart, of what moves (100)", NULL, NULL },
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-stat", .about = about, .options = options, .all = &words, .notes = notes
};

/** struct verdict - how it went with a process: @status, and why in @sentence if it is not STATUS_GOOD */
struct verdict {
	enum status status;
	char sentence[SENTENCE];
};

__attribute__((format(printf, 3, 4))) static void judge(struct verdict *verdict, enum status status,
							const char *format, ...)
{
	va_list arguments;

	verdict->status = status;
	va_start(arguments, format);
	vsnprintf(verdict->sentence, sizeof(verdict->sentence), format, arguments);
	va_end(arguments);
}

static void sleep_ms(unsigned ms)
{
	struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	while (nanosleep(&time, &time) != 0 && errno == EINTR)
		;
}

static const char *user_name(unsigned uid)
{
	static char number[16];
	const struct passwd *user = getpwuid(uid);

	snprintf(number, sizeof(number), "%u", uid);
	return user ? user->pw_name : number;
}

/* There is no file of @pid at all. */
static void judge_without_file(int pid, const struct process *process, struct verdict *verdict)
{
	if (!process->there)
		judge(verdict, STATUS_NO_PROCESS, "there is no process %d", pid);
	else if (process->uid != geteuid() && geteuid() != 0)
		judge(verdict, STATUS_NOT_PERMITTED,
		      "not permitted: process %d (%s) is of user %s; run weir-stat as that user, or as root",
		      pid, process->program, user_name(process->uid));
	else
		judge(verdict, STATUS_NO_CONTEXT,
		      "process %d (%s) has no weir context open, or found no folder to publish it in "
		      "(weir-stat --help names them)",
		      pid, process->program);
}

static void judge_file(const struct found *found, struct verdict *verdict)
{
	const struct note *note = &found->note;

	if (found->stale && !found->process.there)
		judge(verdict, STATUS_NO_PROCESS,
		      "there is no process %d: it has ended, and left %s, which weir-stat list removes",
		      note->pid, note->path);
	else if (note->state == NOTE_DAMAGED)
		judge(verdict, STATUS_STALE, "%s is damaged; it is no file that weir wrote whole",
		      note->path);
	else if (found->stale)
		judge(verdict, STATUS_STALE,
		      "process %d (%s) is not the one that left %s, which has ended; weir-stat list removes "
		      "the file",
		      note->pid, found->process.program, note->path);
	else if (note->state == NOTE_VERSION)
		judge(verdict, STATUS_VERSION,
		      "process %d (%s) runs another version of weir: ABI %u and layout %u, this weir-stat "
		      "knows ABI %d "
		      "and layout %d; use the weir-stat of its version",
		      note->pid, found->process.program, note->abi, note->layout, WEIR_ABI_VERSION,
		      WEIR_PUBLISH_LAYOUT);
}

/* Reading its memory was refused. */
static void judge_refusal(const struct found *found, struct verdict *verdict)
{
	int pid = found->note.pid, scope = process_ptrace_scope();

	if (scope == 3)
		judge(verdict, STATUS_NOT_PERMITTED,
		      "not permitted to read process %d: /proc/sys/kernel/yama/ptrace_scope is 3, so that "
		      "nobody "
		      "may, until the next boot",
		      pid);
	else if (scope > 0 && geteuid() != 0)
		judge(verdict, STATUS_NOT_PERMITTED,
		      "not permitted to read process %d: /proc/sys/kernel/yama/ptrace_scope is %d; run "
		      "weir-stat "
		      "as root (CAP_SYS_PTRACE)%s",
		      pid, scope, scope == 1 ? ", or as root: sysctl kernel.yama.ptrace_scope=0" : "");
	else
		judge(verdict, STATUS_NOT_PERMITTED,
		      "not permitted to read process %d: it has rights that this one lacks, is not dumpable "
		      "(see "
		      "ptrace(2)), or this container lacks CAP_SYS_PTRACE (no yama ptrace_scope is in the "
		      "way)%s",
		      pid, geteuid() == 0 ? "" : "; run weir-stat as root");
}

static void judge_error(const struct found *found, int error, struct verdict *verdict)
{
	if (error == -EPERM)
		judge_refusal(found, verdict);
	else if (error == -ESRCH)
		judge(verdict, STATUS_NO_PROCESS, "process %d ended while it was looked at", found->note.pid);
	else
		judge(verdict, STATUS_FAILED, "cannot read the memory of process %d: %s", found->note.pid,
		      strerror(-error));
}

/** struct picture - a context as it was seen */
struct picture {
	struct snapshot_storage *storages;
	struct snapshot_cache *caches;
	struct snapshot_target target;
};

static int snapshot_at_context(const struct note *note, struct picture *picture)
{
	int error = note->target ? snapshot_at_target(note, &picture->target) : 0;

	picture->storages = calloc(note->storage_count + 1, sizeof(*picture->storages));
	picture->caches = calloc(note->cache_count + 1, sizeof(*picture->caches));
	if (!picture->storages || !picture->caches)
		return -ENOMEM;
	for (unsigned i = 0; i < note->storage_count && !error; i++)
		error = snapshot_at_storage(note, &note->storages[i], &picture->storages[i]);
	for (unsigned i = 0; i < note->cache_count && !error; i++)
		error = snapshot_at_cache(note, &note->caches[i], &picture->caches[i]);
	return error;
}

static void picture_release(const struct note *note, struct picture *picture)
{
	for (unsigned i = 0; picture->storages && i < note->storage_count; i++)
		snapshot_release(&picture->storages[i]);
	free(picture->storages);
	free(picture->caches);
}

static json_t *context_json(const struct note *note, const struct picture *picture)
{
	json_t *storages = json_array(), *caches = json_array();

	for (unsigned i = 0; i < note->storage_count; i++)
		json_array_append_new(storages, json_storage(&note->storages[i], &picture->storages[i]));
	for (unsigned i = 0; i < note->cache_count; i++)
		json_array_append_new(caches, json_cache(&note->caches[i], &picture->caches[i]));
	return json_pack("{s:I, s:o, s:o, s:o, s:o}", "number", (json_int_t)note->number, "device",
			 json_text(note->device), "storages", storages, "caches", caches, "target",
			 note->target ? json_target(&picture->target) : json_null());
}

static json_t *contexts_json(const struct found *list, size_t count, struct picture *pictures)
{
	json_t *contexts = json_array();

	sleep_ms(over_ms);
	for (size_t i = 0; i < count; i++) {
		const struct note *note = &list[i].note;

		for (unsigned j = 0; over_ms && j < note->storage_count; j++)
			snapshot_again(note, &note->storages[j], &pictures[i].storages[j]);
		json_array_append_new(contexts, context_json(note, &pictures[i]));
	}
	return contexts;
}

/* Files that stand for themselves, or the one that tells what is wrong. Return: how many of them, put first.
 */
static size_t choose(struct found *list, size_t count, struct verdict *verdict)
{
	size_t good = 0;

	for (size_t i = 0; i < count; i++) {
		struct found found = list[i];

		if (found.stale || found.note.state != NOTE_GOOD)
			continue;
		list[i] = list[good];
		list[good++] = found;
	}
	if (!good && count)
		judge_file(&list[0], verdict);
	return good;
}

/* Return: contexts, NULL with a verdict; or NULL without one: storages came or went meanwhile. */
static json_t *show_once(struct found *list, size_t count, bool last, struct verdict *verdict)
{
	struct picture *pictures = calloc(count + 1, sizeof(*pictures));
	size_t good = choose(list, count, verdict);
	json_t *contexts = NULL;
	bool changed = false;

	for (size_t i = 0; pictures && i < good && verdict->status == STATUS_GOOD && !changed; i++) {
		int error = snapshot_at_context(&list[i].note, &pictures[i]);

		changed = !last && note_changed(&list[i].note);
		if (error && !changed)
			judge_error(&list[i], error, verdict);
	}
	if (pictures && good && verdict->status == STATUS_GOOD && !changed)
		contexts = contexts_json(list, good, pictures);
	for (size_t i = 0; pictures && i < good; i++)
		picture_release(&list[i].note, &pictures[i]);
	free(pictures);
	return contexts;
}

/* All that is to be seen of a process. Return: its contexts, or NULL with a verdict. */
static json_t *snapshot_at_process(int pid, struct verdict *verdict)
{
	json_t *contexts = NULL;

	for (unsigned i = 0; i < MOST_TRIES && !contexts && verdict->status == STATUS_GOOD; i++) {
		struct process process;
		struct found *list;
		size_t count;

		if (i)
			sleep_ms(RETRY_MS);
		process_read(pid, &process);
		list = find_notes(pid, &count);
		if (count)
			contexts = show_once(list, count, i == MOST_TRIES - 1, verdict);
		else
			judge_without_file(pid, &process, verdict);
		find_release(list, count);
	}
	if (!contexts && verdict->status == STATUS_GOOD)
		judge(verdict, STATUS_NO_CONTEXT, "process %d closed its last context while it was looked at",
		      pid);
	return contexts;
}

static json_t *process_json(int pid, json_t *contexts, const struct verdict *verdict)
{
	struct process process;

	process_read(pid, &process);
	return json_pack("{s:i, s:o, s:s, s:o, s:o}", "pid", pid, "program", json_text(process.program),
			 "state", process_state_word(&process), "contexts",
			 contexts ? contexts : json_array(), "error",
			 json_text(verdict->status == STATUS_GOOD ? NULL : verdict->sentence));
}

static int print(json_t *processes)
{
	json_t *root = json_pack("{s:s, s:o}", "version", weir_version(), "processes", processes);
	int error = json_dumpf(root, stdout, JSON_INDENT(2));

	putchar('\n');
	json_decref(root);
	if (error && !ferror(stdout)) /* else it is said at exit */
		return tool_complain("no memory for what is to be printed");
	return STATUS_GOOD;
}

static int dump_one(int pid)
{
	struct verdict verdict = { .status = STATUS_GOOD };
	json_t *contexts = snapshot_at_process(pid, &verdict);

	if (contexts)
		return print(json_pack("[o]", process_json(pid, contexts, &verdict)));
	(void)tool_complain("%s", verdict.sentence);
	return verdict.status;
}

static void print_nothing(FILE *out)
{
	fprintf(out,
		"weir-stat: no process of %s has a weir context open and could publish it (weir-stat "
		"--help)\n",
		geteuid() == 0 ? "any user" : "this user");
}

/* Of the list, which is in the order of processes, those that live, each once. */
static bool is_first(const struct found *list, size_t i)
{
	return !list[i].stale && (i == 0 || list[i - 1].note.pid != list[i].note.pid);
}

static int dump_all(void)
{
	json_t *processes = json_array();
	int status = STATUS_GOOD, printed;
	size_t count;
	struct found *list = find_notes(0, &count);

	for (size_t i = 0; i < count; i++)
		if (is_first(list, i)) {
			struct verdict verdict = { .status = STATUS_GOOD };
			json_t *contexts = snapshot_at_process(list[i].note.pid, &verdict);

			json_array_append_new(processes, process_json(list[i].note.pid, contexts, &verdict));
			status = status ? status : (int)verdict.status;
		}
	find_release(list, count);
	if (json_array_size(processes) == 0) {
		json_decref(processes);
		print_nothing(stderr);
		return STATUS_NO_CONTEXT;
	}
	printed = print(processes);
	return printed ? printed : status;
}

static void print_note(const struct note *note)
{
	if (note->state != NOTE_GOOD)
		printf(note->state == NOTE_VERSION ? "  another version of weir" : "  a damaged file");
	else if (note->target)
		printf("  a target");
	else if (!note->storage_count)
		printf("  no storage open");
	for (unsigned i = 0; note->state == NOTE_GOOD && i < note->storage_count; i++)
		printf("  %s", note->storages[i].uri);
}

static int list_all(char **operands)
{
	size_t count, shown = 0;
	struct found *list = find_notes(0, &count);

	(void)operands;
	for (size_t i = 0; i < count; i++) {
		const struct found *found = &list[i];

		if (found->stale)
			continue;
		if (is_first(list, i))
			printf("%s%7d  %-15s  %-15s", shown++ ? "\n" : "", found->note.pid,
			       found->process.program, process_state_word(&found->process));
		print_note(&found->note);
	}
	if (shown)
		putchar('\n');
	else
		print_nothing(stdout);
	find_remove_stale(list, count);
	find_release(list, count);
	return STATUS_GOOD;
}

/* A process number; 0: none. */
static int pid_of(const char *text)
{
	char *end;
	unsigned long pid = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && pid <= MOST_PID ? (int)pid : 0;
}

static int dump(char **operands)
{
	if (!operands[0])
		return dump_all();
	if (!pid_of(operands[0]))
		return tool_usage("no process number: %s", operands[0]);
	return dump_one(pid_of(operands[0]));
}

static const struct tool_command commands[] = {
	{ "list", NULL, 0, 0, list_all },
	{ "dump", "one PID, or nothing for all", 0, 1, dump },
	{ NULL, NULL, 0, 0, NULL },
};

int main(int argc, char **argv)
{
	int status = tool_parse(&program, argc, argv);

	return status < 0 ? tool_run(&program, commands) : status;
}
