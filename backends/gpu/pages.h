/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pages.h: what backends check of the host's pages before they hand them to a driver.
 *
 * Owns: the sentences about ranges, and who may map registers of a PCI device; no state.
 */
#ifndef WEIR_BACKENDS_PAGES_H
#define WEIR_BACKENDS_PAGES_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <weir/nvme.h>

#include "../../runtime/backend/error.h"

/**
 * weir_pages_check() - 0, or -EINVAL with a sentence: [@host, @host + @bytes) is not whole pages; @device
 * and @what are its words
 */
static inline int weir_pages_check(const char *device, const char *what, const void *host, size_t bytes)
{
	if (host && bytes && !(((uintptr_t)host | bytes) % NVME_PAGE_BYTES))
		return 0;
	return weir_fail(EINVAL, "%s cannot map %s at %p: %zu bytes there are not whole pages of %d", device,
			 what, host, bytes, NVME_PAGE_BYTES);
}

/** weir_pages_has_line() - does a line of the file @path begin with @key, and its rest please @is? */
static inline bool weir_pages_has_line(const char *path, const char *key, bool (*is)(const char *rest))
{
	FILE *file = fopen(path, "re");
	char line[512];
	bool has = false;

	while (file && !has && fgets(line, sizeof(line), file))
		has = !strncmp(line, key, strlen(key)) && is(line + strlen(key));
	if (file)
		fclose(file);
	return has;
}

/* Bit 21 of CapEff: CAP_SYS_ADMIN. */
static inline bool weir_pages_is_admin(const char *rest)
{
	unsigned long long mask = 0;

	return sscanf(rest, "%llx", &mask) == 1 && (mask >> 21 & 1);
}

/** weir_pages_admin() - this process has CAP_SYS_ADMIN */
static inline bool weir_pages_admin(void)
{
	return weir_pages_has_line("/proc/self/status", "CapEff:", weir_pages_is_admin);
}

#endif
