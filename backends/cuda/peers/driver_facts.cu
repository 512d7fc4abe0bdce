/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-driver: what the driver makes of the memory that nvme: storages rest on, measured without weir.
 *
 * Ordinary pages that are registered (what VFIO can pin, too) beside pages that the driver allocates: random
 * blocks that lanes gather, and the round trip of a word. Registering and unregistering beside a persistent
 * kernel. Device memory as a dma-buf. What the driver has to refuse: registers that are none, pages that are
 * registered twice. One line for each fact; the exit status is 1 if a fact differs from what backends/cuda
 * relies on.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

constexpr size_t PAGE = 4096, MEDIUM = size_t(512) << 20;
constexpr int RUNS = 5, TRIPS = 20000;

int differs;

[[noreturn]] void give_up(const char *what, cudaError_t code)
{
	fprintf(stderr, "peer-driver: %s: %s\n", what, cudaGetErrorString(code));
	exit(3);
}

void must(const char *what, cudaError_t code)
{
	if (code)
		give_up(what, code);
}

void expect(const char *fact, bool holds, const char *found)
{
	printf("%-62s %s%s\n", fact, found, holds ? "" : "   DIFFERS");
	differs += !holds;
}

double now()
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(double *values)
{
	std::sort(values, values + RUNS);
	return values[RUNS / 2];
}

/* A warp gathers a random 4 KiB block into its own row, again and again. */
__global__ void gather(const uint4 *from, uint4 *to, uint64_t blocks, int rounds)
{
	uint32_t lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
	uint64_t draw = warp * 0x9e3779b97f4a7c15u + 1;

	for (int round = 0; round < rounds; round++) {
		draw = draw * 6364136223846793005u + 1442695040888963407u;
		const uint4 *block = from + (draw >> 20) % blocks * (PAGE / sizeof(uint4));

		for (uint32_t i = lane; i < PAGE / sizeof(uint4); i += 32)
			to[warp * (PAGE / sizeof(uint4)) + i] = block[i];
	}
}

/* Answers each number that the host writes, until it is ~0. */
__global__ void answer(volatile uint32_t *asked, volatile uint32_t *answered)
{
	uint32_t seen = 0;

	while (seen != UINT32_MAX) {
		uint32_t word = *asked;

		if (word == seen)
			continue;
		seen = word;
		*answered = word;
		__threadfence_system();
	}
}

void *ordinary_pages(size_t bytes)
{
	void *pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		give_up("no memory", cudaErrorMemoryAllocation);
	memset(pages, 1, bytes);
	return pages;
}

double gather_rate(const void *medium, uint4 *rows)
{
	constexpr int BLOCKS = 16, THREADS = 512, ROUNDS = 256;
	double begin = now();

	gather<<<BLOCKS, THREADS>>>(static_cast<const uint4 *>(medium), rows, MEDIUM / PAGE, ROUNDS);
	must("gather", cudaDeviceSynchronize());
	return double(BLOCKS) * THREADS / 32 * ROUNDS * PAGE / (now() - begin) / 1e9;
}

/* One word back and forth, in us. */
double round_trip(void *words, cudaStream_t stream)
{
	auto *asked = static_cast<std::atomic<uint32_t> *>(words), *answered = asked + 64;
	double begin;

	asked->store(0);
	answered->store(0);
	answer<<<1, 1, 0, stream>>>(reinterpret_cast<uint32_t *>(asked),
				    reinterpret_cast<uint32_t *>(answered));
	must("answer", cudaGetLastError());
	for (uint32_t i = 1; i <= 1000; i++)
		for (asked->store(i); answered->load() != i;)
			;
	begin = now();
	for (uint32_t i = 1001; i <= 1000 + TRIPS; i++)
		for (asked->store(i); answered->load() != i;)
			;
	begin = (now() - begin) / TRIPS * 1e6;
	asked->store(UINT32_MAX);
	must("answer's end", cudaStreamSynchronize(stream));
	return begin;
}

void compare_pages(cudaStream_t stream)
{
	void *own = nullptr, *pages = ordinary_pages(MEDIUM);
	double rate[2][RUNS], trip[2][RUNS];
	uint4 *rows = nullptr;
	char text[96];

	must("the driver's pinned memory",
	     cudaHostAlloc(&own, MEDIUM, cudaHostAllocMapped | cudaHostAllocPortable));
	memset(own, 1, MEDIUM);
	must("registering",
	     cudaHostRegister(pages, MEDIUM, cudaHostRegisterMapped | cudaHostRegisterPortable));
	must("device memory", cudaMalloc(&rows, size_t(1) << 20));
	gather_rate(own, rows);
	for (int run = 0; run < RUNS; run++) {
		rate[0][run] = gather_rate(own, rows);
		rate[1][run] = gather_rate(pages, rows);
		trip[0][run] = round_trip(own, stream);
		trip[1][run] = round_trip(pages, stream);
	}
	snprintf(text, sizeof(text), "%.1f and %.1f GB/s", median(rate[0]), median(rate[1]));
	expect("random 4 KiB blocks of the driver's and of registered pages:",
	       median(rate[1]) > 0.9 * median(rate[0]), text);
	snprintf(text, sizeof(text), "%.2f and %.2f us", median(trip[0]), median(trip[1]));
	expect("a word to a lane and back, the same:", median(trip[1]) < 1.1 * median(trip[0]), text);
	must("unregistering", cudaHostUnregister(pages));
	must("freeing", cudaFreeHost(own));
	must("freeing", cudaFree(rows));
	munmap(pages, MEDIUM);
}

/* Registering may run beside a persistent kernel; unregistering waits for it. */
void while_persistent(cudaStream_t stream)
{
	void *words = ordinary_pages(PAGE), *pages = ordinary_pages(16 << 20);
	auto *asked = static_cast<std::atomic<uint32_t> *>(words);
	std::atomic<int> unregistered{ 0 };
	double begin, took;
	char text[96];
	bool waited;

	must("registering", cudaHostRegister(words, PAGE, cudaHostRegisterMapped));
	asked->store(0);
	answer<<<1, 1, 0, stream>>>(reinterpret_cast<uint32_t *>(asked),
				    reinterpret_cast<uint32_t *>(asked + 64));
	begin = now();
	must("registering beside a persistent kernel",
	     cudaHostRegister(pages, 16 << 20, cudaHostRegisterMapped));
	took = now() - begin;
	snprintf(text, sizeof(text), "%.2f ms", took * 1e3);
	expect("16 MiB registered beside a persistent kernel:", cudaStreamQuery(stream) == cudaErrorNotReady,
	       text);
	std::thread other([&] {
		must("unregistering", cudaHostUnregister(pages));
		unregistered.store(1);
	});
	std::this_thread::sleep_for(std::chrono::seconds(1));
	waited = !unregistered.load();
	asked->store(UINT32_MAX);
	other.join();
	must("the persistent kernel's end", cudaStreamSynchronize(stream));
	expect("unregistering waits for it:", waited,
	       waited ? "yes, as backends/cuda/memory.c expects" : "no");
	must("unregistering", cudaHostUnregister(words));
	munmap(pages, 16 << 20);
	munmap(words, PAGE);
}

void export_memory()
{
	void *plain = nullptr, *pooled = nullptr;
	int file = -1;
	char text[96];
	CUresult code;

	must("device memory", cudaMalloc(&plain, 2 << 20));
	must("device memory of the pool", cudaMallocAsync(&pooled, 2 << 20, 0));
	must("device memory of the pool", cudaStreamSynchronize(0));
	code = cuMemGetHandleForAddressRange(&file, CUdeviceptr(plain), 2 << 20,
					     CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	snprintf(text, sizeof(text), "%s (%d)", code ? "no" : "yes", int(code));
	expect("cudaMalloc()'s memory as a dma-buf:", code == CUDA_SUCCESS, text);
	if (!code) {
		void *mapped = mmap(nullptr, PAGE, PROT_READ, MAP_SHARED, file, 0);

		expect("the host maps that dma-buf:", mapped == MAP_FAILED,
		       mapped == MAP_FAILED ? "no" : "yes");
		close(file);
	}
	code = cuMemGetHandleForAddressRange(&file, CUdeviceptr(pooled), 2 << 20,
					     CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	snprintf(text, sizeof(text), "%s (%d)", code ? "no" : "yes", int(code));
	printf("%-62s %s\n", "cudaMallocAsync()'s memory as a dma-buf:", text);
	if (!code)
		close(file);
	must("freeing", cudaFree(plain));
	must("freeing", cudaFreeAsync(pooled, 0));
}

void refused()
{
	char *pages = static_cast<char *>(ordinary_pages(4 * PAGE));
	cudaError_t code = cudaHostRegister(pages, PAGE, cudaHostRegisterIoMemory | cudaHostRegisterMapped);

	expect("ordinary pages as registers (IOMEMORY):", code != cudaSuccess, cudaGetErrorName(code));
	if (!code)
		(void)cudaHostUnregister(pages);
	(void)cudaGetLastError();
	must("registering", cudaHostRegister(pages, 2 * PAGE, cudaHostRegisterMapped));
	code = cudaHostRegister(pages, PAGE, cudaHostRegisterMapped);
	expect("pages that are registered already:", code != cudaSuccess, cudaGetErrorName(code));
	(void)cudaGetLastError();
	code = cudaHostRegister(pages + PAGE, 2 * PAGE, cudaHostRegisterMapped);
	expect("a range of which a part is registered:", code != cudaSuccess, cudaGetErrorName(code));
	(void)cudaGetLastError();
	code = cudaHostUnregister(pages + 3 * PAGE);
	expect("unregistering what is not registered:", code != cudaSuccess, cudaGetErrorName(code));
	(void)cudaGetLastError();
	must("unregistering", cudaHostUnregister(pages));
	munmap(pages, 4 * PAGE);
}

} // namespace

int main()
{
	cudaDeviceProp properties;
	cudaFuncAttributes loaded;
	cudaStream_t stream;

	must("no device", cudaGetDeviceProperties(&properties, 0));
	/* Kernels are loaded when first used: not beside a persistent one. */
	must("loading", cudaFuncGetAttributes(&loaded, gather));
	must("loading", cudaFuncGetAttributes(&loaded, answer));
	must("a stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	printf("%s, compute %d.%d\n", properties.name, properties.major, properties.minor);
	compare_pages(stream);
	while_persistent(stream);
	export_memory();
	refused();
	printf("%d facts differ\n", differs);
	return differs != 0;
}
