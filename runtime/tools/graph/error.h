/* SPDX-License-Identifier: BSD-3-Clause */
/* One error sentence, written where the error is decided and carried up unchanged. */
#ifndef WEIR_TOOLS_GRAPH_ERROR_H
#define WEIR_TOOLS_GRAPH_ERROR_H

#include "graph.h"

/** struct graph_error - the sentence of the first failure */
struct graph_error {
	char text[GRAPH_ERROR_BYTES];
};

/** graph_fail() - write the sentence and return @code, so that callers can `return graph_fail(...)` */
int graph_fail(struct graph_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** graph_fail_memory() - the sentence for a failed allocation of @bytes for @what; returns -ENOMEM */
int graph_fail_memory(struct graph_error *error, uint64_t bytes, const char *what);

/** graph_error_copy() - hand the sentence to a caller's buffer; returns @code */
int graph_error_copy(const struct graph_error *error, int code, char *text, size_t text_bytes);

#endif
