/* SPDX-License-Identifier: BSD-3-Clause */
/* PCI addresses: domain:bus:device.function, in hexadecimal digits. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "gpus.h"

struct weir_pci weir_pci_make(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function)
{
	return (struct weir_pci){ (uint64_t)domain << 16 | bus << 8 | device << 3 | function };
}

/* A number of up to @digits digits and @most, then @end. Return: what follows; NULL if it is none. */
static const char *take(const char *text, unsigned digits, uint32_t most, char end, uint32_t *out)
{
	unsigned count = 0;

	*out = 0;
	for (; isxdigit((unsigned char)text[count]); count++) {
		int digit = tolower((unsigned char)text[count]);

		if (count == digits)
			return NULL;
		*out = *out << 4 | (uint32_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
	}
	return count && *out <= most && text[count] == end ? text + count + 1 : NULL;
}

bool weir_pci_parse(const char *text, struct weir_pci *out)
{
	uint32_t domain = 0, bus, device, function;
	const char *colon = strchr(text, ':');

	/* Seven digits are what fits into the text of an address; the system has no more. */
	if (colon && strchr(colon + 1, ':'))
		text = take(text, 7, 0xfffffff, ':', &domain);
	if (text)
		text = take(text, 2, 0xff, ':', &bus);
	if (text)
		text = take(text, 2, 0x1f, '.', &device);
	if (!text || !take(text, 1, 7, '\0', &function))
		return false;
	*out = weir_pci_make(domain, bus, device, function);
	return true;
}

void weir_pci_print(struct weir_pci address, char text[WEIR_PCI_TEXT])
{
	snprintf(text, WEIR_PCI_TEXT, "%04x:%02x:%02x.%x", (unsigned)(address.packed >> 16) & 0xfffffffu,
		 (unsigned)(address.packed >> 8) & 0xff, (unsigned)(address.packed >> 3) & 0x1f,
		 (unsigned)address.packed & 7);
}

bool weir_pci_meant(const char *text)
{
	return strpbrk(text, ":.") && strspn(text, "0123456789abcdefABCDEF:.") == strlen(text);
}

int32_t weir_pci_numa_node(const char *text)
{
	char path[64];
	int node = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", text);
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &node) != 1)
		node = -1;
	fclose(file);
	return node;
}
