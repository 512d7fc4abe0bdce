/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake_keys.c: keys of TLS in the kernel's keyring .nvme: of type "psk", their description is the
 * identity.
 */
#include <errno.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handshake.h"

enum { DESCRIPTION_BYTES = WEIR_TLS_IDENTITY_BYTES + 64, FIELDS_BEFORE = 4 };

static long keyctl(int operation, const void *second, const void *third, const void *fourth,
		   const void *fifth)
{
	long result = syscall(SYS_keyctl, operation, second, third, fourth, fifth);

	return result < 0 ? -errno : result;
}

static const void *number(int32_t serial)
{
	return (const void *)(intptr_t)serial;
}

/* A process that has it in its session may read its keys. */
static int32_t open_keyring(int32_t serial)
{
	long error = keyctl(KEYCTL_JOIN_SESSION_KEYRING, NULL, NULL, NULL, NULL);

	if (error > 0)
		error = keyctl(KEYCTL_LINK, number(serial), number(KEY_SPEC_SESSION_KEYRING), NULL, NULL);
	return error < 0 ? (int32_t)error : serial;
}

int32_t handshake_keyring(void)
{
	static int32_t keyring;
	char line[512], type[16], name[16];
	unsigned serial;
	FILE *keys;

	if (keyring > 0)
		return keyring;
	keys = fopen("/proc/keys", "r");
	keyring = -ENOKEY;
	while (keys && keyring == -ENOKEY && fgets(line, sizeof(line), keys))
		if (sscanf(line, "%x %*s %*s %*s %*s %*s %*s %15s %15s", &serial, type, name) == 3 &&
		    !strcmp(type, "keyring") && !strcmp(name, ".nvme:"))
			keyring = open_keyring((int32_t)serial);
	if (keys)
		(void)fclose(keys);
	return keyring;
}

int32_t handshake_key_add(const struct weir_tls_psk *psk)
{
	int32_t keyring = handshake_keyring();
	long serial = keyring;

	if (keyring > 0)
		serial = syscall(SYS_add_key, "psk", psk->identity, psk->key, (size_t)psk->bytes, keyring);
	return serial < 0 && keyring > 0 ? -errno : (int32_t)serial;
}

int handshake_key_read(int32_t serial, struct handshake_key *out)
{
	char text[DESCRIPTION_BYTES];
	const char *at = text;
	long bytes = keyctl(KEYCTL_DESCRIBE, number(serial), text, (void *)(sizeof(text) - 1), NULL);

	memset(out, 0, sizeof(*out));
	if (bytes < 0 || bytes >= (long)sizeof(text))
		return bytes < 0 ? (int)bytes : -E2BIG;
	text[bytes] = '\0';
	for (int i = 0; i < FIELDS_BEFORE && at; i++) { /* type;uid;gid;permissions;description */
		at = strchr(at, ';');
		at = at ? at + 1 : NULL;
	}
	if (!at || strncmp(text, "psk;", 4) != 0 || strlen(at) >= sizeof(out->psk.identity))
		return -EINVAL;
	strcpy(out->psk.identity, at);
	bytes = keyctl(KEYCTL_READ, number(serial), out->psk.key, (void *)sizeof(out->psk.key), NULL);
	if (bytes != 32 && bytes != 48)
		return bytes < 0 ? (int)bytes : -EINVAL;
	out->psk.bytes = (u8)bytes;
	out->serial = serial;
	return 0;
}

int handshake_key_find(const char *identity, struct handshake_key *out)
{
	int32_t keyring = handshake_keyring();
	long serial = keyring > 0 ? keyctl(KEYCTL_SEARCH, number(keyring), "psk", identity, NULL) : keyring;

	return serial < 0 ? (int)serial : handshake_key_read((int32_t)serial, out);
}
