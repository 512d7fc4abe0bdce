/* SPDX-License-Identifier: BSD-3-Clause */
/* uri_fuzz.c: storage URIs; every refusal has a sentence, and what is taken lies within its bounds. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/uri.h"

#include "fuzz.h"

static void take(struct weir_uri *uri)
{
	static const char *const choices[] = { "auto", "on", "off", NULL };
	uint64_t number = 7, size = 4096;
	unsigned choice = 1;
	int error = weir_uri_take_u64(uri, "threads", 1, 64, &number);

	fuzz_must(error == -EINVAL || (error == 0 && number >= 1 && number <= 64));
	error = weir_uri_take_bytes(uri, "block", 512, 4096, &size);
	fuzz_must(error == -EINVAL || (error == 0 && size >= 512 && size <= 4096));
	error = weir_uri_take_choice(uri, "direct", choices, &choice);
	fuzz_must(error == -EINVAL || (error == 0 && choice < 3));
	(void)weir_uri_take_text(uri, "fault");
	error = weir_uri_finish(uri, "threads, block, direct, fault");
	fuzz_must(error == 0 || (error == -EINVAL && weir_last_error()[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char text[513];
	struct weir_uri uri;
	size_t length = bytes < sizeof(text) - 1 ? bytes : sizeof(text) - 1;
	int error;

	memcpy(text, data, length);
	text[length] = '\0';
	error = weir_uri_parse(text, &uri);
	fuzz_must(error == 0 || weir_last_error()[0]);
	if (error)
		return 0;
	take(&uri);
	weir_uri_release(&uri);
	return 0;
}
