/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors: what they are, those that stay what they are, and which way their bytes go. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../backend/error.h"
#include "files.h"

int file_target_probe(int file, const char *what, struct file_target *target)
{
	int flags = fcntl(file, F_GETFL);

	if (flags < 0)
		return weir_fail(errno, "%s%d is no open file descriptor (%s)", what, file, strerror(errno));
	if (lseek(file, 0, SEEK_CUR) < 0)
		return weir_fail(errno,
				 "%sfile descriptor %d has no offsets (%s): it is a pipe, a socket or a "
				 "terminal; only "
				 "files and block devices can be read into registered memory",
				 what, file, strerror(errno));
	*target =
		(struct file_target){ .file = file, .flags = flags, .direct = flags & O_DIRECT, .edges = -1 };
	return 0;
}

/* Mutex held. */
static struct file_target *find_kept(struct weir_files *files, int file)
{
	struct file_target *kept = file >= 0 && (size_t)file < files->kept_count ? &files->kept[file] : NULL;

	return kept && kept->kept ? kept : NULL;
}

bool file_target_kept(struct weir_files *files, int file, struct file_target *target)
{
	const struct file_target *kept;

	pthread_mutex_lock(&files->mutex);
	kept = find_kept(files, file);
	if (kept)
		*target = *kept;
	pthread_mutex_unlock(&files->mutex);
	return kept != NULL;
}

int file_target_find(struct weir_files *files, int file, const char *what, struct file_target *target)
{
	return file_target_kept(files, file, target) ? 0 : file_target_probe(file, what, target);
}

/* Room for descriptor @file. Mutex held. */
static int make_room(struct weir_files *files, int file)
{
	size_t count = (size_t)file + 64;
	struct file_target *kept;

	if ((size_t)file < files->kept_count)
		return 0;
	kept = realloc(files->kept, count * sizeof(*kept));
	if (!kept)
		return weir_fail(ENOMEM, "no memory to note file descriptor %d", file);
	memset(kept + files->kept_count, 0, (count - files->kept_count) * sizeof(*kept));
	files->kept = kept;
	files->kept_count = count;
	return 0;
}

int weir_file_attach(struct weir_context *context, int file)
{
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_file_attach");
	struct weir_files *files = error ? NULL : weir_files_get(context);
	struct file_target target;

	if (error)
		return error;
	error = files ? file_target_probe(file, "cannot attach: ", &target) : -ENOMEM;

	if (error)
		return error;
	target.kept = true;
	target.pair = file_module_pair(files, file);
	pthread_mutex_lock(&files->mutex);
	error = find_kept(files, file)
			? weir_fail(EEXIST,
				    "file descriptor %d is attached already; weir_file_detach() it first",
				    file)
			: make_room(files, file);
	if (!error)
		files->kept[file] = target;
	pthread_mutex_unlock(&files->mutex);
	return error;
}

int weir_file_detach(struct weir_context *context, int file)
{
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_file_detach");
	struct weir_files *files = error ? NULL : weir_files_get(context);
	struct file_target *kept;

	if (!files)
		return error ? error : -ENOMEM;
	pthread_mutex_lock(&files->mutex);
	kept = find_kept(files, file);
	if (kept)
		kept->kept = false;
	pthread_mutex_unlock(&files->mutex);
	return kept ? 0 : weir_fail(ENOENT, "file descriptor %d is not attached", file);
}

int weir_file_route(struct weir_registration *registration, int file, struct weir_file_route *route)
{
	struct weir_file_route filled = { .size = sizeof(filled) };
	int error = weir_handle_check(registration, WEIR_HANDLE_REGISTRATION, "weir_file_route");
	struct file_target target;
	struct weir_files *files;

	if (error || (error = weir_given(route, "weir_file_route", "route")) != 0)
		return error;
	files = registration->context->files;
	error = file_target_find(files, file, "no route: ", &target);
	if (error)
		return error;
	filled.path = registration->path;
	snprintf(filled.reason, sizeof(filled.reason), "%s", registration->reason);
	if (registration->path == WEIR_FILE_MODULE && !target.direct) {
		filled.path = registration->staging;
		snprintf(filled.reason, sizeof(filled.reason), "the file is not open with O_DIRECT");
	} else if (registration->path == WEIR_FILE_MODULE &&
		   !file_module_reaches(files, &target, filled.reason)) {
		filled.path = registration->staging;
	}
	return weir_result_give(route, &filled, sizeof(filled), "weir_file_route");
}
