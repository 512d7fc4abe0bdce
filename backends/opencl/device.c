/* SPDX-License-Identifier: BSD-3-Clause */
/* Which devices there are, what they say of themselves, and which one is meant. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../runtime/backend/error.h"
#include "cache.h"
#include "opencl.h"

enum { MOST_PLATFORMS = 16, MOST_DEVICES = 32, TEXT_BYTES = 4096 };

static struct opencl_device devices[MOST_DEVICES];
static unsigned device_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* "" for what it does not know. */
static const char *text_of(cl_device_id id, cl_device_info what, char *text, size_t bytes)
{
	memset(text, 0, bytes);
	if (clGetDeviceInfo(id, what, bytes - 1, text, NULL) != CL_SUCCESS)
		text[0] = 0;
	return text;
}

static cl_ulong number_of(cl_device_id id, cl_device_info what, size_t bytes)
{
	cl_ulong number = 0; /* the host is little-endian, as port/opencl.h says */

	return clGetDeviceInfo(id, what, bytes, &number, NULL) == CL_SUCCESS ? number : 0;
}

/* "OpenCL 3.0 ..." */
static unsigned version_of(cl_device_id id)
{
	char text[TEXT_BYTES];
	unsigned major = 0, minor = 0;

	if (sscanf(text_of(id, CL_DEVICE_VERSION, text, sizeof(text)), "OpenCL %u.%u", &major, &minor) != 2)
		return 0;
	return major * 10 + minor;
}

/* Has its compiler this feature of OpenCL C 3.0? */
static bool feature(cl_device_id id, const char *name)
{
	size_t bytes = 0;
	cl_name_version *features;
	bool there = false;

	if (clGetDeviceInfo(id, CL_DEVICE_OPENCL_C_FEATURES, 0, NULL, &bytes) != CL_SUCCESS || !bytes)
		return false;
	features = malloc(bytes);
	if (features && clGetDeviceInfo(id, CL_DEVICE_OPENCL_C_FEATURES, bytes, features, NULL) == CL_SUCCESS)
		for (size_t i = 0; i < bytes / sizeof(*features); i++)
			there |= !strcmp(features[i].name, name);
	free(features);
	return there;
}

/* NVIDIA's device numbers, and those of its extension cl_nv_device_attribute_query. */
enum {
	VENDOR_NVIDIA = 0x10de,
	COMPUTE_MAJOR_NV = 0x4000,
	COMPUTE_MINOR_NV = 0x4001,
	PCI_BUS_NV = 0x4008,
	PCI_SLOT_NV = 0x4009,
	PCI_DOMAIN_NV = 0x400a
};

/* cl_khr_pci_bus_info, which older headers do not have. */
enum { PCI_BUS_INFO_KHR = 0x410f };
struct pci_bus_info {
	cl_uint domain, bus, device, function;
};

/* Not by the platform's name: another compiler for the same device takes PTX as well. */
static bool is_nvidia(cl_device_id id, const char *extensions)
{
	return number_of(id, CL_DEVICE_VENDOR_ID, sizeof(cl_uint)) == VENDOR_NVIDIA &&
	       (number_of(id, CL_DEVICE_TYPE, sizeof(cl_device_type)) & CL_DEVICE_TYPE_GPU) &&
	       strstr(extensions, "cl_nv_device_attribute_query");
}

static bool clock_known(cl_device_type type)
{
	const char *options = getenv("WEIR_OPENCL_OPTIONS");
	bool ours = false;

#if defined(__x86_64__) && defined(__linux__)
	ours = type & CL_DEVICE_TYPE_CPU;
#endif
	return ours || (options && strstr(options, "WEIR_OPENCL_CLOCK_NS"));
}

static void examine(cl_device_id id, struct opencl_record *record)
{
	char extensions[TEXT_BYTES];

	text_of(id, CL_DEVICE_EXTENSIONS, extensions, sizeof(extensions));
	*record = (struct opencl_record){
		.version = version_of(id),
		.type = number_of(id, CL_DEVICE_TYPE, sizeof(cl_device_type)),
		.available = number_of(id, CL_DEVICE_AVAILABLE, sizeof(cl_bool)) != 0,
		.compiler = number_of(id, CL_DEVICE_COMPILER_AVAILABLE, sizeof(cl_bool)) != 0,
		.little_endian = number_of(id, CL_DEVICE_ENDIAN_LITTLE, sizeof(cl_bool)) != 0,
		.address_bits = (cl_uint)number_of(id, CL_DEVICE_ADDRESS_BITS, sizeof(cl_uint)),
		.svm = number_of(id, CL_DEVICE_SVM_CAPABILITIES, sizeof(cl_device_svm_capabilities)),
		.atomics = number_of(id, CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES,
				     sizeof(cl_device_atomic_capabilities)),
		.order_acq_rel = feature(id, "__opencl_c_atomic_order_acq_rel"),
		.scope_device = feature(id, "__opencl_c_atomic_scope_device"),
		.scope_all_devices = feature(id, "__opencl_c_atomic_scope_all_devices"),
		.int64_atomics = strstr(extensions, "cl_khr_int64_base_atomics") &&
				 strstr(extensions, "cl_khr_int64_extended_atomics"),
	};
	record->clock = clock_known(record->type);
	record->nvidia = is_nvidia(id, extensions);
	if (record->nvidia)
		record->compute = (unsigned)(number_of(id, COMPUTE_MAJOR_NV, sizeof(cl_uint)) * 10 +
					     number_of(id, COMPUTE_MINOR_NV, sizeof(cl_uint)));
}

static void add_device(cl_platform_id platform, cl_device_id id)
{
	struct opencl_device *device = &devices[device_count];
	char version[256] = "", driver[256];

	device->id = id;
	device->number = device_count++;
	(void)clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(device->platform) - 1, device->platform,
				NULL);
	(void)clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof(version) - 1, version, NULL);
	text_of(id, CL_DEVICE_NAME, device->name, sizeof(device->name));
	text_of(id, CL_DRIVER_VERSION, driver, sizeof(driver));
	device->identity = opencl_hash(0, device->platform, strlen(device->platform) + 1);
	device->identity = opencl_hash(device->identity, version, strlen(version) + 1);
	device->identity = opencl_hash(device->identity, device->name, strlen(device->name) + 1);
	device->identity = opencl_hash(device->identity, driver, strlen(driver) + 1);
	examine(id, &device->record);
	pthread_mutex_init(&device->memory_mutex, NULL);
	pthread_mutex_init(&device->mutex, NULL);
}

static void list_devices(void)
{
	cl_platform_id platforms[MOST_PLATFORMS];
	cl_uint platform_count = 0;

	if (clGetPlatformIDs(MOST_PLATFORMS, platforms, &platform_count) != CL_SUCCESS)
		return;
	for (cl_uint p = 0; p < platform_count && p < MOST_PLATFORMS; p++) {
		cl_device_id ids[MOST_DEVICES];
		cl_uint count = 0;

		if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MOST_DEVICES, ids, &count) != CL_SUCCESS)
			continue;
		for (cl_uint d = 0; d < count && d < MOST_DEVICES && device_count < MOST_DEVICES; d++)
			add_device(platforms[p], ids[d]);
	}
}

unsigned opencl_device_count(void)
{
	pthread_once(&once, list_devices);
	return device_count;
}

static int judge(const struct opencl_device *device, enum opencl_memory asked, enum opencl_memory *memory)
{
	const char *lacks = opencl_judge(&device->record, asked, memory);

	return lacks ? weir_fail(ENODEV, "opencl:%u (%.60s, %.60s) cannot be used%s: it has %s",
				 device->number, device->name, device->platform,
				 asked ? " as WEIR_OPENCL_MEMORY says" : "", lacks)
		     : 0;
}

/* Of those that will do, graphics processors first; if none will, the first of all. */
static struct opencl_device *choose_first(enum opencl_memory asked)
{
	struct opencl_device *chosen = NULL;
	enum opencl_memory memory;

	for (unsigned i = 0; i < device_count; i++)
		if (!opencl_judge(&devices[i].record, asked, &memory) &&
		    (!chosen || (!(chosen->record.type & CL_DEVICE_TYPE_GPU) &&
				 (devices[i].record.type & CL_DEVICE_TYPE_GPU))))
			chosen = &devices[i];
	return chosen ? chosen : &devices[0];
}

static int choose_number(const char *selector, struct opencl_device **chosen)
{
	char *end;
	unsigned long number = strtoul(selector, &end, 10);

	if (*end || number >= device_count)
		return weir_fail(ENODEV, "there is no opencl:%s: this process sees %u device%s, opencl:0%s",
				 selector, device_count, device_count == 1 ? "" : "s",
				 device_count == 1 ? "" : " and on");
	*chosen = &devices[number];
	return 0;
}

static int choose_named(const char *selector, struct opencl_device **chosen)
{
	for (unsigned i = 0; i < device_count; i++)
		if (strcasestr(devices[i].platform, selector) || strcasestr(devices[i].name, selector)) {
			*chosen = &devices[i];
			return 0;
		}
	return weir_fail(ENODEV, "no OpenCL device or platform has \"%s\" in its name; weir-info lists them",
			 selector);
}

int opencl_device_choose(const char *selector, struct opencl_device **chosen, enum opencl_memory *memory)
{
	const char *text = getenv("WEIR_OPENCL_MEMORY");
	enum opencl_memory asked;
	int error = 0;

	if (opencl_device_count() == 0)
		return weir_fail(
			ENODEV,
			"no OpenCL device: the ICD loader finds no platform; install the device's driver, "
			"or PoCL for the processor");
	if (!opencl_memory_asked(text, &asked))
		return weir_fail(
			EINVAL,
			"WEIR_OPENCL_MEMORY=%.20s is no way to share memory; \"fine\" and \"coarse\" are, "
			"and without it the device's better one is taken",
			text);
	if (!*selector)
		*chosen = choose_first(asked);
	else
		error = *selector >= '0' && *selector <= '9' ? choose_number(selector, chosen)
							     : choose_named(selector, chosen);
	return error ? error : judge(*chosen, asked, memory);
}

int opencl_pci_address(uint32_t ordinal, char *text, size_t bytes)
{
	const cl_device_id id = devices[ordinal].id;
	struct pci_bus_info at = { 0 };
	char extensions[TEXT_BYTES];

	memset(text, 0, bytes);
	text_of(id, CL_DEVICE_EXTENSIONS, extensions, sizeof(extensions));
	if (strstr(extensions, "cl_khr_pci_bus_info")) {
		if (clGetDeviceInfo(id, PCI_BUS_INFO_KHR, sizeof(at), &at, NULL) != CL_SUCCESS)
			return 0;
	} else if (devices[ordinal].record.nvidia) {
		at.domain = (cl_uint)number_of(id, PCI_DOMAIN_NV, sizeof(cl_uint));
		at.bus = (cl_uint)number_of(id, PCI_BUS_NV, sizeof(cl_uint));
		at.device = (cl_uint)number_of(id, PCI_SLOT_NV, sizeof(cl_uint)) >>
			    3; /* with the function below it */
		at.function = (cl_uint)number_of(id, PCI_SLOT_NV, sizeof(cl_uint)) & 7;
	} else {
		return 0;
	}
	snprintf(text, bytes, "%04x:%02x:%02x.%x", at.domain & 0xfffffff, at.bus & 0xff, at.device & 0x1f,
		 at.function & 7);
	return 0;
}

/* A processor's lanes are the host's: they reach what it does, where it does. OpenCL has no call that any
 * other device could be told by. */
static void abilities(bool processor, struct weir_backend_properties *out)
{
	out->map_registers.has = out->register_host.has = processor;
	if (!processor)
		strcpy(out->map_registers.why, "OpenCL maps no registers of other devices");
	if (!processor)
		strcpy(out->register_host.why,
		       "OpenCL takes no host pages at an address that lanes could use");
	strcpy(out->export_memory.why, "OpenCL exports no dma-bufs of shared virtual memory");
}

int opencl_map(struct weir_backend *base, void *host, size_t bytes, uint64_t *device)
{
	(void)bytes;
	*device = (uint64_t)(uintptr_t)host;
	return opencl_of(base)->device->record.type & CL_DEVICE_TYPE_CPU
		       ? 0
		       : weir_fail(ENOTSUP,
				   "OpenCL maps no registers of other devices, nor pages of the host");
}

void opencl_unmap(struct weir_backend *base, void *host, size_t bytes)
{
	(void)base;
	(void)host;
	(void)bytes;
}

void opencl_properties(struct weir_backend *base, struct weir_backend_properties *out)
{
	const struct opencl_backend *backend = opencl_of(base);
	const struct opencl_device *device = backend->device;
	cl_uint units = (cl_uint)number_of(device->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(cl_uint));

	snprintf(out->name, sizeof(out->name), "opencl:%u %.60s, %.30s (%u compute unit%s)", device->number,
		 device->name, device->platform, units, units == 1 ? "" : "s");
	out->wave_lanes = backend->lanes;
	out->workers = units;
	out->block_lanes = UINT32_MAX; /* if a work-group is one lane, whatever a block is */
	if (opencl_grouped(backend))
		out->block_lanes =
			(uint32_t)number_of(device->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
	out->shared_memory = backend->memory == OPENCL_MEMORY_FINE;
	/* In a queue of their own, but a processor's lanes may have all cores. */
	out->copies_while_running = !(device->record.type & CL_DEVICE_TYPE_CPU);
	out->memory_bytes = number_of(device->id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong));
	(void)opencl_pci_address(device->number, out->pci_address, sizeof(out->pci_address));
	abilities(device->record.type & CL_DEVICE_TYPE_CPU, out);
	if (!(device->record.type & CL_DEVICE_TYPE_CPU))
		return;
	/* A processor's memory is the host's: every device reaches it, and none overtakes its own writes. */
	out->memory_free_bytes = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	if (out->memory_free_bytes > out->memory_bytes) /* which may be a part of the host's */
		out->memory_free_bytes = out->memory_bytes;
	out->peer_dma = true;
	out->peer_writes = WEIR_PEER_WRITES_ORDERED_ALL;
}
