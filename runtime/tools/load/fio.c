/* SPDX-License-Identifier: BSD-3-Clause */
#include "fio.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "backend/error.h"

enum { TEXT_BYTES = 64, ERROR_BYTES = 512, MOST_ARGUMENTS = 20, PATH_BYTES = 4200 };

static void execute(const struct perf_fio_job *job, int output)
{
	char file[PATH_BYTES], bs[TEXT_BYTES], depth[TEXT_BYTES], seconds[TEXT_BYTES], offset[TEXT_BYTES],
		size[TEXT_BYTES];
	char *arguments[MOST_ARGUMENTS] = { "fio",
					    "--name=peer",
					    "--ioengine=io_uring",
					    "--time_based",
					    "--norandommap",
					    "--randrepeat=0",
					    "--invalidate=0",
					    "--output-format=json",
					    file,
					    bs,
					    depth,
					    seconds,
					    job->sequential ? "--rw=read" : "--rw=randread",
					    job->direct ? "--direct=1" : "--direct=0",
					    offset,
					    size };
	int count = 16;

	snprintf(file, sizeof(file), "--filename=%s", job->path);
	snprintf(bs, sizeof(bs), "--bs=%llu", (unsigned long long)job->block_bytes);
	snprintf(depth, sizeof(depth), "--iodepth=%u", job->depth);
	snprintf(offset, sizeof(offset), "--offset=%llu", (unsigned long long)job->offset);
	snprintf(size, sizeof(size), "--size=%llu", (unsigned long long)job->size);
	snprintf(seconds, sizeof(seconds), "--runtime=%u", job->seconds);
	if (job->fixed) {
		arguments[count++] = "--registerfiles";
		arguments[count++] = "--fixedbufs";
	}
	arguments[count] = NULL;
	dup2(output, STDOUT_FILENO);
	execvp("fio", arguments);
	_exit(127);
}

static int read_iops(FILE *stream, double *iops)
{
	json_t *root = json_loadf(stream, JSON_DISABLE_EOF_CHECK, NULL);
	json_t *read = json_object_get(json_array_get(json_object_get(root, "jobs"), 0), "read");

	*iops = json_number_value(json_object_get(read, "iops"));
	json_decref(root);
	return *iops > 0 ? 0 : -EIO;
}

int perf_fio(const struct perf_fio_job *job, double *iops)
{
	int ends[2], status = 0, code;
	pid_t child;
	FILE *stream;

	if (pipe(ends) != 0 || (child = fork()) < 0) {
		weir_fail(EIO, "cannot start fio: no pipe or process to be had");
		return -EAGAIN;
	}
	if (child == 0) {
		close(ends[0]);
		execute(job, ends[1]);
	}
	close(ends[1]);
	stream = fdopen(ends[0], "r");
	code = stream ? read_iops(stream, iops) : -ENOMEM;
	if (stream)
		fclose(stream);
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		weir_fail(EIO, "fio is not installed: apt-get install fio, or leave --peer=fio out");
	else if (code || status)
		weir_fail(EIO, "fio ended with status %d and no figure for %s", WEXITSTATUS(status),
			  job->path);
	return status ? -EIO : code;
}
