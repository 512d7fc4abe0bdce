/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCK_BYTES = 4096 };

/* Where pixel @x of @to lies among @from pixels, in 1/2048 of a pixel. */
static int64_t position(int64_t x, int64_t from, int64_t to)
{
	int64_t twice = (2 * x + 1) * from - to, whole;

	if (twice < 0)
		return 0;
	whole = twice / (2 * to);
	return whole * 2048 + (twice - whole * 2 * to) * 2048 / (2 * to);
}

static int64_t between(int64_t a, int64_t b, int64_t weight)
{
	return 2048 * a + (b - a) * weight;
}

static unsigned char expect(const struct resize_args *args, const unsigned char *image, unsigned x,
			    unsigned y, unsigned channel)
{
	int64_t left = position(x, args->from_width, args->to_width);
	int64_t top = position(y, args->from_height, args->to_height);
	int64_t column = left >> 11, row = top >> 11, width = args->from_width;
	int64_t right = column + 1 < width ? column + 1 : column;
	int64_t below = row + 1 < args->from_height ? row + 1 : row;
	int64_t upper = between(image[(row * width + column) * 3 + channel],
				image[(row * width + right) * 3 + channel], left & 2047);
	int64_t lower = between(image[(below * width + column) * 3 + channel],
				image[(below * width + right) * 3 + channel], left & 2047);

	return (unsigned char)((between(upper, lower, top & 2047) + (1 << 21)) >> 22);
}

static int compare(const struct check *check, uint64_t number, const unsigned char *image,
		   const unsigned char *made, char *error)
{
	const struct resize_args *args = check->args;

	for (unsigned y = 0; y < args->to_height; y++)
		for (unsigned x = 0; x < args->to_width; x++)
			for (unsigned i = 0; i < 3; i++, made++) {
				unsigned char right = expect(args, image, x, y, i);

				if (*made != right)
					return sample_fail(error, -EBADMSG,
							   "WRONG RESULT: %s, byte %u of pixel (%u, %u) of "
							   "image %llu is "
							   "%u, not %u; please report this",
							   check->way, i, x, y, (unsigned long long)number,
							   *made, right);
			}
	return 0;
}

/* The input's image @number; of one that was made here it is known what it is to be. */
static int take_image(const struct check *check, uint64_t number, uint64_t bytes, void *room,
		      const unsigned char **image, char *error)
{
	const unsigned char *made;
	int code = sample_storage_bytes(check->from, number * bytes, bytes, room, image, error);

	if (code || !check->pictures)
		return code;
	made = pictures_get(check->pictures, number);
	if (!made)
		return sample_fail(error, -ENOMEM, "%s", check->pictures->failure);
	if (memcmp(made, *image, bytes))
		return sample_fail(error, -EBADMSG,
				   "WRONG DATA: image %llu of %.700s is not what was written there; please "
				   "report this",
				   (unsigned long long)number, check->from->uri);
	return 0;
}

int check_images(const struct check *check, const unsigned char *plain, char *error)
{
	const struct resize_args *args = check->args;
	uint64_t from_bytes = (uint64_t)args->from_width * args->from_height * 3;
	uint64_t to_bytes = (uint64_t)args->to_width * args->to_height * 3;
	unsigned char *from = malloc(from_bytes + 2 * MOST_BLOCK_BYTES);
	unsigned char *to = malloc(to_bytes + 2 * MOST_BLOCK_BYTES);
	const unsigned char *image, *made = NULL;
	int code = from && to ? 0 : sample_fail(error, -ENOMEM, "no memory for an image");

	for (uint64_t number = 0; number < check->images && !code; number++) {
		code = take_image(check, number, from_bytes, from, &image, error);
		if (!code && plain)
			made = plain + number * to_bytes;
		else if (!code)
			code = sample_storage_bytes(check->to, number * to_bytes, to_bytes, to, &made, error);
		if (!code)
			code = compare(check, number, image, made, error);
	}
	free(from);
	free(to);
	return code;
}
