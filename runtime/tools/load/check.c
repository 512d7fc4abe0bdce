/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

#include <errno.h>
#include <string.h>

#include "backend/error.h"

enum { STRIPE = 64 << 10, MOST_SLOTS = 1 << 26 };

static bool no_data(const struct weir_storage_info *info)
{
	return strstr(info->path, "no data") != NULL;
}

bool perf_is_blank(const char *uri)
{
	return !strncmp(uri, "virt:", 5) && !strstr(uri, "load=") && !strstr(uri, "data=off") &&
	       !strstr(uri, "ro=1");
}

bool perf_on_cpu(const struct perf_bench *bench)
{
	return !strncmp(bench->device.name, "cpu", 3);
}

bool perf_in_device(const struct perf_bench *bench)
{
	for (uint32_t i = 0; i < bench->options->uri_count; i++)
		if (!strstr(bench->info[i].path, "device memory") && !no_data(&bench->info[i]))
			return false;
	return true;
}

/* One storage by itself. */
static int check_storage(const struct perf_bench *bench, uint32_t index)
{
	const struct perf_options *options = bench->options;
	const struct weir_storage_info *info = &bench->info[index];
	const char *uri = options->uris[index];

	if (info->block_bytes != bench->info[0].block_bytes)
		return weir_fail(EINVAL,
				 "%s has blocks of %u bytes and %s of %u: one load needs one block size",
				 options->uris[0], bench->info[0].block_bytes, uri, info->block_bytes);
	if (options->bs % info->block_bytes || options->bs > info->max_transfer_bytes)
		return weir_fail(EINVAL, "--bs=%llu: a request is whole blocks of %u bytes, %u bytes at most",
				 (unsigned long long)options->bs, info->block_bytes,
				 info->max_transfer_bytes);
	if (options->bs > info->bytes)
		return weir_fail(EINVAL, "--bs=%llu: the storage has only %llu bytes",
				 (unsigned long long)options->bs, (unsigned long long)info->bytes);
	if (options->offset > info->bytes || bench->range_bytes > info->bytes - options->offset)
		return weir_fail(EINVAL,
				 "--offset=%llu and --size=%llu reach beyond %s, which has %llu bytes",
				 (unsigned long long)options->offset, (unsigned long long)bench->range_bytes,
				 uri, (unsigned long long)info->bytes);
	if ((perf_writes(options) || options->verify) && info->read_only)
		return weir_fail(EINVAL, "%s is read-only: %s has to write to it", uri,
				 options->verify ? "--verify" : "this load");
	if (options->verify && no_data(info))
		return weir_fail(EINVAL, "%s keeps no data, so there is nothing for --verify to check", uri);
	return 0;
}

static int check_range(const struct perf_bench *bench)
{
	const struct perf_options *options = bench->options;
	uint32_t block = bench->info[0].block_bytes;

	if (options->offset % block || bench->unit_bytes % block || bench->unit_bytes / block > UINT32_MAX)
		return weir_fail(
			EINVAL, "%s=%llu: not a multiple of the storage's blocks of %u bytes, or too large",
			options->offset % block ? "--offset" : "--stride",
			(unsigned long long)(options->offset % block ? options->offset : bench->unit_bytes),
			block);
	if (bench->range_bytes < options->bs)
		return weir_fail(
			EINVAL,
			"a range of %llu bytes does not hold one request of %llu; see --offset, --size "
			"and --bs",
			(unsigned long long)bench->range_bytes, (unsigned long long)options->bs);
	if ((uint64_t)bench->lanes * options->window > MOST_SLOTS)
		return weir_fail(EINVAL, "--iodepth=%u times --window=%u are more than %d requests in flight",
				 bench->lanes, options->window, MOST_SLOTS);
	if (bench->lanes < options->uri_count)
		return weir_fail(EINVAL, "%u storages need a lane each at least", options->uri_count);
	return 0;
}

static int check_cache(const struct perf_bench *bench)
{
	const struct perf_options *options = bench->options;
	uint64_t line = bench->line_bytes;

	if (!line)
		return 0;
	if (line < bench->info[0].block_bytes)
		return weir_fail(EINVAL, "--line=%llu: shorter than the storage's blocks of %u bytes",
				 (unsigned long long)line, bench->info[0].block_bytes);
	if (options->cached && (options->bs % line || options->offset % line || bench->unit_bytes % line))
		return weir_fail(
			EINVAL,
			"--bs, --offset and --stride must be whole cache lines of %llu bytes; see --line",
			(unsigned long long)line);
	if (options->uri_count > 1 && options->offset % STRIPE)
		return weir_fail(
			EINVAL,
			"--offset=%llu: cached storages are striped by %d bytes; give a multiple of that",
			(unsigned long long)options->offset, STRIPE);
	if (options->hit != PERF_HIT_NONE && (bench->range_bytes < line || options->offset % line ||
					      bench->range_bytes < 8 * bench->device.wave_lanes))
		return weir_fail(EINVAL,
				 "--hit needs a range of whole cache lines of %llu bytes, one at least",
				 (unsigned long long)line);
	return 0;
}

int perf_check_storages(const struct perf_bench *bench)
{
	for (uint32_t i = 0; i < bench->options->uri_count; i++)
		if (check_storage(bench, i))
			return -1;
	return check_range(bench) || check_cache(bench) ? -1 : 0;
}
