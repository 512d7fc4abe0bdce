/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-cufile: the same reads through NVIDIA's cuFile.
 *
 * cuFile reads its configuration when its driver opens, once per process, and refuses
 * files it knows too little of. So each way of configuring it is tried in a process of
 * its own, from the one nearest to what it is made for to its plain POSIX fallback;
 * the first that reads a block is measured. Exit status 3: none does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "cufile.h"
#include "peer.h"

enum { NOT_THIS_WAY = 100, PATH_BYTES = 128, LOG_LINES = 3, LINE_BYTES = 400 };

/** struct way - a configuration to try */
struct way {
	const char *name;
	bool forced; /* compatibility mode, whatever the file is */
	bool denied; /* every file system on the list of those it is not to look into */
	bool direct; /* the file with O_DIRECT, even if not asked for */
};

static const struct way ways[] = {
	{ "compatibility mode allowed", false, false, false },
	{ "compatibility mode allowed, file opened with O_DIRECT", false, false, true },
	{ "compatibility mode forced", true, false, false },
	{ "compatibility mode forced, file opened with O_DIRECT", true, false, true },
	{ "compatibility mode forced, file systems denied", true, true, false },
	{ "compatibility mode forced, file systems denied, file opened with O_DIRECT", true, true, true },
};

static struct cufile cufile;
static void *handle; /* of the file, for all threads */

static int say(const char *what, struct cufile_error error)
{
	fprintf(stderr, "peer-cufile: %s: %s (%d", what, cufile_error_name(error.code), error.code);
	if (error.code == CUFILE_DRIVER_ERROR)
		fprintf(stderr, ", CUDA driver error %d", error.driver_code);
	fprintf(stderr, ")\n");
	return -1;
}

/* A thread's buffer in GPU memory. */
static int begin(struct peer_reader *reader)
{
	uint64_t bytes = reader->load->block_bytes;
	cudaError_t code = cudaMalloc(&reader->own, bytes);
	struct cufile_error error;

	if (code) {
		reader->own = NULL;
		return peer_fail(reader, "no GPU memory: %s", cudaGetErrorString(code));
	}
	error = cufile.buffer_register(reader->own, bytes, 0);
	return error.code ? peer_fail(reader, "cuFileBufRegister: %s (%d)", cufile_error_name(error.code),
				      error.code)
			  : 0;
}

static int read_block(struct peer_reader *reader, uint64_t offset)
{
	ssize_t got = cufile.read(handle, reader->own, reader->load->block_bytes, (off_t)offset, 0);
	int code = got == -1 ? errno : (int)-got; /* cuFile's codes come either way */

	if (got == (ssize_t)reader->load->block_bytes)
		return 0;
	if (got >= 0)
		return peer_fail(reader, "cuFileRead of %llu bytes at %llu gave %zd",
				 (unsigned long long)reader->load->block_bytes, (unsigned long long)offset,
				 got);
	return peer_fail(reader, "cuFileRead: %s (%d)",
			 code >= CUFILE_LEAST_ERROR ? cufile_error_name(code) : strerror(code), code);
}

static void end(struct peer_reader *reader)
{
	if (!reader->own)
		return;
	(void)cufile.buffer_deregister(reader->own);
	(void)cudaFree(reader->own);
}

static const struct peer peer = { .name = "peer-cufile", .begin = begin, .read = read_block, .end = end };

/* A configuration of its own in @folder, and the environment that names it. */
static int configure(const struct way *way, const char *folder)
{
	char path[PATH_BYTES];
	FILE *file;

	snprintf(path, sizeof(path), "%s/cufile.json", folder);
	file = fopen(path, "we");
	if (!file)
		return -1;
	fprintf(file,
		"{\n  \"logging\": { \"dir\": \"%s\", \"level\": \"ERROR\" },\n"
		"  \"properties\": { \"allow_compat_mode\": true, \"force_compat_mode\": %s },\n"
		"  \"denylist\": { \"filesystems\": [%s] }\n}\n",
		folder, way->forced ? "true" : "false",
		way->denied ? "\"ext4\", \"xfs\", \"btrfs\", \"tmpfs\", \"overlay\"" : "");
	if (fclose(file) != 0)
		return -1;
	setenv("CUFILE_ENV_PATH_JSON", path, 1);
	setenv("CUFILE_ALLOW_COMPAT_MODE", "true", 1);
	setenv("CUFILE_FORCE_COMPAT_MODE", way->forced ? "true" : "false", 1);
	if (way->forced)
		setenv("CUFILE_SKIP_TOPOLOGY_DETECTION", "true", 1);
	snprintf(path, sizeof(path), "%s/cufile.log", folder);
	setenv("CUFILE_LOGFILE_PATH", path, 1);
	return 0;
}

/* One block, by the main thread. */
static int try_read(const struct peer_load *load)
{
	struct peer_reader reader = { .load = load, .peer = &peer };
	int error = begin(&reader);

	if (!error)
		error = read_block(&reader, 0);
	end(&reader);
	if (error)
		fprintf(stderr, "peer-cufile: %s\n", reader.error);
	return error;
}

/* In a process of its own. Return: its exit status. */
static int go(const struct way *way, struct peer_load *load)
{
	struct cufile_description description = { .type = CUFILE_OPAQUE_DESCRIPTOR };
	struct cufile_error error;
	char text[PEER_ERROR_BYTES];
	int status = NOT_THIS_WAY;

	if (!cufile_load(&cufile, text)) { /* only now, since it may look at the environment at once */
		fprintf(stderr, "peer-cufile: cannot be had here: %s\n", text);
		return PEER_CANNOT_BE_HAD;
	}
	load->direct = load->direct || way->direct;
	description.handle.file = peer_open(&peer, load);
	if (description.handle.file < 0)
		return NOT_THIS_WAY;
	(void)cudaFree(NULL); /* the GPU's context comes before cuFile's driver */
	error = cufile.driver_open();
	if (error.code) {
		say("cuFileDriverOpen", error);
		return NOT_THIS_WAY;
	}
	error = cufile.handle_register(&handle, &description);
	if (error.code) {
		say("cuFileHandleRegister", error);
	} else {
		snprintf(text, sizeof(text), "cuFile, %s", way->name);
		if (try_read(load) == 0)
			status = peer_measure(&peer, load, description.handle.file, text);
		cufile.handle_deregister(handle);
	}
	(void)cufile.driver_close();
	close(description.handle.file);
	return status;
}

/* What cuFile wrote about it, the first lines. */
static void show_log(const char *folder)
{
	char path[PATH_BYTES], line[LINE_BYTES];
	FILE *file;

	snprintf(path, sizeof(path), "%s/cufile.log", folder);
	file = fopen(path, "re");
	for (unsigned shown = 0; file && shown < LOG_LINES && fgets(line, sizeof(line), file);) {
		if (strspn(line, " \t\n") == strlen(line))
			continue;
		shown++;
		fprintf(stderr, "peer-cufile:   its log: %s%s", line, strchr(line, '\n') ? "" : "\n");
	}
	if (file)
		fclose(file);
}

static void remove_folder(const char *folder)
{
	static const char *const files[] = { "cufile.json", "cufile.log" };
	char path[PATH_BYTES];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		(void)unlink(path);
	}
	(void)rmdir(folder);
}

/* Return: the child's exit status. */
static int try_way(const struct way *way, struct peer_load *load)
{
	char folder[] = "/tmp/peer-cufile-XXXXXX";
	int status = 0;
	pid_t child;

	if (!mkdtemp(folder)) {
		perror("peer-cufile: /tmp");
		return 1;
	}
	fflush(NULL);
	child = fork();
	if (child == 0)
		exit(configure(way, folder) == 0 ? go(way, load) : 1);
	if (child > 0)
		(void)waitpid(child, &status, 0);
	status = child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : NOT_THIS_WAY;
	if (status == NOT_THIS_WAY) {
		fprintf(stderr, "peer-cufile: tried: %s: no\n", way->name);
		show_log(folder);
	}
	remove_folder(folder);
	return status;
}

int main(int argc, char **argv)
{
	struct peer_load load;
	int status = peer_parse(&peer, argc, argv, &load), file;

	if (status >= 0)
		return status;
	if (load.no_copy) {
		fprintf(stderr,
			"peer-cufile: --no-copy is peer-pread-copy's: cuFile reads into GPU memory\n");
		return 2;
	}
	file = peer_open(&peer, &load);
	if (file < 0)
		return 1;
	close(file);
	status = NOT_THIS_WAY;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && status == NOT_THIS_WAY; i++)
		if (!load.direct || ways[i].direct)
			status = try_way(&ways[i], &load);
	if (status != NOT_THIS_WAY)
		return status;
	fprintf(stderr,
		"peer-cufile: cannot be had here: no configuration reads %s. If it was the file that could "
		"not be "
		"registered: cuFile asks udev for its device, so give a container the host's /run/udev and a "
		"file on ext4 or "
		"xfs\n",
		load.path);
	return PEER_CANNOT_BE_HAD;
}
