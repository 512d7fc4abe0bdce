/* SPDX-License-Identifier: BSD-3-Clause */
/* jpeg.c: by libjpeg-turbo. */
#include <stdio.h>
#include <turbojpeg.h>

#include "pictures.h"

static int fail(tjhandle handle, const char *what, char *failure)
{
	snprintf(failure, 256, "%s: %.180s", what, tjGetErrorStr2(handle));
	return -1;
}

static int encode(const unsigned char *rgb, unsigned width, unsigned height, unsigned char **file,
		  unsigned long *bytes, char *failure)
{
	tjhandle handle = tjInitCompress();
	int code = 0;

	if (!handle || tjCompress2(handle, rgb, (int)width, 0, (int)height, TJPF_RGB, file, bytes, TJSAMP_420,
				   PICTURES_QUALITY, TJFLAG_ACCURATEDCT))
		code = fail(handle, "an image cannot be encoded to JPEG", failure);
	if (handle)
		tjDestroy(handle);
	return code;
}

static int decode(unsigned char *rgb, unsigned width, unsigned height, const unsigned char *file,
		  unsigned long bytes, char *failure)
{
	tjhandle handle = tjInitDecompress();
	int code = 0;

	if (!handle ||
	    tjDecompress2(handle, file, bytes, rgb, (int)width, 0, (int)height, TJPF_RGB, TJFLAG_ACCURATEDCT))
		code = fail(handle, "a JPEG image cannot be decoded", failure);
	if (handle)
		tjDestroy(handle);
	return code;
}

int jpeg_round(unsigned char *rgb, unsigned width, unsigned height, uint64_t *bytes, char *failure)
{
	unsigned char *file = NULL;
	unsigned long length = 0;
	int code = encode(rgb, width, height, &file, &length, failure);

	if (!code)
		code = decode(rgb, width, height, file, length, failure);
	tjFree(file);
	*bytes = length;
	return code;
}
