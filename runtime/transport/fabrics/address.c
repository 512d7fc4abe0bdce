/* SPDX-License-Identifier: BSD-3-Clause */
#include "address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/nvme_fabrics.h>

#include "../../backend/error.h"
#include "tcp_pdu.h"

enum { MOST_PORT = 65535, MOST_DIGITS = 5 };

static int refuse(const char *uri, const char *what)
{
	return weir_fail(EINVAL,
			 "storage \"%s\": %s; write nvmf:tcp://HOST:PORT/NQN, such as "
			 "nvmf:tcp://10.0.0.2:4420/nqn.2026-11.org.example:disk",
			 uri, what);
}

bool weir_address_is_port(const char *text, size_t length, int least)
{
	if (length < 1 || length > MOST_DIGITS || strspn(text, "0123456789") < length)
		return false;
	return atoi(text) >= least && atoi(text) <= MOST_PORT;
}

/* "HOST", "HOST:PORT", "[HOST]" or "[HOST]:PORT" in [@from, @end). */
static int take_host(const char *uri, const char *from, const char *end, struct weir_address *address)
{
	const char *host = from, *host_end = NULL, *port = NULL;

	if (from >= end)
		return refuse(uri, "a host's name is empty");
	if (*from == '[') {
		host = from + 1;
		host_end = memchr(host, ']', (size_t)(end - host));
		if (!host_end || (host_end + 1 < end && host_end[1] != ':'))
			return refuse(uri,
				      "an IPv6 address stands in brackets, with nothing but a port behind");
		port = host_end + 1 < end ? host_end + 2 : NULL;
	} else {
		host_end = memchr(host, ':', (size_t)(end - host));
		port = host_end ? host_end + 1 : NULL;
		host_end = host_end ? host_end : end;
	}
	if (host_end == host || host_end - host >= WEIR_ADDRESS_BYTES)
		return refuse(uri, "a host's name is empty, or too long");
	if (port && !weir_address_is_port(port, (size_t)(end - port), 1))
		return refuse(uri, "a port is a number from 1 to 65535");
	snprintf(address->host, sizeof(address->host), "%.*s", (int)(host_end - host), host);
	if (port)
		snprintf(address->port, sizeof(address->port), "%.*s", (int)(end - port), port);
	return 0;
}

static int take_hosts(const char *uri, const char *from, const char *end, int port,
		      struct weir_address_list *list)
{
	list->count = 0;
	while (from <= end) {
		const char *comma = memchr(from, ',', (size_t)(end - from));
		const char *next = comma ? comma : end;
		struct weir_address *address = &list->address[list->count];
		int error;

		if (list->count == WEIR_ADDRESS_MOST)
			return weir_fail(EINVAL, "storage \"%s\": more than %d hosts", uri,
					 WEIR_ADDRESS_MOST);
		snprintf(address->port, sizeof(address->port), "%d", port);
		if ((error = take_host(uri, from, next, address)) != 0)
			return error;
		list->count++;
		from = next + 1;
	}
	return 0;
}

static int take_nqn(const char *uri, const char *from, char *nqn, size_t bytes)
{
	size_t length = strlen(from);

	if (length > NVME_NQN_LONGEST || length >= bytes)
		return weir_fail(EINVAL, "storage \"%s\": an NQN has at most %d characters", uri,
				 NVME_NQN_LONGEST);
	if (length && strncmp(from, "nqn.", 4) != 0)
		return weir_fail(EINVAL, "storage \"%s\": \"%s\" is no NQN: it begins with \"nqn.\"", uri,
				 from);
	memcpy(nqn, from, length + 1);
	return 0;
}

int weir_address_parse(const char *uri, const char *body, struct weir_address_list *list, char *nqn,
		       size_t nqn_bytes)
{
	bool rdma = !strncmp(body, "rdma://", strlen("rdma://"));
	const char *hosts, *slash;
	int error;

	if (!rdma && strncmp(body, "tcp://", strlen("tcp://")) != 0)
		return refuse(uri, "no transport is named");
	hosts = strstr(body, "://") + strlen("://");
	slash = strchr(hosts, '/');
	if ((error = take_nqn(uri, slash ? slash + 1 : "", nqn, nqn_bytes)) != 0)
		return error;
	error = take_hosts(uri, hosts, slash ? slash : hosts + strlen(hosts),
			   nqn[0] ? NVME_TCP_PORT : NVME_TCP_DISCOVERY_PORT, list);
	for (unsigned i = 0; i < WEIR_ADDRESS_MOST; i++)
		list->address[i].rdma = rdma;
	return error;
}

const char *weir_address_text(const struct weir_address *address, char text[WEIR_ADDRESS_BYTES + 16])
{
	const char *form = strchr(address->host, ':') ? "[%s]:%s" : "%s:%s";

	snprintf(text, WEIR_ADDRESS_BYTES + 16, form, address->host, address->port);
	return text;
}
