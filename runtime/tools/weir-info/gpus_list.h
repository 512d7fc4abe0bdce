/* SPDX-License-Identifier: BSD-3-Clause */
/* gpus_list.h: the GPUs of the machine, for people and as JSON. */
#ifndef WEIR_INFO_GPUS_LIST_H
#define WEIR_INFO_GPUS_LIST_H

#include <jansson.h>

/** gpus_print() - to the standard output */
void gpus_print(void);

/** gpus_json() - an array; a new reference. null, having complained, if the machine does not tell */
json_t *gpus_json(void);

#endif
