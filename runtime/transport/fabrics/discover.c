/* SPDX-License-Identifier: BSD-3-Clause */
#include "discover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../backend/error.h"
#include "nvmf.h"

enum { MOST_ENTRIES = 1024, MOST_READS = 4, ENTRY_BYTES = sizeof(struct nvme_discovery_entry) };

const char *weir_fabrics_text(const char *from, unsigned bytes, char *to)
{
	unsigned length = 0;

	for (; length < bytes && from[length]; length++) /* it goes onto terminals */
		to[length] = from[length] < ' ' || from[length] > '~' ? '?' : from[length];
	while (length && to[length - 1] == ' ')
		length--;
	to[length] = '\0';
	return to;
}

static int read_log(struct nvmf *nvmf, uint64_t offset, void *to, uint32_t bytes)
{
	return nvmf_get_log(nvmf, NVME_LOG_DISCOVERY, offset, to, bytes, "Get Log Page (Discovery)");
}

/* Header, entries, and the header again. Return: 1: it changed meanwhile. */
static int read_once(struct nvmf *nvmf, struct weir_discovered *out)
{
	struct nvme_discovery_log log, later;
	int error = read_log(nvmf, 0, &log, sizeof(log));

	if (error)
		return error;
	if (log.numrec > MOST_ENTRIES)
		return weir_fail(
			EPROTO,
			"\"%s\": the discovery log says that it has %llu entries; %d are read at most",
			nvmf->uri, (unsigned long long)log.numrec, MOST_ENTRIES);
	free(out->entries);
	out->count = (uint32_t)log.numrec;
	out->generation = log.genctr;
	out->entries = calloc(out->count + 1, ENTRY_BYTES);
	if (!out->entries)
		return weir_fail(ENOMEM, "\"%s\": no memory for %u entries", nvmf->uri, out->count);
	for (uint32_t i = 0; i < out->count && !error; i++)
		error = read_log(nvmf, sizeof(log) + (uint64_t)i * ENTRY_BYTES, &out->entries[i],
				 ENTRY_BYTES);
	if (!error)
		error = read_log(nvmf, 0, &later, sizeof(later));
	return error ? error : later.genctr != log.genctr;
}

static int read_all(struct nvmf *nvmf, struct weir_discovered *out)
{
	int result = nvmf_enable(nvmf, NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16);

	if (result)
		return result;
	result = 1;
	for (unsigned i = 0; i < MOST_READS && result > 0; i++)
		result = read_once(nvmf, out);
	return result > 0 ? weir_fail(EAGAIN, "\"%s\": the discovery log changed each time that it was read",
				      nvmf->uri)
			  : result;
}

int weir_fabrics_discover(const char *what, const struct weir_address *address,
			  const struct weir_host_identity *host, uint64_t connect_ms,
			  struct weir_discovered *out)
{
	struct nvmf_keys keys = { .hosts = { .count = 1 },
				  .nqn = NVME_DISCOVERY_NQN,
				  .host = *host,
				  .connect_ms = connect_ms,
				  .mdts = NVME_PAGE_BYTES };
	struct nvmf *nvmf;
	int error;

	keys.hosts.address[0] = *address;
	*out = (struct weir_discovered){ .count = 0 };
	error = nvmf_new(what, &keys, 0, &nvmf);
	if (error)
		return error;
	error = nvmf_associate(nvmf);
	if (!error)
		error = read_all(nvmf, out);
	nvmf_free(nvmf);
	if (error) {
		free(out->entries);
		out->entries = NULL;
	}
	return error;
}
