/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine.h: what weir-check finds out of a machine, and what it concludes.
 *
 * Facts come from files below tree_root (../weir-bind/tree.h) and from the backends of this build. Nothing is
 * opened for writing, and no driver is touched. What could not be read is "unknown", never a guess.
 */
#ifndef WEIR_MACHINE_H
#define WEIR_MACHINE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "tree.h"

enum {
	CHECK_REASONS = 16,
	CHECK_TEXT = 512,
	CHECK_BARS = 6,
	CHECK_HOPS = 16,
	CHECK_DEVICES = 65,
	CHECK_NODES = 16
};

/** enum answer - unknown is the first, so that what was never looked at is that */
enum answer { UNKNOWN, NO, YES };

/** struct reason - why an answer is not yes, and what would make it yes or, of "unknown", what would tell */
struct reason {
	enum answer answer;
	char why[CHECK_TEXT];
	char remedy[CHECK_TEXT];
};

/**
 * struct verdict - an answer with all its reasons
 * @answer: no if any reason is one for no, else unknown if any is, else yes
 * @use: if yes: what to write, such as a storage's URI
 */
struct verdict {
	enum answer answer;
	struct reason reasons[CHECK_REASONS];
	unsigned count;
	char use[CHECK_TEXT];
};

/** verdict_start() - yes, until a reason is added */
void verdict_start(struct verdict *verdict);
/** verdict_add() - one more reason, for no or for unknown; @why by format */
void verdict_add(struct verdict *verdict, enum answer answer, const char *remedy, const char *why, ...)
	__attribute__((format(printf, 4, 5)));
/** verdict_join() - all reasons of @other, too */
void verdict_join(struct verdict *verdict, const struct verdict *other);

/** put_text() - snprintf that may cut */
void put_text(char *text, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** enum config - options of the kernel's that matter, in the order of config_names */
enum config {
	CONFIG_PCI_P2PDMA,
	CONFIG_ZONE_DEVICE,
	CONFIG_DMA_SHARED_BUFFER,
	CONFIG_DMABUF_MOVE_NOTIFY,
	CONFIG_IOMMU_API,
	CONFIG_IOMMUFD,
	CONFIG_VFIO,
	CONFIG_VFIO_PCI,
	CONFIG_VFIO_IOMMU_TYPE1,
	CONFIGS
};
extern const char *const config_names[CONFIGS];

/** enum iommu_mode - what IOMMU groups say of the translation of DMA, all together */
enum iommu_mode { IOMMU_UNKNOWN, IOMMU_OFF, IOMMU_TRANSLATED, IOMMU_PASSTHROUGH, IOMMU_MIXED };

/** MEMLOCK_UNKNOWN, MEMLOCK_UNLIMITED - values of struct machine.memlock_bytes that are no number of bytes */
#define MEMLOCK_UNKNOWN   UINT64_MAX
#define MEMLOCK_UNLIMITED (UINT64_MAX - 1)

/**
 * struct machine - what there is once
 * @kernel: its release, "" if that is not told
 * @config_file: where its configuration was read, "" if nowhere
 * @config: 'y', 'm', 'n', or 0 if it is not known
 * @pci: the PCI bus can be seen at all
 * @groups: number of IOMMU groups
 * @iommu_options: what of the kernel's command line is about IOMMU and ACS
 * @vfio_pci: its driver is there, @vfio_type1: as is the IOMMU part
 * @vfio_node: errno of looking at /dev/vfio/vfio for reading and writing; 0 if it is fine
 * @memlock_bytes: how much memory a process may lock
 * @module: weir_p2p is loaded; @module_version: "" if it does not say
 * @peer_cpu: this processor is one that Linux lets peers talk through whatever the host bridge
 * @uring: io_uring is there for this process
 */
struct machine {
	char kernel[TREE_NAME_BYTES];
	char config_file[CHECK_TEXT];
	char config[CONFIGS];
	bool pci;
	enum iommu_mode iommu;
	unsigned groups;
	char iommu_options[CHECK_TEXT];
	enum answer vfio_pci;
	enum answer vfio_type1;
	int vfio_node;
	uint64_t memlock_bytes;
	enum answer module;
	char module_version[TREE_NAME_BYTES];
	enum answer peer_cpu;
	enum answer uring;
};

/** machine_read() - all of it */
void machine_read(struct machine *machine);

/** struct bar - a range of a function's memory; @index: 0 to 5 */
struct bar {
	unsigned index;
	uint64_t bytes;
};

/**
 * struct lanes - what kernels can run on: a GPU, or the host's processors (the backend cpu)
 * @host: it is the latter, and nothing from @function on has a meaning
 * @name: "gpu:0" or "cpu", "" if no backend can use it; @device: as its backend calls it
 * @usable: a backend of this build can use it; @why: if not
 * @function: of the PCI bus; .address alone if the system does not show it
 * @group_type: of its IOMMU group, as the kernel says; ""
 * @driver_version: "" if it does not say
 * @bars: those that are memory; @bar_count of them
 * @could_bytes: the most that a resizable BAR could have; 0: not told
 * @memory_bytes: 0: not known
 * @visible: one BAR has room for all of the memory
 * @dma_buf: its memory can be handed on as a dma-buf; @peer_dma: other devices reach it; both say backends
 * @registers: its lanes ring doorbells of other PCI devices, says its backend; @registers_why: if not
 * @export: its memory can be had as a dma-buf; @export_why: if not
 * @host_writes: host threads put data where its lanes use it
 */
struct lanes {
	bool host;
	char name[TREE_NAME_BYTES];
	char device[TREE_NAME_BYTES];
	char vendor[TREE_NAME_BYTES];
	char model[128];
	enum answer usable;
	char why[CHECK_TEXT];
	struct tree_function function;
	char group_type[TREE_NAME_BYTES];
	char driver_version[TREE_NAME_BYTES];
	int numa_node;
	struct bar bars[CHECK_BARS];
	unsigned bar_count;
	uint64_t could_bytes;
	uint64_t memory_bytes;
	enum answer visible;
	enum answer dma_buf;
	enum answer peer_dma;
	enum answer registers;
	char registers_why[CHECK_TEXT];
	enum answer export;
	char export_why[CHECK_TEXT];
	enum answer host_writes;
};

/** struct lanes_list - all of a machine, the host's processors first, GPUs by address */
struct lanes_list {
	struct lanes item[CHECK_DEVICES];
	unsigned count;
};

/** lanes_read() - from the PCI bus, then backends_ask() */
void lanes_read(struct lanes_list *list);
/** lanes_add() - the GPU at @address, or where it is already; NULL if there is no room */
struct lanes *lanes_add(struct lanes_list *list, const char *address);
/** lanes_largest() - bytes of its largest BAR, 0 if none is known */
uint64_t lanes_largest(const struct lanes *lanes);
/**
 * backends_ask() - what the backends know of @list, and GPUs that the bus does not show
 *
 * Below another root what weir-info --json said there stands for them, in the file weir-info.json.
 */
void backends_ask(struct lanes_list *list);

/** struct node - a device file; @there, @readable, @writable: by this process */
struct node {
	char name[TREE_NAME_BYTES];
	bool there, readable, writable;
	enum tree_use use;
	char used[TREE_WHY_BYTES];
};

/**
 * struct ssd - an NVMe controller
 * @others: the rest of its IOMMU group, bridges left out
 * @nodes: its block devices: namespaces and their partitions
 * @used: what uses any of them, "" if nothing is seen
 * @iommu_bits: bits of addresses that its IOMMU translates; 0: not told
 * @vfio: can weir drive it through VFIO?
 * @file: can host threads read and write it through the kernel's driver?
 */
struct ssd {
	struct tree_function function;
	char model[TREE_NAME_BYTES];
	char firmware[TREE_NAME_BYTES];
	char group_type[TREE_NAME_BYTES];
	int numa_node;
	struct tree_names others;
	struct node nodes[CHECK_NODES];
	unsigned node_count;
	char used[TREE_WHY_BYTES];
	unsigned iommu_bits;
	struct verdict vfio;
	struct verdict file;
};

/** ssd_read() - the controller at @address. Return: false: there is none. */
bool ssd_read(const struct machine *machine, const char *address, struct ssd *ssd);

/** group_type() - what the kernel says of an IOMMU group: DMA, DMA-FQ, identity and so on; "" */
void group_type(char text[TREE_NAME_BYTES], const char *group);
/** numa_node() - of the function at @address, -1 if it is not known */
int numa_node(const char *address);

/** struct route - the bridges above a function, from the root port down; @host: its host bridge, "" if not
 * known */
struct route {
	char host[TREE_NAME_BYTES];
	char bridge[CHECK_HOPS][TREE_NAME_BYTES];
	unsigned count;
};

/** route_read() - as the folders of sysfs nest. Return: false: they do not tell. */
bool route_read(const char *address, struct route *route);
/** acs_redirects() - does this bridge send requests between those below it up to the host bridge (ACS)? */
enum answer acs_redirects(const char *bridge);

/**
 * struct host_bridge - what Linux goes by
 * @address: function that stands for it, "" if none was seen; @id: vendor:device
 * @listed: it is on the list of those that let peers talk, as this program knows that list
 * @listed_apart: also to peers below another such host bridge
 */
struct host_bridge {
	char address[TREE_NAME_BYTES];
	char id[TREE_NAME_BYTES];
	enum answer listed;
	enum answer listed_apart;
};

/** host_bridge_read() - that of a route; @machine: its processor counts, too */
void host_bridge_read(const struct machine *machine, const struct route *route, struct host_bridge *out);

/** enum place - where the ways of two functions meet */
enum location {
	LOCATION_UNKNOWN,
	LOCATION_SWITCH,
	LOCATION_ROOT_PORT,
	LOCATION_HOST_BRIDGE,
	LOCATION_NUMA_NODE,
	LOCATION_ACROSS
};

/** enum path - how data gets from an SSD to lanes */
enum path { PATH_DIRECT, PATH_MODULE, PATH_PULL, PATH_PROXY, PATHS };
extern const char *const path_names[PATHS];

/** struct hop - a bridge between the two, and whether it redirects */
struct hop {
	char address[TREE_NAME_BYTES];
	enum answer redirects;
};

/**
 * struct pair - an SSD, and lanes that would use it
 * @meet: bridge or host bridge where their ways meet; ""
 * @acs: does any hop redirect?
 * @bridges: host bridges, of the GPU and of the SSD
 * @peer: can the SSD read and write the GPU's memory, as far as the machine goes?
 * From @location to @peer nothing has a meaning where the lanes are the host's.
 */
struct pair {
	const struct lanes *lanes;
	const struct ssd *ssd;
	enum location location;
	char meet[TREE_NAME_BYTES];
	struct hop hops[2 * CHECK_HOPS];
	unsigned hop_count;
	enum answer acs;
	struct host_bridge bridges[2];
	struct verdict peer;
	struct verdict paths[PATHS];
};

/** pair_read() - where the two are, and what each path needs and lacks */
void pair_read(const struct machine *machine, const struct lanes *lanes, const struct ssd *ssd,
	       struct pair *pair);

/** exit status: each pair has a fast path; only slower ones; bad usage; one has none that is known to work */
enum { STATUS_FAST, STATUS_SLOW, STATUS_USAGE, STATUS_NONE };

/** pair_status() - STATUS_FAST if direct or module is a yes, STATUS_SLOW if pull or proxy is, else
 * STATUS_NONE */
int pair_status(const struct pair *pair);

#endif
