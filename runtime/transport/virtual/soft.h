/* SPDX-License-Identifier: BSD-3-Clause */
/* soft.h: transports that are the virtual controller on host threads, over whatever medium. */
#ifndef WEIR_SOFT_H
#define WEIR_SOFT_H

#include "../medium/medium.h"
#include "../transport.h"
#include "soft_keys.h"

/** weir_soft_new() - a controller over @medium, which it owns, on an error too; 0 or a negative errno with a
 * sentence */
int weir_soft_new(const struct weir_transport_ops *ops, struct weir_medium *medium,
		  const struct weir_soft_keys *keys, const struct weir_transport_request *request,
		  struct weir_transport **out);

/** weir_volume_open() - vol: (volume/transport_vol.c) */
int weir_volume_open(struct weir_transport_request *request, struct weir_transport **out);
/** weir_volume_attach() - as of struct weir_transport_ops */
int weir_volume_attach(struct weir_transport *transport, struct weir_storage *storage);
/** weir_volume_detach() - likewise */
void weir_volume_detach(struct weir_transport *transport);

#endif
