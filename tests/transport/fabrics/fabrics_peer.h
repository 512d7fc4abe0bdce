/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics_peer.h: a scripted NVMe/TCP controller (fabrics_peer.py) beside a test program.
 *
 * Owns: the process, and what it printed.
 */
#ifndef WEIR_TESTS_FABRICS_PEER_H
#define WEIR_TESTS_FABRICS_PEER_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PEER_LOG_BYTES = 1 << 18, PEER_URI_BYTES = 512, PEER_WORDS = 24 };

/** struct peer - @log: all that it has printed, once it was ended */
struct peer {
	pid_t pid;
	FILE *out;
	unsigned port;
	char log[PEER_LOG_BYTES];
};

/* Words of @args, split at blanks; @text is taken apart. */
static inline void peer_words(char *text, char *words[PEER_WORDS])
{
	unsigned count = 2;
	char *save;

	for (char *word = strtok_r(text, " ", &save); word && count < PEER_WORDS - 1;
	     word = strtok_r(NULL, " ", &save))
		words[count++] = word;
	words[count] = NULL;
}

/** peer_start_at() - begin one with arguments @args, at @port (0: any); false: it did not listen */
static inline int peer_start_at(struct peer *peer, unsigned port, const char *args)
{
	char text[PEER_URI_BYTES], line[128];
	char *words[PEER_WORDS] = { (char *)"python3", (char *)WEIR_TEST_PEER };
	int ends[2];

	snprintf(text, sizeof(text), "--port %u %s", port, args);
	peer_words(text, words);
	if (pipe(ends) != 0)
		return 0;
	peer->pid = fork();
	if (peer->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], 1);
		close(ends[0]);
		close(ends[1]);
		execvp(words[0], words);
		_exit(127);
	}
	close(ends[1]);
	peer->log[0] = '\0';
	peer->out = fdopen(ends[0], "r");
	return peer->out && fgets(line, sizeof(line), peer->out) && sscanf(line, "port %u", &peer->port) == 1;
}

static inline int peer_start(struct peer *peer, const char *args)
{
	return peer_start_at(peer, 0, args);
}

/** peer_end() - end it, and take what it printed */
static inline void peer_end(struct peer *peer)
{
	size_t length;

	kill(peer->pid, SIGKILL);
	length = fread(peer->log, 1, sizeof(peer->log) - 1, peer->out);
	peer->log[length] = '\0';
	fclose(peer->out);
	waitpid(peer->pid, NULL, 0);
	if (strstr(peer->log, "\nbroke"))
		fprintf(stderr, "%s", peer->log);
}

/** peer_printed() - lines of an ended one's log that begin with @words */
static inline unsigned peer_printed(const struct peer *peer, const char *words)
{
	unsigned count = 0;

	for (const char *line = peer->log; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		count += strncmp(line, words, strlen(words)) == 0;
	return count;
}

/** peer_uri() - how to reach it, with @keys behind the '?'; returns @uri */
static inline const char *peer_uri(const struct peer *peer, const char *keys, char uri[PEER_URI_BYTES])
{
	snprintf(uri, PEER_URI_BYTES, "nvmf:tcp://127.0.0.1:%u/nqn.2026-11.test:peer%s%s", peer->port,
		 *keys ? "?" : "", keys);
	return uri;
}

#endif
