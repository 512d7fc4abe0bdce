/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel that leaves reaping to a service. */
#define WEIR_SERVICE_ONLY
#include <weir/writer.h>

#include "../rig/kernels.h"

WEIR_KERNEL(test_service, struct test_service_args)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->event, struct weir_event, 0);
	weir_status status = weir_read(&args->disk, 1, 1, args->buffer, event, 0);

	*weir_at(args->results, u64, 0) = status;
	*weir_at(args->results, u64, 1) = status == WEIR_OK ? weir_data_load_u64(args->buffer) : 0;
	*weir_at(args->results, u64, 2) = weir_array_get_u64(&args->writer.array, 64);
	*weir_at(args->results, u64, 3) = weir_writer_flush(&args->writer, 64, 1, 0);
}
