/* SPDX-License-Identifier: BSD-3-Clause */
#include "try.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	LIMIT_SECONDS = 600
}; /* a last resort: storages have limits of their own, and drivers of GPUs may have to compile */

json_t *try_verdict(const char *verdict, const char *why, ...)
{
	char text[2 * TRY_TEXT];
	va_list arguments;

	va_start(arguments, why);
	vsnprintf(text, sizeof(text), why, arguments);
	va_end(arguments);
	return json_pack("{s:s, s:s}", "verdict", verdict, "why", text);
}

/* The child's own: its object goes to @answer, all it says to @said. */
static void work(try_step step, const void *arguments, int answer, int said)
{
	json_t *object;

	dup2(said, STDOUT_FILENO);
	dup2(said, STDERR_FILENO);
	object = step(arguments);
	fflush(stdout);
	json_dumpfd(object, answer, JSON_COMPACT);
	_exit(0); /* what the step left open the kernel closes */
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* All that comes until the other end is closed. Return: NULL: it took too long. */
static json_t *receive(int fd)
{
	uint64_t end = now_ms() + LIMIT_SECONDS * 1000;
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	char *text = NULL, piece[4096];
	size_t bytes = 0;
	FILE *stream = open_memstream(&text, &bytes);
	json_t *object;
	ssize_t got = 1;

	while (stream && got > 0 && now_ms() < end) {
		if (poll(&ready, 1, (int)(end - now_ms())) <= 0)
			continue;
		got = read(fd, piece, sizeof(piece));
		if (got > 0)
			fwrite(piece, 1, (size_t)got, stream);
	}
	if (stream)
		fclose(stream);
	object = got > 0 ? NULL : json_loadb(text, bytes, 0, NULL);
	free(text);
	return got > 0 ? NULL : object ? object : json_object();
}

/* What the child wrote to its standard output and standard error. */
static void add_said(json_t *object, int said)
{
	off_t bytes = lseek(said, 0, SEEK_END);
	char *text = bytes > 0 ? malloc((size_t)bytes) : NULL;

	if (text && pread(said, text, (size_t)bytes, 0) == bytes)
		json_object_set_new(object, "said", json_stringn(text, (size_t)bytes));
	free(text);
}

static json_t *judge(json_t *object, int status)
{
	if (object && json_object_get(object, "verdict"))
		return object;
	if (!object)
		object = try_verdict("failed", "it did not end within %d s", LIMIT_SECONDS);
	else if (WIFSIGNALED(status))
		json_object_update_new(object, try_verdict("failed", "it was ended by a signal: %s",
							   strsignal(WTERMSIG(status))));
	else
		json_object_update_new(object, try_verdict("failed", "it ended with status %d and no result",
							   WEXITSTATUS(status)));
	return object;
}

json_t *try_child(try_step step, const void *arguments)
{
	int ends[2], said = memfd_create("weir-try", MFD_CLOEXEC), status = 0;
	json_t *object;
	pid_t child;

	fflush(NULL);
	if (said < 0 || pipe(ends) != 0)
		return try_verdict("failed", "no process for it: %s", strerror(errno));
	child = fork();
	if (child == 0) {
		close(ends[0]);
		work(step, arguments, ends[1], said);
	}
	close(ends[1]);
	object = child < 0 ? json_object() : receive(ends[0]);
	if (child > 0 && !object)
		kill(child, SIGKILL);
	if (child > 0)
		waitpid(child, &status, 0);
	object = judge(object, status);
	add_said(object, said);
	close(ends[0]);
	close(said);
	return object;
}
