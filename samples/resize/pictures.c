/* SPDX-License-Identifier: BSD-3-Clause */
#include "pictures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/device.h"
#include "resize.h"

/** struct scene - what an image shows: a sky that fades, hills, a disc, and the grain of a sensor */
struct scene {
	double sky[RESIZE_CHANNELS], ground[RESIZE_CHANNELS];
	double hills, phase;
	double disc_x, disc_y, disc_size;
};

static double draw(uint64_t number, unsigned which)
{
	return (double)(sample_scramble(number * 64 + which) >> 40) * 0x1p-24;
}

static struct scene scene_of(uint64_t number)
{
	struct scene scene = { .hills = 2 + 6 * draw(number, 0), .phase = 6.3 * draw(number, 1) };

	for (unsigned i = 0; i < RESIZE_CHANNELS; i++) {
		scene.sky[i] = 90 + 150 * draw(number, 2 + i);
		scene.ground[i] = 20 + 120 * draw(number, 5 + i);
	}
	scene.disc_x = draw(number, 8);
	scene.disc_y = draw(number, 9) / 2;
	scene.disc_size = 0.05 + 0.1 * draw(number, 10);
	return scene;
}

static unsigned char pixel(const struct scene *scene, double x, double y, unsigned channel, uint64_t random)
{
	double horizon = 0.55 + 0.1 * sin(scene->hills * x + scene->phase);
	double value =
		y < horizon ? scene->sky[channel] * (1 - y / 2) : scene->ground[channel] * (0.5 + y / 2);

	if (hypot(x - scene->disc_x, y - scene->disc_y) < scene->disc_size)
		value = 250 - 40 * channel;
	value += (double)(random >> 8 * channel & 15) - 8;
	return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void paint(struct pictures *pictures, uint64_t number)
{
	struct scene scene = scene_of(number);
	unsigned char *to = pictures->rgb;

	for (unsigned y = 0; y < pictures->height; y++)
		for (unsigned x = 0; x < pictures->width; x++, to += RESIZE_CHANNELS) {
			uint64_t random = sample_scramble(number << 32 ^ ((uint64_t)y << 16 | x));

			for (unsigned i = 0; i < RESIZE_CHANNELS; i++)
				to[i] = pixel(&scene, (double)x / pictures->width,
					      (double)y / pictures->height, i, random);
		}
}

const unsigned char *pictures_get(struct pictures *pictures, uint64_t number)
{
	uint64_t bytes = 0;

	if (pictures->number == number + 1)
		return pictures->rgb;
	if (!pictures->rgb)
		pictures->rgb = malloc((size_t)pictures->width * pictures->height * RESIZE_CHANNELS);
	if (!pictures->rgb)
		snprintf(pictures->failure, sizeof(pictures->failure), "no memory for an image");
	if (pictures->failure[0])
		return NULL;
	paint(pictures, number);
	if (pictures->jpeg &&
	    jpeg_round(pictures->rgb, pictures->width, pictures->height, &bytes, pictures->failure))
		return NULL;
	pictures->number = number + 1;
	pictures->jpeg_bytes += bytes;
	return pictures->rgb;
}

void pictures_close(struct pictures *pictures)
{
	free(pictures->rgb);
	pictures->rgb = NULL;
	pictures->number = 0;
}
