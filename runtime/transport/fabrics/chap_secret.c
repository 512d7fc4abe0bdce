/* SPDX-License-Identifier: BSD-3-Clause */
/* chap_secret.c: secrets as text, "DHHC-1:HH:BASE64:", HH being the hash that they go through. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../backend/error.h"
#include "chap_crypto.h"

enum { HEAD = 10, CRC_BYTES = 4, LEAST_BYTES = 32, BINARY = NVME_AUTH_HASH_MOST + CRC_BYTES + 4 };

static u32 crc32(const u8 *at, u32 bytes)
{
	u32 crc = ~0u;

	for (u32 i = 0; i < bytes; i++) {
		crc ^= at[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

void chap_put_crc(const u8 *key, u32 bytes, u8 *to)
{
	u32 crc = crc32(key, bytes);

	for (unsigned i = 0; i < CRC_BYTES; i++)
		to[i] = (u8)(crc >> 8 * i);
}

int weir_chap_secret_parse(const char *text, struct weir_chap_secret *out)
{
	u8 binary[BINARY], crc[CRC_BYTES];
	size_t length = strlen(text);
	unsigned transform = 0;
	int bytes;

	memset(out, 0, sizeof(*out));
	if (length <= HEAD + 1 || text[length - 1] != ':' || sscanf(text, "DHHC-1:%2u:", &transform) != 1 ||
	    text[HEAD - 1] != ':' || transform > NVME_AUTH_SHA512)
		return -EINVAL;
	bytes = chap_base64(text + HEAD, (u32)length - HEAD - 1, binary, sizeof(binary)) - CRC_BYTES;
	if (bytes != 32 && bytes != 48 && bytes != 64)
		return -EINVAL;
	chap_put_crc(binary, (u32)bytes, crc);
	if (memcmp(crc, binary + bytes, CRC_BYTES) != 0)
		return -EINVAL;
	memcpy(out->key, binary, (size_t)bytes);
	out->bytes = (u8)bytes;
	out->transform = (u8)transform;
	chap_wipe(binary, sizeof(binary));
	return 0;
}

int weir_chap_secret_text(char text[WEIR_CHAP_SECRET_TEXT])
{
	u8 binary[LEAST_BYTES + CRC_BYTES];
	int head;

	if (!weir_chap_available())
		return -ENOTSUP;
	if (!chap_random(binary, LEAST_BYTES))
		return -EIO;
	chap_put_crc(binary, LEAST_BYTES, binary + LEAST_BYTES);
	head = snprintf(text, WEIR_CHAP_SECRET_TEXT, "DHHC-1:%02u:", NVME_AUTH_SHA256);
	chap_base64_text(binary, sizeof(binary), text + head);
	strcat(text, ":");
	chap_wipe(binary, sizeof(binary));
	return 0;
}

int chap_read_line(const char *path, char *text, size_t room)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	ssize_t bytes;

	if (file < 0 || fstat(file, &status) != 0) {
		int error = errno;

		if (file >= 0)
			(void)close(file);
		return weir_fail(error, "secret file %s: %s", path, strerror(error));
	}
	if (S_ISREG(status.st_mode) && status.st_mode & (S_IRWXG | S_IRWXO)) {
		(void)close(file);
		return weir_fail(EACCES, "secret file %s can be read by others than its owner; chmod 600 it",
				 path);
	}
	bytes = read(file, text, room - 1);
	if (bytes < 0)
		bytes = weir_fail(errno, "secret file %s: %s", path, strerror(errno));
	(void)close(file);
	if (bytes < 0)
		return (int)bytes;
	text[bytes] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	return 0;
}

int weir_chap_secret_load(const char *path, struct weir_chap_secret *out)
{
	char text[2 * WEIR_CHAP_SECRET_TEXT];
	int error = chap_read_line(path, text, sizeof(text));

	if (error)
		return error;
	if (!weir_chap_available())
		return weir_fail(
			ENOTSUP,
			"secret file %s: this build has no OpenSSL and can authenticate nobody; install "
			"libssl-dev and build again",
			path);
	error = weir_chap_secret_parse(text, out);
	chap_wipe(text, sizeof(text));
	return error ? weir_fail(EINVAL,
				 "secret file %s: its first line is no secret such as DHHC-1:01:...: of 32, "
				 "48 or 64 bytes "
				 "with their checksum; weir-fabrics secret makes one",
				 path)
		     : 0;
}
