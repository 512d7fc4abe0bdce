/* SPDX-License-Identifier: BSD-3-Clause */
/* fio.h: the peer: the same load by fio, in the same run. */
#ifndef WEIR_PERF_FIO_H
#define WEIR_PERF_FIO_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct perf_fio_job - a load for fio's io_uring engine, one job
 * @offset: first byte
 * @size: bytes from there on
 * @fixed: registered files and buffers
 */
struct perf_fio_job {
	const char *path;
	uint64_t block_bytes;
	uint64_t offset;
	uint64_t size;
	uint32_t depth;
	uint32_t seconds;
	bool sequential;
	bool direct;
	bool fixed;
};

/** perf_fio() - IOPS that fio reaches; negative errno and a sentence */
int perf_fio(const struct perf_fio_job *job, double *iops);

#endif
