/* SPDX-License-Identifier: BSD-3-Clause */
#include "judge.h"

enum { LEAST_VERSION = 30 };

bool opencl_device_is_system(const struct opencl_record *record)
{
	return !record->scope_all_devices && (record->type & CL_DEVICE_TYPE_CPU);
}

/* In the order in which one would want to know. */
const char *opencl_lacks(const struct opencl_record *record)
{
	if (!record->available)
		return "no device that is available at present (CL_DEVICE_AVAILABLE)";
	if (record->version < LEAST_VERSION)
		return "no OpenCL 3.0";
	if (!record->compiler)
		return "no compiler for source (CL_DEVICE_COMPILER_AVAILABLE)";
	if (record->address_bits != 64 || !record->little_endian)
		return "no 64-bit little-endian addresses";
	if (!(record->svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER))
		return "no fine-grained shared virtual memory (CL_DEVICE_SVM_FINE_GRAIN_BUFFER), by which lanes and "
		       "host threads would see the same words at the same address";
	if (!(record->svm & CL_DEVICE_SVM_ATOMICS))
		return "no atomics that the host sees (CL_DEVICE_SVM_ATOMICS)";
	if (!record->order_acq_rel || !(record->atomics & CL_DEVICE_ATOMIC_ORDER_ACQ_REL))
		return "no acquire-release order of atomics (__opencl_c_atomic_order_acq_rel)";
	if (!record->scope_device || !(record->atomics & CL_DEVICE_ATOMIC_SCOPE_DEVICE))
		return "no atomics of device scope (__opencl_c_atomic_scope_device)";
	if (!record->int64_atomics)
		return "no 64-bit atomics (cl_khr_int64_base_atomics, cl_khr_int64_extended_atomics)";
	if (!record->scope_all_devices && !opencl_device_is_system(record))
		return "no atomics whose scope reaches the host (__opencl_c_atomic_scope_all_devices)";
	if (!record->clock)
		return "no clock that weir knows of; give one by WEIR_OPENCL_OPTIONS=-DWEIR_OPENCL_CLOCK_NS=EXPRESSION";
	return NULL;
}
