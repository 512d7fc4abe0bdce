/* SPDX-License-Identifier: BSD-3-Clause */
/* stub.h: how often the stub backend was called; its symbol weir_stub_calls. */
#ifndef WEIR_TESTS_STUB_H
#define WEIR_TESTS_STUB_H

/**
 * struct stub_calls - calls of each entry since the module was loaded
 * @lacks: from outside: there is no device
 */
struct stub_calls {
	unsigned devices;
	unsigned open;
	unsigned close;
	unsigned allocate;
	unsigned release;
	unsigned h2d;
	unsigned d2h;
	unsigned launch;
	unsigned kernel_info;
	unsigned synchronise;
	unsigned serve;
	unsigned properties;
	unsigned lacks;
};

#endif
