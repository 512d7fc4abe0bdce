/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls_key.c: pre-shared keys of TLS, from their text to what TLS gets.
 *
 * Owns: the PSK interchange format, and the derivation of a retained PSK, of the PSK digest and of the TLS
 * PSK by HKDF (RFC 5869) and HKDF-Expand-Label (RFC 8446, section 7.1). NVMe/TCP Transport 1.1,
 * sections 3.6.1.3 to 3.6.1.5.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../backend/error.h"
#include "chap_crypto.h"
#include "tls.h"

#define HEAD "NVMeTLSkey-1:"

enum {
	HEAD_BYTES = sizeof(HEAD) - 1 + 3, /* with the hash and its colon */
	CRC_BYTES = 4,
	BINARY = WEIR_TLS_KEY_BYTES + CRC_BYTES + 4,
	DIGEST_TEXT = (WEIR_TLS_KEY_BYTES + 2) / 3 * 4 + 1,
	LABEL_MOST = 2 + 1 + 32 + 1 + 255 + 1,
};

int weir_tls_key_parse(const char *text, struct weir_tls_key *out)
{
	u8 binary[BINARY], crc[CRC_BYTES];
	size_t length = strlen(text);
	unsigned transform = 0;
	int bytes;

	memset(out, 0, sizeof(*out));
	if (length <= HEAD_BYTES + 1 || text[length - 1] != ':' || text[HEAD_BYTES - 1] != ':' ||
	    sscanf(text, HEAD "%2u:", &transform) != 1 || transform > NVME_AUTH_SHA384)
		return -EINVAL;
	bytes = chap_base64(text + HEAD_BYTES, (u32)length - HEAD_BYTES - 1, binary, sizeof(binary)) -
		CRC_BYTES;
	if ((bytes != 32 && bytes != 48) || (transform && (u32)bytes != chap_hash_bytes((u8)transform)))
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

int weir_tls_key_load(const char *path, struct weir_tls_key *out)
{
	char text[2 * WEIR_TLS_KEY_TEXT];
	int error = chap_read_line(path, text, sizeof(text));

	if (error)
		return error;
	if (!weir_chap_available())
		return weir_fail(
			ENOTSUP,
			"key file %s: this build has no OpenSSL and encrypts nothing; install libssl-dev "
			"and build again",
			path);
	error = weir_tls_key_parse(text, out);
	chap_wipe(text, sizeof(text));
	return error ? weir_fail(EINVAL,
				 "key file %s: its first line is no key such as NVMeTLSkey-1:01:...: of 32 "
				 "or 48 "
				 "bytes with their checksum; weir-fabrics psk makes one",
				 path)
		     : 0;
}

int weir_tls_key_text(char text[WEIR_TLS_KEY_TEXT])
{
	u8 binary[32 + CRC_BYTES];
	int head;

	if (!weir_chap_available())
		return -ENOTSUP;
	if (!chap_random(binary, 32))
		return -EIO;
	chap_put_crc(binary, 32, binary + 32);
	head = snprintf(text, WEIR_TLS_KEY_TEXT, HEAD "%02u:", NVME_AUTH_SHA256);
	chap_base64_text(binary, sizeof(binary), text + head);
	strcat(text, ":");
	chap_wipe(binary, sizeof(binary));
	return 0;
}

/* HKDF-Extract without salt, then HKDF-Expand-Label to as many bytes as the hash has. */
static bool expand(u8 hash, const u8 *input, u32 bytes, const char *label, const char *context, u8 *out)
{
	static const u8 zeros[NVME_AUTH_HASH_MOST];
	u8 prk[NVME_AUTH_HASH_MOST], info[LABEL_MOST];
	u32 length = chap_hash_bytes(hash);
	size_t context_bytes = strlen(context);
	int used;
	bool good;

	if (!length || context_bytes > 255)
		return false;
	info[0] = (u8)(length >> 8);
	info[1] = (u8)length;
	used = snprintf((char *)info + 3, LABEL_MOST - 3, "tls13 %s", label);
	info[2] = (u8)used;
	info[3 + used] = (u8)context_bytes;
	memcpy(info + 4 + used, context, context_bytes);
	info[4 + (size_t)used + context_bytes] = 1; /* the first block of HKDF-Expand, which is all */
	good = chap_hmac(hash, zeros, length, &(struct iovec){ (void *)(uintptr_t)input, bytes }, 1, prk) &&
	       chap_hmac(hash, prk, length, &(struct iovec){ info, 5 + (size_t)used + context_bytes }, 1,
			 out);
	chap_wipe(prk, sizeof(prk));
	return good;
}

static bool digest_text(u8 hash, const u8 *retained, u32 bytes, const char *hostnqn, const char *subnqn,
			char *text)
{
	static const char tail[] = " NVMe-over-Fabrics";
	u8 digest[NVME_AUTH_HASH_MOST];
	struct iovec parts[] = { { (void *)(uintptr_t)hostnqn, strlen(hostnqn) },
				 { (void *)(uintptr_t) " ", 1 },
				 { (void *)(uintptr_t)subnqn, strlen(subnqn) },
				 { (void *)(uintptr_t)tail, sizeof(tail) - 1 } };

	if (!chap_hmac(hash, retained, bytes, parts, 4, digest))
		return false;
	chap_base64_text(digest, chap_hash_bytes(hash), text);
	return true;
}

bool weir_tls_derive(const struct weir_tls_key *key, const char *hostnqn, const char *subnqn,
		     struct weir_tls_psk *out)
{
	u8 hash = key->bytes == 48 ? NVME_AUTH_SHA384 : NVME_AUTH_SHA256, retained[NVME_AUTH_HASH_MOST];
	char digest[DIGEST_TEXT], context[DIGEST_TEXT + 8];
	bool good = true;

	memset(out, 0, sizeof(*out));
	memcpy(retained, key->key, key->bytes);
	if (key->transform)
		good = expand(hash, key->key, key->bytes, "HostNQN", hostnqn, retained);
	good = good && digest_text(hash, retained, key->bytes, hostnqn, subnqn, digest);
	if (good) {
		snprintf(context, sizeof(context), "%02u %s", hash, digest);
		snprintf(out->identity, sizeof(out->identity), "NVMe1R%02u %s %s %s", hash, hostnqn, subnqn,
			 digest);
		out->bytes = key->bytes;
		good = expand(hash, retained, key->bytes, "nvme-tls-psk", context, out->key);
	}
	chap_wipe(retained, sizeof(retained));
	return good;
}

bool weir_tls_names(const char *identity, char hostnqn[NVME_NQN_BYTES], char subnqn[NVME_NQN_BYTES])
{
	return sscanf(identity, "NVMe1R%*2u %223s %223s ", hostnqn, subnqn) == 2;
}
