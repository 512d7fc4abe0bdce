/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vfio.h: a PCI function through VFIO: its registers, and an IOMMU of its own.
 *
 * Owns: what VFIO gives (Documentation/driver-api/vfio.rst of Linux), BAR 0, bus mastering, giving the
 * function back when the system wants it. Knows nothing of NVMe. Memory is mapped at the addresses it has
 * in this process, which is what weir_bus_of() says.
 */
#ifndef WEIR_TRANSPORT_VFIO_H
#define WEIR_TRANSPORT_VFIO_H

#include <stddef.h>
#include <stdint.h>

#include "../../storage/dma.h"
#include "pcie.h"

struct weir_vfio;
struct weir_vfio_space;

/** enum weir_vfio_choice - which of Linux's two ways; auto: device file and iommufd where both are there and
 * permitted */
enum weir_vfio_choice {
	WEIR_VFIO_AUTO,
	WEIR_VFIO_GROUP,
	WEIR_VFIO_IOMMUFD,
};

/** weir_vfio_open() - take @function; it may do DMA from here on, to what other devices of its IOMMU group
 * may that are open here */
int weir_vfio_open(const struct weir_pcie *function, enum weir_vfio_choice choice, struct weir_vfio **out);
/** weir_vfio_way() - which way it was, for people */
const char *weir_vfio_way(const struct weir_vfio *vfio);
/** weir_vfio_by_group() - it was the group's file, the way that maps BARs, too */
bool weir_vfio_by_group(const struct weir_vfio *vfio);
/** weir_vfio_registers() - its BAR 0, just after it was opened; @bytes: how much of that there is. Until
 * weir_vfio_close() */
volatile uint32_t *weir_vfio_registers(struct weir_vfio *vfio, size_t *bytes);
/** weir_vfio_map_bar() - BAR 0 once more, at addresses that no other mapping has: a driver registers a range
 * once */
int weir_vfio_map_bar(struct weir_vfio *vfio, void **out);
/** weir_vfio_unmap_bar() - of that; @keep_addresses: where it was nothing else is mapped */
void weir_vfio_unmap_bar(struct weir_vfio *vfio, void *address, bool keep_addresses);
/**
 * weir_vfio_map() - the memory that it may touch, at the addresses that it has in this process, until
 * weir_vfio_close()
 *
 * Devices of one IOMMU group have one map: what is added for each of them is added with weir_dma_map_share().
 */
struct weir_dma_map *weir_vfio_map(struct weir_vfio *vfio);
/**
 * weir_vfio_restart() - have it answer to its registers, and do DMA, after somebody else's reset
 *
 * The kernel keeps configuration space from us while it resets the function, so this also waits for the end
 * of that; and it writes the BARs again if they were lost, since memory space is asked for. What the IOMMU
 * maps stays.
 */
int weir_vfio_restart(struct weir_vfio *vfio);
/**
 * weir_vfio_give_way() - let go of the function if the system asked for it: it is to be removed, or unbound
 *
 * Ask every now and then, from one thread. Once it lets go, DMA has ended, registers read as all ones, and
 * what lanes write to doorbells goes nowhere. The map accepts all, and does nothing once all of its devices
 * have been let go.
 */
void weir_vfio_give_way(struct weir_vfio *vfio);
/** weir_vfio_wanted() - the system has asked, and weir_vfio_give_way() would let go; from the same thread */
bool weir_vfio_wanted(struct weir_vfio *vfio);
/** weir_vfio_halt() - it does no DMA any more, nor does it answer to admin commands; 0 or a negative errno
 * with a sentence */
int weir_vfio_halt(struct weir_vfio *vfio);
/** weir_vfio_close() - it does no DMA any more, and is anybody's */
void weir_vfio_close(struct weir_vfio *vfio);

#endif
