/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_bench.c: weir-target beside a plain socket program that sends the same bytes.
 *
 * One client, of one thread, keeps commands in flight on some connections; the server is a process of
 * its own: the target over
 * memory, or a loop that answers each request with as many bytes and looks at nothing. Both in turns,
 * medians of the runs. CPU
 * seconds are the server's, per million commands.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../target/target_host.h"

enum {
	CONNECTIONS_MAX = 64,
	RUNS_MAX = 31,
	MEDIUM_BYTES = 64 << 20,
	RECEIVE_BYTES = 1 << 18,
	PARTS = 60,
	RESPONSE_BYTES = 24
};

/** struct setting - what to measure */
struct setting {
	u32 block_bytes;
	u32 connections;
	u32 depth;
	u32 runs;
	double seconds;
	bool write;
};

/** struct figure - of one run */
struct figure {
	double per_second;
	double server_seconds_per_million;
};

static double now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double processor_seconds(pid_t process)
{
	struct timespec used = { 0 };
	clockid_t clock;

	if (clock_getcpuclockid(process, &clock) == 0)
		clock_gettime(clock, &used);
	return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "target-bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static u32 request_bytes(const struct setting *s)
{
	return 72 + (s->write ? s->block_bytes : 0);
}

static u32 answer_bytes(const struct setting *s)
{
	return RESPONSE_BYTES + (s->write ? 0 : 24 + s->block_bytes);
}

/* ---- the plain server ---- */

struct plain {
	u8 *medium;
	u8 header[24];
	u8 buffer[RECEIVE_BYTES];
	u32 partial[CONNECTIONS_MAX + 8]; /* by descriptor */
	u64 random;
};

static u8 *somewhere(struct plain *plain, u32 bytes)
{
	plain->random = plain->random * 6364136223846793005u + 1442695040888963407u;
	return plain->medium + (plain->random >> 33) % (MEDIUM_BYTES / bytes) * bytes;
}

static void send_all(int fd, struct iovec *parts, u32 count)
{
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = count };

	while (message.msg_iovlen) {
		ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);

		must(sent > 0, "plain server");
		while (message.msg_iovlen && (size_t)sent >= message.msg_iov->iov_len) {
			sent -= (ssize_t)message.msg_iov->iov_len;
			message.msg_iov++;
			message.msg_iovlen--;
		}
		if (message.msg_iovlen) {
			message.msg_iov->iov_base = (u8 *)message.msg_iov->iov_base + sent;
			message.msg_iov->iov_len -= (size_t)sent;
		}
	}
}

static void plain_answer(struct plain *plain, const struct setting *s, int fd, u32 count)
{
	struct iovec parts[PARTS];

	while (count) {
		u32 used = 0;

		for (; count && used + 3 <= PARTS; count--) {
			if (!s->write) {
				parts[used++] = (struct iovec){ plain->header, sizeof(plain->header) };
				parts[used++] =
					(struct iovec){ somewhere(plain, s->block_bytes), s->block_bytes };
			}
			parts[used++] = (struct iovec){ plain->header, RESPONSE_BYTES };
		}
		send_all(fd, parts, used);
	}
}

static void plain_serve(const struct setting *s, int listener)
{
	static struct plain plain = { .random = 1 };
	struct epoll_event events[16], event = { .events = EPOLLIN, .data.fd = listener };
	int epoll = epoll_create1(0);

	plain.medium = aligned_alloc(2 << 20, MEDIUM_BYTES);
	madvise(plain.medium, MEDIUM_BYTES, MADV_HUGEPAGE); /* as virt: has it */
	memset(plain.medium, 1, MEDIUM_BYTES);
	epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		int count = epoll_wait(epoll, events, 16, -1);

		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd, one = 1;
			ssize_t got;

			if (fd == listener) {
				event.data.fd = accept(listener, NULL, NULL);
				setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
				epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
				continue;
			}
			got = recv(fd, plain.buffer, sizeof(plain.buffer), 0);
			if (got <= 0) {
				close(fd);
				continue;
			}
			plain.partial[fd] += (u32)got;
			plain_answer(&plain, s, fd, plain.partial[fd] / request_bytes(s));
			plain.partial[fd] %= request_bytes(s);
		}
	}
}

/* ---- the target ---- */

static void target_serve(const struct setting *s, int port)
{
	char uri[64], listen[64];
	const struct weir_target_namespace_options space = { .uri = uri };
	const struct weir_target_subsystem_options subsystem = { .nqn = HOST_SUBSYSTEM,
								 .namespaces = &space,
								 .namespace_count = 1 };
	const char *address = listen;
	struct weir_target_options options = { .size = sizeof(options),
					       .listen = &address,
					       .listen_count = 1,
					       .subsystems = &subsystem,
					       .subsystem_count = 1,
					       .threads = 1 };
	struct weir_target *target;

	snprintf(uri, sizeof(uri), "virt:64M?block=512&mdts=1M");
	snprintf(listen, sizeof(listen), "tcp://127.0.0.1:%d", port);
	must(weir_target_create(&options, &target) == 0, "target");
	(void)s;
	for (;;)
		weir_target_step(target, -1);
}

/* ---- the client ---- */

static int open_socket(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((u16)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1;

	for (unsigned i = 0; i < 500; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
			return fd;
		close(fd);
		usleep(10000);
	}
	must(false, "connect");
	return -1;
}

static void open_queue(struct host *host, int port, u16 qid, u16 *cntlid)
{
	u64 result = 0;

	memset(host, 0, offsetof(struct host, data));
	host->rules.most_data = HOST_DATA_BYTES;
	host->socket = open_socket(port);
	host_hello(host, 0, 0);
	must(host_connect(host, qid, 127, qid ? *cntlid : NVME_CNTLID_DYNAMIC, 0, HOST_SUBSYSTEM, HOST_NAME,
			  &result) == 0,
	     "Connect");
	if (qid)
		return;
	*cntlid = (u16)result;
	must(host_property(host, true, NVME_PROPERTY_CC, 0,
			   NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16, NULL) == 0,
	     "CC");
}

/* Memory that was never written reads as one page of zeros, which stays in the nearest cache. */
static void fill(struct host *host)
{
	static u8 bytes[1 << 20];

	memset(bytes, 0x5a, sizeof(bytes));
	for (u32 at = 0; at < MEDIUM_BYTES; at += sizeof(bytes))
		must(host_give(host, host_io(host, NVME_OPCODE_WRITE, 1, at / 512, sizeof(bytes) / 512),
			       bytes, sizeof(bytes), false) == 0,
		     "fill");
}

/** struct lane - a connection of the client: @have: bytes of an answer that is not whole */
struct lane {
	int fd;
	u32 have;
	u16 cid;
};

static u8 requests[128 * (72 + 8192)];

static void ask(const struct setting *s, struct lane *lane, u32 count, u64 *random)
{
	u32 bytes = request_bytes(s), blocks = s->block_bytes / 512;
	size_t at = 0, total = (size_t)bytes * count;

	for (u32 i = 0; i < count; i++) {
		union nvme_tcp_header *header = (void *)(requests + (size_t)i * bytes);
		struct nvme_sqe sqe = { .cdw0 = (s->write ? NVME_OPCODE_WRITE : NVME_OPCODE_READ) |
						(u32)(lane->cid++ % 128) << 16,
					.nsid = 1 };

		*random = *random * 6364136223846793005u + 1442695040888963407u;
		sqe.cdw10 = (u32)((*random >> 33) % (MEDIUM_BYTES / s->block_bytes)) * blocks;
		sqe.cdw12 = blocks - 1;
		host_sgl(&sqe, s->write ? NVME_SGL_DATA_BLOCK_OFFSET : NVME_SGL_TRANSPORT_DATA_BLOCK,
			 s->block_bytes);
		memcpy(header->cmd.sqe, &sqe, sizeof(sqe));
		header->common = (struct nvme_tcp_common){
			.type = NVME_TCP_CAPSULE_CMD, .hlen = 72, .pdo = s->write ? 72 : 0, .plen = bytes
		};
	}
	while (at < total) {
		ssize_t sent = send(lane->fd, requests + at, total - at, MSG_NOSIGNAL);

		must(sent > 0, "client");
		at += (size_t)sent;
	}
}

/* Commands completed in s->seconds. */
static u64 drive(const struct setting *s, struct lane *lanes)
{
	static u8 buffer[RECEIVE_BYTES];
	int epoll = epoll_create1(0);
	u64 done = 0, random = 7;
	double end;

	for (u32 i = 0; i < s->connections; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };

		epoll_ctl(epoll, EPOLL_CTL_ADD, lanes[i].fd, &event);
		ask(s, &lanes[i], s->depth, &random);
	}
	for (end = now_seconds() + s->seconds; now_seconds() < end;) {
		struct epoll_event events[CONNECTIONS_MAX];
		int count = epoll_wait(epoll, events, CONNECTIONS_MAX, 1000);

		for (int i = 0; i < count; i++) {
			struct lane *lane = &lanes[events[i].data.u32];
			ssize_t got = recv(lane->fd, buffer, sizeof(buffer), 0);
			u32 whole;

			must(got > 0, "client");
			lane->have += (u32)got;
			whole = lane->have / answer_bytes(s);
			lane->have %= answer_bytes(s);
			done += whole;
			if (whole)
				ask(s, lane, whole, &random);
		}
	}
	close(epoll);
	return done;
}

static int listen_socket(int *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 64) == 0, "listen");
	getsockname(fd, (struct sockaddr *)&at, &length);
	*port = ntohs(at.sin_port);
	return fd;
}

static struct figure run(const struct setting *s, bool plain)
{
	static struct host admin, queue;
	struct lane lanes[CONNECTIONS_MAX] = { { 0 } };
	int port, listener = listen_socket(&port);
	u16 cntlid = 0;
	pid_t server;
	double begin, seconds, used;
	u64 done;

	if (!plain)
		close(listener);
	server = fork();
	if (!server && plain)
		plain_serve(s, listener);
	if (!server)
		target_serve(s, port);
	if (plain)
		close(listener);
	else
		open_queue(&admin, port, 0, &cntlid);
	for (u32 i = 0; i < s->connections; i++) {
		if (plain) {
			lanes[i].fd = open_socket(port);
		} else {
			open_queue(&queue, port, (u16)(i + 1), &cntlid);
			lanes[i].fd = queue.socket;
			if (!i)
				fill(&queue);
		}
	}
	begin = now_seconds();
	used = processor_seconds(server);
	done = drive(s, lanes);
	seconds = now_seconds() - begin;
	used = processor_seconds(server) - used;
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	for (u32 i = 0; i < s->connections; i++)
		close(lanes[i].fd);
	if (!plain)
		close(admin.socket);
	return (struct figure){ (double)done / seconds, used / (double)done * 1e6 };
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, u32 count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[count / 2];
}

static void measure(const struct setting *s)
{
	double rates[2][RUNS_MAX], cpu[2][RUNS_MAX];

	for (u32 i = 0; i < s->runs; i++)
		for (unsigned plain = 0; plain < 2; plain++) {
			struct figure figure = run(s, plain);

			rates[plain][i] = figure.per_second;
			cpu[plain][i] = figure.server_seconds_per_million;
		}
	printf("{\"op\":\"%s\",\"block\":%u,\"connections\":%u,\"depth\":%u,\"runs\":%u,\"target_per_s\":%."
	       "0f,\"plain_per_s\":%.0f,"
	       "\"share\":%.3f,\"target_cpu_s_per_million\":%.2f,\"plain_cpu_s_per_million\":%.2f}\n",
	       s->write ? "write" : "read", s->block_bytes, s->connections, s->depth, s->runs,
	       median(rates[0], s->runs), median(rates[1], s->runs),
	       median(rates[0], s->runs) / median(rates[1], s->runs), median(cpu[0], s->runs),
	       median(cpu[1], s->runs));
	fflush(stdout);
}

int main(int count, char **arguments)
{
	struct setting s = { .block_bytes = 4096, .connections = 4, .depth = 32, .runs = 5, .seconds = 1 };

	for (int i = 1; i < count; i++) {
		const char *at = arguments[i];

		if (sscanf(at, "--block=%u", &s.block_bytes) == 1 ||
		    sscanf(at, "--connections=%u", &s.connections) == 1 ||
		    sscanf(at, "--depth=%u", &s.depth) == 1 || sscanf(at, "--runs=%u", &s.runs) == 1 ||
		    sscanf(at, "--seconds=%lf", &s.seconds) == 1)
			continue;
		if (!strcmp(at, "--write")) {
			s.write = true;
			continue;
		}
		fprintf(stderr,
			"target-bench: unknown option %s; known are --block= --connections= --depth= --runs= "
			"--seconds= --write\n",
			at);
		return 2;
	}
	if (!s.connections || s.connections > CONNECTIONS_MAX || !s.depth || s.depth > 127 || !s.runs ||
	    s.runs > RUNS_MAX || s.block_bytes % 512 || !s.block_bytes ||
	    s.block_bytes > (s.write ? 8192 : 1 << 20)) {
		fprintf(stderr,
			"target-bench: 1 to %d connections, depth 1 to 127, 1 to %d runs, blocks of 512 "
			"bytes to 1 MiB (writes: 8 KiB)\n",
			CONNECTIONS_MAX, RUNS_MAX);
		return 2;
	}
	measure(&s);
	return 0;
}
