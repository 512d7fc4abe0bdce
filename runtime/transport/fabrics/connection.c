/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connection.c: a queue's TCP connection.
 *
 * Owns: sockets, and the agreement of ICReq and ICResp. NVMe/TCP Transport 1.0, section 3.2.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../backend/error.h"
#include "paths.h"

enum { STEP_MS = 20, PDA_UNIT = 4 };

void nvmf_connection_note(struct nvmf_queue *queue, bool open)
{
	if (queue->connection.open != open)
		/* Of a path's queues its thread counts, too. */
		(void)fetch_add_relaxed_u64(&nvmf_storage(queue)->counters.connections, open ? 1 : (u64)-1);
	queue->connection.open = open;
	for (u32 i = 0; i < NVMF_INTERNAL && !open; i++)
		queue->internal[i].state = NVMF_FREE;
}

static void destroy(struct nvmf_queue *queue)
{
	struct nvmf_connection *connection = &queue->connection;

	free(connection->reader.buffer);
	free(connection->batch);
	free(connection->line);
	connection->reader.buffer = NULL;
	connection->batch = NULL;
	connection->line = NULL;
}

static int create(struct nvmf_queue *queue, u32 entries)
{
	struct nvmf_connection *connection = &queue->connection;
	u32 most = 1;

	if (connection->line)
		return 0;
	while (most < (entries + NVMF_INTERNAL) * (NVMF_MOST_R2T + 1))
		most *= 2;
	connection->socket = -1;
	connection->line_size = most;
	connection->line = calloc(most, sizeof(*connection->line));
	connection->batch = calloc(1, sizeof(*connection->batch));
	connection->reader.buffer = malloc(NVMF_BUFFER_BYTES);
	if (connection->line && connection->batch && connection->reader.buffer)
		return 0;
	destroy(queue);
	return weir_fail(ENOMEM, "storage \"%s\": no memory for queue %u", queue->nvmf->uri, queue->id);
}

static void close_queue(struct nvmf_queue *queue)
{
	struct nvmf_connection *connection = &queue->connection;
	struct nvmf_reader *reader = &connection->reader;

	if (connection->socket >= 0)
		(void)close(connection->socket);
	nvmf_connection_note(queue, false);
	weir_tls_free(connection->tls);
	connection->tls = NULL;
	connection->socket = -1;
	connection->readable = connection->writable = connection->ending = false;
	connection->line_head = connection->line_tail = 0;
	if (connection->batch)
		connection->batch->at = connection->batch->count = connection->batch->pdus = 0;
	*reader = (struct nvmf_reader){ .buffer = reader->buffer };
}

int nvmf_connection_wait(const struct nvmf *nvmf, int file, short events, uint64_t end_ns)
{
	struct pollfd poll_file = { .fd = file, .events = events };

	while (poll(&poll_file, 1, STEP_MS) == 0 || !poll_file.revents) {
		if (nvmf_stopping(nvmf))
			return -ECANCELED;
		if (nvmf_now_ns() > end_ns)
			return -ETIMEDOUT;
	}
	return 0;
}

/** struct attempt - @file: the socket that is connected, or -1 */
struct attempt {
	const struct nvmf *nvmf;
	int file;
};

static int connect_one(void *of, const struct addrinfo *info, uint64_t end_ns)
{
	struct attempt *attempt = of;
	int file = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, info->ai_protocol),
	    error, one = 1;
	socklen_t length = sizeof(error);

	if (file < 0)
		return -errno;
	(void)setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	error = connect(file, info->ai_addr, info->ai_addrlen) == 0 ? 0 : -errno;
	if (error == -EINPROGRESS) {
		error = nvmf_connection_wait(attempt->nvmf, file, POLLOUT, end_ns);
		if (!error && getsockopt(file, SOL_SOCKET, SO_ERROR, &one, &length) == 0)
			error = -one;
	}
	if (error)
		(void)close(file);
	attempt->file = error ? -1 : file;
	return error;
}

int nvmf_connection_resolve(const struct nvmf *nvmf, const struct weir_address *address,
			    struct addrinfo **list)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	int error = getaddrinfo(address->host, address->port, &hints, list);

	return error ? weir_fail(EHOSTUNREACH, "storage \"%s\": host %s is not known: %s", nvmf->uri,
				 address->host, gai_strerror(error))
		     : 0;
}

int nvmf_connection_each(const struct addrinfo *list, uint64_t end_ns, nvmf_connect_fn one, void *of)
{
	int error = -EHOSTUNREACH;
	unsigned left = 0;

	for (const struct addrinfo *info = list; info; info = info->ai_next)
		left++;
	for (const struct addrinfo *info = list; info && error && error != -ECANCELED; info = info->ai_next) {
		uint64_t now = nvmf_now_ns(), ns = now < end_ns ? (end_ns - now) / left-- : 0;

		error = one(of, info, now + ns);
	}
	return error;
}

static int connect_any(const struct nvmf *nvmf, const struct weir_address *address, uint64_t end_ns, int *out)
{
	struct attempt attempt = { .nvmf = nvmf, .file = -1 };
	struct addrinfo *list;
	char text[WEIR_ADDRESS_BYTES + 16];
	int error = nvmf_connection_resolve(nvmf, address, &list);

	if (error)
		return error;
	weir_address_text(address, text);
	error = nvmf_connection_each(list, end_ns, connect_one, &attempt);
	freeaddrinfo(list);
	*out = attempt.file;
	if (!error)
		return 0;
	return weir_fail(-error,
			 "storage \"%s\": cannot connect to %s: %s; is a target listening there, and does a "
			 "firewall let it through?",
			 nvmf->uri, text, strerror(-error));
}

/** struct link - a connection before it is a queue's */
struct link {
	int file;
	struct weir_tls *tls;
};

static int exchange(const struct nvmf *nvmf, const struct link *link, void *bytes, size_t count, bool out,
		    uint64_t end_ns)
{
	size_t done = 0;

	while (done < count) {
		struct iovec iov = { (char *)bytes + done, count - done };
		struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t part = out ? weir_tls_or_sendmsg(link->tls, link->file, &message)
				   : weir_tls_or_recvmsg(link->tls, link->file, &message);
		int error;

		if (part == 0)
			return -ECONNRESET;
		if (part > 0) {
			done += (size_t)part;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		error = nvmf_connection_wait(nvmf, link->file, out ? POLLOUT : POLLIN, end_ns);
		if (error)
			return error;
	}
	return 0;
}

static int check_icresp(struct nvmf_queue *queue, const union nvme_tcp_header *header, const char *where)
{
	const struct nvmf *nvmf = queue->nvmf;
	struct nvmf_connection *connection = &queue->connection;
	const struct weir_tcp_rules none = { .most_data = NVMF_ADMIN_CAPSULE_DATA };
	struct weir_tcp_layout layout;
	struct weir_tcp_error error;
	const struct nvme_tcp_icresp *icresp = &header->icresp;

	if (!weir_tcp_check(&header->common, true, &none, &layout, &error) ||
	    !weir_tcp_check_header(header, &layout, &error) || layout.type != NVME_TCP_ICRESP)
		return weir_fail(EPROTO,
				 "storage \"%s\": %s is no NVMe/TCP controller: its first PDU does not "
				 "accept the connection",
				 nvmf->uri, where);
	if ((nvmf->keys.header_digest && !(icresp->dgst & NVME_TCP_HDGST_ENABLE)) ||
	    (nvmf->keys.data_digest && !(icresp->dgst & NVME_TCP_DDGST_ENABLE)))
		return weir_fail(ENOTSUP,
				 "storage \"%s\": %s refuses the digests asked for; allow them there, or "
				 "leave digest= out",
				 nvmf->uri, where);
	connection->in = (struct weir_tcp_rules){
		.header_digest = (icresp->dgst & NVME_TCP_HDGST_ENABLE) && nvmf->keys.header_digest,
		.data_digest = (icresp->dgst & NVME_TCP_DDGST_ENABLE) && nvmf->keys.data_digest,
		.most_data = UINT32_MAX
	};
	connection->out = connection->in;
	connection->out.alignment = (icresp->cpda + 1u) * PDA_UNIT;
	connection->out.most_data = icresp->maxh2cdata & ~3u;
	return 0;
}

static int refuse_tls(const struct nvmf *nvmf, const char *where, int error)
{
	if (error == -EACCES)
		return weir_fail(
			EACCES,
			"storage \"%s\": %s refuses the TLS key of host %s for subsystem %s; is it the "
			"same at both ends (tls_psk=, weir-target --tls-psk)?",
			nvmf->uri, where, nvmf->keys.host.nqn, nvmf->keys.nqn);
	if (error == -ECONNRESET)
		return weir_fail(ECONNRESET,
				 "storage \"%s\": %s closes the connection in the TLS handshake; does it "
				 "serve TLS there, and has it the same key for host %s and subsystem %s? "
				 "Linux's target needs tlshd for that",
				 nvmf->uri, where, nvmf->keys.host.nqn, nvmf->keys.nqn);
	if (error == -EPROTO)
		return weir_fail(
			EPROTO,
			"storage \"%s\": %s does not answer with TLS; leave tls_psk= out, or give the "
			"target a key for this host",
			nvmf->uri, where);
	return weir_fail(-error, "storage \"%s\": %s does not end the TLS handshake: %s", nvmf->uri, where,
			 strerror(-error));
}

static int start_tls(const struct nvmf *nvmf, struct link *link, const struct weir_address *address,
		     uint64_t end_ns)
{
	char text[WEIR_ADDRESS_BYTES + 16];
	struct weir_tls_psk psk;
	bool write = false;
	int error;

	if (!nvmf->keys.tls_key.bytes)
		return 0;
	if (weir_tls_derive(&nvmf->keys.tls_key, nvmf->keys.host.nqn, nvmf->keys.nqn, &psk))
		link->tls = weir_tls_client(link->file, &psk);
	explicit_bzero(&psk, sizeof(psk));
	if (!link->tls)
		return weir_fail(ENOMEM, "storage \"%s\": TLS cannot begin", nvmf->uri);
	while ((error = weir_tls_handshake(link->tls, &write)) == -EAGAIN) {
		error = nvmf_connection_wait(nvmf, link->file, write ? POLLOUT : POLLIN, end_ns);
		if (error)
			break;
	}
	return error ? refuse_tls(nvmf, weir_address_text(address, text), error) : 0;
}

static int agree(struct nvmf_queue *queue, const struct link *link, const struct weir_address *address,
		 uint64_t end_ns)
{
	const struct nvmf *nvmf = queue->nvmf;
	union nvme_tcp_header header = { .icreq = { .maxr2t = NVMF_MOST_R2T - 1 } };
	const struct weir_tcp_rules none = { .most_data = 0 };
	char text[WEIR_ADDRESS_BYTES + 16];
	size_t bytes;
	int error;

	header.icreq.dgst = (u8)((nvmf->keys.header_digest ? NVME_TCP_HDGST_ENABLE : 0) |
				 (nvmf->keys.data_digest ? NVME_TCP_DDGST_ENABLE : 0));
	bytes = weir_tcp_build(&header, NVME_TCP_ICREQ, 0, &none);
	error = exchange(nvmf, link, &header, bytes, true, end_ns);
	memset(&header, 0, sizeof(header));
	if (!error)
		error = exchange(nvmf, link, &header, sizeof(struct nvme_tcp_icresp), false, end_ns);
	weir_address_text(address, text);
	if (error)
		return weir_fail(-error,
				 "storage \"%s\": %s accepts connections and does not answer as NVMe/TCP: "
				 "%s%s",
				 nvmf->uri, text, strerror(-error),
				 error == -ECONNRESET && !link->tls
					 ? "; if it wants TLS, give tls_psk=, the file with its key"
					 : "");
	return check_icresp(queue, &header, text);
}

static int open_queue(struct nvmf_queue *queue, const struct weir_address *address)
{
	struct nvmf *nvmf = queue->nvmf;
	struct nvmf_connection *connection = &queue->connection;
	uint64_t end_ns = nvmf_now_ns() + nvmf->keys.connect_ms * 1000000;
	struct link link = { .file = -1 };
	int error = connect_any(nvmf, address, end_ns, &link.file);

	if (error)
		return error;
	close_queue(queue);
	error = start_tls(nvmf, &link, address, end_ns);
	if (!error)
		error = agree(queue, &link, address, end_ns);
	if (!error)
		error = nvmf_watch(queue, link.file, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	if (error) {
		weir_tls_free(link.tls);
		(void)close(link.file);
		return error;
	}
	connection->socket = link.file;
	connection->tls = link.tls;
	connection->readable = connection->writable = true;
	connection->capsule_data = queue->id ? nvmf->controller.capsule_data : NVMF_ADMIN_CAPSULE_DATA;
	nvmf_connection_note(queue, true);
	return 0;
}

/* Fabrics commands, the admin queue's, and short writes have their data in the capsule. */
static u32 capsule_data(const struct nvmf_queue *queue, const struct nvmf_request *request)
{
	bool fabrics = (request->sqe.cdw0 & 0xff) == NVME_OPCODE_FABRICS;
	u32 most = fabrics ? NVMF_ADMIN_CAPSULE_DATA : queue->connection.capsule_data;

	return request->way == NVMF_TO_CONTROLLER && request->bytes <= most ? request->bytes : 0;
}

static void begin(struct nvmf_queue *queue, struct nvmf_request *request)
{
	request->granted = capsule_data(queue, request);
	nvmf_line_put(&queue->connection, &(struct nvmf_pdu){ .request = request,
							      .bytes = request->granted,
							      .type = NVME_TCP_CAPSULE_CMD });
}

static u32 room(const struct nvmf_queue *queue)
{
	return nvmf_line_room(&queue->connection);
}

const struct nvmf_wire nvmf_wire_tcp = {
	.name = "NVMe/TCP",
	.create = create,
	.destroy = destroy,
	.open = open_queue,
	.close = close_queue,
	.room = room,
	.begin = begin,
	.send = nvmf_tcp_send,
	.receive = nvmf_tcp_receive,
};
