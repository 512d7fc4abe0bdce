/* SPDX-License-Identifier: BSD-3-Clause */
/* weir-resize: images from one storage to another, smaller or larger. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/load.h"
#include "../common/vector.h"
#include "check.h"

enum {
	MOST_RUNS = 99,
	MOST_PIXELS = 16384,
	WAVES_PER_WORKER = 16,
	PLAIN_WAVES = 64, /* per worker */
	LEAST_TILE = 4096,
	MOST_TILE = 1 << 20,
	TILE_BYTES = 16384,
	ROOM_BYTES = 4 << 20
};

/** struct pixels - WIDTHxHEIGHT */
struct pixels {
	uint32_t width;
	uint32_t height;
};

/** struct command - what the command line says, and what is open */
struct command {
	struct sample_device device;
	char **uris;
	struct pixels from_size;
	struct pixels to_size;
	uint64_t images;
	uint64_t waves;
	uint32_t tile_bytes;
	uint32_t runs;
	bool make;
	bool plain;
	bool verify;
	bool json;
	bool filled; /* the input is made here, and known */
	struct weir_context *context;
	struct sample_storage from;
	struct sample_storage to;
	struct pictures pictures;
	struct resize_args args;
	struct weir_context_info info;
};

static struct command command_line = { .runs = 3, .info = { .size = sizeof(struct weir_context_info) } };

static int parse_pixels(void *to, const char *text)
{
	struct pixels *pixels = to;
	char behind;

	return sscanf(text, "%5u%*1[xX]%5u%c", &pixels->width, &pixels->height, &behind) != 2 ||
	       !pixels->width || !pixels->height || pixels->width > MOST_PIXELS ||
	       pixels->height > MOST_PIXELS;
}

#define PIXELS_HINT "it takes WIDTHxHEIGHT, such as 256x192, each from 1 to 16384"

static struct tool_parser from_parser = { parse_pixels, &command_line.from_size };
static struct tool_parser to_parser = { parse_pixels, &command_line.to_size };

static const struct tool_option options[] = {
	{ .name = "from",
	  .value = "WxH",
	  .kind = TOOL_PARSED,
	  .to = &from_parser,
	  .hint = PIXELS_HINT,
	  .help = "pixels of each image of FROM: width, height" },
	{ .name = "to",
	  .value = "WxH",
	  .kind = TOOL_PARSED,
	  .to = &to_parser,
	  .hint = PIXELS_HINT,
	  .help = "pixels of each image of TO" },
	{ .name = "images",
	  .value = "N",
	  .kind = TOOL_U64,
	  .to = &command_line.images,
	  .least = 1,
	  .help = "how many (default: as many as FROM has)" },
	{ .name = "make",
	  .kind = TOOL_FLAG,
	  .to = &command_line.make,
	  .help = "fill FROM first, which is OVERWRITTEN: pictures out of JPEG files that libjpeg-turbo "
		  "made" },
	{ .name = "tile",
	  .value = "BYTES",
	  .kind = TOOL_BYTES_U32,
	  .to = &command_line.tile_bytes,
	  .least = LEAST_TILE,
	  .most = MOST_TILE,
	  .help = "of TO that a wave makes at a time: a power of two (default 16K; less if that takes many "
		  "rows)" },
	{ .name = "waves",
	  .value = "N",
	  .kind = TOOL_U64,
	  .to = &command_line.waves,
	  .least = 1,
	  .most = 1 << 20,
	  .help = "waves (default 16 per worker of the device)" },
	{ .name = "runs",
	  .value = "N",
	  .kind = TOOL_U32,
	  .to = &command_line.runs,
	  .least = 1,
	  .most = MOST_RUNS,
	  .help = "runs; the median counts (default 3)" },
	{ .name = "plain",
	  .kind = TOOL_FLAG,
	  .to = &command_line.plain,
	  .help = "also resize in plain device memory: what it takes without storage" },
	{ .name = "verify",
	  .kind = TOOL_FLAG,
	  .to = &command_line.verify,
	  .help = "after every run compute every byte of every image on the host, and compare" },
	{ .name = "json", .kind = TOOL_FLAG, .to = &command_line.json, .help = "print the result as JSON" },
	SAMPLE_DEVICE_OPTIONS(command_line.device),
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-resize",
	.about = "usage: weir-resize FROM TO --from WxH --to WxH [options]\n"
		 "\n"
		 "Resizes images (bilinear) from one storage to another, whose beginning is OVERWRITTEN. "
		 "Images are\n"
		 "8-bit RGB without any header, one behind the other. Lanes read, resize and write; an empty "
		 "virt:\n"
		 "as FROM is filled with pictures first.\n",
	.options = options,
	.all = &command_line.uris,
};

/** struct report - all there is to print */
struct report {
	double seconds;
	double plain;
	struct weir_stats from, to; /* of the latest run */
};

static uint64_t image_bytes(const struct pixels *pixels)
{
	return (uint64_t)pixels->width * pixels->height * RESIZE_CHANNELS;
}

static int check_room(const struct sample_storage *storage, const struct pixels *pixels, uint64_t images,
		      char *error)
{
	if (images && images <= storage->info.bytes / image_bytes(pixels))
		return 0;
	return sample_fail(error, -EINVAL,
			   "%.700s has %llu bytes: no room for %llu images of %ux%u, %llu bytes each",
			   storage->uri, (unsigned long long)storage->info.bytes,
			   (unsigned long long)(images ? images : 1), pixels->width, pixels->height,
			   (unsigned long long)image_bytes(pixels));
}

static int open_storages(struct command *command, char *error)
{
	int code = sample_pass(error, sample_open(&command->device, &command->context));

	if (!code)
		code = sample_pass(error, weir_context_info(command->context, &command->info));
	if (!code)
		code = sample_storage_open(&command->device, command->context, command->uris[0],
					   &command->from, error);
	if (!code)
		code = sample_storage_open(&command->device, command->context, command->uris[1], &command->to,
					   error);
	if (!code && !command->images)
		command->images = command->from.info.bytes / image_bytes(&command->from_size);
	if (!code)
		code = check_room(&command->from, &command->from_size, command->images, error);
	return code ? code : check_room(&command->to, &command->to_size, command->images, error);
}

/* @count words of the input's images from word @first on. */
static void make(uint64_t *words, uint64_t first, uint64_t count, void *of)
{
	struct command *command = of;
	uint64_t bytes = image_bytes(&command->from_size), end = (first + count) * 8;
	unsigned char *to = (unsigned char *)words;

	memset(words, 0, count * 8);
	for (uint64_t at = first * 8; at < end && at < command->images * bytes;) {
		uint64_t skip = at % bytes, part = end - at < bytes - skip ? end - at : bytes - skip;
		const unsigned char *image = pictures_get(&command->pictures, at / bytes);

		if (!image)
			return;
		memcpy(to, image + skip, part);
		to += part;
		at += part;
	}
}

static int fill(struct command *command, char *error)
{
	int code;

	command->pictures = (struct pictures){ .width = command->from_size.width,
					       .height = command->from_size.height,
					       .jpeg = command->make };
	command->filled = command->make || sample_is_blank(command->from.uri);
	if (!command->filled)
		return 0;
	if (!pictures_get(&command->pictures, 0)) /* before anything is overwritten */
		return sample_fail(error, -ENOTSUP, "%s", command->pictures.failure);
	code = sample_fill(command->from.storage, 0, command->images * image_bytes(&command->from_size), make,
			   command, error);
	return code || !command->pictures.failure[0]
		       ? code
		       : sample_fail(error, -EIO, "%s", command->pictures.failure);
}

/* What a wave reads at most for a tile. */
static uint64_t room_for(const struct resize_args *args)
{
	uint64_t rows = args->tile_bytes / (args->to_width * RESIZE_CHANNELS) + 2;

	rows = rows * args->from_height / args->to_height + 5;
	return sample_round_up(rows * args->from_width * RESIZE_CHANNELS, LEAST_TILE) + 2 * LEAST_TILE;
}

static int allocate(struct command *command)
{
	struct resize_args *args = &command->args;
	uint64_t waves = command->waves ? command->waves : (uint64_t)command->info.workers * WAVES_PER_WORKER;
	uint64_t tiles;
	int code;

	*args = (struct resize_args){ .from = command->from.span,
				      .to = command->to.span,
				      .from_width = command->from_size.width,
				      .from_height = command->from_size.height,
				      .to_width = command->to_size.width,
				      .to_height = command->to_size.height,
				      .bytes = command->images * image_bytes(&command->to_size),
				      .tile_bytes = command->tile_bytes ? command->tile_bytes : TILE_BYTES };
	while (!command->tile_bytes && args->tile_bytes > LEAST_TILE && room_for(args) > ROOM_BYTES)
		args->tile_bytes /= 2;
	args->room_bytes = room_for(args);
	tiles = (args->bytes + args->tile_bytes - 1) / args->tile_bytes;
	args->waves = waves < tiles ? waves : tiles;
	code = weir_alloc(command->context, args->waves * (args->room_bytes + args->tile_bytes),
			  &args->buffers);
	return code ? code
		    : weir_alloc(command->context,
				 (args->waves * command->info.wave_lanes + SAMPLE_BLOCK_LANES) *
					 sizeof(struct weir_event),
				 &args->events);
}

static void make_nonsense(uint64_t *words, uint64_t first, uint64_t count, void *of)
{
	(void)of;
	for (uint64_t i = 0; i < count; i++)
		words[i] = sample_scramble(~(first + i));
}

static int check(struct command *command, const unsigned char *plain, const char *way, char *error)
{
	struct check check = { .from = &command->from,
			       .to = &command->to,
			       .args = &command->args,
			       .images = command->images,
			       .pictures = command->filled ? &command->pictures : NULL,
			       .way = way };

	return check_images(&check, plain, error);
}

static int read_stats(struct command *command, struct report *report)
{
	int code;

	report->from.size = report->to.size = sizeof(report->from);
	code = weir_stats(command->from.storage, &report->from);
	return code ? code : weir_stats(command->to.storage, &report->to);
}

/* One run, from launch to all of the output on storage; then whether it is right. */
static int run_once(struct command *command, struct report *report, double *seconds, char *error)
{
	struct report before;
	double begin;
	int code = command->verify ? sample_fill(command->to.storage, 0, command->args.bytes, make_nonsense,
						 NULL, error)
				   : 0;

	if (!code)
		code = sample_pass(error, read_stats(command, &before));
	begin = sample_now();
	if (!code)
		code = sample_pass(error, sample_run_waves(command->context, "resize", command->args.waves,
							   &command->args, sizeof(command->args)));
	*seconds = sample_now() - begin;
	if (!code)
		code = sample_storage_failed(command->context, &command->from, error);
	if (!code)
		code = sample_storage_failed(command->context, &command->to, error);
	if (!code)
		code = sample_pass(error, read_stats(command, report));
	if (code)
		return code;
	report->from.bytes_read -= before.from.bytes_read;
	report->from.commands -= before.from.commands;
	report->to.bytes_written -= before.to.bytes_written;
	report->to.commands -= before.to.commands;
	return command->verify ? check(command, NULL, "from storage to storage", error) : 0;
}

static int check_plain(struct command *command, char *error)
{
	unsigned char *made = malloc(command->args.bytes);
	int code =
		made ? sample_pass(error, weir_copy_from_device(command->context, made,
								command->args.plain_to, command->args.bytes))
		     : sample_fail(error, -ENOMEM, "no memory for the images");

	if (!code)
		code = check(command, made, "in plain memory", error);
	free(made);
	return code;
}

static int run_plain(struct command *command, struct report *report, char *error)
{
	struct sample_source source = { .storages = &command->from.storage,
					.storage_count = 1,
					.bytes = command->images * image_bytes(&command->from_size) };
	struct resize_args *args = &command->args;
	uint64_t tiles = (args->bytes + args->tile_bytes - 1) / args->tile_bytes;
	uint64_t waves = (uint64_t)command->info.workers * PLAIN_WAVES;
	int code = sample_load(command->context, &source, &args->plain_from);

	if (!code)
		code = weir_alloc(command->context, args->bytes + sizeof(uint32_t), &args->plain_to);
	for (unsigned i = 0; i < 2 && !code; i++) { /* the first time loads the kernel */
		double begin = sample_now();

		code = sample_run_waves(command->context, "resize_plain", waves < tiles ? waves : tiles, args,
					sizeof(*args));
		report->plain = sample_now() - begin;
	}
	if (code || !command->verify)
		return sample_pass(error, code);
	return check_plain(command, error);
}

static int run(struct command *command, struct report *report, char *error)
{
	double seconds[MOST_RUNS];
	int code = 0;

	for (uint32_t i = 0; i < command->runs && !code; i++)
		code = run_once(command, report, &seconds[i], error);
	if (code)
		return code;
	report->seconds = sample_median(seconds, command->runs);
	return command->plain ? run_plain(command, report, error) : 0;
}

/* Of all images, before and after. */
static double moved(const struct command *command)
{
	return (double)(command->images * image_bytes(&command->from_size) + command->args.bytes);
}

static void print_text(const struct command *command, const struct report *report)
{
	printf("images    %llu of %ux%u to %ux%u, %.1f MiB to %.1f MiB\n",
	       (unsigned long long)command->images, command->from_size.width, command->from_size.height,
	       command->to_size.width, command->to_size.height,
	       sample_megabytes(command->images * image_bytes(&command->from_size)),
	       sample_megabytes(command->args.bytes));
	if (command->make)
		printf("made      out of JPEG files of %.1f MiB\n",
		       sample_megabytes(command->pictures.jpeg_bytes));
	printf("device    %s\nfrom      %s\nto        %s\n", command->info.name, command->from.info.path,
	       command->to.info.path);
	printf("tiles     %llu bytes; %llu waves\n", (unsigned long long)command->args.tile_bytes,
	       (unsigned long long)command->args.waves);
	printf("time      %.4f s, %.0f images/s, %.2f GB/s; %.1f MiB read and %.1f MiB written\n",
	       report->seconds, (double)command->images / report->seconds,
	       moved(command) / report->seconds / 1e9, sample_megabytes(report->from.bytes_read),
	       sample_megabytes(report->to.bytes_written));
	if (command->plain)
		printf("plain     %.4f s in device memory; from storage to storage takes %.2f times as "
		       "long\n",
		       report->plain, report->seconds / report->plain);
	printf("result    %s\n", command->verify ? "verified: every byte of every image, after every run"
						 : "not verified (--verify computes all of it on the host)");
}

static void print_json(const struct command *command, const struct report *report)
{
	json_t *root = json_object();

	sample_set_text(root, "device", command->info.name);
	sample_set_text(root, "from", command->from.info.path);
	sample_set_text(root, "to", command->to.info.path);
	sample_set_count(root, "images", command->images);
	sample_set_count(root, "from_bytes", command->images * image_bytes(&command->from_size));
	sample_set_count(root, "to_bytes", command->args.bytes);
	sample_set_count(root, "jpeg_bytes", command->pictures.jpeg_bytes);
	sample_set_count(root, "tile_bytes", command->args.tile_bytes);
	sample_set_count(root, "waves", command->args.waves);
	sample_set_count(root, "runs", command->runs);
	sample_set_real(root, "seconds", report->seconds);
	sample_set_real(root, "images_per_s", (double)command->images / report->seconds);
	sample_set_real(root, "bytes_per_s", moved(command) / report->seconds);
	sample_set_count(root, "commands", report->from.commands + report->to.commands);
	sample_set_count(root, "bytes_read", report->from.bytes_read);
	sample_set_count(root, "bytes_written", report->to.bytes_written);
	if (command->plain) {
		sample_set_real(root, "plain_seconds", report->plain);
		sample_set_real(root, "ratio", report->seconds / report->plain);
	}
	sample_set_bool(root, "verified", command->verify);
	sample_print_json(root);
}

/* What is to be known before anything is opened. */
static const char *refuse(const struct command *command)
{
	if (!command->uris || !command->uris[0] || !command->uris[1] || command->uris[2])
		return "give two storages, such as file:/data/images and file:/data/small; the second is "
		       "overwritten";
	if (!strcmp(command->uris[0], command->uris[1]) && !sample_is_blank(command->uris[0]))
		return "FROM and TO are the same storage; give two";
	if (!command->from_size.width || !command->to_size.width)
		return "--from and --to say how many pixels images have, such as --from 500x375 --to 224x224";
	return command->tile_bytes & (command->tile_bytes - 1) ? "--tile is a power of two" : NULL;
}

int main(int argc, char **argv)
{
	struct command *command = &command_line;
	char error[SAMPLE_ERROR_BYTES] = "";
	struct report report = { .seconds = 0 };
	int status = tool_parse(&program, argc, argv);
	const char *wrong = status >= 0 ? NULL : refuse(command);

	if (status >= 0)
		return status;
	if (wrong)
		return tool_usage("%s", wrong);
	status = open_storages(command, error);
	if (!status)
		status = fill(command, error);
	if (!status)
		status = sample_pass(error, allocate(command));
	if (!status)
		status = run(command, &report, error);
	if (!status)
		(command->json ? print_json : print_text)(command, &report);
	status = sample_close(command->context, status, error);
	pictures_close(&command->pictures);
	return status ? tool_complain("%s", error) : 0;
}
