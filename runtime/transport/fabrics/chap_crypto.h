/* SPDX-License-Identifier: BSD-3-Clause */
/* chap_crypto.h: what chap.c needs of a library of cryptography; chap_openssl.c, or chap_none.c without one.
 */
#ifndef WEIR_FABRICS_CHAP_CRYPTO_H
#define WEIR_FABRICS_CHAP_CRYPTO_H

#include <sys/uio.h>

#include "chap.h"

enum { CHAP_NOTHING = 0xff };

/** chap_hash_bytes() - of a hash NVME_AUTH_SHA...; 0: there is none of this number */
u32 chap_hash_bytes(u8 hash);
/** chap_hmac() - HMAC of @parts, one behind the other; false: it cannot be had */
bool chap_hmac(u8 hash, const void *key, u32 key_bytes, const struct iovec *parts, u32 count, void *out);
/** chap_digest() - hash of @bytes */
bool chap_digest(u8 hash, const void *data, u32 bytes, void *out);
/** chap_equal() - compare in a time that does not depend on where they differ */
bool chap_equal(const void *a, const void *b, u32 bytes);
/** chap_random() - fill with random bytes that nobody can guess */
bool chap_random(void *to, u32 bytes);
/** chap_wipe() - overwrite a secret */
void chap_wipe(void *at, u32 bytes);
/** chap_base64() - decode @text, whole groups of 4; bytes written, -1: it is none */
int chap_base64(const char *text, u32 length, u8 *out, u32 room);
/** chap_base64_text() - encode; @to has room for 4 characters per 3 bytes, and a terminator */
void chap_base64_text(const u8 *from, u32 bytes, char *to);

/* chap_secret.c */

/** chap_put_crc() - the checksum of a key's text: CRC-32 of @key, 4 bytes, into @to */
void chap_put_crc(const u8 *key, u32 bytes, u8 *to);
/** chap_read_line() - the first line of a file that its owner alone can read; 0 or a negative errno with a
 * sentence */
int chap_read_line(const char *path, char *text, size_t room);

/* chap_openssl.c again */

/** chap_dh_bytes() - length of values of a group NVME_AUTH_DH_...; 0: there is none of this number, or none
 * needed */
u32 chap_dh_bytes(u8 group);
/** chap_dh_new() - a key pair of @group; its public value into @value; NULL: it cannot be had */
struct weir_chap_dh *chap_dh_new(u8 group, void *value);
/** chap_dh_derive() - what both get, chap_dh_bytes() long, from the other's public value */
bool chap_dh_derive(struct weir_chap_dh *dh, const void *value, void *shared);
void chap_dh_free(struct weir_chap_dh *dh);

#endif
