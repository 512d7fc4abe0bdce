/* SPDX-License-Identifier: BSD-3-Clause */
/* first_address.h: names whose first address leads elsewhere; the program is linked with --wrap=getaddrinfo.
 */
#ifndef WEIR_TESTS_FIRST_ADDRESS_H
#define WEIR_TESTS_FIRST_ADDRESS_H

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>

/* A name's first address, 127.0.0.1 at that port; 0: it has the one that it has. */
static in_port_t first_port;

int __real_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **list);

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	struct addrinfo *next;
	char first[8];
	int error = __real_getaddrinfo(host, port, hints, list);

	if (error || !first_port)
		return error;
	next = *list;
	snprintf(first, sizeof(first), "%u", first_port);
	error = __real_getaddrinfo("127.0.0.1", first, hints, list);
	if (!error)
		(*list)->ai_next = next;
	return error;
}

#endif
