/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm_image: on the host, the file behind an emulated SSD: fill it, or say whether it holds what it should.
 *
 *   vm_image fill FILE SEED FIRST_BYTE BYTES     make it so, creating or lengthening the file
 *   vm_image check FILE SEED FIRST_BYTE BYTES    exit status 1 if a word differs
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../rig/kernels.h"

enum { CHUNK_WORDS = 1 << 16 };

static u64 expected[CHUNK_WORDS], found[CHUNK_WORDS];

static int give_up(const char *path, const char *what)
{
	fprintf(stderr, "vm_image: %s: %s: %s\n", path, what, strerror(errno));
	return 2;
}

/* Words [@word, @word + @count) of the file. Return: exit status. */
static int chunk(int file, const char *path, bool fill, u64 word, size_t count)
{
	size_t bytes = count * sizeof(u64);
	off_t at = (off_t)(word * sizeof(u64));

	if (fill)
		return pwrite(file, expected, bytes, at) == (ssize_t)bytes ? 0 : give_up(path, "write");
	if (pread(file, found, bytes, at) != (ssize_t)bytes)
		return give_up(path, "read");
	for (size_t i = 0; i < count; i++)
		if (found[i] != expected[i]) {
			fprintf(stderr, "vm_image: %s: word %llu is %#llx, not %#llx\n", path,
				(unsigned long long)(word + i), (unsigned long long)found[i],
				(unsigned long long)expected[i]);
			return 1;
		}
	return 0;
}

int main(int argc, char **argv)
{
	bool fill = argc > 1 && !strcmp(argv[1], "fill");
	u64 seed, word, left;
	int file, status = 0;

	if (argc != 6 || (!fill && strcmp(argv[1], "check")))
		return fprintf(stderr, "usage: vm_image fill|check FILE SEED FIRST_BYTE BYTES\n"), 2;
	file = open(argv[2], fill ? O_RDWR | O_CREAT : O_RDONLY, 0644);
	if (file < 0)
		return give_up(argv[2], "open");
	seed = strtoull(argv[3], NULL, 0);
	word = strtoull(argv[4], NULL, 0) / sizeof(u64);
	left = strtoull(argv[5], NULL, 0) / sizeof(u64);
	while (left && !status) {
		size_t count = left < CHUNK_WORDS ? (size_t)left : CHUNK_WORDS;

		for (size_t i = 0; i < count; i++)
			expected[i] = test_word(seed, word + i);
		status = chunk(file, argv[2], fill, word, count);
		word += count;
		left -= count;
	}
	close(file);
	return status;
}
