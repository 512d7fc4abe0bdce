/* SPDX-License-Identifier: BSD-3-Clause */
/* no_jpeg.c: a build without libjpeg-turbo. */
#include <stdio.h>

#include "pictures.h"

int jpeg_round(unsigned char *rgb, unsigned width, unsigned height, uint64_t *bytes, char *failure)
{
	(void)rgb;
	(void)width;
	(void)height;
	*bytes = 0;
	snprintf(failure, 256,
		 "--make needs libjpeg-turbo, which this build does not have: install libturbojpeg0-dev and "
		 "build again; a storage of raw images needs none");
	return -1;
}
