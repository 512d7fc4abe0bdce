/* SPDX-License-Identifier: BSD-3-Clause */
#include "identity.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../backend/error.h"

enum { PATH_BYTES = 512, TEXT_BYTES = 512 };

int weir_host_id_parse(const char *text, uint8_t id[16])
{
	unsigned digits = 0;

	for (; *text; text++) {
		char digit[2] = { *text, '\0' };

		if (*text == '-' && digits % 2 == 0)
			continue;
		if (!isxdigit((unsigned char)*text) || digits == 32)
			return -EINVAL;
		id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | strtoul(digit, NULL, 16));
		digits++;
	}
	return digits == 32 ? 0 : -EINVAL;
}

const char *weir_host_id_text(const uint8_t id[16], char text[WEIR_HOST_ID_TEXT])
{
	size_t used = 0;

	for (unsigned i = 0; i < 16; i++)
		used += (size_t)snprintf(text + used, WEIR_HOST_ID_TEXT - used, "%s%02x",
					 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
	return text;
}

size_t weir_host_identity_path(char *path, size_t bytes)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int length = 0;

	if (config && *config == '/')
		length = snprintf(path, bytes, "%s/weir/host", config);
	else if (home && *home == '/')
		length = snprintf(path, bytes, "%s/.config/weir/host", home);
	return length > 0 && (size_t)length < bytes ? (size_t)length : 0;
}

/* A random UUID (version 4), and the NQN that names it. */
static int make(struct weir_host_identity *out)
{
	char text[WEIR_HOST_ID_TEXT];

	if (getrandom(out->id, sizeof(out->id), 0) != sizeof(out->id))
		return weir_fail(errno, "no random numbers for a host identifier: %s", strerror(errno));
	out->id[6] = (uint8_t)((out->id[6] & 0x0f) | 0x40);
	out->id[8] = (uint8_t)((out->id[8] & 0x3f) | 0x80);
	snprintf(out->nqn, sizeof(out->nqn), "%s%s", NVME_NQN_UUID_PREFIX, weir_host_id_text(out->id, text));
	return 0;
}

static int parse(const char *path, const char *text, struct weir_host_identity *out)
{
	char nqn[NVME_NQN_BYTES], id[WEIR_HOST_ID_TEXT + 4];

	if (sscanf(text, "hostnqn %223s hostid %40s", nqn, id) != 2 || strncmp(nqn, "nqn.", 4) != 0 ||
	    weir_host_id_parse(id, out->id) != 0)
		return weir_fail(EINVAL,
				 "file %s does not name this host: its two lines are \"hostnqn NQN\" and "
				 "\"hostid UUID\"; correct it, "
				 "or remove it, and a new one is made",
				 path);
	memcpy(out->nqn, nqn, sizeof(out->nqn));
	return 0;
}

/* Return: 1: there is no such file. */
static int load(const char *path, struct weir_host_identity *out)
{
	char text[TEXT_BYTES];
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
	int error = errno;

	if (file >= 0)
		(void)close(file);
	if (length < 0)
		return error == ENOENT || error == ENOTDIR
			       ? 1
			       : weir_fail(error, "cannot read %s: %s", path, strerror(error));
	text[length] = '\0';
	return parse(path, text, out);
}

static void make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0755);
		*slash = '/';
	}
}

/* Whole or not at all, and never over another process's: whoever comes second takes the first one's. */
static void save(const char *path, const struct weir_host_identity *identity)
{
	char begun[PATH_BYTES + 32], text[TEXT_BYTES], id[WEIR_HOST_ID_TEXT];
	int length = snprintf(text, sizeof(text), "hostnqn %s\nhostid %s\n", identity->nqn,
			      weir_host_id_text(identity->id, id));
	int file;
	bool good;

	snprintf(begun, sizeof(begun), "%s", path);
	make_folders(begun);
	snprintf(begun, sizeof(begun), "%s.%d", path, (int)getpid());
	file = open(begun, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (file < 0)
		return;
	good = write(file, text, (size_t)length) == length;
	if (close(file) == 0 && good)
		(void)link(begun, path);
	(void)unlink(begun);
}

int weir_host_identity(struct weir_host_identity *out)
{
	char path[PATH_BYTES];
	bool location = weir_host_identity_path(path, sizeof(path)) != 0;
	int result;

	memset(out, 0, sizeof(*out));
	result = location ? load(path, out) : 1;
	if (result <= 0)
		return result;
	result = make(out);
	if (!result && location) {
		struct weir_host_identity kept = { .nqn = "" };

		save(path, out);
		if (load(path, &kept) == 0)
			*out = kept;
	}
	return result;
}
