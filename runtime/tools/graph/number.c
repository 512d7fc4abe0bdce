/* SPDX-License-Identifier: BSD-3-Clause */
#include "number.h"

#include <stdio.h>

bool graph_parse_u64(const char *text, uint64_t *value)
{
	uint64_t sum = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9'; at++)
		if (!graph_multiply(sum, 10, &sum) || !graph_add(sum, (uint64_t)(*at - '0'), &sum))
			return false;
	*value = sum;
	return at != text && *at == '\0';
}

size_t graph_format_u64(uint64_t value, char text[GRAPH_DECIMAL_BYTES])
{
	char reversed[GRAPH_DECIMAL_BYTES];
	size_t count = 0;

	do {
		reversed[count++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	for (size_t i = 0; i < count; i++)
		text[i] = reversed[count - 1 - i];
	return count;
}

unsigned graph_digits(uint64_t value)
{
	unsigned digits = 1;
	while (value >= 10) {
		value /= 10;
		digits++;
	}
	return digits;
}

const char *graph_human_bytes(uint64_t bytes, char text[GRAPH_HUMAN_BYTES])
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned unit = 0;
	uint64_t tenths = bytes;

	/* Work in tenths once past plain bytes, so that no floating point is needed. */
	for (; bytes >= 1024; unit++) {
		tenths = bytes > UINT64_MAX / 10 ? bytes / 1024 * 10 : bytes * 10 / 1024;
		bytes /= 1024;
	}
	if (unit == 0)
		snprintf(text, GRAPH_HUMAN_BYTES, "%llu bytes", (unsigned long long)bytes);
	else
		snprintf(text, GRAPH_HUMAN_BYTES, "%llu.%llu %s", (unsigned long long)(tenths / 10),
			 (unsigned long long)(tenths % 10), units[unit]);
	return text;
}
