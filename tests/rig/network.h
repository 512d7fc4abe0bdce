/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * network.h: the storage that a case asks for, behind a network.
 *
 * WEIR_TEST_NETWORK names weir-target: each storage that is opened gets one of its own on loopback. The
 * latest few are kept; all end with the test program.
 */
#ifndef WEIR_TESTS_NETWORK_H
#define WEIR_TESTS_NETWORK_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEST_NETWORK_TARGETS = 16, TEST_NETWORK_LINE = 1024 };

/* %2C for each comma, which would end the storage in weir-target's list. */
static inline void test_network_escape(const char *uri, char *to, size_t bytes)
{
	size_t used = 0;

	for (; *uri && used + 4 < bytes; uri++)
		used += (size_t)snprintf(to + used, bytes - used, *uri == ',' ? "%%2C" : "%c", *uri);
	to[used] = '\0';
}

static inline pid_t test_network_start(const char *program, const char *subsystem, int out)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, 1);
	execl(program, program, "--listen", "tcp://127.0.0.1:0", "--subsystem", subsystem, (char *)NULL);
	_exit(127);
}

/* What it says once it serves ends with how to reach it; on a busy machine that takes a while. */
static inline void test_network_read(int in, char *uri, size_t bytes)
{
	char line[TEST_NETWORK_LINE];
	FILE *file = fdopen(in, "r");
	const char *found = file && fgets(line, sizeof(line), file) ? strstr(line, "nvmf:tcp://") : NULL;

	snprintf(uri, bytes, "%.*s?connect_ms=60000", found ? (int)strcspn(found, " \n") : 0,
		 found ? found : "");
	if (file)
		fclose(file);
}

/** test_network_uri() - @uri, or where WEIR_TEST_NETWORK serves it; @room has @bytes for that */
static inline const char *test_network_uri(const char *uri, char *room, size_t bytes)
{
	static pid_t targets[TEST_NETWORK_TARGETS];
	static unsigned count;
	const char *program = getenv("WEIR_TEST_NETWORK");
	char subsystem[TEST_NETWORK_LINE] = "nqn.2026-11.test:storage=";
	pid_t *target = &targets[count % TEST_NETWORK_TARGETS];
	int ends[2];

	if (!program || !*program)
		return uri;
	if (*target) {
		kill(*target, SIGKILL);
		waitpid(*target, NULL, 0);
	}
	test_network_escape(uri, subsystem + strlen(subsystem), sizeof(subsystem) - strlen(subsystem));
	if (pipe(ends) != 0)
		abort();
	*target = test_network_start(program, subsystem, ends[1]);
	count++;
	close(ends[1]);
	test_network_read(ends[0], room, bytes);
	return room;
}

#endif
