/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * try.h: what weir-try is asked for, what it tests, and what comes of it.
 *
 * Each step runs in a process of its own (child.c), so that a crash, a hang or a driver that fails ends that
 * step alone. Results are JSON objects from there on: report.c prints them.
 */
#ifndef WEIR_TRY_H
#define WEIR_TRY_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "tool_options.h"

enum { TRY_MOST = 16, TRY_TEXT = 512, TRY_PATH = PATH_MAX + 64, TRY_REFUSED = 2 };

/**
 * struct try_disk - a disk whose data may be destroyed
 * @address: PCI address of its controller
 * @nsid: namespace, 0 if none was named
 */
struct try_disk {
	char address[64];
	uint32_t nsid;
};

/**
 * struct try_options - the command line
 * @gpus: names of lanes to test; of none, all that a backend can use
 * @disks: whose data may be destroyed
 * @folder: where the temporary file goes; @file_bytes: its size, and how much of a disk is written
 * @file_keys: of its URI, NULL: none
 * @runtime: seconds of a measured run
 * @report: files to write are NAME.json and NAME.txt; NULL: none
 * @json: print JSON instead of text
 */
struct try_options {
	struct tool_names gpus;
	struct try_disk disks[TRY_MOST];
	unsigned disk_count;
	const char *folder;
	uint64_t file_bytes;
	const char *file_keys;
	double runtime;
	const char *report;
	bool json;
};

/**
 * struct try_storage - what is read and written
 * @name: in the report
 * @uri: without keys of a variant; @keys: it has some
 * @path: for other programs, "" if only weir reaches it
 * @variants: keys to test one after the other, the first is "", the last NULL
 * @offset: first byte that may be written; @bytes: how many
 */
struct try_storage {
	char name[128];
	char uri[TRY_PATH];
	bool keys;
	char path[TRY_PATH];
	const char *const *variants;
	uint64_t offset, bytes;
};

/** struct try_pair - lanes and a storage, and keys of its URI */
struct try_pair {
	const struct try_options *options;
	const char *lanes;
	const struct try_storage *storage;
	const char *variant;
};

/** struct try_results - arrays of the report; @machine: weir-check's object, @machine_text: its text */
struct try_results {
	json_t *machine;
	char *machine_text;
	json_t *storages, *tests, *figures, *missing;
};

/** try_options_read() - Return: -1 to go on, else the exit status */
int try_options_read(struct try_options *options, int argc, char **argv);

/** try_step - in a process of its own: a new object with "verdict" and what else there is to say */
typedef json_t *(*try_step)(const void *arguments);

/**
 * try_child() - run a step in a process of its own
 * @step: what to run; @arguments: its own
 *
 * Return: its object; of one that crashed or hung, one whose "verdict" is "failed" and whose "why" says so.
 * "said" is what it wrote to its standard output and standard error, if anything.
 */
json_t *try_child(try_step step, const void *arguments);

/** try_verdict() - an object with "verdict" and, by format, "why" */
json_t *try_verdict(const char *verdict, const char *why, ...) __attribute__((format(printf, 2, 3)));

/** try_uri() - the storage's URI with the keys of its variant */
void try_uri(char uri[TRY_PATH], const struct try_storage *storage, const char *variant);

/** try_file_open() - a temporary file without a name. Return: 0, or -1 after a sentence on stderr. */
int try_file_open(const struct try_options *options, struct try_storage *storage);

/** try_disk_open() - the disk, if nothing is on it. Return: 0, or TRY_REFUSED after a sentence on stderr. */
int try_disk_open(const struct try_options *options, const struct try_disk *disk,
		  struct try_storage *storage);

/** try_disk_clean() - struct try_storage: zeros where the tests wrote, durable once the storage is closed */
json_t *try_disk_clean(const void *storage);

/** try_machine() - what there is, as weir-check says, and what is missing, into @results */
void try_machine(struct try_results *results);

/** try_pair_run() - all tests of lanes with a storage, and figures, into @results */
void try_pair_run(const struct try_options *options, const char *lanes, const struct try_storage *storage,
		  struct try_results *results);

/** try_poison() - struct try_pair: lanes write, and read twice into buffers that held something else */
json_t *try_poison(const void *pair);

/** try_figures() - struct try_pair: reads per second of weir, of a plain kernel, of fio and of pread */
json_t *try_figures(const void *pair);

/** try_pread() - 4 KiB random reads per second by threads; 0 if it cannot be told */
double try_pread(const struct try_storage *storage, bool direct, double seconds);

/** try_report() - print, and write the files. Return: the exit status. */
int try_report(const struct try_options *options, struct try_results *results);

/** try_mask() - serial numbers of this machine's NVMe controllers in @text become stars */
void try_mask(char *text);

#endif
