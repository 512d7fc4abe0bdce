/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory: what it is, whether the host sees it, and which way files get there. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../backend/error.h"
#include "files.h"

enum { MOST_KEPT = 1 << 30 }; /* of an allocation; more would take long to pin for a small part */

static const char *const path_names[] = { "auto", "module", "direct", "pull", "bounce" };

const char *weir_file_path_name(enum weir_file_path path)
{
	return (size_t)path < sizeof(path_names) / sizeof(path_names[0]) ? path_names[path] : NULL;
}

/* weir's own allocation that begins at or before @address and reaches beyond it. */
static const struct weir_memory_block *find_block(const struct weir_context *context, uint64_t address)
{
	const struct weir_memory_block *block = context->memory;

	while (block && (address < block->address || address - block->address >= block->bytes))
		block = block->next;
	return block;
}

/* Whose memory it is, all of it, and where the host sees it. */
static int poll(struct weir_context *context, uint64_t address, uint64_t bytes, void **host)
{
	const struct weir_memory_block *block = find_block(context, address);
	struct weir_backend *backend = context->backend;

	*host = NULL;
	if (block && bytes > block->bytes - (address - block->address))
		return weir_fail(EFAULT,
				 "cannot register %" PRIu64 " bytes at %#" PRIx64
				 ": the allocation has %" PRIu64 " from there on",
				 bytes, address, (uint64_t)block->bytes - (address - block->address));
	if (block) {
		*host = block->host ? (char *)block->host + (address - block->address) : NULL;
		return 0;
	}
	if (backend->ops->examine)
		return backend->ops->examine(backend, address, bytes, host);
	return weir_fail(EFAULT,
			 "cannot register %" PRIu64 " bytes at %#" PRIx64
			 ": they are not inside an allocation of this "
			 "context, and the %s backend does not know of others; use weir_alloc()",
			 bytes, address, backend->ops->name);
}

/* What the module has to say, in one clause: @why, unless nobody asked it. */
static const char *no_module(const struct weir_registration *registration, const char *why)
{
	return registration->host && !registration->pin ? "the host sees this memory without it" : why;
}

/* The path that @asked comes to, or -ENOTSUP; @why: why the module gives no pages. */
static int choose(struct weir_registration *registration, enum weir_file_path asked, const char *why)
{
	const struct weir_backend_ops *ops = registration->context->backend->ops;
	bool seen = registration->host && !registration->pin;

	registration->staging =
		ops->stream_open && asked != WEIR_FILE_BOUNCE && !seen ? WEIR_FILE_PULL : WEIR_FILE_BOUNCE;
	if (asked == WEIR_FILE_MODULE && !registration->pin)
		return weir_fail(ENOTSUP,
				 "path \"module\" is not to be had: %s; leave the path at WEIR_FILE_AUTO",
				 no_module(registration, why));
	if (asked == WEIR_FILE_DIRECT && !seen)
		return weir_fail(
			ENOTSUP,
			"path \"direct\" is not to be had: the host does not see this memory by itself; use "
			"weir_alloc_host() or leave the path at WEIR_FILE_AUTO");
	if (asked == WEIR_FILE_PULL && !ops->stream_open)
		return weir_fail(ENOTSUP,
				 "path \"pull\" is not to be had: the %s backend has no streams of copies; "
				 "take \"%s\"",
				 ops->name, path_names[seen ? WEIR_FILE_DIRECT : WEIR_FILE_BOUNCE]);
	if (asked == WEIR_FILE_PULL)
		registration->staging = WEIR_FILE_PULL;
	registration->path = asked != WEIR_FILE_AUTO ? asked
			     : registration->pin     ? WEIR_FILE_MODULE
			     : seen                  ? WEIR_FILE_DIRECT
						     : registration->staging;
	return 0;
}

static void explain(struct weir_registration *registration, enum weir_file_path asked, const char *why)
{
	const char *how = registration->path == WEIR_FILE_PULL
				  ? "lanes and copy engines fetch from pinned staging"
				  : "the host copies from staging and waits";

	if (registration->path == WEIR_FILE_DIRECT)
		snprintf(registration->reason, sizeof(registration->reason), "the host sees this memory");
	else if (registration->path == WEIR_FILE_MODULE)
		snprintf(registration->reason, sizeof(registration->reason),
			 "the kernel module weir_p2p gives it pages, which SSDs read into");
	else if (asked != WEIR_FILE_AUTO)
		snprintf(registration->reason, sizeof(registration->reason), "asked for: %s", how);
	else
		snprintf(registration->reason, sizeof(registration->reason), "%s: %.*s", how,
			 (int)(sizeof(registration->reason) - strlen(how) - 3), why);
}

static int check(uint64_t address, uint64_t bytes, const struct weir_register_options *options)
{
	if (bytes == 0)
		return weir_fail(EINVAL, "cannot register 0 bytes at %#" PRIx64, address);
	if (bytes > UINT64_MAX - address || bytes > INT64_MAX)
		return weir_fail(EINVAL,
				 "cannot register %" PRIu64 " bytes at %#" PRIx64
				 ": they reach past the last address",
				 bytes, address);
	if (!weir_file_path_name(options->path))
		return weir_fail(EINVAL, "%d is no path; take one of enum weir_file_path",
				 (int)options->path);
	return 0;
}

/*
 * Pages of the kernel module, if there are any to be had; else @why says why not. An allocation of weir's
 * gets them as a whole, and keeps them until it is freed: registering parts of it then costs next to nothing.
 */
static void take_pages(struct weir_files *files, struct weir_registration *registration, char why[MODULE_WHY])
{
	const struct weir_memory_block *block = find_block(files->context, registration->address);

	if (block && block->bytes <= MOST_KEPT)
		registration->pin = file_module_keep(files, block->address, block->bytes, why);
	if (!registration->pin)
		registration->pin = file_module_pin(files, registration->address, registration->bytes, why);
	if (registration->pin)
		registration->host =
			registration->pin->host + (registration->address - registration->pin->address);
}

int weir_register(struct weir_context *context, uint64_t address, uint64_t bytes,
		  const struct weir_register_options *given, struct weir_registration **out)
{
	struct weir_register_options options;
	struct weir_registration *made;
	struct weir_files *files;
	char why[MODULE_WHY] = "";
	void *host = NULL;
	int error = weir_given(out, "weir_register", "out");

	if (error)
		return error;
	*out = NULL;
	if ((error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_register")) != 0 ||
	    (error = weir_options_take(&options, sizeof(options), given, "register options")) != 0 ||
	    (error = check(address, bytes, &options)) != 0 ||
	    (error = poll(context, address, bytes, &host)) != 0)
		return error;
	files = weir_files_get(context);
	if (!files)
		return -ENOMEM;
	made = calloc(1, sizeof(*made));
	if (!made)
		return weir_fail(ENOMEM, "no memory to note a registration");
	*made = (struct weir_registration){
		.context = context, .address = address, .bytes = bytes, .host = host
	};
	if (!host && (options.path == WEIR_FILE_AUTO || options.path == WEIR_FILE_MODULE))
		take_pages(files, made, why);
	error = choose(made, options.path, why);
	if (!error)
		error = weir_handle_add(made, WEIR_HANDLE_REGISTRATION, "");
	if (error) {
		file_module_unpin(files, made->pin);
		free(made);
		return error;
	}
	explain(made, options.path, why);
	made->next = files->registrations;
	files->registrations = made;
	*out = made;
	return 0;
}

int weir_deregister(struct weir_registration *registration)
{
	int error = registration
			    ? weir_handle_check(registration, WEIR_HANDLE_REGISTRATION, "weir_deregister")
			    : 0;
	struct weir_registration **link;
	struct weir_files *files;
	size_t under_way;

	if (error || !registration)
		return error;
	files = registration->context->files;
	for (link = &files->registrations; *link && *link != registration;)
		link = &(*link)->next;
	pthread_mutex_lock(&files->mutex);
	under_way = registration->under_way;
	pthread_mutex_unlock(&files->mutex);
	if (under_way)
		return weir_fail(EBUSY,
				 "cannot deregister %" PRIu64 " bytes at %#" PRIx64
				 ": %zu requests on it have not ended; "
				 "weir_file_wait() for them",
				 registration->bytes, registration->address, under_way);
	*link = registration->next;
	file_module_unpin(files, registration->pin);
	weir_handle_retire(registration);
	return 0;
}

int weir_registration_info(struct weir_registration *registration, struct weir_registration_info *info)
{
	struct weir_registration_info filled = { .size = sizeof(filled) };
	int error = weir_handle_check(registration, WEIR_HANDLE_REGISTRATION, "weir_registration_info");

	if (error || (error = weir_given(info, "weir_registration_info", "info")) != 0)
		return error;
	filled.address = registration->address;
	filled.bytes = registration->bytes;
	filled.host = registration->host;
	filled.path = registration->path;
	if (registration->pin && registration->context->files->module.flushes)
		filled.host = NULL; /* for whoever writes there by that pointer nobody would flush */
	memcpy(filled.reason, registration->reason, sizeof(filled.reason));
	return weir_result_give(info, &filled, sizeof(filled), "weir_registration_info");
}
