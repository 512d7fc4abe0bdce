/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-pread-copy: what programs do without a library: each host thread reads a
 * block into pinned memory, copies it to the GPU in a stream of its own, and waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "peer.h"

enum { ALIGNMENT = 4096 };

/** struct own - a thread's buffers and stream */
struct own {
	void *host;
	void *device;
	cudaStream_t stream;
};

static int begin_copy(struct peer_reader *reader, struct own *own)
{
	uint64_t bytes = reader->load->block_bytes;
	cudaError_t code = cudaHostAlloc(&own->host, bytes, cudaHostAllocDefault);

	if (!code)
		code = cudaMalloc(&own->device, bytes);
	if (!code)
		code = cudaStreamCreateWithFlags(&own->stream, cudaStreamNonBlocking);
	return code ? peer_fail(reader, "cannot set up a thread on the GPU: %s", cudaGetErrorString(code))
		    : 0;
}

static int begin(struct peer_reader *reader)
{
	struct own *own = calloc(1, sizeof(*own));

	reader->own = own;
	if (!own)
		return peer_fail(reader, "no memory");
	if (!reader->load->no_copy)
		return begin_copy(reader, own);
	return posix_memalign(&own->host, ALIGNMENT, reader->load->block_bytes)
		       ? peer_fail(reader, "no memory")
		       : 0;
}

static int read_block(struct peer_reader *reader, uint64_t offset)
{
	struct own *own = reader->own;
	uint64_t bytes = reader->load->block_bytes;
	ssize_t got = pread(reader->file, own->host, bytes, (off_t)offset);
	cudaError_t code;

	if (got != (ssize_t)bytes)
		return peer_fail(reader, "read of %llu bytes at %llu: %s", (unsigned long long)bytes,
				 (unsigned long long)offset, got < 0 ? strerror(errno) : "the file ended");
	if (reader->load->no_copy)
		return 0;
	code = cudaMemcpyAsync(own->device, own->host, bytes, cudaMemcpyHostToDevice, own->stream);
	if (!code)
		code = cudaStreamSynchronize(own->stream);
	return code ? peer_fail(reader, "copy to the GPU: %s", cudaGetErrorString(code)) : 0;
}

static void end(struct peer_reader *reader)
{
	struct own *own = reader->own;

	if (!own)
		return;
	if (reader->load->no_copy) {
		free(own->host);
	} else {
		if (own->stream)
			(void)cudaStreamDestroy(own->stream);
		(void)cudaFree(own->device);
		(void)cudaFreeHost(own->host);
	}
	free(own);
}

static const struct peer pread_copy = {
	.name = "peer-pread-copy", .begin = begin, .read = read_block, .end = end
};

int main(int argc, char **argv)
{
	struct peer_load load;
	int status = peer_parse(&pread_copy, argc, argv, &load), file;

	if (status >= 0)
		return status;
	file = peer_open(&pread_copy, &load);
	if (file < 0)
		return 1;
	status = peer_measure(&pread_copy, &load, file,
			      load.no_copy ? "pread alone, nothing reaches the GPU"
					   : "pread, cudaMemcpyAsync and cudaStreamSynchronize per block");
	close(file);
	return status;
}
