/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port/image.h: on the host, kernels of a device whose code is made elsewhere.
 *
 * A kernel file is compiled twice for such a device: by the device's compiler into an image, or
 * not at all where the image is its source; and by the host's with this header as its port
 * (-DWEIR_PORT_HEADER='<weir/port/image.h>'), which puts the image into the object and registers
 * each kernel of the file before main(). So a program needs none of the device's libraries. The
 * bodies are compiled as for the cpu, and thrown away.
 *
 * The build gives WEIR_IMAGE_BACKEND, the backend's name in quotes, and WEIR_IMAGE_FILE, the
 * image's path in quotes.
 */
#ifndef WEIR_PORT_IMAGE_H
#define WEIR_PORT_IMAGE_H

#include <stddef.h>

#include <weir/types.h>

#define WEIR_IMAGE_API extern __attribute__((visibility("default")))

/**
 * struct weir_image - a kernel of this process, in the form that one backend takes
 * @backend: whose it is
 * @kernel: name for weir_launch()
 * @code: what the device's compiler made, or source text; the same for all kernels of a file
 * @code_bytes: its size
 * @args_bytes: size of the kernel's argument structure
 * @block_lanes: most lanes a block may have
 * @next: one registered earlier; the list's own
 */
struct weir_image {
	const char *backend;
	const char *kernel;
	const void *code;
	size_t code_bytes;
	size_t args_bytes;
	u32 block_lanes;
	const struct weir_image *next;
};

/**
 * weir_image_register() - let weir_launch() find a kernel
 * @image: stays where it is until the program or library that it lies in is unloaded,
 *         which must not happen while a context is open
 *
 * Called by WEIR_KERNEL() before main(). Of several kernels of one name the latest is found.
 */
WEIR_IMAGE_API void weir_image_register(struct weir_image *image);

#ifdef WEIR_IMAGE_FILE /* else the runtime, which reads the list */

#include <weir/port/cpu.h>

#ifndef WEIR_BLOCK_LANES
#define WEIR_BLOCK_LANES 256
#endif

__asm__(".pushsection .rodata.weir_image,\"a\"\n"
	".balign 4096\n"
	"weir_image_begin:\n"
	".incbin \"" WEIR_IMAGE_FILE "\"\n"
	"weir_image_end:\n"
	".byte 0\n" /* source text ends as a string does */
	".popsection\n");
extern const char weir_image_begin[] __attribute__((visibility("hidden")));
extern const char weir_image_end[] __attribute__((visibility("hidden")));

#undef WEIR_KERNEL
#define WEIR_KERNEL(name, args_type)                                                                         \
	static inline WEIR_UNUSED void name##_body(args_type *args);                                         \
	static struct weir_image name##_image = {                                                            \
		WEIR_IMAGE_BACKEND, #name, weir_image_begin, 0, sizeof(args_type), WEIR_BLOCK_LANES, 0       \
	};                                                                                                   \
	__attribute__((constructor)) static void name##_register(void)                                       \
	{                                                                                                    \
		name##_image.code_bytes = (size_t)(weir_image_end - weir_image_begin);                       \
		weir_image_register(&name##_image);                                                          \
		WEIR_KERNEL_BUILT();                                                                         \
	}                                                                                                    \
	static inline WEIR_UNUSED void name##_body(args_type *args)

#endif

#endif
