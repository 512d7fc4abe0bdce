/* SPDX-License-Identifier: BSD-3-Clause */
/* driver.c: who moves the bytes of a file, where that is no SSD of this machine. */
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "module.h"

/* As linux/magic.h and the kernel's client of SMB have them. */
#define NFS_MAGIC  0x6969
#define SMB2_MAGIC 0xfe534d42

static struct file_driver of_file_system(int file)
{
	struct statfs system;

	if (fstatfs(file, &system))
		return (struct file_driver){ NULL, false };
	switch ((unsigned)system.f_type) {
	case NFS_MAGIC: return (struct file_driver){ "the NFS client", true };
	case SMB2_MAGIC: return (struct file_driver){ "the SMB client", true };
	default: return (struct file_driver){ NULL, false };
	}
}

static struct file_driver of_transport(const char *path)
{
	char transport[16] = "";
	FILE *file = fopen(path, "re");

	if (file && !fgets(transport, sizeof(transport), file))
		transport[0] = '\0';
	if (file)
		fclose(file);
	transport[strcspn(transport, "\n")] = '\0';
	if (!strcmp(transport, "tcp"))
		return (struct file_driver){ "the NVMe/TCP host", true };
	if (!strcmp(transport, "rdma"))
		return (struct file_driver){ "the NVMe/RDMA host", false };
	return (struct file_driver){ NULL, false };
}

/* A namespace or a partition of one, of a controller or, where it may have several, of a subsystem. */
static struct file_driver of_block_device(dev_t device)
{
	struct file_driver driver = { NULL, false };
	glob_t found = { 0 };
	char pattern[96];

	snprintf(pattern, sizeof(pattern), "/sys/dev/block/%u:%u/{,../}device/{,nvme*/}transport",
		 major(device), minor(device));
	if (!glob(pattern, GLOB_BRACE | GLOB_NOSORT, NULL, &found) && found.gl_pathc)
		driver = of_transport(found.gl_pathv[0]);
	globfree(&found);
	return driver;
}

struct file_driver file_driver_of(int file)
{
	struct stat status;
	dev_t device;

	if (fstat(file, &status))
		return (struct file_driver){ NULL, false };
	device = S_ISBLK(status.st_mode) ? status.st_rdev : status.st_dev;
	return major(device) ? of_block_device(device) : of_file_system(file);
}
