/* SPDX-License-Identifier: BSD-3-Clause */
/* A module that needs a library which is not there. */
#include "backend/backend.h"

extern int weir_absent_function(void);
extern __attribute__((visibility("default"))) int (*const weir_absent_user)(void);
int (*const weir_absent_user)(void) = weir_absent_function;

static const struct weir_backend_ops ops = { .size = sizeof(ops), .name = "absent" };
const struct weir_backend_ops *const weir_backend_module = &ops;
