/* SPDX-License-Identifier: BSD-3-Clause */
/* graph_rig.c: the folder and the sentence that all files of a test program share. */
#include "graph_rig.h"

char directory[64], sentence[GRAPH_ERROR_BYTES];
struct test_has before_test;
