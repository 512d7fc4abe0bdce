/* SPDX-License-Identifier: BSD-3-Clause */
/* zipf.h: the host's part of the Zipf law; places.h has the lanes' and says how it works. */
#ifndef WEIR_PERF_ZIPF_H
#define WEIR_PERF_ZIPF_H

#include "perf.h"

#define PERF_ZIPF_LEAST 0.01
#define PERF_ZIPF_MOST  4.0

/** perf_zipf_prepare() - the constants for ranks 1 to @spans; 0 < @theta <= PERF_ZIPF_MOST */
void perf_zipf_prepare(struct perf_zipf *zipf, uint64_t spans, double theta);

#endif
