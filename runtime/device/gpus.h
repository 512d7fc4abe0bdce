/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpus.h: the GPUs of the machine, and what the names "gpu:..." and "BACKEND:PCI" mean.
 *
 * Owns: PCI addresses as numbers, what the system says of places and distances (gpus.c), and who has which
 * device (gpu_names.c). Knows no vendor: a GPU is what the PCI bus calls one, or what a backend has.
 */
#ifndef WEIR_RUNTIME_GPUS_H
#define WEIR_RUNTIME_GPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

#include "../backend/backend.h"

enum { WEIR_MOST_GPUS = 64, WEIR_MOST_DISKS = 128, WEIR_PCI_TEXT = 16 };

/** struct weir_pci - a PCI address; @packed: orders as its text does, domain first */
struct weir_pci {
	uint64_t packed;
};

/** weir_pci_make() - of its four numbers */
struct weir_pci weir_pci_make(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function);
/** weir_pci_parse() - "0000:41:00.0" or "41:00.0", in either case. Return: it is one, in full */
bool weir_pci_parse(const char *text, struct weir_pci *out);
/** weir_pci_print() - as lspci and sysfs write it */
void weir_pci_print(struct weir_pci address, char text[WEIR_PCI_TEXT]);
/** weir_pci_meant() - @text is a PCI address or was meant to be one: hexadecimal digits with ':' or '.'
 * between them */
bool weir_pci_meant(const char *text);
/** weir_pci_numa_node() - of the function at @text, as the system has it; -1 if it has none or there is no
 * such function */
int32_t weir_pci_numa_node(const char *text);

/** struct weir_gpu_candidate - a device of a backend that is a PCI device */
struct weir_gpu_candidate {
	char backend[16];
	uint32_t ordinal;
	struct weir_pci address;
};

/**
 * struct weir_gpu_candidates - those of all backends, the preferred backend's first
 * @why: what backends there are, and why those without a candidate have none
 */
struct weir_gpu_candidates {
	struct weir_gpu_candidate list[WEIR_MOST_GPUS];
	uint32_t count;
	char why[512];
};

/** typedef weir_gpu_backends - the backends to ask: weir_backend_at(), or a test's */
typedef const char *(*weir_gpu_backends)(size_t index, const struct weir_backend_ops **ops);

/** weir_gpu_candidates() - ask every backend that @at tells of */
void weir_gpu_candidates(weir_gpu_backends at, struct weir_gpu_candidates *out);

/**
 * weir_gpu_select() - the candidate that a name means
 * @kind: "gpu" or a backend's name
 * @selector: a PCI address or, of "gpu", a number or ""
 * @candidates: to choose from
 * @index: receives its place among them
 *
 * Return: 0; -EINVAL with a sentence for a malformed selector; -ENODEV without one: weir_gpu_absent() has it.
 */
int weir_gpu_select(const char *kind, const char *selector, const struct weir_gpu_candidates *candidates,
		    uint32_t *index);

/** weir_gpu_absent() - -ENODEV with a sentence: why weir_gpu_select() found none, and what there is */
int weir_gpu_absent(const char *kind, const char *selector, const struct weir_gpu_candidates *candidates,
		    const struct weir_gpus *machine);

/** weir_gpu_number() - N of "gpu:N" for the device at @address; -1 if no candidate is there */
int32_t weir_gpu_number(const struct weir_gpu_candidates *candidates, struct weir_pci address);

/** weir_gpu_open() - weir_backend_ops.open() for such a name, of those built in */
int weir_gpu_open(const char *kind, const char *selector, const struct weir_context_options *options,
		  struct weir_backend **out);

/** struct weir_gpu_location - what the system tells of a GPU */
struct weir_gpu_location {
	struct weir_pci address;
	uint32_t vendor_id;
	uint32_t device_id;
	char vendor[64];
	char model[96];
	char node[32];
	int32_t numa_node;
};

/** struct weir_disk_location - what it tells of a disk's controller, and of one block device behind it */
struct weir_disk_location {
	char name[32];
	struct weir_pci address;
	int32_t numa_node;
};

/**
 * struct weir_gpus - a snapshot
 * @gpus: by address
 * @disks: by address, then name
 * @distances: enum weir_distance by GPU and disk
 * @candidates: what the backends of this build can use; nothing if the machine is another one
 * @elsewhere: it is another one, out of a file
 */
struct weir_gpus {
	struct weir_gpu_location gpus[WEIR_MOST_GPUS];
	uint32_t count;
	struct weir_disk_location disks[WEIR_MOST_DISKS];
	uint32_t disk_count;
	uint8_t distances[WEIR_MOST_GPUS][WEIR_MOST_DISKS];
	struct weir_gpu_candidates candidates;
	bool elsewhere;
};

/** weir_gpus_read() - the snapshot without candidates; -errno with a sentence */
int weir_gpus_read(struct weir_gpus *gpus);

/**
 * weir_gpus_drivers() - add what the system's graphics drivers know
 *
 * The device files of GPUs, and GPUs that the topology does not show. By libdrm; without it nothing is added.
 */
void weir_gpus_drivers(struct weir_gpus *gpus);

/** weir_gpus_add() - room for the GPU at @address, or where it is already; NULL if there is none left */
struct weir_gpu_location *weir_gpus_add(struct weir_gpus *gpus, struct weir_pci address);

#endif
