/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Backends that are modules: shared objects of their own, loaded when somebody first asks what
 * devices there are, so that libweir and programs need no vendor's library.
 */
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../backend/backend.h"
#include "../backend/error.h"

enum { MOST_MODULES = 8, REASON_BYTES = 256, NAME_BYTES = 32 };

/** struct module - a module of this build, or one found: its functions, or why there are none */
struct module {
	char name[NAME_BYTES];
	const struct weir_backend_ops *ops;
	char reason[REASON_BYTES];
};

static struct module modules[MOST_MODULES];
static size_t module_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A folder given by WEIR_BACKENDS, or the one of this library, or "weir" in it. */
static bool find(const char *name, char *path, size_t bytes)
{
	static const char *const locations[] = { "weir/", "" };
	const char *folder = getenv("WEIR_BACKENDS");
	Dl_info self;
	char *slash;

	if (folder && folder[0]) {
		snprintf(path, bytes, "%s/weir-backend-%s.so", folder, name);
		return !access(path, R_OK);
	}
	for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
		if (!dladdr(locations, &self) || !self.dli_fname)
			return false;
		snprintf(path, bytes, "%s", self.dli_fname);
		slash = strrchr(path, '/');
		slash = slash ? slash + 1 : path;
		snprintf(slash, bytes - (size_t)(slash - path), "%sweir-backend-%s.so", locations[i], name);
		if (!access(path, R_OK))
			return true;
	}
	return false;
}

static void load(struct module *module)
{
	const struct weir_backend_ops *const *ops;
	char path[4096];
	void *handle;

	if (!find(module->name, path, sizeof(path))) {
		snprintf(module->reason, REASON_BYTES,
			 "weir-backend-%s.so is not next to libweir; install it, or name its folder in "
			 "WEIR_BACKENDS",
			 module->name);
		return;
	}
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		snprintf(module->reason, REASON_BYTES, "%.200s; install what is missing", dlerror());
		return;
	}
	ops = dlsym(handle, "weir_backend_module");
	if (ops && (*ops)->size == sizeof(**ops))
		module->ops = *ops;
	else
		snprintf(module->reason, REASON_BYTES,
			 "%.180s is of another version of weir; install this one's", path);
}

static void add(const char *name, size_t length)
{
	for (size_t i = 0; i < module_count; i++)
		if (strlen(modules[i].name) == length && !strncmp(modules[i].name, name, length))
			return;
	if (module_count < MOST_MODULES && length > 0 && length < NAME_BYTES)
		memcpy(modules[module_count++].name, name, length);
}

/* Those of this build, and whatever else lies in the folder that WEIR_BACKENDS names, in order of name. */
static void load_all(void)
{
	const char *folder = getenv("WEIR_BACKENDS");
	char pattern[4096];
	glob_t found;

	for (size_t i = 0; weir_modules[i]; i++)
		add(weir_modules[i], strlen(weir_modules[i]));
	snprintf(pattern, sizeof(pattern), "%s/weir-backend-*.so", folder ? folder : "");
	if (folder && *folder && glob(pattern, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++) {
			const char *name = strrchr(found.gl_pathv[i], '/') + sizeof("/weir-backend-") - 1;

			add(name, strlen(name) - strlen(".so"));
		}
		globfree(&found);
	}
	for (size_t i = 0; i < module_count; i++)
		load(&modules[i]);
}

const char *weir_backend_at(size_t index, const struct weir_backend_ops **ops)
{
	size_t built_in;

	for (built_in = 0; weir_backends[built_in]; built_in++)
		if (built_in == index) {
			*ops = weir_backends[index];
			return (*ops)->name;
		}
	pthread_once(&once, load_all);
	*ops = NULL;
	if (index - built_in >= module_count)
		return NULL;
	*ops = modules[index - built_in].ops;
	if (!*ops)
		(void)weir_fail(ENODEV, "backend \"%s\": %s", modules[index - built_in].name,
				modules[index - built_in].reason);
	return modules[index - built_in].name;
}
