/* SPDX-License-Identifier: BSD-3-Clause */
/* The library that is there when the module is linked, and gone when it is loaded. */
extern __attribute__((visibility("default"))) int weir_absent_function(void);

int weir_absent_function(void)
{
	return 0;
}
