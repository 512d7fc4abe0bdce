/* SPDX-License-Identifier: BSD-3-Clause */
/* pcie_test.c: what stands in the way of a PCI function, over folders that look like a system's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#include "../../rig/leaks.h"
#include "transport/nvme/driver.h"
#include "transport/nvme/pcie.h"
#include "transport/nvme/vfio.h"

static char root[64];

/* All folders on the way to @path, which begins with a slash. */
static void folders(char *path, const char *name)
{
	snprintf(path, 512, "%s%s", root, name);
	for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0755);
		*slash = '/';
	}
}

static void put(const char *name, const char *text)
{
	char path[512];
	FILE *file;

	folders(path, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void put_link(const char *name, const char *target)
{
	char path[512];

	folders(path, name);
	unlink(path);
	assert_int_equal(symlink(target, path), 0);
}

#define DEVICES "/sys/bus/pci/devices/"

/* Function @address of class @class, with a driver and a group unless they are NULL. */
static void put_function(const char *address, const char *class, const char *driver, const char *group)
{
	char name[256], target[256];

	snprintf(name, sizeof(name), DEVICES "%s/class", address);
	put(name, class);
	snprintf(name, sizeof(name), DEVICES "%s/driver", address);
	snprintf(target, sizeof(target), "../../../bus/pci/drivers/%s", driver ? driver : "");
	if (driver)
		put_link(name, target);
	snprintf(name, sizeof(name), DEVICES "%s/iommu_group", address);
	snprintf(target, sizeof(target), "../../../kernel/iommu_groups/%s", group ? group : "");
	if (group)
		put_link(name, target);
	snprintf(name, sizeof(name), "/sys/kernel/iommu_groups/%s/devices/%s", group ? group : "", address);
	if (group)
		put(name, "");
}

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/weir-pcie-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static int poll(const char *address, struct weir_pcie *out)
{
	struct weir_pci parsed;

	assert_true(weir_pci_parse(address, &parsed));
	return weir_pcie_read(root, "nvme:it", parsed, out);
}

static void expect(int error, int expected, const char *sentence)
{
	assert_int_equal(error, -expected);
	assert_string_equal(weir_last_error(), sentence);
}

static void test_a_controller_that_is_ready(void **state)
{
	struct weir_pcie out;

	(void)state;
	put_function("0000:65:00.0", "0x010802\n", "vfio-pci", "12");
	assert_int_equal(poll("65:00.0", &out), 0);
	assert_string_equal(out.address, "0000:65:00.0");
	assert_string_equal(out.driver, "vfio-pci");
	assert_int_equal(out.class, 0x010802);
	assert_int_equal(out.group, 12);
}

static void test_nothing_there(void **state)
{
	struct weir_pcie out;

	(void)state;
	expect(poll("65:00.0", &out), ENODEV,
	       "storage \"nvme:it\": there is no PCI device 0000:65:00.0; NVMe controllers here: none");
	put_function("0000:81:00.0", "0x010802\n", NULL, NULL);
	put_function("0001:01:00.0", "0x010802\n", NULL, NULL);
	put_function("0000:02:00.0", "0x020000\n", NULL, NULL);
	expect(poll("65:00.0", &out), ENODEV,
	       "storage \"nvme:it\": there is no PCI device 0000:65:00.0; NVMe controllers here: "
	       "0000:81:00.0, 0001:01:00.0");
	expect(poll("2:0.0", &out), ENODEV,
	       "storage \"nvme:it\": 0000:02:00.0 is no NVMe controller (its PCI class is 020000); "
	       "NVMe controllers here: 0000:81:00.0, 0001:01:00.0");
}

/* An interface of the same class that is no NVMe, and what it would be taken for. */
static void test_another_interface(void **state)
{
	struct weir_pcie out;

	(void)state;
	put_function("0000:67:00.0", "0x010801\n", "vfio-pci", "13");
	assert_int_equal(poll("67:00.0", &out), -ENODEV);
	assert_non_null(
		strstr(weir_last_error(), "0000:67:00.0 is no NVMe controller (its PCI class is 010801)"));
}

static void test_another_driver(void **state)
{
	struct weir_pcie out;

	(void)state;
	put_function("0000:65:00.0", "0x010802\n", "nvme", "12");
	expect(poll("65:00.0", &out), EBUSY,
	       "storage \"nvme:it\": 0000:65:00.0 is bound to the driver nvme; as root: weir-bind bind "
	       "0000:65:00.0, which takes "
	       "it away from the system unless it is in use; or leave it there (driver=kernel, "
	       "docs/kernel.md)");
	put_function("0000:66:00.0", "0x010802\n", NULL, "13");
	expect(poll("66:00.0", &out), EBUSY,
	       "storage \"nvme:it\": 0000:66:00.0 has no driver; as root: weir-bind bind 0000:66:00.0");
}

static void test_no_iommu(void **state)
{
	struct weir_pcie out;

	(void)state;
	put_function("0000:65:00.0", "0x010802\n", "vfio-pci", NULL);
	expect(poll("65:00.0", &out), ENOTSUP,
	       "storage \"nvme:it\": 0000:65:00.0 is in no IOMMU group, so nothing would confine its DMA; "
	       "switch the IOMMU on in "
	       "the firmware and for the kernel (intel_iommu=on where it is not the default)");
}

static void test_who_shares_a_group(void **state)
{
	struct weir_pcie out;

	(void)state;
	put_function("0000:65:00.0", "0x010802\n", "vfio-pci", "12");
	put_function("0000:65:00.1", "0x020000\n", "ixgbe", "12");
	put_function("0000:64:00.0", "0x060400\n", "pcieport", "12");
	put_function("0000:66:00.0", "0x010802\n", "nvme", "12");
	put_function("0000:67:00.0", "0x010802\n", NULL, "12");
	assert_int_equal(poll("65:00.0", &out), 0);
	expect(weir_pcie_group_fail(&out), EBUSY,
	       "storage \"nvme:it\": 0000:65:00.0 shares IOMMU group 12 with devices that other drivers "
	       "have: 0000:65:00.1 "
	       "(ixgbe), 0000:66:00.0 (nvme); bind them to vfio-pci too, or move the controller to another "
	       "slot");
}

static void test_vfio_files(void **state)
{
	struct weir_pcie out;

	(void)state;
	put_function("0000:65:00.0", "0x010802\n", "vfio-pci", "12");
	assert_int_equal(poll("65:00.0", &out), 0);
	expect(weir_pcie_vfio_fail(&out, "vfio", ENOENT), ENODEV,
	       "storage \"nvme:it\": there is no /dev/vfio/vfio; as root: modprobe vfio-pci "
	       "vfio_iommu_type1; in a container, pass "
	       "/dev/vfio in");
	expect(weir_pcie_vfio_fail(&out, "12", EACCES), EACCES,
	       "storage \"nvme:it\": no permission to open /dev/vfio/12; the queues of a controller are all "
	       "of its data, so an "
	       "administrator grants them (chown USER /dev/vfio/12), or run as root");
	expect(weir_pcie_vfio_fail(&out, "12", EBUSY), EBUSY,
	       "storage \"nvme:it\": /dev/vfio/12 is open already: another program has a device "
	       "of IOMMU group 12");
	put("/dev/vfio/noiommu-12", "");
	expect(weir_pcie_vfio_fail(&out, "12", ENOENT), ENOTSUP,
	       "storage \"nvme:it\": 0000:65:00.0 is bound without an IOMMU (/dev/vfio/noiommu-12), which "
	       "weir does not drive; "
	       "switch the IOMMU on");
}

#define OPEN_DEVICE                                                                                          \
	"storage \"nvme:it\": /dev/vfio/devices/vfio3 is open already: another program has "                 \
	"a device of IOMMU group 12"

#define SHARED                                                                                               \
	"storage \"nvme:it\": 0000:65:00.0 shares IOMMU group 12 with devices that other drivers have: "     \
	"0000:65:00.1 "                                                                                      \
	"(ixgbe); bind them to vfio-pci too, or move the controller to another slot"

static void test_device_files(void **state)
{
	char node[WEIR_PCIE_NODE];
	struct weir_pcie out;

	(void)state;
	put_function("0000:65:00.0", "0x010802\n", "vfio-pci", "12");
	assert_int_equal(poll("65:00.0", &out), 0);
	put(DEVICES "0000:65:00.0/vfio-dev/vfio3/uevent",
	    ""); /* as of Linux 6.1, which has no files for them */
	assert_false(weir_pcie_device_node(&out, node));
	assert_false(weir_pcie_iommufd_permitted(&out));
	put(DEVICES "0000:65:00.0/vfio-dev/vfio3/dev", "511:0\n");
	assert_true(weir_pcie_device_node(&out, node));
	assert_string_equal(node, "devices/vfio3");
	assert_false(weir_pcie_iommufd_permitted(&out));
	put("/dev/vfio/devices/vfio3", "");
	assert_false(weir_pcie_iommufd_permitted(&out));
	put("/dev/iommu", "");
	assert_true(weir_pcie_iommufd_permitted(&out));
	expect(weir_pcie_vfio_fail(&out, node, EBUSY), EBUSY, OPEN_DEVICE);
	expect(weir_pcie_iommu_fail(&out, EACCES), EACCES,
	       "storage \"nvme:it\": no permission to open /dev/iommu, which takes no device from anybody; "
	       "an administrator grants it "
	       "(chmod 666 /dev/iommu), or run as root, or use vfio=group");
	expect(weir_pcie_denied_fail(&out), EPERM,
	       "storage \"nvme:it\": the IOMMU of 0000:65:00.0 does not remap interrupts, so VFIO refuses "
	       "it; switch that on in "
	       "the firmware (or, trusting all programs that use VFIO, load iommufd with "
	       "allow_unsafe_interrupts=1)");
	put_function("0000:65:00.2", "0x010802\n", "vfio-pci", "12");
	expect(weir_pcie_denied_fail(&out), EBUSY,
	       "storage \"nvme:it\": another program has a device of IOMMU group 12 (0000:65:00.2 "
	       "beside 0000:65:00.0), which it has to close first; or the IOMMU does not remap interrupts, "
	       "which VFIO insists on");
	put_function("0000:65:00.1", "0x020000\n", "ixgbe", "12");
	expect(weir_pcie_denied_fail(&out), EBUSY, SHARED);
	expect(weir_pcie_vfio_fail(&out, node, EBUSY), EBUSY, SHARED);
}

/* Which way is tried, seen from what is missing first. */
static void test_ways(void **state)
{
	struct weir_pcie out;
	struct weir_vfio *vfio;

	(void)state;
	put_function("0000:65:00.0", "0x010802\n", "vfio-pci", "12");
	assert_int_equal(poll("65:00.0", &out), 0);
	expect(weir_vfio_open(&out, WEIR_VFIO_IOMMUFD, &vfio), ENOTSUP,
	       "storage \"nvme:it\": 0000:65:00.0 has no device file below /dev/vfio/devices: that takes "
	       "Linux 6.6 or later, built with "
	       "VFIO_DEVICE_CDEV and IOMMUFD; vfio=group uses /dev/vfio/12 instead");
#define NO_GROUP                                                                                             \
	"storage \"nvme:it\": there is no /dev/vfio/vfio; as root: modprobe vfio-pci vfio_iommu_type1; in "  \
	"a container, pass "                                                                                 \
	"/dev/vfio in"
	expect(weir_vfio_open(&out, WEIR_VFIO_AUTO, &vfio), ENODEV, NO_GROUP);
	put(DEVICES "0000:65:00.0/vfio-dev/vfio3/dev", "511:0\n");
	expect(weir_vfio_open(&out, WEIR_VFIO_AUTO, &vfio), ENODEV, NO_GROUP);
	expect(weir_vfio_open(&out, WEIR_VFIO_IOMMUFD, &vfio), ENODEV,
	       "storage \"nvme:it\": there is no /dev/vfio/devices/vfio3; in a container, pass "
	       "/dev/vfio/devices in; or use vfio=group");
	put("/dev/vfio/devices/vfio3", "");
	expect(weir_vfio_open(&out, WEIR_VFIO_AUTO, &vfio), ENODEV, NO_GROUP);
	expect(weir_vfio_open(&out, WEIR_VFIO_IOMMUFD, &vfio), ENODEV,
	       "storage \"nvme:it\": there is no /dev/iommu; as root: modprobe iommufd; in a container, pass "
	       "it in; or use vfio=group");
	put("/dev/iommu", "");
	expect(weir_vfio_open(&out, WEIR_VFIO_GROUP, &vfio), ENODEV, NO_GROUP);
	/* Files that are none of VFIO's. */
	expect(weir_vfio_open(&out, WEIR_VFIO_AUTO, &vfio), ENOTTY,
	       "storage \"nvme:it\": VFIO cannot use the IOMMU of 0000:65:00.0: Inappropriate ioctl for "
	       "device");
}

/* A controller that the kernel's driver has as nvme3, and what sysfs says of it. */
static void put_driven(const char *state)
{
	put_function("0000:65:00.0", "0x010802\n", "nvme", NULL);
	put(DEVICES "0000:65:00.0/nvme/nvme3/state", state);
	put(DEVICES "0000:65:00.0/nvme/nvme3/queue_count", "9\n");
	put(DEVICES "0000:65:00.0/nvme/nvme3/sqsize", "1023\n");
	put("/dev/nvme3", "");
}

static int open_driven(struct weir_nvme_driver *out)
{
	struct weir_pci address;

	assert_true(weir_pci_parse("65:00.0", &address));
	return weir_nvme_driver_open(root, "nvme:it", address, out);
}

/* Time passes in naps alone; the driver has its controller back when @back_after_ns of them are over. */
static bool naps_are_counted;
static uint64_t slept_ns, back_after_ns;

int nanosleep(const struct timespec *time, struct timespec *left)
{
	if (!naps_are_counted)
		return (int)syscall(SYS_nanosleep, time, left);
	slept_ns += (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
	if (slept_ns == back_after_ns)
		put(DEVICES "0000:65:00.0/nvme/nvme3/state", "live\n");
	return 0;
}

/* A minute, and no longer. */
static void test_a_reset_of_the_kernels_driver_is_waited_for(void **state)
{
	const uint64_t minute_ns = 60000000000;
	struct weir_nvme_driver driver;

	(void)state;
	put_driven("resetting\n");
	assert_int_equal(open_driven(&driver), 0);
	naps_are_counted = true;
	for (back_after_ns = minute_ns; back_after_ns > minute_ns / 8; back_after_ns /= 2) {
		put(DEVICES "0000:65:00.0/nvme/nvme3/state", "resetting\n");
		slept_ns = 0;
		assert_int_equal(weir_nvme_driver_await(&driver), 0);
		assert_true(slept_ns == back_after_ns);
	}
	back_after_ns = slept_ns = 0;
	put(DEVICES "0000:65:00.0/nvme/nvme3/state", "connecting\n");
	expect(weir_nvme_driver_await(&driver), ETIMEDOUT,
	       "storage \"nvme:it\": the kernel's driver has been resetting nvme3 for 60 s");
	assert_true(slept_ns == minute_ns);
	naps_are_counted = false;
	weir_nvme_driver_close(&driver);
}

static void test_the_kernels_driver(void **state)
{
	static const struct {
		const char *text;
		enum weir_nvme_driver_state is;
	} states[] = {
		{ "new\n", WEIR_NVME_DRIVER_BUSY },        { "resetting\n", WEIR_NVME_DRIVER_BUSY },
		{ "connecting\n", WEIR_NVME_DRIVER_BUSY }, { "deleting\n", WEIR_NVME_DRIVER_GONE },
		{ "dead\n", WEIR_NVME_DRIVER_GONE },       { "", WEIR_NVME_DRIVER_GONE },
		{ "live\n", WEIR_NVME_DRIVER_LIVE },
	};
	struct weir_nvme_driver driver;

	(void)state;
	put_driven("live\n");
	assert_int_equal(open_driven(&driver), 0);
	assert_string_equal(driver.name, "nvme3");
	assert_int_equal(driver.queues, 9);
	assert_int_equal(driver.most_entries, 1024);
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		put(DEVICES "0000:65:00.0/nvme/nvme3/state", states[i].text);
		assert_int_equal(weir_nvme_driver_state(&driver), states[i].is);
	}
	assert_int_equal(weir_nvme_driver_await(&driver), 0);
	put(DEVICES "0000:65:00.0/nvme/nvme3/state", "dead\n");
	expect(weir_nvme_driver_await(&driver), ENODEV,
	       "storage \"nvme:it\": the kernel's driver has 0000:65:00.0 no longer, or has given it up");
	expect(weir_nvme_driver_admin(&driver, &(struct nvme_sqe){ .cdw0 = NVME_ADMIN_IDENTIFY },
				      &(uint32_t){ 0 }),
	       ENOTTY,
	       "storage \"nvme:it\": /dev/nvme3 takes no admin commands: Inappropriate ioctl for device");
	expect(weir_nvme_driver_reset(&driver), ENOTTY,
	       "storage \"nvme:it\": /dev/nvme3 takes no reset: Inappropriate ioctl for device");
	weir_nvme_driver_close(&driver);
}

/* A driver that answers, in the place of /dev/nvme3: what it was given, and what it says. */
static bool driver_answers;
static struct nvme_admin_cmd given;
static int answer, answer_error;
static unsigned resets_asked;

int ioctl(int file, unsigned long call, ...)
{
	va_list list;
	void *argument;

	va_start(list, call);
	argument = va_arg(list, void *);
	va_end(list);
	if (!driver_answers)
		return (int)syscall(SYS_ioctl, file, call, argument);
	if (answer_error)
		return errno = answer_error, -1;
	if (call == NVME_IOCTL_RESET)
		return resets_asked++, 0;
	assert_int_equal(call, NVME_IOCTL_ADMIN_CMD);
	given = *(struct nvme_admin_cmd *)argument;
	((struct nvme_admin_cmd *)argument)->result = 77;
	return answer;
}

/* All of a command goes to the driver, with a page where it has one; what comes of it is the caller's. */
static void test_commands_by_the_kernels_driver(void **state)
{
	const struct nvme_sqe command = { .cdw0 = NVME_ADMIN_SET_FEATURES | 5u << 16,
					  .nsid = 3,
					  .prp1 = ((uint64_t)7 << 32) + 4096,
					  .cdw10 = 11,
					  .cdw11 = 12 };
	struct nvme_sqe bare = command;
	struct weir_nvme_driver driver;
	uint32_t result = 0;

	(void)state;
	put_driven("live\n");
	assert_int_equal(open_driven(&driver), 0);
	driver_answers = true;
	assert_int_equal(weir_nvme_driver_admin(&driver, &command, &result), 0);
	assert_int_equal(result, 77);
	assert_int_equal(given.opcode, NVME_ADMIN_SET_FEATURES);
	assert_int_equal(given.nsid, 3);
	assert_true(given.addr == ((uint64_t)7 << 32) + 4096);
	assert_int_equal(given.data_len, 4096);
	assert_int_equal(given.cdw10, 11);
	assert_int_equal(given.cdw11, 12);
	bare.prp1 = 0;
	answer = NVME_STATUS_INVALID_FIELD | NVME_STATUS_DNR;
	assert_int_equal(weir_nvme_driver_admin(&driver, &bare, &result), answer);
	assert_int_equal(given.data_len, 0);
	answer = 0;
	assert_int_equal(weir_nvme_driver_reset(&driver), 0);
	assert_int_equal(resets_asked, 1);
	answer_error = EACCES;
	assert_int_equal(weir_nvme_driver_admin(&driver, &command, &result), -EPERM);
	assert_non_null(strstr(weir_last_error(), "which lacks CAP_SYS_ADMIN"));
	answer_error = EBUSY;
	assert_int_equal(weir_nvme_driver_reset(&driver), -EBUSY);
	answer_error = 0;
	driver_answers = false;
	weir_nvme_driver_close(&driver);
}

/* Opened and closed, or not opened after all: no file stays open. */
static void test_the_kernels_driver_let_go(void **state)
{
	struct weir_nvme_driver driver;
	struct test_has before;
	char path[512];

	(void)state;
	put_driven("live\n");
	before = test_has();
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(open_driven(&driver), 0);
		weir_nvme_driver_close(&driver);
	}
	folders(path, "/dev/nvme3");
	unlink(path);
	assert_int_equal(open_driven(&driver), -ENOENT);
	weir_nvme_driver_close(&driver);
	test_keeps(before, 1 << 20);
}

static void test_no_driver_of_the_kernels(void **state)
{
	struct weir_nvme_driver driver;
	char path[512];

	(void)state;
	put_function("0000:65:00.0", "0x010802\n", "vfio-pci", "12");
	expect(open_driven(&driver), EBUSY,
	       "storage \"nvme:it\": 0000:65:00.0 is bound to the driver vfio-pci, and driver=kernel is for "
	       "one that the kernel's NVMe "
	       "driver has; as root: weir-bind restore 0000:65:00.0; or leave out driver=kernel");
	put_function("0000:65:00.0", "0x010802\n", "nvme", NULL);
	assert_int_equal(open_driven(&driver), -EAGAIN);
	assert_non_null(strstr(weir_last_error(), "it has not started it, or has given it up"));
	put_driven("live\n");
	folders(path, "/dev/nvme3");
	unlink(path);
	assert_int_equal(open_driven(&driver), -ENOENT);
	assert_non_null(
		strstr(weir_last_error(), "/dev/nvme3: No such file or directory; queues are created there"));
	weir_nvme_driver_close(&driver);
}

static void test_disks_of_namespaces(void **state)
{
	struct weir_nvme_driver driver;
	char disk[WEIR_NVME_DRIVER_NAME];

	(void)state;
	put_driven("live\n");
	put(DEVICES "0000:65:00.0/nvme/nvme3/nvme3n1/nsid", "4\n");
	put(DEVICES "0000:65:00.0/nvme/nvme3/nvme7c3n2/nsid", "5\n");
	put(DEVICES "0000:65:00.0/nvme/nvme3/hwmon1/nsid", "6\n");
	assert_int_equal(open_driven(&driver), 0);
	assert_true(weir_nvme_driver_disk(&driver, 4, disk));
	assert_string_equal(disk, "nvme3n1");
	assert_true(weir_nvme_driver_disk(&driver, 5, disk));
	assert_string_equal(disk, "nvme7n2");
	assert_false(weir_nvme_driver_disk(&driver, 6, disk));
	assert_false(weir_nvme_driver_disk(&driver, 1, disk));
	weir_nvme_driver_close(&driver);
}

static void test_uris(void **state)
{
	static const struct {
		const char *uri, *says;
	} bad[] = {
		{ "nvme:65", "\"65\" is no PCI address" },
		{ "nvme:0000:65:00.9", "is no PCI address" },
		{ "nvme:65:00.0?nsid=0", "nsid is a whole number from 1" },
		{ "nvme:65:00.0?queues=2000", "queues is a whole number from 1 to 1024" },
		{ "nvme:65:00.0?block=512",
		  "nvme: knows nsid, queues, ro, mover, shadow, doorbell, gpu_memory, driver, in_use, vfio" },
		{ "nvme:65:00.0?gpu_memory=all", "gpu_memory is none, data or queues" },
		{ "nvme:65:00.0?gpu_memory=queues",
		  "gpu_memory is for a context whose device memory is a device's BAR" },
		{ "nvme:65:00.0?driver=nvme", "driver is vfio or kernel" },
		{ "nvme:65:00.0?driver=kernel&in_use=write", "in_use is refuse or allow" },
		{ "nvme:65:00.0?driver=kernel&gpu_memory=none",
		  "leave out gpu_memory, or say gpu_memory=queues" },
		{ "nvme:65:00.0?driver=kernel&mover=pull", "mover=pull leaves data in the host's memory" },
		{ "nvme:65:00.0?driver=kernel&vfio=group", "two ways to a controller" },
		{ "nvme:fffffff:ff:1f.7?driver=kernel", "there is no PCI device fffffff:ff:1f.7" },
		{ "nvme:65:00.0?vfio=cdev", "vfio is auto, group or iommufd" },
		{ "nvme:fffffff:ff:1f.7", "there is no PCI device fffffff:ff:1f.7" },
	};
	struct weir_context *context;

	(void)state;
	assert_int_equal(weir_context_open("cpu", NULL, &context), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct weir_storage *storage;

		assert_int_not_equal(weir_storage_open(context, bad[i].uri, NULL, &storage), 0);
		if (!strstr(weir_last_error(), bad[i].says))
			fail_msg("%s: %s", bad[i].uri, weir_last_error());
	}
	weir_context_close(context);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_controller_that_is_ready),
		CASE(test_nothing_there),
		CASE(test_another_driver),
		CASE(test_another_interface),
		CASE(test_no_iommu),
		CASE(test_who_shares_a_group),
		CASE(test_vfio_files),
		CASE(test_device_files),
		CASE(test_ways),
		CASE(test_the_kernels_driver),
		CASE(test_a_reset_of_the_kernels_driver_is_waited_for),
		CASE(test_commands_by_the_kernels_driver),
		CASE(test_the_kernels_driver_let_go),
		CASE(test_no_driver_of_the_kernels),
		CASE(test_disks_of_namespaces),
		cmocka_unit_test(test_uris),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("pcie", tests, NULL, NULL);
}
