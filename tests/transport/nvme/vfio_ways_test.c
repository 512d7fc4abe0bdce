/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vfio_ways_test.c: what Linux is asked for by either way to a function and to the memory that it may touch.
 *
 * vfio_group.c and vfio_iommufd.c alone are linked. What they ask for is noted, in the place of the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <iommufd_abi.h>
#include <linux/vfio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <cmocka.h>

#include "backend/error.h"
#include "transport/nvme/vfio_way.h"

enum { CONTAINER = 1001, GROUP, NODE, DEVICE, IOMMU, GROUP_NUMBER = 7, SPACE = 42 };

static const uint64_t FAR = ((uint64_t)3 << 40) + 8192, LARGE = ((uint64_t)6 << 30) + 4096,
		      HIGHEST = ((uint64_t)1 << 47) - 1;

static char calls[512];
static unsigned long fails; /* a call */
static int fails_with;
static uint64_t mapped, mapped_bytes, mapped_from;
static bool ranges_known, not_viable, no_type1;

static void note(const char *call)
{
	size_t used = strlen(calls);

	snprintf(calls + used, sizeof(calls) - used, "%s%s", used ? " " : "", call);
}

int weir_vfio_open_node(const struct weir_vfio *vfio, const char *node, int *out)
{
	(void)vfio;
	note(node);
	*out = !strcmp(node, "vfio") ? CONTAINER : !strcmp(node, "7") ? GROUP : NODE;
	return 0;
}

int open(const char *path, int flags, ...)
{
	(void)flags;
	assert_string_equal(path, "/root/dev/iommu");
	note("iommu");
	return IOMMU;
}

static int failed(const char *what)
{
	return weir_fail(errno, "%s", what);
}

int weir_vfio_kernel_says(const struct weir_vfio *vfio, const char *what)
{
	(void)vfio;
	return failed(what);
}

int weir_pcie_group_fail(const struct weir_pcie *function)
{
	(void)function;
	return weir_fail(EBUSY, "not viable");
}

int weir_pcie_interrupts_fail(const struct weir_pcie *function, const char *module)
{
	(void)function;
	return weir_fail(EPERM, "interrupts, %s", module);
}

int weir_pcie_vfio_fail(const struct weir_pcie *function, const char *node, int error)
{
	(void)function;
	return weir_fail(error, "%s", node);
}

int weir_pcie_denied_fail(const struct weir_pcie *function)
{
	(void)function;
	return weir_fail(EPERM, "denied");
}

int weir_pcie_iommu_fail(const struct weir_pcie *function, int error)
{
	(void)function;
	return weir_fail(error, "no iommu");
}

int weir_pcie_no_node_fail(const struct weir_pcie *function)
{
	(void)function;
	return weir_fail(ENOTSUP, "no node");
}

bool weir_pcie_device_node(const struct weir_pcie *function, char node[WEIR_PCIE_NODE])
{
	(void)function;
	strcpy(node, "devices/vfio0");
	return true;
}

/* Two capabilities, of which the second one has ranges of addresses: not in their order. */
static int describe_ranges_of_group(struct vfio_iommu_type1_info *info)
{
	enum { OTHER = 64, RANGES = 96, WHOLE = 256 };
	static uint64_t words[WHOLE / 8];
	char *whole = (char *)words;
	struct vfio_info_cap_header *other = (void *)(whole + OTHER);
	struct vfio_iommu_type1_info_cap_iova_range *ranges = (void *)(whole + RANGES);

	if (!ranges_known)
		return 0;
	if (info->argsz >= WHOLE) {
		other->next = RANGES;
		ranges->header.id = VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE;
		ranges->nr_iovas = 2;
		ranges->iova_ranges[0].end = HIGHEST;
		ranges->iova_ranges[1].end = 0xfffff;
		memcpy((char *)info + OTHER, whole + OTHER, WHOLE - OTHER);
	}
	info->flags = VFIO_IOMMU_INFO_CAPS;
	info->cap_offset = OTHER;
	info->argsz = WHOLE;
	return 0;
}

static int describe_ranges_of_space(struct iommu_ioas_iova_ranges *request)
{
	struct iommu_iova_range *ranges = (struct iommu_iova_range *)(uintptr_t)request->allowed_iovas;
	uint32_t room = request->num_iovas;

	assert_int_equal(request->ioas_id, SPACE);
	request->num_iovas = 2;
	if (!ranges_known || room < 2)
		return errno = ranges_known ? EMSGSIZE : EINVAL, -1;
	ranges[0].last = HIGHEST;
	ranges[1].last = 0xfffff;
	return 0;
}

static int map_by_group(int file, const struct vfio_iommu_type1_dma_map *request)
{
	assert_int_equal(file, CONTAINER);
	assert_int_equal(request->argsz, sizeof(*request));
	assert_int_equal(request->flags, VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE);
	mapped = request->iova;
	mapped_bytes = request->size;
	mapped_from = request->vaddr;
	return 0;
}

static int map_in_space(int file, const struct iommu_ioas_map *request)
{
	assert_int_equal(file, IOMMU);
	assert_int_equal(request->ioas_id, SPACE);
	assert_int_equal(request->flags,
			 IOMMU_IOAS_MAP_FIXED_IOVA | IOMMU_IOAS_MAP_READABLE | IOMMU_IOAS_MAP_WRITEABLE);
	mapped = request->iova;
	mapped_bytes = request->length;
	mapped_from = request->user_va;
	return 0;
}

static int unmap_range(uint64_t address, uint64_t bytes)
{
	assert_true(address == mapped && bytes == mapped_bytes);
	mapped = mapped_bytes = 0;
	return 0;
}

static int call_of_group(int file, unsigned long call, void *argument)
{
	switch (call) {
	case VFIO_GET_API_VERSION: return VFIO_API_VERSION;
	case VFIO_GROUP_GET_STATUS:
		assert_int_equal(file, GROUP);
		((struct vfio_group_status *)argument)->flags = not_viable ? 0 : VFIO_GROUP_FLAGS_VIABLE;
		return 0;
	case VFIO_GROUP_SET_CONTAINER:
		assert_int_equal(*(int *)argument, CONTAINER);
		note("container");
		return 0;
	case VFIO_CHECK_EXTENSION: return !no_type1 && (int)(uintptr_t)argument == VFIO_TYPE1v2_IOMMU;
	case VFIO_SET_IOMMU: note("type1"); return 0;
	case VFIO_IOMMU_GET_INFO: return describe_ranges_of_group(argument);
	case VFIO_GROUP_GET_DEVICE_FD:
		assert_string_equal(argument, "0000:01:00.0");
		note("device");
		return DEVICE;
	case VFIO_IOMMU_MAP_DMA: return map_by_group(file, argument);
	case VFIO_IOMMU_UNMAP_DMA:
		return unmap_range(((struct vfio_iommu_type1_dma_unmap *)argument)->iova,
				   ((struct vfio_iommu_type1_dma_unmap *)argument)->size);
	default: fail_msg("ioctl %#lx", call); return -1;
	}
}

int ioctl(int file, unsigned long call, ...)
{
	va_list list;
	void *argument;

	va_start(list, call);
	argument = call == VFIO_GET_API_VERSION ? NULL : va_arg(list, void *);
	va_end(list);
	if (call == fails)
		return errno = fails_with, -1;
	switch (call) {
	case VFIO_DEVICE_BIND_IOMMUFD:
		assert_int_equal(file, NODE);
		assert_int_equal(((struct vfio_device_bind_iommufd *)argument)->iommufd, IOMMU);
		note("bind");
		return 0;
	case IOMMU_IOAS_ALLOC:
		((struct iommu_ioas_alloc *)argument)->out_ioas_id = SPACE;
		note("space");
		return 0;
	case VFIO_DEVICE_ATTACH_IOMMUFD_PT:
		assert_int_equal(((struct vfio_device_attach_iommufd_pt *)argument)->pt_id, SPACE);
		note("attach");
		return 0;
	case IOMMU_IOAS_IOVA_RANGES: return describe_ranges_of_space(argument);
	case IOMMU_IOAS_MAP: return map_in_space(file, argument);
	case IOMMU_IOAS_UNMAP:
		assert_int_equal(((struct iommu_ioas_unmap *)argument)->ioas_id, SPACE);
		return unmap_range(((struct iommu_ioas_unmap *)argument)->iova,
				   ((struct iommu_ioas_unmap *)argument)->length);
	default: return call_of_group(file, call, argument);
	}
}

static struct weir_vfio_space space;

static struct weir_vfio fresh(void)
{
	space = (struct weir_vfio_space){ .iommu = -1, .group = -1, .highest = UINT64_MAX };
	calls[0] = '\0';
	fails = 0;
	return (struct weir_vfio){
		.function = { .root = "/root", .address = "0000:01:00.0", .group = GROUP_NUMBER },
		.space = &space,
		.device = -1
	};
}

/* At the address that it is to have, whatever the process has it at; all of it, and for both directions. */
static void maps(const struct weir_vfio_way *way)
{
	assert_int_equal(way->map(&space, FAR, LARGE, (void *)(uintptr_t)(FAR / 2)), 0);
	assert_true(mapped == FAR && mapped_bytes == LARGE && mapped_from == FAR / 2);
	assert_int_equal(way->unmap(&space, FAR, LARGE), 0);
	assert_true(mapped_bytes == 0);
}

/* The first device of a group brings all that there is; the next one itself alone. */
static void opens(const struct weir_vfio_way *way, int device, const char *first, const char *next)
{
	for (unsigned known = 0; known < 2; known++) {
		struct weir_vfio vfio = fresh();

		ranges_known = known;
		assert_int_equal(way->open(&vfio), 0);
		assert_string_equal(calls, first);
		assert_int_equal(vfio.device, device);
		assert_true(space.highest == (known ? HIGHEST : UINT64_MAX));
		maps(way);
		space.devices = 1;
		calls[0] = '\0';
		vfio.device = -1;
		assert_int_equal(way->open(&vfio), 0);
		assert_string_equal(calls, next);
		assert_int_equal(vfio.device, device);
	}
}

static void by_the_groups_file(void **state)
{
	(void)state;
	opens(&weir_vfio_group, DEVICE, "vfio 7 container type1 device", "device");
}

static void by_iommufd(void **state)
{
	(void)state;
	opens(&weir_vfio_iommufd, NODE, "devices/vfio0 iommu bind space attach", "devices/vfio0 bind attach");
}

/* Each step that Linux refuses ends it, with what is known of the reason. */
static void what_linux_refuses(void **state)
{
	static const struct {
		const struct weir_vfio_way *way;
		unsigned long call;
		int with, error;
		const char *words;
	} rows[] = {
		{ &weir_vfio_group, VFIO_GET_API_VERSION, EINVAL, ENOTSUP, "another version" },
		{ &weir_vfio_group, VFIO_GROUP_GET_STATUS, EIO, EIO, "report the status" },
		{ &weir_vfio_group, VFIO_GROUP_SET_CONTAINER, EBUSY, EBUSY, "use the IOMMU group" },
		{ &weir_vfio_group, VFIO_SET_IOMMU, EPERM, EPERM, "interrupts, vfio_iommu_type1" },
		{ &weir_vfio_group, VFIO_SET_IOMMU, ENODEV, ENODEV, "use the IOMMU" },
		{ &weir_vfio_group, VFIO_GROUP_GET_DEVICE_FD, ENODEV, ENODEV, "open the device file" },
		{ &weir_vfio_iommufd, VFIO_DEVICE_BIND_IOMMUFD, EINVAL, EBUSY, "devices/vfio0" },
		{ &weir_vfio_iommufd, VFIO_DEVICE_BIND_IOMMUFD, EPERM, EPERM, "denied" },
		{ &weir_vfio_iommufd, VFIO_DEVICE_BIND_IOMMUFD, ENOMEM, ENOMEM, "use the IOMMU" },
		{ &weir_vfio_iommufd, IOMMU_IOAS_ALLOC, ENOMEM, ENOMEM, "make an address space" },
		{ &weir_vfio_iommufd, VFIO_DEVICE_ATTACH_IOMMUFD_PT, EINVAL, EINVAL, "attach the address" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct weir_vfio vfio = fresh();

		fails = rows[i].call;
		fails_with = rows[i].with;
		assert_int_equal(rows[i].way->open(&vfio), -rows[i].error);
		assert_non_null(strstr(weir_last_error(), rows[i].words));
	}
	fails = VFIO_IOMMU_MAP_DMA;
	fails_with = ENOSPC;
	assert_int_equal(weir_vfio_group.map(&space, FAR, LARGE, NULL), -1);
	assert_int_equal(errno, ENOSPC);
	fails = IOMMU_IOAS_MAP;
	assert_int_equal(weir_vfio_iommufd.map(&space, FAR, LARGE, NULL), -1);
	fails = 0;
}

/* What Linux answers in the negative is no group to be used. */
static void what_linux_does_not_have(void **state)
{
	struct weir_vfio vfio = fresh();

	(void)state;
	not_viable = true;
	assert_int_equal(weir_vfio_group.open(&vfio), -EBUSY);
	assert_string_equal(weir_last_error(), "not viable");
	assert_string_equal(calls, "vfio 7");
	not_viable = false;
	vfio = fresh();
	no_type1 = true;
	assert_int_equal(weir_vfio_group.open(&vfio), -ENOTSUP);
	assert_non_null(strstr(weir_last_error(), "has no type 1 IOMMU"));
	assert_string_equal(calls, "vfio 7 container");
	no_type1 = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_the_groups_file),
		cmocka_unit_test(by_iommufd),
		cmocka_unit_test(what_linux_refuses),
		cmocka_unit_test(what_linux_does_not_have),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("vfio_ways", tests, NULL, NULL);
}
