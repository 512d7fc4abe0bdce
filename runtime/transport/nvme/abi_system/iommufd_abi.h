/* SPDX-License-Identifier: BSD-3-Clause */
/* iommufd_abi.h: VFIO's device files and iommufd, as the system's own headers have them. */
#ifndef WEIR_TRANSPORT_IOMMUFD_ABI_H
#define WEIR_TRANSPORT_IOMMUFD_ABI_H

#include <linux/iommufd.h>
#include <linux/vfio.h>

#endif
