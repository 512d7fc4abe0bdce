/* SPDX-License-Identifier: BSD-3-Clause */
/* An SSD and lanes: where their ways meet, and which paths there are between them. */
#include "machine.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { BARS = 6 };

const char *const path_names[PATHS] = { "direct", "module", "pull", "proxy" };

static unsigned common_bridges(const struct route *a, const struct route *b)
{
	unsigned count = 0;

	while (count < a->count && count < b->count && !strcmp(a->bridge[count], b->bridge[count]))
		count++;
	return count;
}

/* What meets at the host bridge, or nowhere before the processors. */
static enum location place_above(const struct pair *pair, const struct route *gpu, const struct route *ssd)
{
	int a = pair->lanes->numa_node, b = pair->ssd->numa_node;

	if (!strcmp(gpu->host, ssd->host))
		return LOCATION_HOST_BRIDGE;
	if (a < 0 || b < 0)
		return LOCATION_UNKNOWN;
	return a == b ? LOCATION_NUMA_NODE : LOCATION_ACROSS;
}

static void add_hops(struct pair *pair, const struct route *route, unsigned from)
{
	for (unsigned i = from; i < route->count; i++) {
		struct hop *hop = &pair->hops[pair->hop_count++];

		memcpy(hop->address, route->bridge[i], sizeof(hop->address));
		hop->redirects = acs_redirects(hop->address);
	}
}

/* Bridges below the one where they meet: those have a choice, to send a request across or up. */
static void read_acs(struct pair *pair, const struct route *gpu, const struct route *ssd, unsigned common)
{
	add_hops(pair, gpu, common);
	add_hops(pair, ssd, common);
	pair->acs = pair->hop_count ? NO : UNKNOWN;
	for (unsigned i = 0; i < pair->hop_count; i++)
		if (pair->hops[i].redirects == YES || (pair->hops[i].redirects == UNKNOWN && pair->acs == NO))
			pair->acs = pair->hops[i].redirects;
}

static void read_place(const struct machine *machine, struct pair *pair)
{
	struct route gpu, ssd;
	unsigned common;

	if (!route_read(pair->lanes->function.address, &gpu) ||
	    !route_read(pair->ssd->function.address, &ssd))
		return;
	host_bridge_read(machine, &gpu, &pair->bridges[0]);
	host_bridge_read(machine, &ssd, &pair->bridges[1]);
	common = strcmp(gpu.host, ssd.host) ? 0 : common_bridges(&gpu, &ssd);
	read_acs(pair, &gpu, &ssd, common);
	if (!common) {
		pair->location = place_above(pair, &gpu, &ssd);
		put_text(pair->meet, sizeof(pair->meet), "%s", strcmp(gpu.host, ssd.host) ? "" : gpu.host);
		return;
	}
	/* A root port has the function itself below it, or a switch, of which the upstream port is the next
	 * bridge. */
	pair->location = common > 1 ? LOCATION_SWITCH : LOCATION_ROOT_PORT;
	put_text(pair->meet, sizeof(pair->meet), "%s", gpu.bridge[common - 1]);
}

/* Requests that go by the host bridge: does it let peers talk? */
static void judge_bridges(const struct machine *machine, struct pair *pair)
{
	const struct host_bridge *a = &pair->bridges[0], *b = &pair->bridges[1];
	bool apart = pair->location != LOCATION_SWITCH && pair->location != LOCATION_ROOT_PORT &&
		     pair->location != LOCATION_HOST_BRIDGE;
	enum answer one = apart ? a->listed_apart : a->listed, other = apart ? b->listed_apart : b->listed;

	if (one == YES && other == YES)
		return;
	if (a->listed == YES && b->listed == YES && (one == NO || other == NO))
		verdict_add(&pair->peer, NO, "put both below one host bridge, or below one switch",
			    "they are below different host bridges, and Linux lets peers talk through %s "
			    "below one alone",
			    a->id);
	else
		verdict_add(&pair->peer, UNKNOWN,
			    "put both below one switch without ACS; writing and reading back would show it",
			    "what goes between them passes host bridge %s, and whether that lets peers talk "
			    "is not known: %s",
			    a->id[0] ? a->id : "(not seen)",
			    a->id[0] && machine->peer_cpu == NO ? "it is not on the list of Linux 6.12"
								: "the processor is not known");
}

static void judge_way(const struct machine *machine, struct pair *pair)
{
	bool below_bridge = pair->location == LOCATION_SWITCH || pair->location == LOCATION_ROOT_PORT;
	bool passed = pair->bridges[0].listed == YES;

	if (pair->location == LOCATION_UNKNOWN)
		verdict_add(&pair->peer, UNKNOWN, "lspci -t shows the bus where this system does",
			    "where their ways meet is not known");
	else if (below_bridge && !pair->hop_count)
		verdict_add(&pair->peer, UNKNOWN, "writing and reading back would show it",
			    "no bridge is between them, and what their device does with requests from one to "
			    "the other is not known");
	else if (below_bridge && pair->acs == UNKNOWN && !passed)
		verdict_add(&pair->peer, UNKNOWN, "run weir-check as root",
			    "whether bridges between them redirect requests (ACS) could not be read");
	else if (!below_bridge || (pair->acs == YES && !passed))
		judge_bridges(machine, pair);
}

static void judge_memory(const struct lanes *lanes, struct verdict *verdict)
{
	if (lanes->peer_dma == NO)
		verdict_add(verdict, NO, "", "its driver lets no other device into its memory");
	else if (lanes->peer_dma == UNKNOWN)
		verdict_add(verdict, UNKNOWN, "weir-info says it, with a backend for it in the build",
			    "whether its driver lets other devices into "
			    "its memory is not known");
	if (lanes->visible == NO)
		verdict_add(verdict, UNKNOWN,
			    "switch \"Resizable BAR\" and \"Above 4G decoding\" on in the firmware's setup",
			    "its largest BAR has %" PRIu64
			    " MiB, too few for all of its memory: some buffers can be reached, others not",
			    lanes_largest(lanes) >> 20);
	else if (lanes->visible == UNKNOWN)
		verdict_add(verdict, UNKNOWN, "weir-info prints the size of its memory, lspci -vv its BARs",
			    "whether its BARs show all of its memory is not known");
}

static void judge_peer(const struct machine *machine, struct pair *pair)
{
	judge_memory(pair->lanes, &pair->peer);
	judge_way(machine, pair);
}

/* Reasons that are the lanes' own. */
static void judge_lanes(const struct lanes *lanes, struct verdict *verdict)
{
	if (lanes->usable == NO)
		verdict_add(verdict, NO,
			    "build weir with a backend for it, and install its driver; weir-info says more",
			    "no backend can use the GPU: %s", lanes->why);
	else if (lanes->usable == UNKNOWN)
		verdict_add(verdict, UNKNOWN, "weir-info says it",
			    "whether a backend can use the GPU is not known: %s", lanes->why);
}

static void judge_direct(struct pair *pair)
{
	struct verdict *direct = &pair->paths[PATH_DIRECT];

	verdict_join(direct, &pair->ssd->vfio);
	put_text(direct->use, sizeof(direct->use), "%s", pair->ssd->vfio.use);
	if (pair->lanes->host)
		return;
	judge_lanes(pair->lanes,
		    direct); /* rings and data pass host memory: the two need not reach each other */
}

/* Windows of the module's over the GPU's BARs: is there one, and may this process open it? */
static void judge_window(const char *address, struct verdict *module)
{
	char path[PATH_MAX];
	bool found = false;

	for (int bar = 0; bar < BARS; bar++) {
		if (!tree_path(path, "/dev/weir_p2p/%s-%d", address, bar) || access(path, F_OK))
			continue;
		if (!access(path, R_OK | W_OK))
			return;
		found = true;
	}
	if (found)
		verdict_add(module, NO, "join the node's group, or have root run weir-bind gpu claim --group",
			    "the window over its memory is not for this user");
	else
		verdict_add(module, NO, "as root: weir-bind gpu claim",
			    "no window of weir_p2p is laid over its memory");
}

/* Who tells the module where memory of the GPU is: another module, which uses it. */
static void judge_shim(struct verdict *module)
{
	struct tree_names users = { .count = 0 };
	char path[PATH_MAX];

	if (tree_path(path, "/sys/module/weir_p2p/holders"))
		tree_list(path, &users);
	for (unsigned i = 0; i < users.count; i++)
		if (!strncmp(users.name[i], "weir_p2p_", strlen("weir_p2p_")))
			return;
	verdict_add(module, NO, "build and load the one for the GPU's driver (docs/kernel.md)",
		    "no module that pins the GPU's memory for weir_p2p is loaded");
}

static void judge_module(const struct machine *machine, struct pair *pair)
{
	struct verdict *module = &pair->paths[PATH_MODULE];

	if (pair->lanes->host) {
		verdict_add(module, NO, "", "it is for GPUs: the host's lanes need none");
		return;
	}
	if (machine->module == NO)
		verdict_add(module, NO, "install it (docs/kernel.md); as root: modprobe weir_p2p",
			    "the kernel module weir_p2p is not loaded");
	else if (machine->module == UNKNOWN)
		verdict_add(module, UNKNOWN, "lsmod says it",
			    "whether the kernel module weir_p2p is loaded is not known");
	if (machine->module == YES) {
		judge_window(pair->lanes->function.address, module);
		judge_shim(module);
	}
	verdict_join(module, &pair->ssd->file); /* the kernel's driver reads into the GPU's memory */
	put_text(module->use, CHECK_TEXT, "%s", pair->ssd->file.use);
	if (machine->config[CONFIG_PCI_P2PDMA] == 'n')
		verdict_add(module, UNKNOWN, "use a kernel with CONFIG_PCI_P2PDMA",
			    "without CONFIG_PCI_P2PDMA some drivers hand out host memory in the place of a "
			    "GPU's");
	judge_lanes(pair->lanes, module);
	verdict_join(module, &pair->peer);
}

/* Host threads read the SSD through the kernel's driver; lanes copy from there, or find the data in place. */
static void judge_files(struct pair *pair)
{
	for (enum path path = PATH_PULL; path <= PATH_PROXY; path++) {
		verdict_join(&pair->paths[path], &pair->ssd->file);
		put_text(pair->paths[path].use, CHECK_TEXT, "%s", pair->ssd->file.use);
		if (!pair->lanes->host)
			judge_lanes(pair->lanes, &pair->paths[path]);
	}
	if (pair->lanes->host_writes == NO)
		verdict_add(&pair->paths[PATH_PROXY], NO, "see pull",
			    "host threads do not reach the memory of the GPU");
	else if (pair->lanes->host_writes == UNKNOWN)
		verdict_add(&pair->paths[PATH_PROXY], UNKNOWN,
			    "weir-perf virt:1M --backend says: direct, or pull",
			    "whether host threads reach the memory of the GPU is not known");
}

void pair_read(const struct machine *machine, const struct lanes *lanes, const struct ssd *ssd,
	       struct pair *pair)
{
	memset(pair, 0, sizeof(*pair));
	pair->lanes = lanes;
	pair->ssd = ssd;
	verdict_start(&pair->peer);
	for (unsigned i = 0; i < PATHS; i++)
		verdict_start(&pair->paths[i]);
	if (!lanes->host) {
		read_place(machine, pair);
		judge_peer(machine, pair);
	}
	judge_direct(pair);
	judge_module(machine, pair);
	judge_files(pair);
}

int pair_status(const struct pair *pair)
{
	if (pair->paths[PATH_DIRECT].answer == YES || pair->paths[PATH_MODULE].answer == YES)
		return STATUS_FAST;
	return pair->paths[PATH_PULL].answer == YES || pair->paths[PATH_PROXY].answer == YES ? STATUS_SLOW
											     : STATUS_NONE;
}
