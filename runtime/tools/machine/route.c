/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a function is: the bridges above it, what they do with requests between peers, its host bridge. */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CONFIG_BYTES = 4096,
	CONFIG_HEADER_BYTES = 64,
	EXTENDED_FROM = 0x100,
	CAPABILITY_ACS = 0x0d,
	ACS_CONTROL = 6
};
/* PCI Express Base 7.7.11: Request Redirect, Completion Redirect, Egress Control; what Linux looks at, too.
 */
enum { ACS_REDIRECTS = 1 << 2 | 1 << 3 | 1 << 5, MOST_CAPABILITIES = (CONFIG_BYTES - EXTENDED_FROM) / 8 };

/* Host bridges that Linux 6.12 lets peers talk through (drivers/pci/p2pdma.c), by vendor and device. */
static const struct {
	const char *id;
	bool apart;
} listed[] = {
	{ "8086:3c00", false }, { "8086:3c01", false }, { "8086:2f00", false }, { "8086:2f01", false },
	{ "8086:2030", true },  { "8086:2031", true },  { "8086:2032", true },  { "8086:2033", true },
	{ "8086:2020", true },  { "8086:09a2", true },
};

void group_type(char text[TREE_NAME_BYTES], const char *group)
{
	char path[PATH_MAX];

	text[0] = '\0';
	if (group[0] && tree_path(path, "/sys/kernel/iommu_groups/%s/type", group))
		tree_read(text, TREE_NAME_BYTES, path);
}

int numa_node(const char *address)
{
	char text[TREE_NAME_BYTES], *end;
	long node;

	tree_attribute(text, address, "numa_node");
	node = strtol(text, &end, 10);
	return end == text || node < 0 || node > INT_MAX ? -1 : (int)node;
}

/* "pci0000:3a" */
static bool is_host(const char *name)
{
	unsigned domain, bus;
	int end = 0;

	return sscanf(name, "pci%x:%x%n", &domain, &bus, &end) == 2 && !name[end];
}

bool route_read(const char *address, struct route *route)
{
	char path[PATH_MAX], real[PATH_MAX], function[TREE_NAME_BYTES], *rest = NULL;

	memset(route, 0, sizeof(*route));
	if (!tree_path(path, "/sys/bus/pci/devices/%s", address) || !realpath(path, real))
		return false;
	for (char *name = strtok_r(real, "/", &rest); name; name = strtok_r(NULL, "/", &rest)) {
		if (is_host(name)) { /* a host bridge may lie below a function: the last one counts */
			put_text(route->host, sizeof(route->host), "%s", name);
			route->count = 0;
		} else if (route->host[0] && tree_address(name, function) && strcmp(name, address) &&
			   route->count < CHECK_HOPS) {
			put_text(route->bridge[route->count++], TREE_NAME_BYTES, "%s", name);
		}
	}
	return route->host[0] != '\0';
}

static uint32_t word_at(const unsigned char *config, unsigned at)
{
	return config[at] | config[at + 1] << 8 | config[at + 2] << 16 | (uint32_t)config[at + 3] << 24;
}

/* The list of extended capabilities, as far as it was read. */
static enum answer find_acs(const unsigned char *config, size_t bytes)
{
	unsigned at = EXTENDED_FROM;

	for (unsigned i = 0; i < MOST_CAPABILITIES && at >= EXTENDED_FROM && at + 8 <= bytes; i++) {
		uint32_t header = word_at(config, at);

		if (header == UINT32_MAX) /* nobody answers */
			return UNKNOWN;
		if ((header & 0xffff) == CAPABILITY_ACS)
			return (config[at + ACS_CONTROL] & ACS_REDIRECTS) ? YES : NO;
		at = header >> 20 & 0xffc;
	}
	return NO;
}

enum answer acs_redirects(const char *bridge)
{
	unsigned char config[CONFIG_BYTES];
	char path[PATH_MAX];
	size_t bytes;
	FILE *file;

	if (!tree_path(path, "/sys/bus/pci/devices/%s/config", bridge) || !(file = fopen(path, "re")))
		return UNKNOWN;
	bytes = fread(config, 1, sizeof(config), file);
	fclose(file);
	/* Whoever is not root gets the header alone. */
	if (bytes <= CONFIG_HEADER_BYTES || word_at(config, 0) == UINT32_MAX)
		return UNKNOWN;
	return find_acs(config, bytes);
}

/* The function that Linux takes for it: device 0, or else the root port above. */
static void stands_for(const struct route *route, char address[TREE_NAME_BYTES])
{
	struct tree_function function;

	put_text(address, TREE_NAME_BYTES, "%s:00.0", route->host + 3);
	if (tree_function(address, &function))
		return;
	put_text(address, TREE_NAME_BYTES, "%s", route->count ? route->bridge[0] : "");
}

void host_bridge_read(const struct machine *machine, const struct route *route, struct host_bridge *out)
{
	struct tree_function function;

	memset(out, 0, sizeof(*out));
	out->listed = out->listed_apart = machine->peer_cpu == YES ? YES : UNKNOWN;
	if (!route->host[0])
		return;
	stands_for(route, out->address);
	if (!out->address[0] || !tree_function(out->address, &function))
		return;
	put_text(out->id, sizeof(out->id), "%s", function.id);
	if (machine->peer_cpu == YES)
		return;
	out->listed = out->listed_apart = machine->peer_cpu == NO ? NO : UNKNOWN;
	for (size_t i = 0; i < sizeof(listed) / sizeof(listed[0]); i++)
		if (!strcmp(listed[i].id, out->id)) {
			out->listed = YES;
			out->listed_apart = listed[i].apart ? YES : NO;
		}
}
