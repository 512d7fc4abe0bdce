/* SPDX-License-Identifier: BSD-3-Clause */
/* core/share/share_part.h: what this lane's code knows of the Share Table: a build option says which file it
 * is. */
#ifndef WEIR_CORE_SHARE_PART_H
#define WEIR_CORE_SHARE_PART_H

#ifdef WEIR_SHARE_TABLE
#include <weir/core/share/share_on.h>
#else
#include <weir/core/share/share_off.h>
#endif

#endif
