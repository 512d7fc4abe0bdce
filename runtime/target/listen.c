/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listen.c: from "tcp://ADDRESS:PORT", or "rdma://", to what listens there.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../backend/error.h"
#include "../transport/fabrics/address.h"
#include "parts.h"

enum { BACKLOG = 512 };

static const char tcp[] = "tcp://", rdma[] = "rdma://";

/* "tcp://HOST[:PORT]", HOST in brackets where it is an IPv6 address. */
static int split(const char *text, char *host, size_t host_bytes, char *port, size_t port_bytes)
{
	const char *at = strstr(text, "://"), *end, *colon;

	if (strncmp(text, tcp, strlen(tcp)) != 0 && strncmp(text, rdma, strlen(rdma)) != 0)
		return weir_fail(EINVAL,
				 "cannot listen at \"%s\": write tcp://127.0.0.1:4420 or tcp://[::1]:4420",
				 text);
	at += strlen("://");
	if (*at == '[') {
		end = strchr(++at, ']');
		colon = end ? end + 1 : NULL;
	} else {
		end = colon = strrchr(at, ':');
	}
	if (!end)
		end = colon = at + strlen(at);
	if ((size_t)(end - at) >= host_bytes || end == at || (*colon && *colon != ':'))
		return weir_fail(EINVAL,
				 "cannot listen at \"%s\": write tcp://127.0.0.1:4420 or tcp://[::1]:4420",
				 text);
	/* 0: any that is free */
	if (*colon && colon[1] && !weir_address_is_port(colon + 1, strlen(colon + 1), 0))
		return weir_fail(EINVAL, "cannot listen at \"%s\": a port is a number from 0 to 65535", text);
	memcpy(host, at, (size_t)(end - at));
	host[end - at] = 0;
	snprintf(port, port_bytes, "%s", *colon && colon[1] ? colon + 1 : "4420");
	return 0;
}

int target_listen_describe(struct target_listener *listener, const char *scheme, const struct sockaddr *bound,
			   socklen_t bytes)
{
	char host[64], port[8];

	if (getnameinfo(bound, bytes, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return weir_fail(EIO, "the address of a listening socket cannot be read");
	snprintf(listener->address, sizeof(listener->address),
		 bound->sa_family == AF_INET6 ? "%s[%s]:%s" : "%s%s:%s", scheme, host, port);
	return 0;
}

static int describe(struct target_listener *listener)
{
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);

	if (getsockname(listener->socket, (struct sockaddr *)&bound, &length) != 0)
		return weir_fail(EIO, "the address of a listening socket cannot be read");
	return target_listen_describe(listener, tcp, (struct sockaddr *)&bound, length);
}

void target_listen_end(struct target_listener *listener)
{
	if (listener->rdma)
		target_rdma_listen_end(listener);
	else if (listener->socket >= 0)
		close(listener->socket);
	free(listener->text);
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
	listener->text = strdup(text);
	if (error)
		return error;
	if (!listener->text)
		return weir_fail(ENOMEM, "no memory for an address");
	failed = getaddrinfo(host, port, &wanted, &found);
	if (failed)
		return weir_fail(EINVAL, "cannot listen at %s: %s", text, gai_strerror(failed));
	error = strncmp(text, rdma, strlen(rdma)) ? open_socket(text, found, listener)
						  : target_rdma_listen(text, found, listener);
	freeaddrinfo(found);
	return error;
}
