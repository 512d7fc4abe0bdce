/* SPDX-License-Identifier: BSD-3-Clause */
#include "persistent.h"

#include <errno.h>
#include <time.h>

#include "context.h"
#include "../backend/error.h"

enum { START_SECONDS = 10 };

int weir_persistent_prepare(struct weir_context *context, struct weir_persistent *persistent)
{
	int error = weir_memory_allocate(context, sizeof(weir_shared_u32), WEIR_MEMORY_HOST,
					 &persistent->started, &persistent->started_word);

	return error ? error : weir_memory_get(context, sizeof(weir_shared_u32), &persistent->stop);
}

int weir_persistent_start(struct weir_context *context, struct weir_persistent *persistent,
			  const struct weir_persistent_launch *launch)
{
	struct weir_backend *backend = context->backend;
	int error = backend->ops->serve(backend, launch->kernel, launch->blocks, launch->threads,
					launch->args, launch->args_bytes, &persistent->service);

	for (unsigned i = 0; !error && i < START_SECONDS * 1000; i++) {
		if (weir_load_u32_acquire_sys(persistent->started_word))
			return 0;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return error ? error
		     : weir_fail(ETIMEDOUT,
				 "%s: kernel \"%s\" did not begin within %d s; is the device full of other "
				 "kernels?",
				 launch->what, launch->kernel, START_SECONDS);
}

void weir_persistent_end(struct weir_context *context, struct weir_persistent *persistent)
{
	uint32_t stop = 1;

	if (persistent->service) {
		(void)weir_copy_to_device(context, persistent->stop, &stop, sizeof(stop));
		context->backend->ops->serve_end(context->backend, persistent->service);
	}
	(void)weir_memory_put(context, persistent->stop);
	(void)weir_memory_put(context, persistent->started);
	*persistent = (struct weir_persistent){ .service = NULL };
}
