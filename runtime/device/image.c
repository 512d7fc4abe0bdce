/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels whose code is an image: a list, the latest first. */
#include <pthread.h>
#include <string.h>

#include "../backend/backend.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const struct weir_image *images;

void weir_image_register(struct weir_image *image)
{
	if (!image)
		return;
	pthread_mutex_lock(&mutex);
	image->next = images;
	images = image;
	pthread_mutex_unlock(&mutex);
}

const struct weir_image *weir_image_next(const char *backend, const struct weir_image *after)
{
	const struct weir_image *image;

	pthread_mutex_lock(&mutex);
	image = after ? after->next : images;
	while (image && strcmp(image->backend, backend))
		image = image->next;
	pthread_mutex_unlock(&mutex);
	return image;
}

const struct weir_image *weir_image_find(const char *backend, const char *kernel)
{
	const struct weir_image *image = weir_image_next(backend, NULL);

	while (image && strcmp(image->kernel, kernel))
		image = weir_image_next(backend, image);
	return image;
}
