/* SPDX-License-Identifier: BSD-3-Clause */
/* communicator_mpi.c: ranks of MPI_COMM_WORLD. */
#include "communicator.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mpi.h>

#include "backend/error.h"

/* MPI counts in int: larger contributions go in parts, rank by rank. */
enum { PART_BYTES = 1 << 30, FEW_BYTES = 4096 };

enum { LONGEST_SLEEP_NS = 2000000 };

static int failed(int code, const char *what)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int bytes = 0;

	MPI_Error_string(code, text, &bytes);
	return weir_fail(EIO, "dataset: %s failed: %s; a rank is lost: start the job anew", what, text);
}

/*
 * Until all ranks are here, asleep: a rank that waits in a blocking collective takes a processor from those
 * that are still at work, where there are more ranks than processors.
 */
static int arrive(void)
{
	struct timespec sleep = { .tv_nsec = 20000 };
	MPI_Request request;
	int done = 0, code = MPI_Ibarrier(MPI_COMM_WORLD, &request);

	while (code == MPI_SUCCESS) {
		code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
		if (done || code != MPI_SUCCESS)
			break;
		nanosleep(&sleep, NULL);
		sleep.tv_nsec = sleep.tv_nsec < LONGEST_SLEEP_NS ? 2 * sleep.tv_nsec : LONGEST_SLEEP_NS;
	}
	return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Ibarrier");
}

static int broadcast(unsigned char *at, size_t bytes, int root)
{
	int code = MPI_SUCCESS;

	for (size_t done = 0; done < bytes && code == MPI_SUCCESS; done += PART_BYTES) {
		size_t part = bytes - done < PART_BYTES ? bytes - done : PART_BYTES;

		code = MPI_Bcast(at + done, (int)part, MPI_BYTE, root, MPI_COMM_WORLD);
	}
	return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Bcast");
}

/* That all ranks had the memory is a matter of all ranks. */
static int agree(int mine)
{
	int worst = mine, code = MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);

	return code == MPI_SUCCESS ? worst : -1;
}

static int at_once(const struct weir_dataset_communicator *communicator, const void *mine, void *all,
		   const size_t *counts)
{
	int *lengths = calloc(2 * (size_t)communicator->ranks, sizeof(*lengths)), code;
	int *places;

	if (agree(!lengths)) {
		free(lengths);
		return weir_fail(ENOMEM, "dataset: a rank has no memory to gather the directory");
	}
	places = lengths + communicator->ranks;
	for (uint32_t i = 0; i < communicator->ranks; i++) {
		lengths[i] = (int)counts[i];
		places[i] = i ? places[i - 1] + lengths[i - 1] : 0;
	}
	code = MPI_Allgatherv(mine, lengths[communicator->rank], MPI_BYTE, all, lengths, places, MPI_BYTE,
			      MPI_COMM_WORLD);
	free(lengths);
	return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Allgatherv");
}

static int one_by_one(const struct weir_dataset_communicator *communicator, const void *mine,
		      unsigned char *all, const size_t *counts)
{
	int error = 0;

	for (uint32_t i = 0; i < communicator->ranks && !error; all += counts[i++]) {
		if (i == communicator->rank)
			memcpy(all, mine, counts[i]);
		error = broadcast(all, counts[i], (int)i);
	}
	return error;
}

static int gather(struct weir_dataset_communicator *communicator, const void *mine, size_t bytes, void **all,
		  size_t *counts)
{
	unsigned long long count = bytes, *each = malloc(communicator->ranks * sizeof(*each));
	size_t total = 0;
	int code, error = arrive();

	if (error) {
		free(each);
		return error;
	}
	if (agree(!each)) {
		free(each);
		return weir_fail(ENOMEM, "dataset: a rank has no memory to gather the directory");
	}
	code = MPI_Allgather(&count, 1, MPI_UNSIGNED_LONG_LONG, each, 1, MPI_UNSIGNED_LONG_LONG,
			     MPI_COMM_WORLD);
	if (code != MPI_SUCCESS) {
		free(each);
		return failed(code, "MPI_Allgather");
	}
	for (uint32_t i = 0; i < communicator->ranks; i++)
		total += counts[i] = each[i];
	free(each);
	*all = malloc(total ? total : 1);
	if (agree(!*all)) {
		free(*all);
		*all = NULL;
		return weir_fail(ENOMEM, "dataset: a rank has no memory to gather %zu bytes of the directory",
				 total);
	}
	error = total <= FEW_BYTES ? at_once(communicator, mine, *all, counts)
				   : one_by_one(communicator, mine, *all, counts);
	if (error) {
		free(*all);
		*all = NULL;
	}
	return error;
}

static void finalize(struct weir_dataset_communicator *communicator)
{
	int finalized = 0;

	MPI_Finalized(&finalized);
	if (communicator->state && !finalized)
		MPI_Finalize();
	free(communicator);
}

int weir_dataset_communicator_mpi(struct weir_dataset_communicator *communicator)
{
	int initialized = 0, rank = 0, ranks = 1, level, code = MPI_Initialized(&initialized);

	if (code == MPI_SUCCESS && !initialized) {
		code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
		communicator->state = communicator; /* ours to finalize */
	}
	if (code == MPI_SUCCESS)
		code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (code != MPI_SUCCESS)
		return failed(code, "MPI_Init");
	communicator->rank = (uint32_t)rank;
	communicator->ranks = (uint32_t)ranks;
	communicator->gather = gather;
	communicator->close = finalize;
	return 0;
}
