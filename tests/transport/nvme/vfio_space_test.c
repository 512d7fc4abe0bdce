/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vfio_space_test.c: which address space a device joins, and what is mapped in it.
 *
 * vfio_space.c and the DMA map alone are linked. The two ways of Linux are stand-ins that count what they are
 * asked for.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../rig/leaks.h"
#include "backend/error.h"
#include "transport/nvme/vfio_way.h"

enum { PAGE = 4096, GROUP = 7 };

static unsigned char memory[2 * PAGE];
static unsigned mapped; /* regions that the IOMMU has */
static int refuses;     /* errno of what it does not map; 0: it maps all */

static int map(struct weir_vfio_space *space, uint64_t address, uint64_t bytes, void *host)
{
	(void)space, (void)address, (void)bytes, (void)host;
	if (refuses)
		return errno = refuses, -1;
	mapped++;
	return 0;
}

static int unmap(struct weir_vfio_space *space, uint64_t address, uint64_t bytes)
{
	(void)space, (void)address, (void)bytes;
	mapped--;
	return 0;
}

const struct weir_vfio_way weir_vfio_group = { .name = "the group", .map = map, .unmap = unmap };
const struct weir_vfio_way weir_vfio_iommufd = { .name = "iommufd", .map = map, .unmap = unmap };

bool weir_pcie_iommufd_permitted(const struct weir_pcie *function)
{
	(void)function;
	return false;
}

static struct weir_vfio joined(int group)
{
	struct weir_vfio vfio = { .function = { .storage = "pcie:0000:01:00.0", .group = group } };

	if (weir_vfio_space_join(&vfio, WEIR_VFIO_AUTO))
		fail_msg("%s", weir_last_error());
	weir_vfio_space_joined(&vfio, true);
	return vfio;
}

static void give_up(struct weir_vfio *vfio)
{
	weir_vfio_space_part(vfio);
	weir_vfio_space_leave(vfio);
}

static void devices_of_a_group_share(void **state)
{
	struct weir_vfio first = joined(GROUP), second = joined(GROUP), other = joined(GROUP + 1);

	(void)state;
	assert_ptr_equal(first.space, second.space);
	assert_ptr_not_equal(first.space, other.space);
	assert_int_equal(weir_dma_map_share(first.space->map, memory, PAGE, memory), 0);
	assert_int_equal(weir_dma_map_share(second.space->map, memory, PAGE, memory), 0);
	assert_int_equal(mapped, 1);
	give_up(&first);
	assert_int_equal(weir_dma_map_add(second.space->map, memory + PAGE, PAGE), 0);
	assert_int_equal(mapped, 2);
	give_up(&other);
	give_up(&second);
	assert_int_equal(mapped, 2); /* Linux has unmapped them with the last device */
	mapped = 0;
}

/* The system took the last device of a group away, and nobody has closed it yet: it has the space that is
 * over, in which nothing is mapped any more. */
static void nobody_joins_what_is_over(void **state)
{
	struct weir_vfio first = joined(GROUP), second, third;

	(void)state;
	weir_vfio_space_part(&first);
	second = joined(GROUP);
	assert_ptr_not_equal(first.space, second.space);
	assert_int_equal(weir_dma_map_add(second.space->map, memory, PAGE), 0);
	assert_int_equal(mapped, 1);
	assert_int_equal(weir_dma_map_add(first.space->map, memory, PAGE), 0);
	assert_int_equal(mapped, 1);
	third = joined(GROUP);
	assert_ptr_equal(third.space, second.space);
	weir_vfio_space_leave(&first);
	give_up(&third);
	assert_int_equal(weir_dma_map_remove(second.space->map, memory), 0);
	assert_int_equal(mapped, 0);
	give_up(&second);
}

/* Linux lets one container, or one iommufd, have a group. One whose device could not be opened keeps nobody
 * from the other way. */
static void one_way_for_a_group(void **state)
{
	struct weir_vfio first = joined(GROUP), second = { .function = first.function };

	(void)state;
	assert_string_equal(first.space->way->name, "the group");
	assert_int_equal(weir_vfio_space_join(&second, WEIR_VFIO_IOMMUFD), -EBUSY);
	assert_non_null(strstr(weir_last_error(), "group 7 open by way of the group"));
	assert_null(second.space);
	give_up(&first);
	assert_int_equal(weir_vfio_space_join(&second, WEIR_VFIO_IOMMUFD), 0);
	weir_vfio_space_joined(&second, false);
	assert_string_equal(second.space->way->name, "iommufd");
	weir_vfio_space_leave(&second);
}

/* Why memory cannot be mapped is said; it is in no map then, and the next is mapped as if nothing had been.
 */
static void what_cannot_be_mapped_says_why(void **state)
{
	const uint64_t at = (uintptr_t)memory;
	const struct {
		int error;
		uint64_t highest;
		int said;
		const char *words;
	} rows[] = {
		{ EINVAL, at + PAGE - 2, ERANGE, "the IOMMU takes addresses up to" }, /* but for one byte */
		{ EINVAL, at + PAGE - 1, EINVAL, "cannot map 4096 bytes at" },
		{ ENOMEM, UINT64_MAX, ENOMEM, "ulimit -l" },
		{ ENOSPC, UINT64_MAX, ENOSPC, "dma_entry_limit" },
		{ EFAULT, UINT64_MAX, EFAULT, "cannot map 4096 bytes at" },
	};
	struct weir_vfio vfio = joined(GROUP);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		refuses = rows[i].error;
		vfio.space->highest = rows[i].highest;
		assert_int_equal(weir_dma_map_add(vfio.space->map, memory, PAGE), -rows[i].said);
		assert_non_null(strstr(weir_last_error(), rows[i].words));
		refuses = 0;
		assert_int_equal(weir_dma_map_add(vfio.space->map, memory, PAGE), 0);
		assert_int_equal(mapped, 1);
		assert_int_equal(weir_dma_map_remove(vfio.space->map, memory), 0);
		assert_int_equal(mapped, 0);
	}
	give_up(&vfio);
}

/* A space's files are closed where its first device cannot be opened, and when nobody refers to it any more;
 * until then they stay. */
static void files_of_a_space(void **state)
{
	struct weir_vfio first = { .function = { .storage = "nvme:it", .group = GROUP } }, second = first;
	unsigned files = test_files();

	(void)state;
	for (unsigned good = 0; good < 2; good++) {
		assert_int_equal(weir_vfio_space_join(&first, WEIR_VFIO_GROUP), 0);
		first.space->iommu = dup(STDERR_FILENO);
		first.space->group = dup(STDERR_FILENO);
		weir_vfio_space_joined(&first, good);
		assert_int_equal(test_files(), files + (good ? 2 : 0));
		if (!good)
			weir_vfio_space_leave(&first);
	}
	assert_int_equal(weir_vfio_space_join(&second, WEIR_VFIO_GROUP), 0);
	weir_vfio_space_joined(&second, false); /* the first one's stay */
	assert_ptr_equal(second.space, first.space);
	weir_vfio_space_leave(&second);
	assert_int_equal(test_files(), files + 2);
	weir_vfio_space_part(&first);
	assert_int_equal(test_files(), files + 2); /* as long as somebody refers to it */
	weir_vfio_space_leave(&first);
	assert_int_equal(test_files(), files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_of_a_group_share), cmocka_unit_test(nobody_joins_what_is_over),
		cmocka_unit_test(one_way_for_a_group),      cmocka_unit_test(what_cannot_be_mapped_says_why),
		cmocka_unit_test(files_of_a_space),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("vfio_space", tests, NULL, NULL);
}
