/* SPDX-License-Identifier: BSD-3-Clause */
/* cuFile's batches: requests are submitted in groups, and collected one by one as they end. */
#include <errno.h>
#include <string.h>

#include "cufile_shim.h"

enum { MOST_REQUESTS = 1 << 16, POLL_AGAIN_NS = 20000 };

/** struct group - what one call submitted */
struct group {
	struct group *next;
	struct weir_file_batch *batch;
	unsigned count;
	unsigned reported;
	struct request {
		void *cookie;
		struct shim_buffer *buffer;
		bool reported;
	} * requests;
	struct weir_file_io *io;
};

/** struct batch - what a CUfileBatchHandle_t is */
struct batch {
	unsigned most;
	unsigned under_way; /* and not told of */
	struct group *groups;
};

static CUfileOpError set_up(CUfileBatchHandle_t *out, unsigned most)
{
	struct batch *batch;
	int error;

	if (!out || !most || most > MOST_REQUESTS)
		return CU_FILE_INVALID_VALUE;
	error = cufile_begin();
	if (error)
		return cufile_of_errno(error);
	batch = calloc(1, sizeof(*batch));
	if (!batch)
		return CU_FILE_INTERNAL_ERROR;
	batch->most = most;
	*out = batch;
	return CU_FILE_SUCCESS;
}

CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *out, unsigned most)
{
	return cufile_count(CUFILE_CALL_BATCH_SETUP, set_up(out, most));
}

static void free_group(struct group *group)
{
	for (unsigned i = 0; group->requests && i < group->count; i++)
		shim_io_ends(&cufile_shim, group->requests[i].buffer);
	free(group->requests);
	free(group->io);
	free(group);
}

static struct group *make_group(unsigned count)
{
	struct group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->count = count;
	group->requests = calloc(count, sizeof(*group->requests));
	group->io = calloc(count, sizeof(*group->io));
	if (group->requests && group->io)
		return group;
	free_group(group);
	return NULL;
}

static CUfileOpError take_request(struct group *group, unsigned index, const CUfileIOParams_t *params)
{
	struct weir_file_io *io = &group->io[index];
	int file = cufile_file(params->fh);

	if (file < 0)
		return CU_FILE_HANDLE_NOT_REGISTERED;
	if (params->mode != CUFILE_BATCH || params->opcode > CUFILE_WRITE || !params->u.batch.devPtr_base ||
	    params->u.batch.file_offset < 0 || params->u.batch.devPtr_offset < 0)
		return CU_FILE_INVALID_VALUE;
	*io = (struct weir_file_io){ .file = file,
				     .bytes = params->u.batch.size,
				     .offset = (uint64_t)params->u.batch.file_offset,
				     .operation =
					     params->opcode == CUFILE_READ ? WEIR_FILE_READ : WEIR_FILE_WRITE,
				     .result = -EINPROGRESS };
	group->requests[index].cookie = params->cookie;
	return cufile_of_errno(shim_io(&cufile_shim, params->u.batch.devPtr_base,
				       params->u.batch.devPtr_offset, io, &group->requests[index].buffer));
}

static CUfileOpError submit(struct batch *batch, unsigned count, const CUfileIOParams_t *params,
			    unsigned flags)
{
	CUfileOpError code = CU_FILE_SUCCESS;
	struct group *group;

	if (!batch || !count || !params || flags)
		return CU_FILE_INVALID_VALUE;
	if (count > batch->most - batch->under_way)
		return CU_FILE_BATCH_FULL;
	if (cufile_begin())
		return CU_FILE_DRIVER_NOT_INITIALIZED;
	group = make_group(count);
	if (!group)
		return CU_FILE_INTERNAL_ERROR;
	for (unsigned i = 0; i < count && !code; i++)
		code = take_request(group, i, &params[i]);
	if (!code && weir_file_submit(cufile_shim.context, group->io, count, &group->batch))
		code = CU_FILE_BATCH_SUBMIT_FAILED;
	if (code) {
		free_group(group);
		return code;
	}
	group->next = batch->groups;
	batch->groups = group;
	batch->under_way += count;
	return CU_FILE_SUCCESS;
}

CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t handle, unsigned count, CUfileIOParams_t *params,
				  unsigned flags)
{
	return cufile_count(CUFILE_CALL_BATCH_SUBMIT, submit(handle, count, params, flags));
}

static void notify(const struct group *group, unsigned index, int64_t result, CUfileIOEvents_t *event)
{
	*event = (CUfileIOEvents_t){ .cookie = group->requests[index].cookie,
				     .status = result < 0 ? CUFILE_FAILED : CUFILE_COMPLETE,
				     .ret = (size_t)result };
}

/* Those that have ended and were not told of, up to @room. */
static unsigned report_group(struct group *group, CUfileIOEvents_t *events, unsigned room)
{
	unsigned count = 0;

	for (unsigned i = 0; i < group->count && count < room; i++) {
		/* acquire: pairs with batch.E2 in runtime/file/batch.c */
		int64_t result = __atomic_load_n(&group->io[i].result, __ATOMIC_ACQUIRE);

		if (result == -EINPROGRESS || group->requests[i].reported)
			continue;
		group->requests[i].reported = true;
		cufile_count_completion(group->io[i].operation == WEIR_FILE_WRITE, result);
		notify(group, i, result, &events[count++]);
	}
	group->reported += count;
	return count;
}

static unsigned notify_all(struct batch *batch, CUfileIOEvents_t *events, unsigned room)
{
	unsigned count = 0;

	for (struct group **link = &batch->groups; *link;) {
		struct group *group = *link;

		count += report_group(group, events + count, room - count);
		if (group->reported < group->count) {
			link = &group->next;
			continue;
		}
		*link = group->next;
		(void)weir_file_wait(group->batch); /* each request has its result */
		free_group(group);
	}
	batch->under_way -= count;
	return count;
}

static bool past(const struct timespec *deadline)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > deadline->tv_sec ||
	       (now.tv_sec == deadline->tv_sec && now.tv_nsec >= deadline->tv_nsec);
}

static struct timespec deadline_of(const struct timespec *timeout)
{
	struct timespec deadline;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += timeout->tv_sec + (deadline.tv_nsec + timeout->tv_nsec) / 1000000000;
	deadline.tv_nsec = (deadline.tv_nsec + timeout->tv_nsec) % 1000000000;
	return deadline;
}

CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t handle, unsigned least, unsigned *count,
				     CUfileIOEvents_t *events, struct timespec *timeout)
{
	struct batch *batch = handle;
	struct timespec deadline = { 0 };
	unsigned room = count ? *count : 0, found = 0;

	if (!batch || !count || !events || least > room)
		return cufile_code(CU_FILE_INVALID_VALUE);
	if (timeout)
		deadline = deadline_of(timeout);
	least = least < batch->under_way ? least : batch->under_way; /* for more one would wait for ever */
	while ((found += notify_all(batch, events + found, room - found)) < least &&
	       !(timeout && past(&deadline)))
		nanosleep(&(struct timespec){ .tv_nsec = POLL_AGAIN_NS }, NULL);
	*count = found;
	return cufile_code(CU_FILE_SUCCESS);
}

/* What has begun cannot be called back: it is waited for, and is not told of. */
CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t handle)
{
	struct batch *batch = handle;

	if (!batch)
		return cufile_code(CU_FILE_INVALID_VALUE);
	while (batch->groups) {
		struct group *next = batch->groups->next;

		(void)weir_file_wait(batch->groups->batch);
		free_group(batch->groups);
		batch->groups = next;
	}
	batch->under_way = 0;
	return cufile_count(CUFILE_CALL_BATCH_CANCEL, CU_FILE_SUCCESS);
}

void cuFileBatchIODestroy(CUfileBatchHandle_t handle)
{
	if (!handle)
		return;
	(void)cuFileBatchIOCancel(handle);
	(void)cufile_count(CUFILE_CALL_BATCH_DESTROY, CU_FILE_SUCCESS);
	free(handle);
}
