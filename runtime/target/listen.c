/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listen.c: from "tcp://ADDRESS:PORT" to a listening socket.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../backend/error.h"
#include "parts.h"

enum { BACKLOG = 512 };

static const char prefix[] = "tcp://";

/* "tcp://HOST[:PORT]", HOST in brackets where it is an IPv6 address. */
static int split(const char *text, char *host, size_t host_bytes, char *port, size_t port_bytes)
{
	const char *at = text + strlen(prefix), *end, *colon;

	if (strncmp(text, prefix, strlen(prefix)) != 0)
		return weir_fail(EINVAL,
				 "cannot listen at \"%s\": write tcp://127.0.0.1:4420 or tcp://[::1]:4420",
				 text);
	if (*at == '[') {
		end = strchr(++at, ']');
		colon = end ? end + 1 : NULL;
	} else {
		end = colon = strrchr(at, ':');
	}
	if (!end)
		end = colon = at + strlen(at);
	if ((size_t)(end - at) >= host_bytes || end == at ||
	    (*colon && (*colon != ':' || strlen(colon + 1) >= port_bytes)))
		return weir_fail(EINVAL,
				 "cannot listen at \"%s\": write tcp://127.0.0.1:4420 or tcp://[::1]:4420",
				 text);
	memcpy(host, at, (size_t)(end - at));
	host[end - at] = 0;
	snprintf(port, port_bytes, "%s", *colon && colon[1] ? colon + 1 : "4420");
	return 0;
}

static int describe(struct target_listener *listener)
{
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	char host[64], port[8];

	if (getsockname(listener->socket, (struct sockaddr *)&bound, &length) != 0 ||
	    getnameinfo((struct sockaddr *)&bound, length, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return weir_fail(EIO, "the address of a listening socket cannot be read");
	snprintf(listener->address, sizeof(listener->address),
		 bound.ss_family == AF_INET6 ? "tcp://[%s]:%s" : "tcp://%s:%s", host, port);
	return 0;
}

static int open_socket(const char *text, const struct addrinfo *info, struct target_listener *listener)
{
	int one = 1;

	listener->socket = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener->socket < 0)
		return weir_fail(errno, "cannot listen at %s: %s", text, strerror(errno));
	setsockopt(listener->socket, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener->socket, info->ai_addr, info->ai_addrlen) != 0 ||
	    listen(listener->socket, BACKLOG) != 0)
		return weir_fail(errno, "cannot listen at %s: %s%s", text, strerror(errno),
				 errno == EADDRINUSE ? "; another program serves there"
				 : errno == EACCES   ? "; ports below 1024 are root's"
						     : "");
	return describe(listener);
}

int target_listen(const char *text, struct target_listener *listener)
{
	struct addrinfo wanted = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV },
			*found;
	char host[256], port[8];
	int error = split(text, host, sizeof(host), port, sizeof(port)), failed;

	listener->socket = -1;
	if (error)
		return error;
	failed = getaddrinfo(host, port, &wanted, &found);
	if (failed)
		return weir_fail(EINVAL, "cannot listen at %s: %s", text, gai_strerror(failed));
	error = open_socket(text, found, listener);
	freeaddrinfo(found);
	return error;
}
