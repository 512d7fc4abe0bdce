/* SPDX-License-Identifier: BSD-3-Clause */
#include "find.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FOLDERS = 64 };

/** struct search - what was found so far, and where it was looked */
struct search {
	int pid;
	struct found *list;
	size_t count;
	struct stat folders[MOST_FOLDERS];
	unsigned folder_count;
};

/* "PID-NUMBER" and nothing else; with a '.' before it while it is written. */
static bool is_name(const char *name, int *pid)
{
	unsigned number;
	int length = 0;

	return sscanf(name + (*name == '.'), "%d-%u%n", pid, &number, &length) == 2 && *pid > 0 &&
	       name[(*name == '.') + length] == '\0';
}

/* A number is given to another process after a while: that one started later, or is another user's. */
static bool is_stale(const struct found *found)
{
	return !found->process.there || found->process.uid != found->note.was.st_uid ||
	       (found->note.state == NOTE_GOOD && found->note.start != found->process.start);
}

static void snapshot_at_file(struct search *search, const char *folder, const char *name,
			     const struct stat *of)
{
	char path[WEIR_PUBLISH_PATH + 32];
	struct found found = { .ours = of->st_uid == geteuid() }, *grown;
	int pid;

	if (!is_name(name, &pid) || (search->pid && pid != search->pid) ||
	    (size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
		return;
	process_read(pid, &found.process);
	if (*name == '.' && found.process.there)
		return;
	grown = realloc(search->list, (search->count + 1) * sizeof(*grown));
	if (!grown)
		return;
	search->list = grown;
	if (!note_read(path, pid, &found.note))
		return;
	if (found.note.was.st_uid != of->st_uid) {
		note_release(&found.note);
		return;
	}
	found.stale = is_stale(&found);
	search->list[search->count++] = found;
}

/* Each folder once, by whatever name; nobody but its owner may have written there. */
static bool is_new(struct search *search, const struct stat *folder)
{
	if (folder->st_mode & 022 || (folder->st_uid != geteuid() && geteuid() != 0) ||
	    search->folder_count == MOST_FOLDERS)
		return false;
	for (unsigned i = 0; i < search->folder_count; i++)
		if (search->folders[i].st_dev == folder->st_dev &&
		    search->folders[i].st_ino == folder->st_ino)
			return false;
	search->folders[search->folder_count++] = *folder;
	return true;
}

static void search_folder(struct search *search, const char *path)
{
	int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *folder = descriptor < 0 ? NULL : fdopendir(descriptor);
	const struct dirent *entry;
	struct stat of;

	if (folder && fstat(descriptor, &of) == 0 && is_new(search, &of))
		while ((entry = readdir(folder)) != NULL)
			snapshot_at_file(search, path, entry->d_name, &of);
	if (folder)
		(void)closedir(folder);
	else if (descriptor >= 0)
		(void)close(descriptor);
}

static void find_user(struct search *search, unsigned uid, const char *runtime_dir)
{
	char path[WEIR_PUBLISH_PATH];

	for (unsigned i = 0; i < WEIR_PUBLISH_FOLDERS; i++)
		if (weir_publish_folder(i, uid, runtime_dir, path))
			search_folder(search, path);
}

/* Root looks at everybody's. */
static void search_all(struct search *search)
{
	static const char *const patterns[] = { "/run/user/*/weir", "/dev/shm/weir-*", "/tmp/weir-*" };
	glob_t paths;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		if (glob(patterns[i], GLOB_NOSORT, NULL, &paths) != 0)
			continue;
		for (size_t j = 0; j < paths.gl_pathc; j++)
			search_folder(search, paths.gl_pathv[j]);
		globfree(&paths);
	}
}

/* What another process of the same number left comes behind a process's own. */
static int compare(const void *a, const void *b)
{
	const struct found *left = a, *right = b;

	if (left->note.pid != right->note.pid)
		return left->note.pid < right->note.pid ? -1 : 1;
	if (left->stale != right->stale)
		return left->stale ? 1 : -1;
	return left->note.number < right->note.number ? -1 : left->note.number > right->note.number;
}

struct found *find_notes(int pid, size_t *count)
{
	struct search search = { .pid = pid };
	char runtime_dir[WEIR_PUBLISH_PATH];

	find_user(&search, geteuid(), getenv("XDG_RUNTIME_DIR"));
	if (pid && process_runtime_dir(pid, runtime_dir, sizeof(runtime_dir)))
		find_user(&search, geteuid(), runtime_dir);
	if (geteuid() == 0)
		search_all(&search);
	if (search.count)
		qsort(search.list, search.count, sizeof(*search.list), compare);
	*count = search.count;
	return search.list;
}

void find_release(struct found *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		note_release(&list[i].note);
	free(list);
}

void find_remove_stale(const struct found *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].stale && list[i].ours && !note_changed(&list[i].note))
			(void)unlink(list[i].note.path);
}
