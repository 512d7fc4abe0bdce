/* SPDX-License-Identifier: BSD-3-Clause */
/* rpc_test.c: calls, their errors, and what becomes of them when the other end misbehaves. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../rig/leaks.h"
#include "backend/error.h"
#include "volume/rpc.h"

extern const char *weir_last_error(void);

enum { WAIT_MS = 20000, SHORT_MS = 50 };

#define assert_says(words)                                                                                   \
	do {                                                                                                 \
		if (!strstr(weir_last_error(), words))                                                       \
			fail_msg("'%s' is not in: %s", words, weir_last_error());                            \
	} while (0)

/** struct peer - whoever answers: @answers, raw, to one call each */
struct peer {
	struct weir_rpc *here;
	int there;
	pthread_t thread;
	const char *answers[4];
};

/* Reads a byte at a time up to the end of a line. */
static void *answer(void *argument)
{
	struct peer *peer = argument;

	for (unsigned i = 0; peer->answers[i]; i++) {
		char byte = 0;

		while (byte != '\n')
			if (read(peer->there, &byte, 1) != 1)
				return NULL;
		if (write(peer->there, peer->answers[i], strlen(peer->answers[i])) < 0)
			return NULL;
	}
	return NULL;
}

static void begin(struct peer *peer)
{
	int sockets[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	assert_int_equal(weir_rpc_of(sockets[0], "test", &peer->here), 0);
	peer->there = sockets[1];
	assert_int_equal(pthread_create(&peer->thread, NULL, answer, peer), 0);
}

static void end(struct peer *peer)
{
	pthread_join(peer->thread, NULL);
	weir_rpc_close(peer->here);
	close(peer->there);
}

static void gives_the_result(void **state)
{
	struct peer peer = { .answers = { "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"ms\":7}}\n",
					  "{\"id\":1,\"result\":0}\n{\"id\":2,\"result\":{\"ms\":8}}\n" } };
	json_t *result = NULL;

	(void)state;
	begin(&peer);
	assert_int_equal(weir_rpc_call(peer.here, "renew", json_pack("{s:s}", "name", "v"), WAIT_MS, &result),
			 0);
	assert_int_equal(json_integer_value(json_object_get(result, "ms")), 7);
	json_decref(result);
	assert_int_equal(weir_rpc_call(peer.here, "renew", NULL, WAIT_MS, &result), 0);
	assert_int_equal(json_integer_value(json_object_get(result, "ms")), 8);
	json_decref(result);
	end(&peer);
}

static void says_what_the_other_end_refuses(void **state)
{
	struct peer peer = { .answers = { "{\"id\":1,\"error\":{\"code\":-13,\"message\":\"not yours\"}}\n",
					  "{\"id\":2,\"error\":{\"code\":-32601,\"message\":\"what\"}}\n",
					  "{\"id\":3}\n" } };

	(void)state;
	begin(&peer);
	assert_int_equal(weir_rpc_call(peer.here, "renew", NULL, WAIT_MS, NULL), -EACCES);
	assert_says("daemon \"test\" refuses renew: not yours");
	assert_int_equal(weir_rpc_call(peer.here, "renew", NULL, WAIT_MS, NULL), -EPROTO);
	assert_int_equal(weir_rpc_call(peer.here, "renew", NULL, WAIT_MS, NULL), -EPROTO);
	assert_says("neither a result nor an error");
	assert_false(weir_rpc_broken(peer.here));
	end(&peer);
}

static void does_not_wait_for_ever(void **state)
{
	struct peer peer = { .answers = { "{\"id\":1" } };

	(void)state;
	begin(&peer);
	assert_int_equal(weir_rpc_call(peer.here, "renew", NULL, SHORT_MS, NULL), -ETIMEDOUT);
	assert_says("does not answer renew within 50 ms");
	assert_true(weir_rpc_broken(peer.here));
	end(&peer);
}

/* Polls of this thread end at once with nothing; the shortest one of them. */
static __thread bool in_vain;
static __thread int shortest_ms;
static __thread int polled_ms[8]; /* of the first ones */
static __thread unsigned polls;

int poll(struct pollfd *files, nfds_t count, int ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000L };

	if (!in_vain)
		return (int)syscall(SYS_ppoll, files, (unsigned long)count, ms < 0 ? NULL : &time, NULL, 0);
	if (polls < sizeof(polled_ms) / sizeof(polled_ms[0]))
		polled_ms[polls++] = ms;
	shortest_ms = shortest_ms < 0 || ms < shortest_ms ? ms : shortest_ms;
	return 0;
}

/* Far longer than a busy machine takes for the calls themselves. */
static void waits_as_long_as_it_is_told(void **state)
{
	enum { LONG_MS = 1000000, LEAST_MS = LONG_MS / 2 };
	struct peer silent = { .here = NULL };
	int called, sent = 0, of_call_ms;

	(void)state;
	begin(&silent);
	in_vain = true;
	shortest_ms = -1;
	called = weir_rpc_call(silent.here, "renew", NULL, LONG_MS, NULL);
	of_call_ms = shortest_ms;
	shortest_ms = -1;
	while (!sent) /* until nothing more goes out */
		sent = weir_rpc_send(silent.here, json_pack("{s:i}", "id", 1), LONG_MS);
	in_vain = false;
	assert_int_equal(called, -ETIMEDOUT);
	assert_in_range(of_call_ms, LEAST_MS, LONG_MS);
	assert_int_equal(sent, -ETIMEDOUT);
	assert_in_range(shortest_ms, LEAST_MS, LONG_MS);
	end(&silent);
}

static void reports_an_end_that_is_gone(void **state)
{
	struct peer peer = { .answers = { "nonsense\n" } };

	(void)state;
	begin(&peer);
	assert_int_equal(weir_rpc_call(peer.here, "renew", NULL, WAIT_MS, NULL), -EPROTO);
	assert_says("no JSON object");
	pthread_join(peer.thread, NULL);
	close(peer.there);
	assert_int_not_equal(weir_rpc_call(peer.here, "renew", NULL, WAIT_MS, NULL), 0);
	assert_true(weir_rpc_broken(peer.here));
	weir_rpc_close(peer.here);
}

static void refuses_a_line_without_end(void **state)
{
	struct peer peer = { .answers = { NULL } };
	char *much = malloc(WEIR_RPC_LINE_BYTES);
	int sockets[2];
	pid_t child;

	(void)state;
	memset(much, ' ', WEIR_RPC_LINE_BYTES);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	child = fork();
	if (!child) {
		close(sockets[0]);
		for (size_t done = 0; done < 2 * (size_t)WEIR_RPC_LINE_BYTES;)
			done += (size_t)write(sockets[1], much, WEIR_RPC_LINE_BYTES);
		_exit(0);
	}
	close(sockets[1]);
	assert_int_equal(weir_rpc_of(sockets[0], "test", &peer.here), 0);
	assert_int_equal(weir_rpc_receive(peer.here, WAIT_MS, &(json_t *){ NULL }), -EMSGSIZE);
	weir_rpc_close(peer.here);
	waitpid(child, NULL, 0);
	free(much);
}

/* A server and a client, both of this interface, where @listener is. */
static void meets(int listener, const char *connect_to)
{
	int accepted, kept = 0;
	socklen_t size = sizeof(kept);
	struct weir_rpc *client, *server;
	json_t *message;

	assert_true(listener >= 0);
	assert_int_equal(weir_rpc_open(connect_to, NULL, WAIT_MS, &client), 0);
	accepted = accept(listener, NULL, NULL);
	assert_true(accepted >= 0);
	assert_int_equal(weir_rpc_of(accepted, "client", &server), 0);
	assert_int_equal(getsockopt(accepted, SOL_SOCKET, SO_KEEPALIVE, &kept, &size), 0);
	assert_true(kept); /* a client whose machine has died does not stay for ever */
	assert_int_equal(weir_rpc_receive(server, 0, &message), -EAGAIN);
	assert_int_equal(
		weir_rpc_send(client, json_pack("{s:i, s:s}", "id", 5, "method", "map_get"), WAIT_MS), 0);
	assert_int_equal(weir_rpc_receive(server, WAIT_MS, &message), 0);
	assert_int_equal(weir_rpc_send(server, weir_rpc_error(message, -ENOENT, "none"), WAIT_MS), 0);
	json_decref(message);
	assert_int_equal(weir_rpc_receive(client, WAIT_MS, &message), 0);
	assert_int_equal(json_integer_value(json_object_get(message, "id")), 5);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(message, "error"), "code")),
			 -ENOENT);
	json_decref(message);
	weir_rpc_close(client);
	weir_rpc_close(server);
	close(listener);
}

/* At a port that nobody has; its address. */
static int listen_somewhere(char address[64])
{
	static unsigned port;
	int listener = -1;

	port = port ? port : 20000 + (unsigned)getpid() % 20000;
	for (unsigned i = 0; i < 100 && listener < 0; i++) {
		snprintf(address, 64, "127.0.0.1:%u", ++port);
		listener = weir_rpc_listen(address);
	}
	assert_true(listener >= 0);
	return listener;
}

/* Whoever tries again and again has no more of them open for it. */
static void closes_what_has_no_key(void **state)
{
	const struct weir_rpc_identity identity = { "nqn.2014-08.org.nvmexpress:uuid:1", "/nowhere/key" };
	struct weir_rpc *client = NULL;
	char address[64];
	int listener = listen_somewhere(address);
	unsigned before = test_files();

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(weir_rpc_open(address, &identity, WAIT_MS, &client), -ENOENT);
	assert_null(client);
	assert_int_equal(test_files(), before);
	close(listener);
}

/* Nor has whoever tries to reach one that is not there, or to listen where another one does. */
static void closes_what_is_not_reached(void **state)
{
	struct weir_rpc *client = NULL;
	char address[64];
	int listener = listen_somewhere(address);
	unsigned before = test_files();

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(weir_rpc_open("127.0.0.1:1", NULL, WAIT_MS, &client), -ECONNREFUSED);
		assert_int_equal(weir_rpc_open("/nowhere,/nowhere/else", NULL, WAIT_MS, &client), -ENOENT);
		assert_int_equal(weir_rpc_listen(address), -EADDRINUSE);
		assert_int_equal(weir_rpc_listen("/nowhere/at/all"), -ENOENT);
	}
	assert_null(client);
	assert_int_equal(test_files(), before);
	close(listener);
}

/* Of several addresses that say nothing each has its part of the time that is left. */
static void divides_its_time_among_addresses(void **state)
{
	enum { LONG_MS = 6000000, SLACK_MS = LONG_MS / 12, ADDRESSES = 3 };
	struct weir_rpc *client = NULL;
	char address[64], list[256];
	int listener = listen_somewhere(address), error;

	(void)state;
	snprintf(list, sizeof(list), "%s,%s,%s", address, address, address);
	polls = 0;
	in_vain = true;
	error = weir_rpc_open(list, NULL, LONG_MS, &client);
	in_vain = false;
	close(listener);
	if (!error) { /* a machine where nobody waits to connect to itself */
		weir_rpc_close(client);
		skip();
	}
	assert_int_equal(error, -ETIMEDOUT);
	assert_int_equal(polls, ADDRESSES);
	for (int i = 0; i < ADDRESSES; i++)
		assert_in_range(polled_ms[i], LONG_MS / (ADDRESSES - i) - SLACK_MS,
				LONG_MS / (ADDRESSES - i));
}

/* What nobody would receive is not sent, and the connection is as good as before. */
static void sends_no_line_that_is_too_long(void **state)
{
	enum { ROUND = sizeof("{\"a\":\"\"}\n") - 1 };
	struct peer peer = { .answers = { "{\"id\":1,\"result\":7}\n" } }, silent = { .here = NULL };
	char *text = malloc(WEIR_RPC_LINE_BYTES);
	json_t *result;

	(void)state;
	assert_non_null(text);
	memset(text, 'a', WEIR_RPC_LINE_BYTES);
	begin(&peer);
	assert_int_equal(
		weir_rpc_send(peer.here,
			      json_pack("{s:s%}", "a", text, (size_t)WEIR_RPC_LINE_BYTES - ROUND + 1),
			      SHORT_MS),
		-EMSGSIZE);
	assert_says("1048576 are the most");
	assert_false(weir_rpc_broken(peer.here));
	assert_int_equal(weir_rpc_call(peer.here, "m", NULL, WAIT_MS, &result), 0);
	assert_int_equal(json_integer_value(result), 7);
	json_decref(result);
	end(&peer);
	begin(&silent); /* which takes nothing of one that is as long as it may be */
	assert_int_equal(weir_rpc_send(silent.here,
				       json_pack("{s:s%}", "a", text, (size_t)WEIR_RPC_LINE_BYTES - ROUND),
				       SHORT_MS),
			 -ETIMEDOUT);
	end(&silent);
	free(text);
}

/** struct sender - of a message with @text, to whoever reads slowly */
struct sender {
	struct weir_rpc *rpc;
	const char *text;
	int error;
};

static void *send_text(void *argument)
{
	struct sender *sender = argument;

	sender->error = weir_rpc_send(sender->rpc, json_pack("{s:s}", "a", sender->text), WAIT_MS);
	return NULL;
}

/* The longest line that there may be arrives, in as many pieces as it has. */
static void takes_the_longest_line(void **state)
{
	enum { LETTERS = WEIR_RPC_LINE_BYTES - (sizeof("{\"a\":\"\"}\n") - 1) };
	static char text[LETTERS + 1];
	struct sender sender = { .text = text };
	struct weir_rpc *receiver;
	json_t *message = NULL;
	pthread_t thread;
	int sockets[2];

	(void)state;
	for (unsigned i = 0; i < LETTERS; i++)
		text[i] = (char)('a' + (i + i / 26 + i / 4096) % 26);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	assert_int_equal(weir_rpc_of(sockets[0], "sender", &sender.rpc), 0);
	assert_int_equal(weir_rpc_of(sockets[1], "receiver", &receiver), 0);
	assert_int_equal(pthread_create(&thread, NULL, send_text, &sender), 0);
	assert_int_equal(weir_rpc_receive(receiver, WAIT_MS, &message), 0);
	pthread_join(thread, NULL);
	assert_int_equal(sender.error, 0);
	assert_string_equal(json_string_value(json_object_get(message, "a")), text);
	json_decref(message);
	weir_rpc_close(sender.rpc);
	weir_rpc_close(receiver);
}

static void connects_by_path_and_by_port(void **state)
{
	char path[] = "/tmp/weir-rpc-XXXXXX", address[64], list[512];
	struct weir_rpc *client;
	int listener;

	(void)state;
	assert_non_null(mkdtemp(path));
	snprintf(address, sizeof(address), "%s/s", path);
	meets(weir_rpc_listen(address), address);
	meets(weir_rpc_listen(address), address); /* its file is still there */
	unlink(address);
	rmdir(path);
	assert_int_equal(weir_rpc_open(address, NULL, WAIT_MS, &client), -ENOENT);
	assert_says("is not reached");
	meets(listen_somewhere(address), address);
	listener = listen_somewhere(address);
	snprintf(list, sizeof(list), "/nowhere,127.0.0.1:1,%s,/nowhere", address);
	meets(listener, list);
	assert_int_equal(weir_rpc_open("127.0.0.1:1,/nowhere", NULL, WAIT_MS, &client), -ENOENT);
	memset(list, 'x', sizeof(list) - 1);
	list[sizeof(list) - 1] = 0;
	assert_int_equal(weir_rpc_open(list, NULL, WAIT_MS, &client), -ENAMETOOLONG);
	snprintf(list, sizeof(list), "/%0108d", 0); /* one more than a socket's path may have */
	assert_int_equal(weir_rpc_open(list, NULL, WAIT_MS, &client), -ENAMETOOLONG);
	assert_says("a socket's path");
	assert_int_equal(weir_rpc_open("nowhere", NULL, WAIT_MS, &client), -EINVAL);
	assert_says("give HOST:PORT or the path of a socket");
	assert_int_equal(weir_rpc_open("127.0.0.1:99999", NULL, WAIT_MS, &client), -EINVAL);
	assert_int_equal(weir_rpc_listen("127.0.0.1:99999"), -EINVAL);
	assert_says("a port is a number from 0 to 65535");
}

static ino_t inode_of(const char *path)
{
	struct stat file;

	assert_int_equal(lstat(path, &file), 0);
	return file.st_ino;
}

/* A path that is in use stays whose it is: that of a listener, and that of a file. */
static void takes_nobody_elses_path(void **state)
{
	char path[] = "/tmp/weir-rpc-XXXXXX", address[64];
	int listener, file;
	ino_t inode;

	(void)state;
	assert_non_null(mkdtemp(path));
	snprintf(address, sizeof(address), "%s/s", path);
	listener = weir_rpc_listen(address);
	assert_true(listener >= 0);
	inode = inode_of(address);
	assert_int_equal(weir_rpc_listen(address), -EADDRINUSE);
	assert_says("cannot listen there");
	assert_true(inode_of(address) == inode);
	close(listener);
	unlink(address);
	file = open(address, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	close(file);
	assert_int_equal(weir_rpc_listen(address), -EADDRINUSE);
	assert_int_equal(unlink(address), 0);
	rmdir(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_the_result),
		cmocka_unit_test(says_what_the_other_end_refuses),
		cmocka_unit_test(does_not_wait_for_ever),
		cmocka_unit_test(waits_as_long_as_it_is_told),
		cmocka_unit_test(reports_an_end_that_is_gone),
		cmocka_unit_test(refuses_a_line_without_end),
		cmocka_unit_test(sends_no_line_that_is_too_long),
		cmocka_unit_test(takes_the_longest_line),
		cmocka_unit_test(connects_by_path_and_by_port),
		cmocka_unit_test(takes_nobody_elses_path),
		cmocka_unit_test(closes_what_has_no_key),
		cmocka_unit_test(closes_what_is_not_reached),
		cmocka_unit_test(divides_its_time_among_addresses),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
