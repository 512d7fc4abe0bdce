/* SPDX-License-Identifier: BSD-3-Clause */
/* format_folder.c: a folder of files; the subfolders of the folder are the classes, in the order of their
 * names. */
#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/error.h"
#include "source.h"

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int add_entry(struct weir_dataset_list *list, const FTSENT *entry, size_t root_bytes,
		     uint32_t *classes)
{
	const char *name = entry->fts_path + root_bytes;
	uint32_t label = entry->fts_level > 1 ? *classes - 1 : WEIR_DATASET_NO_LABEL;

	if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS)
		return weir_fail(entry->fts_errno, "dataset: cannot read '%s': %s", entry->fts_path,
				 strerror(entry->fts_errno));
	if (entry->fts_info == FTS_SLNONE || entry->fts_info == FTS_DC)
		return weir_fail(entry->fts_info == FTS_DC ? ELOOP : ENOENT,
				 "dataset: the link '%s' leads %s; mend or remove it", entry->fts_path,
				 entry->fts_info == FTS_DC ? "back to a folder above it" : "nowhere");
	if (entry->fts_info == FTS_D && entry->fts_level == 1)
		++*classes;
	if (entry->fts_info != FTS_F)
		return 0;
	while (*name == '/')
		name++;
	return weir_dataset_list_add(list, name, 0, (uint64_t)entry->fts_statp->st_size, label);
}

static int index_folder(struct weir_dataset_source *source, const char *parameters,
			struct weir_dataset_list *list)
{
	char *const roots[] = { source->name, NULL };
	FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	uint32_t classes = 0;
	FTSENT *entry = NULL;
	int error = 0;

	(void)parameters;
	if (!tree)
		return weir_fail(errno, "dataset: cannot read the folder '%s': %s", source->name,
				 strerror(errno));
	while (!error && (entry = fts_read(tree)) != NULL)
		error = add_entry(list, entry, strlen(source->name), &classes);
	if (!error && errno) /* fts_read() sets it to 0 at the end */
		error = weir_fail(errno, "dataset: cannot read the folder '%s' to its end: %s", source->name,
				  strerror(errno));
	fts_close(tree);
	return error;
}

const struct weir_dataset_format weir_dataset_format_folder = { "folder", NULL, index_folder };
