/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics_peer.h: a scripted NVMe/TCP controller (fabrics_peer.py) beside a test program.
 *
 * Owns: the process, what it printed, and its port, which nobody else gets while it is away.
 */
#ifndef WEIR_TESTS_FABRICS_PEER_H
#define WEIR_TESTS_FABRICS_PEER_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PEER_LOG_BYTES = 1 << 18, PEER_URI_BYTES = 512, PEER_WORDS = 24, PEER_WAIT_MS = 60000 };

/** struct peer - @log: what it has printed, once it was ended, as far as there is room; @connects:
 * associations */
struct peer {
	pid_t pid;
	FILE *out;
	unsigned port;
	unsigned connects;
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

/* Its first line, once it is whole. */
static inline int peer_port(struct peer *peer)
{
	char line[128];

	for (unsigned ms = 0; ms < PEER_WAIT_MS; ms++) {
		ssize_t bytes = pread(fileno(peer->out), line, sizeof(line) - 1, 0);

		line[bytes > 0 ? bytes : 0] = '\0';
		if (strchr(line, '\n'))
			return sscanf(line, "port %u", &peer->port) == 1;
		if (waitpid(peer->pid, NULL, WNOHANG) == peer->pid)
			return 0;
		(void)poll(NULL, 0, 1);
	}
	return 0;
}

/** peer_start_at() - begin one with arguments @args, at @port; false: it did not listen. It prints
 * to a file: a pipe would be full after some thousand lines, and stop it. */
static inline int peer_start_at(struct peer *peer, unsigned port, const char *args)
{
	char text[PEER_URI_BYTES];
	char *words[PEER_WORDS] = { (char *)"python3", (char *)WEIR_TEST_PEER };

	snprintf(text, sizeof(text), "--port %u %s", port, args);
	peer_words(text, words);
	peer->out = tmpfile();
	if (!peer->out)
		return 0;
	peer->pid = fork();
	if (peer->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fileno(peer->out), 1);
		execvp(words[0], words);
		_exit(127);
	}
	peer->log[0] = '\0';
	return peer_port(peer);
}

/* A port that is free, and taken by a socket that does not listen: one that does may have it beside that.
 * Else another program could get it between two peers. */
static inline unsigned peer_hold(void)
{
	static int holder = -1;
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(at);
	int one = 1;

	if (holder >= 0)
		close(holder);
	holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (setsockopt(holder, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
	    bind(holder, (struct sockaddr *)&at, sizeof(at)) != 0 ||
	    getsockname(holder, (struct sockaddr *)&at, &length) != 0)
		abort();
	return ntohs(at.sin_port);
}

/** peer_start() - the same, at a port that is held for it until another one is begun so */
static inline int peer_start(struct peer *peer, const char *args)
{
	return peer_start_at(peer, peer_hold(), args);
}

/** peer_end() - end it, and take what it printed */
static inline void peer_end(struct peer *peer)
{
	char line[512];
	size_t length = 0;

	kill(peer->pid, SIGKILL);
	waitpid(peer->pid, NULL, 0);
	rewind(peer->out);
	peer->connects = 0;
	while (fgets(line, sizeof(line), peer->out)) {
		size_t bytes = strlen(line);

		peer->connects += strncmp(line, "connect 0", 9) == 0;
		if (bytes < sizeof(peer->log) - length) {
			memcpy(peer->log + length, line, bytes);
			length += bytes;
		}
	}
	peer->log[length] = '\0';
	fclose(peer->out);
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
