/* SPDX-License-Identifier: BSD-3-Clause */
/* tool.h: what weir-volume prints of the daemon's answers. */
#ifndef WEIR_VOLUME_TOOL_H
#define WEIR_VOLUME_TOOL_H

#include <jansson.h>

void print_volumes(json_t *result);
void print_volume(json_t *result);
void print_engines(json_t *result);
void print_status(json_t *result);

#endif
