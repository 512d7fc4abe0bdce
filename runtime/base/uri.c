/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uri.c: storage URIs, read strictly: what is not understood is refused, by name.
 */
#include "uri.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../backend/error.h"
#include "handles.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define DIGITS  "0123456789"

enum { CHOICES_TEXT_BYTES = 256 };

static bool all_of(const char *text, const char *accepted)
{
	return *text && !text[strspn(text, accepted)];
}

/* The characters that separate the parts of a URI, and the one that begins an escape. */
static const struct {
	const char *escape;
	char letter;
} escapes[] = { { "25", '%' }, { "3F", '?' }, { "26", '&' }, { "2C", ',' } };

/* The letter that @escape, two digits after a '%', stands for; 0 if none. */
static char letter_of(const char *escape)
{
	for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++)
		if (!strncasecmp(escape, escapes[i].escape, 2))
			return escapes[i].letter;
	return '\0';
}

/* Decode the escapes of @text in place. Only those above: a name with any other '%' must not become another
 * name. */
static int decode(const struct weir_uri *uri, char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		char letter = *from == '%' ? letter_of(from + 1) : *from;

		if (!letter)
			return weir_fail(EINVAL,
					 "storage '%s': '%.3s' is no escape: write %%25 for '%%', %%3F for "
					 "'?', %%26 for "
					 "'&', %%2C for ',', and every other character as it is",
					 uri->text, from);
		from += *from == '%' ? 3 : 1;
		*to = letter;
	}
	*to = '\0';
	return 0;
}

static int split_scheme(struct weir_uri *uri)
{
	char *colon = strchr(uri->storage, ':');

	if (!colon)
		return weir_fail(EINVAL,
				 "storage '%s' has no scheme: write it as scheme:body, such as "
				 "file:/data/graph.bin or virt:4G",
				 uri->text);
	*colon = '\0';
	uri->scheme = uri->storage;
	uri->body = colon + 1;
	if (!strchr(LETTERS, uri->scheme[0]) || !all_of(uri->scheme, LETTERS DIGITS))
		return weir_fail(EINVAL,
				 "storage '%s' begins with '%s:', which is no scheme: a scheme is lower-case "
				 "letters and digits, such as file or virt",
				 uri->text, uri->scheme);
	return 0;
}

static int check_parameter(const struct weir_uri *uri, const char *key, const char *value)
{
	if (!all_of(key, LETTERS DIGITS "_"))
		return weir_fail(EINVAL,
				 "storage '%s': '%s' is no key: keys are lower-case letters, digits and '_', "
				 "as in key=value&key=value",
				 uri->text, key);
	if (!*value)
		return weir_fail(EINVAL, "storage '%s': key '%s' has no value: write %s=value", uri->text,
				 key, key);
	for (size_t i = 0; i < uri->count; i++)
		if (!strcmp(uri->parameters[i].key, key))
			return weir_fail(
				EINVAL,
				"storage '%s': key '%s' is given twice, as '%s' and as '%s': give it "
				"once",
				uri->text, key, uri->parameters[i].value, value);
	return 0;
}

static int add_parameter(struct weir_uri *uri, char *pair)
{
	char *equals = strchr(pair, '=');
	int error;

	if (!equals)
		return weir_fail(EINVAL,
				 "storage '%s': '%s' after the '?' is not of the form key=value, with '&' "
				 "between pairs",
				 uri->text, pair);
	*equals = '\0';
	error = check_parameter(uri, pair, equals + 1);
	if (!error)
		error = decode(uri, equals + 1);
	if (error)
		return error;
	if (uri->count == WEIR_URI_PARAMETERS)
		return weir_fail(EINVAL, "storage '%s': key '%s' is one too many: at most %d are accepted",
				 uri->text, pair, WEIR_URI_PARAMETERS);
	uri->parameters[uri->count].key = pair;
	uri->parameters[uri->count++].value = equals + 1;
	return 0;
}

static int split_parameters(struct weir_uri *uri)
{
	char *at = strchr(uri->body, '?');
	int error;

	if (at)
		*at++ = '\0';
	if (!*uri->body &&
	    !(at && !strcmp(uri->scheme, "virt"))) /* virt:?load=FILE is as large as the file */
		return weir_fail(EINVAL,
				 "storage '%s' names nothing after '%s:': write it as scheme:body, such as "
				 "file:/data/graph.bin or virt:4G",
				 uri->text, uri->scheme);
	error = decode(uri, uri->body);
	while (at && !error) {
		char *next = strchr(at, '&');

		if (next)
			*next++ = '\0';
		error = add_parameter(uri, at);
		at = next;
	}
	return error;
}

int weir_uri_parse(const char *text, struct weir_uri *uri)
{
	int error;

	memset(uri, 0, sizeof(*uri));
	uri->text = strdup(text);
	uri->storage = strdup(text);
	if (!uri->text || !uri->storage)
		error = weir_fail(ENOMEM, "no memory for a storage URI of %zu bytes", strlen(text));
	else
		error = split_scheme(uri);
	if (!error)
		error = split_parameters(uri);
	if (error)
		weir_uri_release(uri);
	return error;
}

void weir_uri_release(struct weir_uri *uri)
{
	free(uri->text);
	free(uri->storage);
	memset(uri, 0, sizeof(*uri));
}

const char *weir_uri_take_text(struct weir_uri *uri, const char *key)
{
	for (size_t i = 0; i < uri->count; i++) {
		if (strcmp(uri->parameters[i].key, key))
			continue;
		uri->parameters[i].used = true;
		return uri->parameters[i].value;
	}
	return NULL;
}

/* Digits only: no sign, no blanks, no other base. Returns what follows them, NULL if bad. */
static const char *read_number(const char *text, uint64_t *value)
{
	uint64_t number = 0;

	if (!strspn(text, DIGITS))
		return NULL;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
			return NULL;
	*value = number;
	return text;
}

static bool read_bytes(const char *text, uint64_t *bytes)
{
	static const char suffixes[] = "KMGT";
	const char *rest = read_number(text, bytes);
	const char *suffix;

	if (!rest)
		return false;
	if (!*rest)
		return true;
	suffix = strchr(suffixes, *rest);
	if (!suffix || rest[1])
		return false;
	return !__builtin_mul_overflow(*bytes, 1ull << (10 * (suffix - suffixes + 1)), bytes);
}

const char *weir_size_text(uint64_t bytes, char text[WEIR_SIZE_TEXT_BYTES])
{
	static const char *const suffixes[] = { "", "K", "M", "G", "T" };
	int power = 0;

	while (power < 4 && bytes && !(bytes & 1023)) {
		bytes >>= 10;
		power++;
	}
	snprintf(text, WEIR_SIZE_TEXT_BYTES, "%llu%s", (unsigned long long)bytes, suffixes[power]);
	return text;
}

int weir_uri_take_u64(struct weir_uri *uri, const char *key, uint64_t least, uint64_t most, uint64_t *value)
{
	const char *given = weir_uri_take_text(uri, key);
	const char *rest;
	uint64_t number;

	if (!given)
		return 0;
	rest = read_number(given, &number);
	if (!rest || *rest || number < least || number > most)
		return weir_fail(
			EINVAL, "storage '%s': %s=%s is not accepted: %s is a whole number from %llu to %llu",
			uri->text, key, given, key, (unsigned long long)least, (unsigned long long)most);
	*value = number;
	return 0;
}

int weir_uri_take_bytes(struct weir_uri *uri, const char *key, uint64_t least, uint64_t most, uint64_t *value)
{
	const char *given = weir_uri_take_text(uri, key);
	char least_text[WEIR_SIZE_TEXT_BYTES];
	char most_text[WEIR_SIZE_TEXT_BYTES];
	uint64_t bytes;

	if (!given)
		return 0;
	if (!read_bytes(given, &bytes) || bytes < least || bytes > most)
		return weir_fail(EINVAL,
				 "storage '%s': %s=%s is not accepted: %s is a size in bytes from %s to %s, "
				 "with K, M, G or T for powers of 1024",
				 uri->text, key, given, key, weir_size_text(least, least_text),
				 weir_size_text(most, most_text));
	*value = bytes;
	return 0;
}

/* "a, b or c"; cut short if it is long */
static void list_choices(const char *const *choices, char text[CHOICES_TEXT_BYTES])
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; choices[i]; i++) {
		const char *joint = !i ? "" : choices[i + 1] ? ", " : " or ";
		int length = snprintf(text + used, CHOICES_TEXT_BYTES - used, "%s%s", joint, choices[i]);

		if (length < 0 || used + (size_t)length >= CHOICES_TEXT_BYTES)
			return;
		used += (size_t)length;
	}
}

int weir_uri_take_choice(struct weir_uri *uri, const char *key, const char *const *choices, unsigned *value)
{
	const char *given = weir_uri_take_text(uri, key);
	char accepted[CHOICES_TEXT_BYTES];

	if (!given)
		return 0;
	for (unsigned i = 0; choices[i]; i++) {
		if (!strcmp(given, choices[i])) {
			*value = i;
			return 0;
		}
	}
	list_choices(choices, accepted);
	return weir_fail(EINVAL, "storage '%s': %s=%s is not accepted: %s is %s", uri->text, key, given, key,
			 accepted);
}

int weir_uri_finish(const struct weir_uri *uri, const char *known_keys)
{
	for (size_t i = 0; i < uri->count; i++) {
		if (uri->parameters[i].used)
			continue;
		return weir_fail(EINVAL, "storage '%s': key '%s' (given as %s=%s) is unknown: %s: knows %s",
				 uri->text, uri->parameters[i].key, uri->parameters[i].key,
				 uri->parameters[i].value, uri->scheme,
				 known_keys && *known_keys ? known_keys : "no keys");
	}
	return 0;
}

static int parse_bytes(const char *text, uint64_t *bytes)
{
	uint64_t value;

	if (!read_bytes(text, &value))
		return weir_fail(
			EINVAL,
			"'%s' is not a size: write a whole number of bytes below 2^64, with K, M, G or "
			"T for powers of 1024, such as 64M",
			text);
	*bytes = value;
	return 0;
}

int weir_parse_bytes(const char *text, uint64_t *bytes)
{
	int error = weir_given(text, "weir_parse_bytes", "text");

	if (error || (error = weir_given(bytes, "weir_parse_bytes", "bytes")) != 0)
		return error;
	return parse_bytes(text, bytes);
}
