/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport.h"

#include <errno.h>
#include <string.h>

#include "../backend/error.h"

static const struct weir_transport_ops *const transports[] = { &weir_transport_virt, &weir_transport_file,
							       &weir_transport_nvme, &weir_transport_nvmf,
							       &weir_transport_vol };

int weir_transport_open(struct weir_transport_request *request, struct weir_transport **out)
{
	const struct weir_uri *uri = request->uri;

	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
		if (!strcmp(uri->scheme, transports[i]->scheme))
			return transports[i]->open(request, out);
	return weir_fail(
		EINVAL,
		"storage \"%s\": no transport for \"%s:\"; known are virt:SIZE, file:PATH, nvme:ADDRESS, "
		"nvmf:tcp://HOST/NQN and vol:NAME",
		uri->text, uri->scheme);
}
