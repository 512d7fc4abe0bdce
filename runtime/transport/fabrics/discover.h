/* SPDX-License-Identifier: BSD-3-Clause */
/* discover.h: what a host on a network offers, asked without opening a storage. */
#ifndef WEIR_FABRICS_DISCOVER_H
#define WEIR_FABRICS_DISCOVER_H

#include <stdint.h>

#include <weir/nvme_fabrics.h>

#include "address.h"
#include "identity.h"

/** struct weir_discovered - a discovery log page: @count entries as the controller gave them; free(@entries)
 */
struct weir_discovered {
	uint64_t generation;
	uint32_t count;
	struct nvme_discovery_entry *entries;
};

/**
 * weir_fabrics_discover() - connect to the discovery controller of @address, and read its log
 * @what: for sentences: what the user wrote
 * @connect_ms: what connecting and each command may take
 *
 * Base 2.0, section 5.16.1.23. The log is read again where it changes meanwhile.
 *
 * Return: 0, or a negative errno with a sentence.
 */
int weir_fabrics_discover(const char *what, const struct weir_address *address,
			  const struct weir_host_identity *host, uint64_t connect_ms,
			  struct weir_discovered *out);

/** struct weir_path_report - a host of a storage; @error: 0, or why it cannot be used, as @sentence says;
 * @state: enum NVME_ANA_ */
struct weir_path_report {
	struct weir_address address;
	uint32_t state;
	int error;
	char sentence[512];
};

/**
 * weir_fabrics_paths() - connect to each host of an nvmf: URI, and ask for the ANA state of its namespace
 * @reports: out; @count of them
 *
 * Without nsid= in the URI it is the state of the best group. Return: 0, or a negative errno with a sentence:
 * the URI is not accepted.
 */
int weir_fabrics_paths(const char *text, struct weir_path_report reports[WEIR_ADDRESS_MOST], unsigned *count);
/** weir_ana_text() - of an ANA state, as weir-target's --ana has it; "not known" or "lost" of others */
const char *weir_ana_text(uint32_t state);

/** weir_fabrics_text() - a field padded with zeros or blanks, as printable text; returns @to, of @bytes + 1
 */
const char *weir_fabrics_text(const char *from, unsigned bytes, char *to);

#endif
