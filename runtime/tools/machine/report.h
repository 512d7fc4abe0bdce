/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h: what was found, for people (text.c) and as JSON (json.c). */
#ifndef WEIR_MACHINE_REPORT_H
#define WEIR_MACHINE_REPORT_H

#include <jansson.h>

#include "machine.h"

extern const char *const answer_words[];
extern const char *const iommu_words[];
extern const char *const place_words[];

/** text_machine(), text_lanes(), text_ssd(), text_pair() - a block each, to the standard output */
void text_machine(const struct machine *machine);
void text_lanes(const struct lanes *lanes);
void text_ssd(const struct ssd *ssd);
void text_pair(const struct pair *pair);

/** json_machine(), json_lanes(), json_ssd(), json_pair() - an object each, a new reference; keys are in
 * docs/hardware.md */
json_t *json_machine(const struct machine *machine);
json_t *json_lanes(const struct lanes *lanes);
json_t *json_ssd(const struct ssd *ssd);
json_t *json_pair(const struct pair *pair);

/** lanes_label() - "cpu", or a GPU's address */
const char *lanes_label(const struct lanes *lanes);

#endif
