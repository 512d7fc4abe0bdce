/* SPDX-License-Identifier: BSD-3-Clause */
/* histogram.c: the host. Count the low bytes of the u32 values of a file: histogram [FILE [DEVICE]] */
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

#include "histogram.h"

/* Every call returns 0, or a negative errno and a sentence in weir_last_error(). */
static int count(struct weir_context *context, const char *uri, uint64_t bins[256])
{
	struct weir_storage *disk;
	struct weir_cache *cache;
	struct histogram_args args;
	int error = weir_storage_open(context, uri, WEIR_OPTIONS(storage, .read_only = 1), &disk);

	if (!error)
		error = weir_cache_create(context, WEIR_OPTIONS(cache, .bytes = 64 << 20), &cache);
	if (!error)
		error = weir_array_open(cache, &disk, 1, WEIR_OPTIONS(array, .element_bytes = 4),
					&args.values);
	if (!error)
		error = weir_alloc(context, 256 * sizeof(bins[0]), &args.bins);
	if (!error)
		error = weir_launch(context, "histogram", 16, 256, &args, sizeof(args));
	if (!error)
		error = weir_sync(context); /* the first error of any lane */
	return error ? error : weir_copy_from_device(context, bins, args.bins, 256 * sizeof(bins[0]));
}

/* The same with stdio, to compare. Return: whether every bin is equal. */
static int same(const char *path, const uint64_t bins[256])
{
	uint64_t expected[256] = { 0 };
	uint32_t values[4096];
	FILE *file = fopen(path, "rb");

	for (size_t got; file && (got = fread(values, 4, 4096, file)) != 0;)
		for (size_t i = 0; i < got; i++)
			expected[values[i] & 255]++;
	return file && fclose(file) == 0 && memcmp(expected, bins, sizeof(expected)) == 0;
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "values.bin";
	struct weir_context *context = NULL;
	uint64_t bins[256], total = 0;
	char uri[4096];
	int error = weir_context_open(argc > 2 ? argv[2] : "auto", NULL, &context);

	snprintf(uri, sizeof(uri), "file:%s", path);
	if (!error)
		error = count(context, uri, bins);
	if (error)
		fprintf(stderr, "histogram: %s\n", weir_last_error());
	weir_context_close(context); /* and all that was opened with it */
	if (error)
		return 1;
	for (int i = 0; i < 256; i++)
		total += bins[i];
	printf("%llu values, %llu of them in bin 0: %s\n", (unsigned long long)total,
	       (unsigned long long)bins[0], same(path, bins) ? "as the host counts" : "WRONG");
	return !same(path, bins);
}
