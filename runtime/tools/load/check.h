/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h: what the storages at hand do not allow, as sentences. */
#ifndef WEIR_PERF_CHECK_H
#define WEIR_PERF_CHECK_H

#include "bench.h"

/** perf_check_storages() - 0, or -1 with a sentence; bench->info, range_bytes, unit_bytes, line_bytes are
 * there */
int perf_check_storages(const struct perf_bench *bench);

/** perf_is_blank() - a storage of this process alone that holds nothing: it may be filled */
bool perf_is_blank(const char *uri);

/** perf_on_cpu() - lanes run on the host's processor */
bool perf_on_cpu(const struct perf_bench *bench);

/** perf_in_device() - every storage's controller is on the device, and reads the device's memory or none */
bool perf_in_device(const struct perf_bench *bench);

#endif
