/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcie.h: what the system says of a PCI function, and whether a driver of ours may have it.
 *
 * Owns: reading sysfs, and sentences about what stands in the way. Changes nothing:
 * drivers are bound by administrators.
 */
#ifndef WEIR_TRANSPORT_PCIE_H
#define WEIR_TRANSPORT_PCIE_H

#include <stdbool.h>

#include "../../device/gpus.h" /* struct weir_pci */

enum { WEIR_PCIE_DRIVER = 32, WEIR_PCIE_PATH = 256, WEIR_PCIE_NODE = 32 };

/**
 * struct weir_pcie - a PCI function
 * @root: folder that holds the sys, proc and dev to look at: "", or a test's
 * @storage: URI, for sentences
 * @address: as sysfs writes it
 * @driver: that it is bound to; "" without one
 * @class: class, subclass and interface, such as 0x010802
 * @group: its IOMMU group; -1 if it has none
 */
struct weir_pcie {
	const char *root;
	const char *storage;
	char address[WEIR_PCI_TEXT];
	char driver[WEIR_PCIE_DRIVER];
	uint32_t class;
	int group;
};

/** weir_pcie_find() - an NVMe controller, whatever driver it has; as weir_pcie_read(), with group left at -1
 */
int weir_pcie_find(const char *root, const char *storage, struct weir_pci address, struct weir_pcie *out);

/**
 * weir_pcie_read() - an NVMe controller that is bound to vfio-pci and has an IOMMU group
 * @root: as in struct weir_pcie, as is @storage; both must stay
 * @address: of the function
 * @out: filled in
 *
 * Return: 0; -ENODEV if there is none, or it is something else; -EBUSY if the kernel's or
 * another driver has it, and how to bind it; -ENOTSUP without an IOMMU.
 */
int weir_pcie_read(const char *root, const char *storage, struct weir_pci address, struct weir_pcie *out);

/** weir_pcie_group_fail() - -EBUSY with a sentence: @function's group is not viable, because of these members
 */
int weir_pcie_group_fail(const struct weir_pcie *function);

/** weir_pcie_vfio_fail() - why /dev/vfio/@node cannot be opened, which said @error; -@error with a sentence
 */
int weir_pcie_vfio_fail(const struct weir_pcie *function, const char *node, int error);

/** weir_pcie_device_node() - its own file below /dev/vfio, such as devices/vfio0; false where the kernel has
 * none */
bool weir_pcie_device_node(const struct weir_pcie *function, char node[WEIR_PCIE_NODE]);

/** weir_pcie_iommufd_permitted() - that file and /dev/iommu are there, and may be opened */
bool weir_pcie_iommufd_permitted(const struct weir_pcie *function);

/** weir_pcie_no_node_fail() - -ENOTSUP with a sentence: it has no file of its own */
int weir_pcie_no_node_fail(const struct weir_pcie *function);

/** weir_pcie_iommu_fail() - why /dev/iommu cannot be opened, which said @error; a negative errno with a
 * sentence */
int weir_pcie_iommu_fail(const struct weir_pcie *function, int error);

/** weir_pcie_interrupts_fail() - -EPERM with a sentence: interrupts are not remapped, and @module insists on
 * it */
int weir_pcie_interrupts_fail(const struct weir_pcie *function, const char *module);

/** weir_pcie_denied_fail() - why iommufd may not have it (EPERM): its group's drivers or users, or the above;
 * a negative errno */
int weir_pcie_denied_fail(const struct weir_pcie *function);

#endif
