/* SPDX-License-Identifier: BSD-3-Clause */
/* judge.h: what an OpenCL device says of itself, and whether that is enough. Asks no device anything. */
#ifndef WEIR_OPENCL_JUDGE_H
#define WEIR_OPENCL_JUDGE_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <stdbool.h>
#include <stddef.h>

/**
 * enum opencl_memory - how lanes and host threads share memory
 * @OPENCL_MEMORY_NONE: in no way; as a choice: whatever will do
 * @OPENCL_MEMORY_FINE: all of it, at one address, all the time: fine-grained shared virtual memory
 * @OPENCL_MEMORY_COARSE: what both see is host memory, mapped for good; everything else is coarse-grained
 *                        shared virtual memory, which the host copies to and from
 */
enum opencl_memory {
	OPENCL_MEMORY_NONE,
	OPENCL_MEMORY_FINE,
	OPENCL_MEMORY_COARSE,
};

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
 * @nvidia: its compiler takes PTX, of which port/opencl_ptx.h makes what the language lacks there
 * @compute: compute capability of such a device, major * 10 + minor
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
	bool nvidia;
	unsigned compute;
};

/**
 * opencl_device_is_system() - is its memory the host's, and device scope all there is?
 *
 * A processor's lanes are threads of this process: what reaches all lanes reaches the host.
 */
bool opencl_device_is_system(const struct opencl_record *record);

/**
 * opencl_memory_asked() - what WEIR_OPENCL_MEMORY asks for
 * @text: its value, or NULL
 * @asked: OPENCL_MEMORY_NONE if it asks for nothing
 *
 * Return: false if there is no such way.
 */
bool opencl_memory_asked(const char *text, enum opencl_memory *asked);

/**
 * opencl_judge() - whether a device can be used, and how it shares memory
 * @record: what it says
 * @asked: the way that it has to be, or OPENCL_MEMORY_NONE for the better of those that it has
 * @memory: which it is; OPENCL_MEMORY_NONE if it cannot be used
 *
 * Return: what it lacks, to follow "it has" or the like: "no ...". NULL if it will do.
 */
const char *opencl_judge(const struct opencl_record *record, enum opencl_memory asked,
			 enum opencl_memory *memory);

/**
 * opencl_wave_lanes() - how wide its waves are
 * @record: what it says
 * @text: value of WEIR_OPENCL_LANES, or NULL
 *
 * Return: 32 or 1; 0 if @text asks for what it has not.
 */
unsigned opencl_wave_lanes(const struct opencl_record *record, const char *text);

#endif
