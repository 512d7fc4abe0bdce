/* SPDX-License-Identifier: BSD-3-Clause */
/* chap_openssl.c: hashes, random numbers and Diffie-Hellman of OpenSSL 3. */
#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include "chap_crypto.h"

/** struct weir_chap_dh - a key pair; @bytes: of values of its group */
struct weir_chap_dh {
	EVP_PKEY *pair;
	u8 group;
	u32 bytes;
};

static const char *const hash_names[] = { NULL, "SHA256", "SHA384", "SHA512" };
static const char *const group_names[] = { NULL,        "ffdhe2048", "ffdhe3072",
					   "ffdhe4096", "ffdhe6144", "ffdhe8192" };
static const u16 group_bytes[] = { 0, 256, 384, 512, 768, 1024 };

bool weir_chap_available(void)
{
	return true;
}

u32 chap_hash_bytes(u8 hash)
{
	static const u8 bytes[] = { 0, 32, 48, 64 };

	return hash < sizeof(bytes) ? bytes[hash] : 0;
}

bool chap_hmac(u8 hash, const void *key, u32 key_bytes, const struct iovec *parts, u32 count, void *out)
{
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *context = mac ? EVP_MAC_CTX_new(mac) : NULL;
	OSSL_PARAM parameters[2];
	char name[16];
	size_t bytes = 0;
	bool good;

	strcpy(name, hash_names[hash]);
	parameters[0] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0);
	parameters[1] = OSSL_PARAM_construct_end();
	good = context && EVP_MAC_init(context, key, key_bytes, parameters);
	for (u32 i = 0; i < count && good; i++)
		good = EVP_MAC_update(context, parts[i].iov_base, parts[i].iov_len);
	good = good && EVP_MAC_final(context, out, &bytes, chap_hash_bytes(hash)) &&
	       bytes == chap_hash_bytes(hash);
	EVP_MAC_CTX_free(context);
	EVP_MAC_free(mac);
	return good;
}

bool chap_digest(u8 hash, const void *data, u32 bytes, void *out)
{
	return EVP_Q_digest(NULL, hash_names[hash], NULL, data, bytes, out, NULL);
}

bool chap_equal(const void *a, const void *b, u32 bytes)
{
	return CRYPTO_memcmp(a, b, bytes) == 0;
}

bool chap_random(void *to, u32 bytes)
{
	return RAND_bytes(to, (int)bytes) == 1;
}

void chap_wipe(void *at, u32 bytes)
{
	OPENSSL_cleanse(at, bytes);
}

int chap_base64(const char *text, u32 length, u8 *out, u32 room)
{
	int bytes;

	if (!length || length % 4 || length / 4 * 3 > room)
		return -1;
	bytes = EVP_DecodeBlock(out, (const unsigned char *)text, (int)length);
	if (bytes < 0)
		return -1;
	/* It counts padding as bytes. */
	return bytes - (text[length - 1] == '=') - (text[length - 2] == '=');
}

void chap_base64_text(const u8 *from, u32 bytes, char *to)
{
	EVP_EncodeBlock((unsigned char *)to, from, (int)bytes);
}

u32 chap_dh_bytes(u8 group)
{
	return group <= NVME_AUTH_DH_8192 ? group_bytes[group] : 0;
}

static bool public_value(EVP_PKEY *pair, u32 bytes, u8 *value)
{
	BIGNUM *number = NULL;
	bool good = EVP_PKEY_get_bn_param(pair, OSSL_PKEY_PARAM_PUB_KEY, &number) &&
		    BN_bn2binpad(number, value, (int)bytes) == (int)bytes;

	BN_free(number);
	return good;
}

static EVP_PKEY *make_pair(u8 group)
{
	EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "DH", NULL);
	EVP_PKEY *pair = NULL;
	OSSL_PARAM parameters[2];
	char name[16];

	strcpy(name, group_names[group]);
	parameters[0] = OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, name, 0);
	parameters[1] = OSSL_PARAM_construct_end();
	if (!context || EVP_PKEY_keygen_init(context) <= 0 ||
	    EVP_PKEY_CTX_set_params(context, parameters) <= 0 || EVP_PKEY_generate(context, &pair) <= 0)
		pair = NULL;
	EVP_PKEY_CTX_free(context);
	return pair;
}

struct weir_chap_dh *chap_dh_new(u8 group, void *value)
{
	struct weir_chap_dh *dh = chap_dh_bytes(group) ? calloc(1, sizeof(*dh)) : NULL;

	if (!dh)
		return NULL;
	dh->group = group;
	dh->bytes = chap_dh_bytes(group);
	dh->pair = make_pair(group);
	if (dh->pair && public_value(dh->pair, dh->bytes, value))
		return dh;
	chap_dh_free(dh);
	return NULL;
}

static EVP_PKEY *peer_of(const struct weir_chap_dh *dh, const void *value)
{
	EVP_PKEY *peer = EVP_PKEY_new();

	if (peer && EVP_PKEY_copy_parameters(peer, dh->pair) > 0 &&
	    EVP_PKEY_set1_encoded_public_key(peer, value, dh->bytes) > 0)
		return peer;
	EVP_PKEY_free(peer);
	return NULL;
}

bool chap_dh_derive(struct weir_chap_dh *dh, const void *value, void *shared)
{
	EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, dh->pair, NULL);
	EVP_PKEY *peer = peer_of(dh, value);
	size_t bytes = dh->bytes;
	unsigned pad = 1;
	OSSL_PARAM parameters[] = { OSSL_PARAM_construct_uint(OSSL_EXCHANGE_PARAM_PAD, &pad),
				    OSSL_PARAM_construct_end() };
	bool good = context && peer && EVP_PKEY_derive_init_ex(context, parameters) > 0 &&
		    EVP_PKEY_derive_set_peer(context, peer) > 0 &&
		    EVP_PKEY_derive(context, shared, &bytes) > 0 && bytes == dh->bytes;

	EVP_PKEY_free(peer);
	EVP_PKEY_CTX_free(context);
	return good;
}

void chap_dh_free(struct weir_chap_dh *dh)
{
	if (!dh)
		return;
	EVP_PKEY_free(dh->pair);
	free(dh);
}
