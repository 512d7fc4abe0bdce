/* SPDX-License-Identifier: BSD-3-Clause */
/* chap_none.c: a build without OpenSSL authenticates nobody. */
#include <string.h>

#include "chap_crypto.h"

bool weir_chap_available(void)
{
	return false;
}

u32 chap_hash_bytes(u8 hash)
{
	(void)hash;
	return 0;
}

bool chap_hmac(u8 hash, const void *key, u32 key_bytes, const struct iovec *parts, u32 count, void *out)
{
	(void)hash;
	(void)key;
	(void)key_bytes;
	(void)parts;
	(void)count;
	(void)out;
	return false;
}

bool chap_digest(u8 hash, const void *data, u32 bytes, void *out)
{
	(void)hash;
	(void)data;
	(void)bytes;
	(void)out;
	return false;
}

bool chap_equal(const void *a, const void *b, u32 bytes)
{
	return memcmp(a, b, bytes) == 0;
}

bool chap_random(void *to, u32 bytes)
{
	(void)to;
	(void)bytes;
	return false;
}

void chap_wipe(void *at, u32 bytes)
{
	memset(at, 0, bytes);
}

int chap_base64(const char *text, u32 length, u8 *out, u32 room)
{
	(void)text;
	(void)length;
	(void)out;
	(void)room;
	return -1;
}

void chap_base64_text(const u8 *from, u32 bytes, char *to)
{
	(void)from;
	(void)bytes;
	*to = '\0';
}

u32 chap_dh_bytes(u8 group)
{
	(void)group;
	return 0;
}

struct weir_chap_dh *chap_dh_new(u8 group, void *value)
{
	(void)group;
	(void)value;
	return NULL;
}

bool chap_dh_derive(struct weir_chap_dh *dh, const void *value, void *shared)
{
	(void)dh;
	(void)value;
	(void)shared;
	return false;
}

void chap_dh_free(struct weir_chap_dh *dh)
{
	(void)dh;
}
