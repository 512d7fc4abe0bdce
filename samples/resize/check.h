/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h: every byte of every image, computed again by the host. */
#ifndef RESIZE_CHECK_H
#define RESIZE_CHECK_H

#include "../common/span_host.h"
#include "pictures.h"
#include "resize.h"

/**
 * struct check - what is compared with what
 * @from, @to: the storages
 * @args: of the kernel, for the images' sizes
 * @images: how many
 * @pictures: what the input was filled with; NULL: it was there before
 * @way: for sentences
 */
struct check {
	const struct sample_storage *from;
	const struct sample_storage *to;
	const struct resize_args *args;
	uint64_t images;
	struct pictures *pictures;
	const char *way;
};

/**
 * check_images() - -EBADMSG with a sentence if a byte is wrong
 * @check: what is compared
 * @plain: all images as they are made in plain memory, instead of @to's; NULL: @to's
 *
 * Return: 0 or a negative errno with a sentence.
 */
int check_images(const struct check *check, const unsigned char *plain, char *error);

#endif
