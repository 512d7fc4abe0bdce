/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz.h: bytes of a fuzzer's input, taken one after the other. */
#ifndef WEIR_TESTS_FUZZ_H
#define WEIR_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** LLVMFuzzerTestOneInput() - try one input; what is wrong ends the program */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/** struct fuzz - what is left of the input */
struct fuzz {
	const uint8_t *data;
	size_t bytes;
};

/** fuzz_take() - the next @bytes, zeros behind the end. Return: false if there were fewer. */
static inline bool fuzz_take(struct fuzz *fuzz, void *to, size_t bytes)
{
	size_t there = fuzz->bytes < bytes ? fuzz->bytes : bytes;

	memset(to, 0, bytes);
	if (there) {
		memcpy(to, fuzz->data, there);
		fuzz->data += there;
	}
	fuzz->bytes -= there;
	return there == bytes;
}

/** fuzz_must() - end the program unless @good, saying what was wrong */
#define fuzz_must(good)                                                                                      \
	do {                                                                                                 \
		if (!(good)) {                                                                               \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #good);                   \
			abort();                                                                             \
		}                                                                                            \
	} while (0)

#endif
