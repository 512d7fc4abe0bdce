/* SPDX-License-Identifier: BSD-3-Clause */
/* hurry.h: lanes that have less time for a storage from here on. */
#ifndef WEIR_TESTS_HURRY_H
#define WEIR_TESTS_HURRY_H

#include <stdint.h>

#include <weir/abi.h>
#include <weir/weir.h>

/**
 * test_hurry() - from here on lanes wait no longer than @timeout_us for storage @member of @array
 *
 * So that what goes before has more time: a limit that a test waits for, each request has that a busy machine
 * is late with.
 */
static inline int test_hurry(struct weir_context *context, const struct weir_array *array, uint32_t member,
			     uint64_t timeout_us)
{
	uint64_t at = array->extent.disks + member * sizeof(struct weir_disk);
	struct weir_disk disk;
	int error = weir_copy_from_device(context, &disk, at, sizeof(disk));

	disk.timeout_ns = timeout_us * 1000;
	return error ? error : weir_copy_to_device(context, at, &disk, sizeof(disk));
}

#endif
