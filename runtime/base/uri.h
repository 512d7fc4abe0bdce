/* SPDX-License-Identifier: BSD-3-Clause */
/* uri.h: storage URIs, scheme:body?key=value&key=value, read strictly. */
#ifndef WEIR_RUNTIME_URI_H
#define WEIR_RUNTIME_URI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h> /* weir_parse_bytes() */

enum { WEIR_URI_PARAMETERS = 16, WEIR_SIZE_TEXT_BYTES = 32 };

/**
 * struct weir_uri - a parsed URI; strings belong to it
 *
 * The first '?' ends the body, and '&' each value. After that the escapes %25 for '%', %3F for '?', %26 for
 * '&' and %2C for ',' are decoded in both. Any other '%' is refused, so that no name turns into another one
 * silently; every other character stands for itself.
 */
struct weir_uri {
	char *text;   /* the whole, as given, for messages */
	char *scheme; /* "virt", "file", ... */
	char *body;   /* between ':' and '?' */
	struct {
		char *key;
		char *value;
		bool used;
	} parameters[WEIR_URI_PARAMETERS];
	size_t count;
	char *storage; /* what the strings above point into */
};

/** weir_uri_parse() - -EINVAL with a sentence when it is malformed */
int weir_uri_parse(const char *text, struct weir_uri *uri);
void weir_uri_release(struct weir_uri *uri);

/*
 * Takers: 0 and *value set if the key is there and good, 0 and *value kept if it
 * is absent, -EINVAL with a sentence (key, value, what is accepted) otherwise.
 * Each marks its key used.
 */
int weir_uri_take_u64(struct weir_uri *uri, const char *key, uint64_t least, uint64_t most, uint64_t *value);
int weir_uri_take_bytes(struct weir_uri *uri, const char *key, uint64_t least, uint64_t most,
			uint64_t *value); /* K, M, G, T suffixes, powers of 1024 */
int weir_uri_take_choice(struct weir_uri *uri, const char *key, const char *const *choices,
			 unsigned *value); /* NULL-terminated words; index of the match */
const char *weir_uri_take_text(struct weir_uri *uri, const char *key); /* NULL if absent */

/** weir_size_text() - the shortest exact way to write @bytes as weir_parse_bytes() reads it; returns @text */
const char *weir_size_text(uint64_t bytes, char text[WEIR_SIZE_TEXT_BYTES]);

/** weir_uri_finish() - -EINVAL naming the first unused key and listing those the scheme knows */
int weir_uri_finish(const struct weir_uri *uri, const char *known_keys);

#endif
