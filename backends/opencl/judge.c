/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "judge.h"

/* PTX has scoped memory order from 7.0 on, and the lanes of a warp make progress by themselves. */
enum { LEAST_VERSION = 30, LEAST_COMPUTE = 70, WARP_LANES = 32 };

bool opencl_device_is_system(const struct opencl_record *record)
{
	return !record->scope_all_devices && (record->type & CL_DEVICE_TYPE_CPU);
}

bool opencl_memory_asked(const char *text, enum opencl_memory *asked)
{
	*asked = !text || !*text         ? OPENCL_MEMORY_NONE
		 : !strcmp(text, "fine") ? OPENCL_MEMORY_FINE
					 : OPENCL_MEMORY_COARSE;
	return *asked != OPENCL_MEMORY_COARSE || !strcmp(text, "coarse");
}

unsigned opencl_wave_lanes(const struct opencl_record *record, const char *text)
{
	if (!text || !*text)
		return record->nvidia ? WARP_LANES : 1;
	if (!strcmp(text, "1"))
		return 1;
	return record->nvidia && !strcmp(text, "32") ? WARP_LANES : 0;
}

static const char *lacks_basics(const struct opencl_record *record)
{
	if (!record->available)
		return "no device that is available at present (CL_DEVICE_AVAILABLE)";
	if (record->version < LEAST_VERSION)
		return "no OpenCL 3.0";
	if (!record->compiler)
		return "no compiler for source (CL_DEVICE_COMPILER_AVAILABLE)";
	if (record->address_bits != 64 || !record->little_endian)
		return "no 64-bit little-endian addresses";
	return NULL;
}

static const char *lacks_fine(const struct opencl_record *record)
{
	if (!(record->svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER))
		return "no fine-grained shared virtual memory (CL_DEVICE_SVM_FINE_GRAIN_BUFFER), by which "
		       "lanes and "
		       "host threads would see the same words at the same address";
	if (!(record->svm & CL_DEVICE_SVM_ATOMICS))
		return "no atomics that the host sees (CL_DEVICE_SVM_ATOMICS)";
	return NULL;
}

/*
 * OpenCL promises of a mapped buffer nothing but that the host has it. That lanes have it, too, at that
 * address, is known of processors, whose memory it is, and of NVIDIA's, which address both in one space.
 */
static const char *lacks_coarse(const struct opencl_record *record)
{
	if (!(record->svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
		return "no shared virtual memory (CL_DEVICE_SVM_COARSE_GRAIN_BUFFER)";
	if (!record->nvidia && !opencl_device_is_system(record))
		return "no mapped host memory of which weir knows that lanes see it at the host's address, "
		       "as on processors "
		       "and NVIDIA's devices";
	return NULL;
}

/* What the lanes' own words take. NVIDIA's compiler offers less than its PTX. */
static const char *lacks_order(const struct opencl_record *record)
{
	if (record->nvidia)
		return record->compute >= LEAST_COMPUTE
			       ? NULL
			       : "no scoped memory order (compute capability 7.0 or later)";
	if (!record->order_acq_rel || !(record->atomics & CL_DEVICE_ATOMIC_ORDER_ACQ_REL))
		return "no acquire-release order of atomics (__opencl_c_atomic_order_acq_rel)";
	if (!record->scope_device || !(record->atomics & CL_DEVICE_ATOMIC_SCOPE_DEVICE))
		return "no atomics of device scope (__opencl_c_atomic_scope_device)";
	if (!record->int64_atomics)
		return "no 64-bit atomics (cl_khr_int64_base_atomics, cl_khr_int64_extended_atomics)";
	if (!record->scope_all_devices && !opencl_device_is_system(record))
		return "no atomics whose scope reaches the host (__opencl_c_atomic_scope_all_devices)";
	if (!record->clock)
		return "no clock that weir knows of; give one by "
		       "WEIR_OPENCL_OPTIONS=-DWEIR_OPENCL_CLOCK_NS=EXPRESSION";
	return NULL;
}

/* The fine way, for want of which the sentence is, unless the coarse one is asked for or is all there is. */
static const char *choose_memory(const struct opencl_record *record, enum opencl_memory asked,
				 enum opencl_memory *memory)
{
	const char *fine = lacks_fine(record), *coarse = lacks_coarse(record);

	*memory = asked;
	if (asked == OPENCL_MEMORY_NONE)
		*memory = fine && !coarse ? OPENCL_MEMORY_COARSE : OPENCL_MEMORY_FINE;
	return *memory == OPENCL_MEMORY_FINE ? fine : coarse;
}

/* In the order in which one would want to know. */
const char *opencl_judge(const struct opencl_record *record, enum opencl_memory asked,
			 enum opencl_memory *memory)
{
	const char *lacks = lacks_basics(record);

	if (!lacks)
		lacks = choose_memory(record, asked, memory);
	if (!lacks)
		lacks = lacks_order(record);
	if (lacks)
		*memory = OPENCL_MEMORY_NONE;
	return lacks;
}
