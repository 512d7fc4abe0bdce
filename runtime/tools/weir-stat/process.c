/* SPDX-License-Identifier: BSD-3-Clause */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "observe/publish.h"

/* A file of /proc/PID, as text. Return: its length, 0 if it cannot be read. */
static size_t slurp(int pid, const char *name, char *text, size_t room)
{
	char path[64];
	size_t used = 0;
	ssize_t got;
	int file;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	file = open(path, O_RDONLY | O_CLOEXEC);
	while (file >= 0 && used < room - 1 && (got = read(file, text + used, room - 1 - used)) > 0)
		used += (size_t)got;
	if (file >= 0)
		(void)close(file);
	text[used] = '\0';
	return used;
}

void process_read(int pid, struct process *process)
{
	char text[4096];
	const char *mark;

	*process = (struct process){ .there = false };
	if (pid <= 0 || !slurp(pid, "stat", text, sizeof(text)) || !(mark = strrchr(text, ')')) || !mark[1])
		return;
	process->state = mark[2];
	process->start = weir_publish_start(text);
	process->there = !strchr("ZXx", process->state);
	if (slurp(pid, "status", text, sizeof(text)) && (mark = strstr(text, "\nUid:")))
		sscanf(mark, "\nUid: %*u %u", &process->uid);
	slurp(pid, "comm", process->program, sizeof(process->program));
	process->program[strcspn(process->program, "\n")] = '\0';
}

const char *process_state_word(const struct process *process)
{
	static const struct {
		char letter;
		const char *word;
	} words[] = { { 'R', "running" }, { 'S', "sleeping" }, { 'D', "uninterruptible" },
		      { 'T', "stopped" }, { 't', "traced" },   { 'I', "idle" } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i].letter == process->state)
			return words[i].word;
	return "ended";
}

bool process_runtime_dir(int pid, char *path, size_t bytes)
{
	static const char name[] = "XDG_RUNTIME_DIR=";
	static char text[1 << 20];
	size_t length = slurp(pid, "environ", text, sizeof(text));

	for (const char *entry = text; entry < text + length; entry += strlen(entry) + 1)
		if (!strncmp(entry, name, sizeof(name) - 1))
			return (size_t)snprintf(path, bytes, "%s", entry + sizeof(name) - 1) < bytes;
	return false;
}

int process_peek(int pid, uint64_t address, void *to, size_t bytes)
{
	struct iovec local = { .iov_base = to, .iov_len = bytes };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = bytes };
	ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	if (got < 0)
		return -errno;
	return (size_t)got == bytes ? 0 : -EFAULT;
}

int process_ptrace_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = -1;

	if (file && fscanf(file, "%d", &scope) != 1)
		scope = -1;
	if (file)
		(void)fclose(file);
	return scope;
}
