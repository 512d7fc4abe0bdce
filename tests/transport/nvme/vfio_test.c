/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vfio_test.c: when a function through VFIO may do DMA, and what is left of it once it is closed, could not
 * be opened, or is the system's again.
 *
 * vfio.c alone is linked. The function is a memfd, BAR 0 first and then its configuration space; the address
 * space that it joins is a stand-in.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../rig/leaks.h"
#include "backend/error.h"
#include "transport/nvme/vfio.h"
#include "transport/nvme/vfio_way.h"

enum { BAR_BYTES = 8192, PAGE = 4096, OTHERS = PCI_COMMAND_SERR };

/* Regions lie as far apart as Linux has them. */
static const off_t AT_BAR = (off_t)1 << 40, AT_CONFIG = ((off_t)7 << 40) + 512;

/** enum step - of opening, which fails */
enum step { NONE, JOIN, OPEN, BAR, NO_MAPPING, CONFIG, IRQ, NO_CONFIG, STEPS };

static enum step fails;
static int device; /* the function's file, as the test has it */
static int asked;  /* the eventfd that the kernel counts up */
static unsigned joins, good_joins, parts, leaves;
static struct weir_vfio_space space;
static const struct weir_pcie function = { .storage = "nvme:it", .address = "0000:01:00.0" };

static int open_device(struct weir_vfio *vfio)
{
	if (fails == OPEN)
		return weir_fail(EBUSY, "no device file");
	vfio->device = dup(device);
	return 0;
}

const struct weir_vfio_way weir_vfio_group = { .name = "the group", .open = open_device };

int weir_vfio_space_join(struct weir_vfio *vfio, enum weir_vfio_choice choice)
{
	(void)choice;
	if (fails == JOIN)
		return weir_fail(EBUSY, "no space");
	space.way = &weir_vfio_group;
	vfio->space = &space;
	joins++;
	return 0;
}

void weir_vfio_space_joined(struct weir_vfio *vfio, bool good)
{
	assert_ptr_equal(vfio->space, &space);
	good_joins += good;
}

void weir_vfio_space_part(struct weir_vfio *vfio)
{
	assert_ptr_equal(vfio->space, &space);
	parts++;
}

void weir_vfio_space_leave(struct weir_vfio *vfio)
{
	vfio->space = NULL;
	leaves++;
}

int weir_pcie_vfio_fail(const struct weir_pcie *of, const char *node, int error)
{
	(void)of, (void)node;
	return weir_fail(error, "no node");
}

static int describe_region(struct vfio_region_info *region)
{
	bool bar = region->index == VFIO_PCI_BAR0_REGION_INDEX;

	if (fails == (bar ? BAR : CONFIG))
		return errno = EIO, -1;
	region->offset = bar ? (uint64_t)AT_BAR : fails == NO_CONFIG ? 1ull << 63 : (uint64_t)AT_CONFIG;
	region->size = bar ? BAR_BYTES : 256;
	region->flags = bar && fails != NO_MAPPING ? VFIO_REGION_INFO_FLAG_MMAP : 0;
	return 0;
}

int ioctl(int file, unsigned long call, ...)
{
	struct vfio_irq_set *set;
	va_list list;
	void *argument;

	(void)file;
	va_start(list, call);
	argument = va_arg(list, void *);
	va_end(list);
	if (call == VFIO_DEVICE_GET_REGION_INFO)
		return describe_region(argument);
	assert_int_equal(call, VFIO_DEVICE_SET_IRQS);
	if (fails == IRQ)
		return errno = EIO, -1;
	set = argument;
	memcpy(&asked, set->data, sizeof(asked));
	return 0;
}

/* PCI_COMMAND of the function. */
static unsigned command(void)
{
	uint16_t value;

	assert_int_equal(pread(device, &value, sizeof(value), AT_CONFIG + PCI_COMMAND), sizeof(value));
	return value;
}

static uint32_t word_of_bar(off_t at)
{
	uint32_t value;

	assert_int_equal(pread(device, &value, sizeof(value), AT_BAR + at), sizeof(value));
	return value;
}

static bool no_place, dma_is_to_have_ended; /* no memory for the place of registers; before that */
static unsigned places;

/* Something takes the place of registers: DMA has ended before. */
void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
	va_list list;
	void *to;

	va_start(list, flags);
	to = va_arg(list, void *);
	va_end(list);
	places++;
	assert_false(dma_is_to_have_ended && (command() & PCI_COMMAND_MASTER));
	if (no_place)
		return errno = ENOMEM, MAP_FAILED;
	return (void *)syscall(SYS_mremap, old, old_bytes, bytes, flags, to);
}

static int set_up(void **state)
{
	uint16_t others = OTHERS;

	(void)state;
	fails = NONE;
	joins = good_joins = parts = leaves = 0;
	device = memfd_create("function", MFD_CLOEXEC);
	return device < 0 || ftruncate(device, AT_CONFIG + 256) ||
	       pwrite(device, &others, sizeof(others), AT_CONFIG + PCI_COMMAND) != sizeof(others);
}

static int tear_down(void **state)
{
	(void)state;
	return close(device);
}

static struct weir_vfio *opened(void)
{
	struct weir_vfio *vfio;

	if (weir_vfio_open(&function, WEIR_VFIO_AUTO, &vfio))
		fail_msg("%s", weir_last_error());
	return vfio;
}

static void closed(struct weir_vfio *vfio, unsigned files)
{
	weir_vfio_close(vfio);
	assert_int_equal(test_files(), files);
	assert_int_equal(parts, 1);
	assert_int_equal(leaves, 1);
}

/* While it is open, until it is halted; other bits of the register are not ours. */
static void dma_is_allowed_and_ended(void **state)
{
	const unsigned ours = OTHERS | PCI_COMMAND_MEMORY | PCI_COMMAND_INTX_DISABLE;
	unsigned files = test_files();
	struct weir_vfio *vfio = opened();

	(void)state;
	assert_int_equal(command(), ours | PCI_COMMAND_MASTER);
	assert_int_equal(weir_vfio_halt(vfio), 0);
	assert_int_equal(command(), ours);
	assert_int_equal(weir_vfio_restart(vfio), 0);
	assert_int_equal(command(), ours | PCI_COMMAND_MASTER);
	closed(vfio, files);
	assert_int_equal(command(), ours);
}

/* Each mapping is of the registers, until it is taken back; what keeps its addresses reads as all ones. */
static void mappings_of_registers(void **state)
{
	unsigned files = test_files();
	struct weir_vfio *vfio = opened();
	volatile uint32_t *first, *again[2];
	void *made;
	size_t bytes;

	(void)state;
	first = weir_vfio_registers(vfio, &bytes);
	assert_int_equal(bytes, BAR_BYTES);
	first[5] = 77;
	assert_int_equal(word_of_bar(20), 77);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(weir_vfio_map_bar(vfio, &made), 0);
		assert_true(made != (void *)(uintptr_t)first);
		again[i] = made;
		assert_int_equal(again[i][5], 77);
	}
	weir_vfio_unmap_bar(vfio, (void *)(uintptr_t)again[0], true);
	assert_int_equal(again[0][5], UINT32_MAX);
	again[0][5] = 1;
	again[0][PAGE / 4] = 1;
	assert_int_equal(first[5], 77);
	assert_int_equal(word_of_bar(PAGE), 0);
	munmap((void *)(uintptr_t)again[0], BAR_BYTES);
	weir_vfio_unmap_bar(vfio, (void *)(uintptr_t)again[1], false);
	assert_int_equal(msync((void *)(uintptr_t)again[1], BAR_BYTES, MS_ASYNC), -1);
	first[5] = 78;
	assert_int_equal(word_of_bar(20), 78);
	closed(vfio, files);
}

/* DMA ends; registers read as those of a function that is gone; doorbells lead nowhere; the file is closed.
 */
static void what_the_system_wants_it_has(void **state)
{
	unsigned files = test_files();
	const uint64_t one = 1;
	struct weir_vfio *vfio = opened();
	volatile uint32_t *registers;
	size_t bytes;

	(void)state;
	registers = weir_vfio_registers(vfio, &bytes);
	registers[7] = 3;
	weir_vfio_give_way(vfio);
	assert_false(weir_vfio_wanted(vfio));
	assert_int_equal(registers[7], 3);
	assert_int_equal(write(asked, &one, sizeof(one)), sizeof(one));
	assert_true(weir_vfio_wanted(vfio));
	assert_true(weir_vfio_wanted(vfio)); /* until it has it */
	assert_true(command() & PCI_COMMAND_MASTER);
	weir_vfio_give_way(vfio);
	assert_false(command() & PCI_COMMAND_MASTER);
	assert_false(weir_vfio_wanted(vfio));
	for (unsigned i = 0; i < PAGE / 4; i++)
		assert_int_equal(registers[i], UINT32_MAX);
	registers[PAGE / 4] = 5;
	assert_int_equal(word_of_bar(PAGE), 0);
	assert_int_equal(word_of_bar(28), 3);
	assert_int_equal(test_files(), files);
	assert_int_equal(parts, 1);
	assert_int_equal(weir_vfio_restart(vfio), -ENODEV);
	assert_non_null(strstr(weir_last_error(), "the system took 0000:01:00.0 away"));
	assert_int_equal(weir_vfio_halt(vfio), 0);
	closed(vfio, files);
}

static void ask_for_it(void)
{
	const uint64_t one = 1;

	assert_int_equal(write(asked, &one, sizeof(one)), sizeof(one));
}

/* Nothing arrives in memory of requests that have ended: DMA ends first. Where registers cannot be replaced
 * the system waits, and asks again. */
static void dma_ends_before_registers_do(void **state)
{
	unsigned files = test_files(), open;
	struct weir_vfio *vfio = opened();
	volatile uint32_t *registers;
	size_t bytes;

	(void)state;
	registers = weir_vfio_registers(vfio, &bytes);
	registers[7] = 3;
	open = test_files();
	dma_is_to_have_ended = no_place = true;
	places = 0;
	ask_for_it();
	weir_vfio_give_way(vfio);
	assert_int_equal(places, 1);
	assert_int_equal(test_files(), open);
	assert_int_equal(parts, 0);
	assert_int_equal(registers[7], 3);
	weir_vfio_give_way(vfio); /* nobody has asked again */
	assert_int_equal(places, 1);
	no_place = false;
	ask_for_it();
	weir_vfio_give_way(vfio);
	assert_int_equal(places, 2);
	assert_int_equal(registers[7], UINT32_MAX);
	assert_int_equal(test_files(), files);
	dma_is_to_have_ended = false;
	closed(vfio, files);
}

/* Whatever step fails: it says so, does no DMA, and keeps nothing. */
static void an_open_that_fails_leaves_nothing(void **state)
{
	static const char *const words[STEPS] = {
		[JOIN] = "no space",
		[OPEN] = "no device file",
		[BAR] = "VFIO cannot describe the regions of 0000:01:00.0",
		[NO_MAPPING] = "VFIO does not map BAR 0 of 0000:01:00.0 (8192 bytes)",
		[CONFIG] = "VFIO cannot describe the regions of 0000:01:00.0",
		[IRQ] = "VFIO cannot report the removal of 0000:01:00.0",
		[NO_CONFIG] = "VFIO cannot read the configuration space of 0000:01:00.0",
	};
	unsigned files = test_files();
	struct weir_vfio *vfio;

	(void)state;
	for (fails = JOIN; fails < STEPS; fails++) {
		joins = good_joins = parts = leaves = 0;
		assert_true(weir_vfio_open(&function, WEIR_VFIO_AUTO, &vfio) < 0);
		assert_non_null(strstr(weir_last_error(), words[fails]));
		assert_int_equal(test_files(), files);
		assert_int_equal(joins, fails != JOIN);
		assert_int_equal(good_joins, fails > OPEN);
		assert_int_equal(parts, fails > OPEN);
		assert_int_equal(leaves, joins);
		assert_false(command() & PCI_COMMAND_MASTER);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(dma_is_allowed_and_ended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(mappings_of_registers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_the_system_wants_it_has, set_up, tear_down),
		cmocka_unit_test_setup_teardown(dma_ends_before_registers_do, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_open_that_fails_leaves_nothing, set_up, tear_down),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("vfio", tests, NULL, NULL);
}
