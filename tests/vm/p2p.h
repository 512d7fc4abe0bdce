/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p.h: the parts of vm_p2p; each step takes its arguments and returns an exit status. */
#ifndef WEIR_TESTS_VM_P2P_H
#define WEIR_TESTS_VM_P2P_H

#include "p2p_rig.h"

int do_bad(char **argv);
int do_life(char **argv);
int do_measure(char **argv);
int do_count(char **argv);
int do_sizes(char **argv);
int do_fuzz(char **argv);
int do_import(char **argv);
int do_queue(char **argv);
int do_ext4(char **argv);
int do_flush(char **argv);
int do_hold(char **argv);

#endif
