/* SPDX-License-Identifier: BSD-3-Clause */
/* volume/rpc.c: lines of JSON on a socket, each whole before its deadline. */
#include "rpc.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../backend/error.h"
#include "../transport/fabrics/address.h"
#include "../transport/fabrics/tls.h"

enum { NAME_BYTES = 280, FIRST_BYTES = 4096, BACKLOG = 1024 };

/**
 * struct weir_rpc - @line: @used of @room bytes that were received and not taken yet
 * @tls: NULL: nothing is encrypted; @handshaking: a server's handshake is under way; @host: whom it proved
 */
struct weir_rpc {
	int socket;
	struct weir_tls *tls;
	bool handshaking;
	char host[NVME_NQN_BYTES];
	char name[NAME_BYTES];
	char *line;
	size_t used;
	size_t room;
	uint64_t next_id;
	bool broken;
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* 1: @events are there; 0: it is @end_ms. */
static int wait_for(int socket, short events, uint64_t end_ms)
{
	struct pollfd poller = { .fd = socket, .events = events };
	uint64_t now = now_ms();
	int count;

	do
		count = poll(&poller, 1, now < end_ms ? (int)(end_ms - now) : 0);
	while (count < 0 && errno == EINTR);
	return count > 0;
}

/* HOST:PORT, of which @host is room for NAME_BYTES. NULL: it is none. */
static const char *split(const char *address, char *host)
{
	const char *colon = strrchr(address, ':');
	size_t length = colon ? (size_t)(colon - address) : 0;

	if (!colon || !colon[1] || length >= NAME_BYTES)
		return NULL;
	if (length > 1 && address[0] == '[' && address[length - 1] == ']') {
		address++;
		length -= 2;
	}
	memcpy(host, address, length);
	host[length] = 0;
	return colon + 1;
}

/* What getaddrinfo() is asked for: host and port. */
static int take_address(const char *address, char *host, const char **port)
{
	*port = split(address, host);
	if (!*port)
		return weir_fail(EINVAL, "daemon \"%s\": give HOST:PORT or the path of a socket", address);
	if (!weir_address_is_port(*port, strlen(*port), 0))
		return weir_fail(EINVAL, "daemon \"%s\": a port is a number from 0 to 65535", address);
	return 0;
}

static int find_address(const char *address, struct addrinfo **list)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	char host[NAME_BYTES];
	const char *port;
	int error = take_address(address, host, &port);

	if (error)
		return error;
	error = getaddrinfo(host[0] ? host : NULL, port, &hints, list);
	return error ? weir_fail(EHOSTUNREACH, "daemon \"%s\": %s", address, gai_strerror(error)) : 0;
}

static int unix_address(const char *path, struct sockaddr_un *to)
{
	*to = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(to->sun_path))
		return weir_fail(ENAMETOOLONG, "daemon \"%s\": a socket's path has fewer than %zu characters",
				 path, sizeof(to->sun_path));
	strcpy(to->sun_path, path);
	return 0;
}

/* Return: a socket that is connected, or a negative errno. */
static int connect_to(const struct sockaddr *address, socklen_t bytes, uint64_t end_ms)
{
	int socket_ = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
	int error = socket_ < 0 || connect(socket_, address, bytes) != 0 ? errno : 0;
	socklen_t size = sizeof(error);

	if (error == EINPROGRESS) {
		error = ETIMEDOUT;
		if (wait_for(socket_, POLLOUT, end_ms))
			(void)getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
	}
	if (!error) {
		if (address->sa_family != AF_UNIX)
			(void)setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		return socket_;
	}
	if (socket_ >= 0)
		(void)close(socket_);
	return -error;
}

static int connect_any(const char *address, uint64_t end_ms)
{
	struct addrinfo *list = NULL;
	struct sockaddr_un path;
	int found = -EHOSTUNREACH, error;

	if (address[0] == '/') {
		error = unix_address(address, &path);
		if (error)
			return error;
		found = connect_to((struct sockaddr *)&path, sizeof(path), end_ms);
	} else {
		error = find_address(address, &list);
		if (error)
			return error;
		for (struct addrinfo *at = list; at && found < 0; at = at->ai_next)
			found = connect_to(at->ai_addr, at->ai_addrlen, end_ms);
		freeaddrinfo(list);
	}
	return found >= 0 ? found
			  : weir_fail(-found, "daemon \"%s\" is not reached: %s; does weir-volumed run?",
				      address, strerror(-found));
}

int weir_rpc_of(int socket, const char *name, struct weir_rpc **out)
{
	struct weir_rpc *rpc = calloc(1, sizeof(*rpc));
	int one = 1;

	if (!rpc) {
		(void)close(socket);
		return weir_fail(ENOMEM, "daemon \"%s\": no memory for a connection", name);
	}
	(void)fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
	(void)setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	rpc->socket = socket;
	snprintf(rpc->name, sizeof(rpc->name), "%s", name);
	*out = rpc;
	return 0;
}

static int handshake(struct weir_rpc *rpc, const struct weir_rpc_identity *identity, uint64_t end_ms)
{
	bool write = false;
	int error;

	while ((error = weir_tls_handshake(rpc->tls, &write)) == -EAGAIN)
		if (!wait_for(rpc->socket, write ? POLLOUT : POLLIN, end_ms))
			return weir_fail(ETIMEDOUT,
					 "daemon \"%s\" does not answer with TLS: is it told --tls-psk?",
					 rpc->name);
	if (error == -EACCES)
		return weir_fail(EACCES, "daemon \"%s\" refuses the TLS key of host %s", rpc->name,
				 identity->hostnqn);
	return error ? weir_fail(EPROTO,
				 "daemon \"%s\" does not answer with TLS: leave out the key, or give it "
				 "--tls-psk",
				 rpc->name)
		     : 0;
}

static int begin_tls(struct weir_rpc *rpc, const struct weir_rpc_identity *identity, uint64_t end_ms)
{
	struct weir_tls_psk psk;
	struct weir_tls_key key;
	int error = weir_tls_key_load(identity->file, &key);

	if (error)
		return error;
	if (!weir_tls_derive(&key, identity->hostnqn, WEIR_RPC_NQN, &psk))
		error = weir_fail(EINVAL, "key file %s: host %s gets no key of TLS out of it", identity->file,
				  identity->hostnqn);
	else if (!(rpc->tls = weir_tls_client(rpc->socket, &psk)))
		error = weir_fail(ENOMEM, "daemon \"%s\": no memory for TLS", rpc->name);
	explicit_bzero(&key, sizeof(key));
	explicit_bzero(&psk, sizeof(psk));
	return error ? error : handshake(rpc, identity, end_ms);
}

static int open_one(const char *address, const struct weir_rpc_identity *identity, uint64_t end_ms,
		    struct weir_rpc **out)
{
	struct weir_rpc *rpc = NULL;
	int error = connect_any(address, end_ms);

	if (error >= 0)
		error = weir_rpc_of(error, address, &rpc);
	if (error)
		return error;
	if (identity && address[0] != '/')
		error = begin_tls(rpc, identity, end_ms);
	if (error) {
		weir_rpc_close(rpc);
		return error;
	}
	*out = rpc;
	return 0;
}

int weir_rpc_open(const char *address, const struct weir_rpc_identity *identity, unsigned ms,
		  struct weir_rpc **out)
{
	uint64_t end_ms = now_ms() + ms;
	char one[NAME_BYTES];
	unsigned left = 1;
	int error = -EINVAL;

	for (const char *comma = address; (comma = strchr(comma, ',')); comma++)
		left++;
	for (; left && error; left--) { /* one that says nothing has its part of the time */
		uint64_t now = now_ms(), part = end_ms > now ? (end_ms - now) / left : 0;

		if (snprintf(one, sizeof(one), "%.*s", (int)strcspn(address, ","), address) >=
		    (int)sizeof(one))
			return weir_fail(ENAMETOOLONG,
					 "daemon '%.40s...': an address has at most %d characters", address,
					 NAME_BYTES - 1);
		error = open_one(one, identity, now + part, out);
		address += strcspn(address, ",");
		address += *address == ',';
	}
	return error;
}

int weir_rpc_secure(struct weir_rpc *rpc, weir_tls_find *find, void *of)
{
	rpc->tls = weir_tls_server(rpc->socket, find, of);
	rpc->handshaking = true;
	return rpc->tls ? 0 : weir_fail(ENOMEM, "%s: no memory for TLS", rpc->name);
}

/* A server's; it never waits: the few bytes that it sends a socket takes. */
static int continue_handshake(struct weir_rpc *rpc)
{
	char subsystem[NVME_NQN_BYTES];
	bool write = false;
	int error = weir_tls_handshake(rpc->tls, &write);

	if (error == -EAGAIN && !write)
		return error;
	if (error || !weir_tls_names(weir_tls_identity(rpc->tls), rpc->host, subsystem)) {
		rpc->broken = true;
		return weir_fail(EACCES, "%s: its TLS is refused", rpc->name);
	}
	rpc->handshaking = false;
	return 0;
}

const char *weir_rpc_host(const struct weir_rpc *rpc)
{
	return rpc->host[0] ? rpc->host : NULL;
}

static int listen_at(const struct sockaddr *address, socklen_t bytes)
{
	int found = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, error;

	if (found < 0)
		return -errno;
	(void)setsockopt(found, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(found, address, bytes) == 0 && listen(found, BACKLOG) == 0)
		return found;
	error = errno;
	(void)close(found);
	return -error;
}

/* A socket file stays behind when its daemon ends. */
static void remove_unused(const struct sockaddr_un *path)
{
	struct stat file;
	int found;

	if (lstat(path->sun_path, &file) != 0 || !S_ISSOCK(file.st_mode))
		return;
	found = connect_to((const struct sockaddr *)path, sizeof(*path), now_ms());
	if (found == -ECONNREFUSED)
		(void)unlink(path->sun_path);
	else if (found >= 0)
		(void)close(found);
}

int weir_rpc_check(const char *address)
{
	struct sockaddr_un path;
	char host[NAME_BYTES];
	const char *port;

	return address[0] == '/' ? unix_address(address, &path) : take_address(address, host, &port);
}

int weir_rpc_listen(const char *address)
{
	struct addrinfo *list = NULL;
	struct sockaddr_un path;
	int found, error;

	if (address[0] == '/') {
		error = unix_address(address, &path);
		if (error)
			return error;
		remove_unused(&path);
		found = listen_at((struct sockaddr *)&path, sizeof(path));
	} else {
		error = find_address(address, &list);
		if (error)
			return error;
		found = listen_at(list->ai_addr, list->ai_addrlen);
		freeaddrinfo(list);
	}
	return found >= 0 ? found
			  : weir_fail(-found, "daemon \"%s\": cannot listen there: %s", address,
				      strerror(-found));
}

void weir_rpc_close(struct weir_rpc *rpc)
{
	if (!rpc)
		return;
	weir_tls_free(rpc->tls);
	(void)close(rpc->socket);
	free(rpc->line);
	free(rpc);
}

int weir_rpc_socket(const struct weir_rpc *rpc)
{
	return rpc->socket;
}

static bool has_line(const struct weir_rpc *rpc)
{
	return rpc->used && memchr(rpc->line, '\n', rpc->used) != NULL;
}

int weir_rpc_pending(const struct weir_rpc *rpc)
{
	return has_line(rpc) || (rpc->tls && weir_tls_pending(rpc->tls));
}

int weir_rpc_broken(const struct weir_rpc *rpc)
{
	return rpc->broken;
}

static int grow(struct weir_rpc *rpc)
{
	size_t room = rpc->room ? 2 * rpc->room : FIRST_BYTES;
	char *line;

	if (rpc->used < rpc->room)
		return 0;
	if (room > WEIR_RPC_LINE_BYTES)
		return weir_fail(EMSGSIZE, "daemon \"%s\": a message has more than %d bytes", rpc->name,
				 WEIR_RPC_LINE_BYTES);
	line = realloc(rpc->line, room);
	if (!line)
		return weir_fail(ENOMEM, "daemon \"%s\": no memory for a message", rpc->name);
	rpc->line = line;
	rpc->room = room;
	return 0;
}

/* More of it; 0: there is no more. */
static int receive_some(struct weir_rpc *rpc)
{
	int error = rpc->handshaking ? continue_handshake(rpc) : 0;
	struct iovec iov;
	ssize_t got;

	if (error)
		return error == -EAGAIN ? 0 : error;
	error = grow(rpc);
	if (error)
		return error;
	iov = (struct iovec){ rpc->line + rpc->used, rpc->room - rpc->used };
	got = weir_tls_or_recvmsg(rpc->tls, rpc->socket,
				  &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 });
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got < 0)
		return weir_fail(errno, "daemon \"%s\": the connection broke: %s", rpc->name,
				 strerror(errno));
	if (!got)
		return weir_fail(ENOTCONN, "daemon \"%s\": the other end closed the connection", rpc->name);
	rpc->used += (size_t)got;
	return 1;
}

static int take_line(struct weir_rpc *rpc, json_t **message)
{
	char *end = memchr(rpc->line, '\n', rpc->used);
	size_t bytes = (size_t)(end - rpc->line);
	json_error_t why;

	*message = json_loadb(rpc->line, bytes, JSON_REJECT_DUPLICATES, &why);
	rpc->used -= bytes + 1;
	memmove(rpc->line, end + 1, rpc->used);
	if (json_is_object(*message))
		return 0;
	if (*message)
		strcpy(why.text, "it is no object");
	json_decref(*message);
	*message = NULL;
	return weir_fail(EPROTO, "daemon \"%s\": a message is no JSON object: %s", rpc->name, why.text);
}

int weir_rpc_receive(struct weir_rpc *rpc, unsigned ms, json_t **message)
{
	uint64_t end_ms = now_ms() + ms;
	int got;

	while (!has_line(rpc)) {
		got = receive_some(rpc);
		if (got < 0) {
			rpc->broken = true;
			return got;
		}
		if (!got && !wait_for(rpc->socket, POLLIN, end_ms))
			return -EAGAIN;
	}
	return take_line(rpc, message);
}

static int send_all(struct weir_rpc *rpc, const char *text, size_t bytes, unsigned ms)
{
	uint64_t end_ms = now_ms() + ms;
	int error = 0;

	while (bytes && !error) {
		struct iovec iov = { (void *)(uintptr_t)text, bytes };
		ssize_t sent = weir_tls_or_sendmsg(rpc->tls, rpc->socket,
						   &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 });

		if (sent >= 0) {
			text += sent;
			bytes -= (size_t)sent;
		} else if (errno == EAGAIN) {
			error = wait_for(rpc->socket, POLLOUT, end_ms) ? 0 : ETIMEDOUT;
		} else if (errno != EINTR) {
			error = errno;
		}
	}
	rpc->broken = rpc->broken || error;
	return error ? weir_fail(error, "daemon \"%s\": a message is not sent: %s", rpc->name,
				 strerror(error))
		     : 0;
}

int weir_rpc_send(struct weir_rpc *rpc, json_t *message, unsigned ms)
{
	char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	size_t bytes = text ? strlen(text) : 0;
	int error;

	json_decref(message);
	if (!text)
		return weir_fail(ENOMEM, "daemon \"%s\": no memory for a message", rpc->name);
	text[bytes] = '\n'; /* instead of its end */
	if (bytes >= WEIR_RPC_LINE_BYTES)
		error = weir_fail(EMSGSIZE,
				  "daemon \"%s\": a message of %zu bytes is not sent: %d are the most",
				  rpc->name, bytes + 1, WEIR_RPC_LINE_BYTES);
	else
		error = send_all(rpc, text, bytes + 1, ms);
	free(text);
	return error;
}

static int refused(const struct weir_rpc *rpc, const char *method, const json_t *error)
{
	json_int_t code = json_integer_value(json_object_get(error, "code"));
	const char *sentence = json_string_value(json_object_get(error, "message"));
	bool is_errno = code < 0 && code > -4096;

	return weir_fail(is_errno ? (int)-code : EPROTO, "daemon \"%s\" refuses %s: %s", rpc->name, method,
			 sentence ? sentence : "no reason is given");
}

/* The answer to call @id; those to earlier ones, which were not waited for, are passed over. */
static int answer_to(struct weir_rpc *rpc, const char *method, uint64_t id, unsigned ms, json_t **answer)
{
	uint64_t end_ms = now_ms() + ms, now;
	int error;

	for (;;) {
		now = now_ms();
		error = weir_rpc_receive(rpc, now < end_ms ? (unsigned)(end_ms - now) : 0, answer);
		if (error == -EAGAIN) {
			rpc->broken = true;
			return weir_fail(ETIMEDOUT, "daemon \"%s\" does not answer %s within %u ms",
					 rpc->name, method, ms);
		}
		if (error)
			return error;
		if ((uint64_t)json_integer_value(json_object_get(*answer, "id")) == id)
			return 0;
		json_decref(*answer);
	}
}

int weir_rpc_call(struct weir_rpc *rpc, const char *method, json_t *params, unsigned ms, json_t **result)
{
	uint64_t id = ++rpc->next_id;
	json_t *answer = NULL, *found;
	int error = weir_rpc_send(rpc,
				  json_pack("{s:s, s:I, s:s, s:o}", "jsonrpc", "2.0", "id", (json_int_t)id,
					    "method", method, "params", params ? params : json_object()),
				  ms);

	if (!error)
		error = answer_to(rpc, method, id, ms, &answer);
	if (error)
		return error;
	found = json_object_get(answer, "result");
	if (json_is_object(json_object_get(answer, "error")))
		error = refused(rpc, method, json_object_get(answer, "error"));
	else if (!found)
		error = weir_fail(EPROTO, "daemon \"%s\" answers %s with neither a result nor an error",
				  rpc->name, method);
	else if (result)
		*result = json_incref(found);
	json_decref(answer);
	return error;
}

/* With the number of @request. */
static json_t *answer(const json_t *request, const char *key, json_t *value)
{
	json_t *id = json_object_get(request, "id");

	return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id ? id : json_null(), key, value);
}

json_t *weir_rpc_result(const json_t *request, json_t *result)
{
	return answer(request, "result", result);
}

/* A sentence that was cut may end within a letter, which JSON cannot have. */
static json_t *whole_letters(const char *sentence)
{
	size_t bytes = strlen(sentence);
	json_t *text = json_stringn(sentence, bytes);

	while (!text && bytes)
		text = json_stringn(sentence, --bytes);
	return text;
}

json_t *weir_rpc_error(const json_t *request, int code, const char *sentence)
{
	return answer(request, "error",
		      json_pack("{s:i, s:o}", "code", code, "message", whole_letters(sentence)));
}
