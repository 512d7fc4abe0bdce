/* SPDX-License-Identifier: BSD-3-Clause */
/* judge.h: what an OpenCL device says of itself, and whether that is enough. Asks no device anything. */
#ifndef WEIR_OPENCL_JUDGE_H
#define WEIR_OPENCL_JUDGE_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <stdbool.h>
#include <stddef.h>

/**
 * struct opencl_record - a device's own words; 0 for what it does not say
 * @version: of OpenCL, major * 10 + minor
 * @type: CL_DEVICE_TYPE_
 * @available: it can be used
 * @compiler: it takes source
 * @little_endian: as the host
 * @address_bits: of a pointer in global memory
 * @svm: CL_DEVICE_SVM_
 * @atomics: CL_DEVICE_ATOMIC_, as CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES
 * @order_acq_rel: __opencl_c_atomic_order_acq_rel, as its compiler has it
 * @scope_device: __opencl_c_atomic_scope_device
 * @scope_all_devices: __opencl_c_atomic_scope_all_devices
 * @int64_atomics: cl_khr_int64_base_atomics and cl_khr_int64_extended_atomics
 * @clock: port/opencl.h knows one, or the options of its user tell one
 */
struct opencl_record {
	unsigned version;
	cl_device_type type;
	bool available;
	bool compiler;
	bool little_endian;
	cl_uint address_bits;
	cl_device_svm_capabilities svm;
	cl_device_atomic_capabilities atomics;
	bool order_acq_rel;
	bool scope_device;
	bool scope_all_devices;
	bool int64_atomics;
	bool clock;
};

/**
 * opencl_lacks() - why a device cannot be used
 *
 * Return: what it lacks, to follow "it has" or the like: "no ...". NULL if it will do.
 */
const char *opencl_lacks(const struct opencl_record *record);

/**
 * opencl_device_is_system() - is its memory the host's, and device scope all there is?
 *
 * A processor's lanes are threads of this process: what reaches all lanes reaches the host.
 */
bool opencl_device_is_system(const struct opencl_record *record);

#endif
