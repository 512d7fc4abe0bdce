/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of share.k.c with a sharing policy of a user's own. */
#undef WEIR_USER_SHARE_POLICY
#define WEIR_USER_SHARE_POLICY "../../../tests/share/share_policy_own.h"
#include "share.k.c"
