/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COUNT_H
#define COUNT_H

#include <weir/types.h>

/** struct count_args - arguments of outside_count; @sum: a word, to which each lane adds its number, from 1
 * on */
struct count_args {
	weir_addr sum;
};

#endif
