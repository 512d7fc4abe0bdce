/* SPDX-License-Identifier: BSD-3-Clause */
/* store_none.c: a build without libcurl has no store. */
#include <errno.h>

#include "backend/error.h"
#include "store.h"

int store_open(const char *uri, const char *who, unsigned seconds, struct store **out)
{
	(void)who;
	(void)seconds;
	*out = 0;
	return weir_fail(ENOTSUP, "--store %s: this weir-volumed was built without libcurl and OpenSSL", uri);
}

int store_take(struct store *store)
{
	(void)store;
	return -ENOTSUP;
}

void store_check(const struct store *store)
{
	(void)store;
}

void store_close(struct store *store)
{
	(void)store;
}
