/* SPDX-License-Identifier: BSD-3-Clause */
/* address.h: hosts and the subsystem that the body of an nvmf: URI names. */
#ifndef WEIR_FABRICS_ADDRESS_H
#define WEIR_FABRICS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

enum { WEIR_ADDRESS_BYTES = 256, WEIR_ADDRESS_PORT_BYTES = 8, WEIR_ADDRESS_MOST = 8 };

/** struct weir_address - @host: a name or an address, without brackets; @port: digits; @rdma: by RDMA, not
 * TCP */
struct weir_address {
	bool rdma;
	char host[WEIR_ADDRESS_BYTES];
	char port[WEIR_ADDRESS_PORT_BYTES];
};

/** struct weir_address_list - in the order given */
struct weir_address_list {
	unsigned count;
	struct weir_address address[WEIR_ADDRESS_MOST];
};

/**
 * weir_address_parse() - read "tcp://HOST[:PORT][,HOST[:PORT]...]/NQN", or the same of "rdma://"
 * @uri: the whole, for sentences
 * @body: what follows "nvmf:"
 * @list: out; a host without a port gets 4420, or 8009 where no NQN follows
 * @nqn: out; "" where none follows
 * @nqn_bytes: room for it
 *
 * An IPv6 address stands in brackets. Return: 0, or -EINVAL or -ENOTSUP with a sentence.
 */
int weir_address_parse(const char *uri, const char *body, struct weir_address_list *list, char *nqn,
		       size_t nqn_bytes);

/**
 * weir_address_is_port() - the first @length characters of @text are digits, of a number from @least to
 * 65535: of a larger one the system would take the lowest 16 bits
 */
bool weir_address_is_port(const char *text, size_t length, int least);

/** weir_address_text() - "HOST:PORT", brackets around an IPv6 address; returns @text */
const char *weir_address_text(const struct weir_address *address, char text[WEIR_ADDRESS_BYTES + 16]);

#endif
