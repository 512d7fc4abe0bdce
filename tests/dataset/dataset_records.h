/* SPDX-License-Identifier: BSD-3-Clause */
/* dataset_records.h: a storage of small records, for tests of a dataset that cannot read all of them. */
#ifndef WEIR_TESTS_DATASET_RECORDS_H
#define WEIR_TESTS_DATASET_RECORDS_H

#include "dataset_rig.h"

enum { RECORD = 1000, RECORDS = 400 };

static char folder[] = "/tmp/weir-dataset-records-XXXXXX", path[64], manifest_path[64];
static struct weir_context *context;
static struct weir_storage *storage;

static inline int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/records", folder);
	snprintf(manifest_path, sizeof(manifest_path), "%s/records.weir", folder);
	return weir_context_open("cpu", NULL, &context);
}

static inline int tear_down(void **state)
{
	char command[300];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return weir_context_close(context) | (system(command) != 0);
}

static inline void open_records(const char *keys)
{
	char uri[300];

	snprintf(uri, sizeof(uri), "file:%s%s", path, keys);
	must(weir_storage_open(context, uri, NULL, &storage));
}

/* Records and their manifest as they should be, and the storage open. */
static inline void fresh(void)
{
	rig_records(path, RECORDS, RECORD);
	open_records("");
	must(weir_dataset_index(storage, manifest_path, WEIR_OPTIONS(dataset_index, .format = "fixed:1000")));
}

#endif
