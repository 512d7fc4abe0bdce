/* SPDX-License-Identifier: BSD-3-Clause */
#include "driver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "../../backend/error.h"

enum { AWAIT_MS = 60000, POLL_EVERY_MS = 10, PATH_BYTES = 512 };

/* The driver's folder of the controller, or a file or folder in it. */
static void path_of(char path[PATH_BYTES], const struct weir_nvme_driver *driver, const char *name)
{
	snprintf(path, PATH_BYTES, "%s/sys/bus/pci/devices/%s/nvme/%s%s", driver->function.root,
		 driver->function.address, driver->name, name);
}

/* The first entry of a folder that @is; false if there is none. */
static bool find_entry(const char *path, bool (*is)(const char *folder, const char *name, uint32_t of),
		       uint32_t of, char name[WEIR_NVME_DRIVER_NAME])
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	bool found = false;

	while (folder && !found && (entry = readdir(folder))) {
		found = strlen(entry->d_name) < WEIR_NVME_DRIVER_NAME && is(path, entry->d_name, of);
		if (found)
			strcpy(name, entry->d_name);
	}
	if (folder)
		closedir(folder);
	return found;
}

static bool read_number(const char *path, unsigned *out)
{
	FILE *file = fopen(path, "re");
	bool good = file && fscanf(file, "%u", out) == 1;

	if (file)
		fclose(file);
	return good;
}

static bool is_controller(const char *folder, const char *name, uint32_t of)
{
	unsigned number;
	int end = 0;

	(void)folder;
	(void)of;
	return sscanf(name, "nvme%u%n", &number, &end) == 1 && !name[end];
}

static int other_driver(const struct weir_pcie *function)
{
	return weir_fail(EBUSY,
			 "storage \"%s\": %s %s%s, and driver=kernel is for one that the kernel's NVMe "
			 "driver has; as root: weir-bind "
			 "restore %s; or leave out driver=kernel",
			 function->storage, function->address,
			 function->driver[0] ? "is bound to the driver " : "has no driver", function->driver,
			 function->address);
}

static int read_numbers(struct weir_nvme_driver *driver)
{
	char path[PATH_BYTES];
	unsigned size;

	path_of(path, driver, "/queue_count");
	if (!read_number(path, &driver->queues))
		return weir_fail(EIO, "storage \"%s\": %s does not say how many queues the driver has",
				 driver->function.storage, path);
	path_of(path, driver, "/sqsize");
	if (!read_number(path, &size))
		return weir_fail(EIO, "storage \"%s\": %s does not say how large queues may be",
				 driver->function.storage, path);
	driver->most_entries = size + 1;
	return 0;
}

static int open_files(struct weir_nvme_driver *driver)
{
	char path[PATH_BYTES];

	path_of(path, driver, "/state");
	driver->state = open(path, O_RDONLY | O_CLOEXEC);
	if (driver->state < 0)
		return weir_fail(errno, "storage \"%s\": cannot open %s: %s", driver->function.storage, path,
				 strerror(errno));
	snprintf(path, sizeof(path), "%s/dev/%s", driver->function.root, driver->name);
	driver->device = open(path, O_RDWR | O_CLOEXEC);
	if (driver->device < 0)
		return weir_fail(errno,
				 "storage \"%s\": cannot open %s: %s; queues are created there, which is an "
				 "administrator's to do",
				 driver->function.storage, path, strerror(errno));
	return 0;
}

int weir_nvme_driver_open(const char *root, const char *storage, struct weir_pci address,
			  struct weir_nvme_driver *out)
{
	char path[PATH_BYTES];
	int error;

	*out = (struct weir_nvme_driver){ .device = -1, .state = -1 };
	error = weir_pcie_find(root, storage, address, &out->function);
	if (error)
		return error;
	if (strcmp(out->function.driver, "nvme") != 0)
		return other_driver(&out->function);
	path_of(path, out, "");
	if (!find_entry(path, is_controller, 0, out->name))
		return weir_fail(EAGAIN,
				 "storage \"%s\": the kernel's driver has %s, but nothing in %s: it has not "
				 "started it, or has given "
				 "it up",
				 storage, out->function.address, path);
	error = read_numbers(out);
	return error ? error : open_files(out);
}

void weir_nvme_driver_close(struct weir_nvme_driver *driver)
{
	if (driver->device >= 0)
		close(driver->device);
	if (driver->state >= 0)
		close(driver->state);
	driver->device = driver->state = -1;
}

enum weir_nvme_driver_state weir_nvme_driver_state(const struct weir_nvme_driver *driver)
{
	char text[32];
	ssize_t bytes = pread(driver->state, text, sizeof(text) - 1, 0);

	text[bytes > 0 ? bytes : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (!strcmp(text, "live"))
		return WEIR_NVME_DRIVER_LIVE;
	return !strcmp(text, "new") || !strcmp(text, "resetting") || !strcmp(text, "connecting")
		       ? WEIR_NVME_DRIVER_BUSY
		       : WEIR_NVME_DRIVER_GONE;
}

int weir_nvme_driver_await(const struct weir_nvme_driver *driver)
{
	enum weir_nvme_driver_state state = weir_nvme_driver_state(driver);

	for (int ms = 0; state == WEIR_NVME_DRIVER_BUSY && ms < AWAIT_MS; ms += POLL_EVERY_MS) {
		nanosleep(&(struct timespec){ .tv_nsec = POLL_EVERY_MS * 1000000L }, NULL);
		state = weir_nvme_driver_state(driver);
	}
	if (state == WEIR_NVME_DRIVER_GONE)
		return weir_fail(ENODEV,
				 "storage \"%s\": the kernel's driver has %s no longer, or has given it up",
				 driver->function.storage, driver->function.address);
	if (state == WEIR_NVME_DRIVER_BUSY)
		return weir_fail(ETIMEDOUT,
				 "storage \"%s\": the kernel's driver has been resetting %s for %d s",
				 driver->function.storage, driver->name, AWAIT_MS / 1000);
	return 0;
}

/* Of an ioctl of the device file. */
static int not_sent(const struct weir_nvme_driver *driver, int error, const char *what)
{
	if (error == EACCES || error == EPERM)
		return weir_fail(EPERM,
				 "storage \"%s\": /dev/%s takes no %s from this process, which lacks "
				 "CAP_SYS_ADMIN: run as root",
				 driver->function.storage, driver->name, what);
	return weir_fail(error, "storage \"%s\": /dev/%s takes no %s: %s", driver->function.storage,
			 driver->name, what, strerror(error));
}

int weir_nvme_driver_admin(const struct weir_nvme_driver *driver, const struct nvme_sqe *command,
			   uint32_t *result)
{
	struct nvme_admin_cmd call = {
		.opcode = (uint8_t)command->cdw0,
		.nsid = command->nsid,
		.addr = command->prp1,
		.data_len = command->prp1 ? NVME_PAGE_BYTES : 0,
		.cdw10 = command->cdw10,
		.cdw11 = command->cdw11,
	};
	int status = ioctl(driver->device, NVME_IOCTL_ADMIN_CMD,
			   &call); /* the driver's own time limit, after which it resets */

	if (status < 0)
		return not_sent(driver, errno, "admin commands");
	*result = call.result;
	return status;
}

int weir_nvme_driver_reset(const struct weir_nvme_driver *driver)
{
	return ioctl(driver->device, NVME_IOCTL_RESET) < 0 ? not_sent(driver, errno, "reset") : 0;
}

static bool is_namespace(const char *folder, const char *name, uint32_t nsid)
{
	char path[2 * PATH_BYTES];
	unsigned number;

	snprintf(path, sizeof(path), "%s/%s/nsid", folder, name);
	return !strncmp(name, "nvme", 4) && read_number(path, &number) && number == nsid;
}

/*
 * Where a namespace can have several controllers (nvme_core.multipath), this one's is nvme0c1n1, which is
 * hidden: what is opened is nvme0n1.
 */
bool weir_nvme_driver_disk(const struct weir_nvme_driver *driver, uint32_t nsid,
			   char disk[WEIR_NVME_DRIVER_NAME])
{
	unsigned subsystem, controller, number;
	char path[PATH_BYTES];

	path_of(path, driver, "");
	if (!find_entry(path, is_namespace, nsid, disk))
		return false;
	if (sscanf(disk, "nvme%uc%un%u", &subsystem, &controller, &number) == 3)
		snprintf(disk, WEIR_NVME_DRIVER_NAME, "nvme%un%u", subsystem, number);
	return true;
}
