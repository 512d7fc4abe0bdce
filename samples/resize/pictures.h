/* SPDX-License-Identifier: BSD-3-Clause */
/* pictures.h: images to resize, made up; as they are, or after a way through JPEG files. */
#ifndef RESIZE_PICTURES_H
#define RESIZE_PICTURES_H

#include <stdbool.h>
#include <stdint.h>

enum { PICTURES_QUALITY = 90 };

/**
 * struct pictures - a row of images
 * @width, @height: of each
 * @jpeg: each is encoded to JPEG and decoded again
 * @rgb: the image that was made last: its rows, three bytes a pixel
 * @number: which that is, plus 1; 0: none yet
 * @jpeg_bytes: length of all that was encoded so far
 * @failure: "", or why an image could not be made
 */
struct pictures {
	unsigned width;
	unsigned height;
	bool jpeg;
	unsigned char *rgb;
	uint64_t number;
	uint64_t jpeg_bytes;
	char failure[256];
};

/** pictures_get() - image @number; NULL with @failure if it cannot be made */
const unsigned char *pictures_get(struct pictures *pictures, uint64_t number);

/** pictures_close() - free what it has; fine for one that is all zeros, too */
void pictures_close(struct pictures *pictures);

/**
 * jpeg_round() - encode an image to a JPEG file in memory, and decode that over it
 * @rgb: @width x @height pixels of three bytes
 * @bytes: receives the file's length
 * @failure: 256 bytes; receives a sentence
 *
 * Return: 0, or -1 with a sentence; of a build without libjpeg-turbo always.
 */
int jpeg_round(unsigned char *rgb, unsigned width, unsigned height, uint64_t *bytes, char *failure);

#endif
