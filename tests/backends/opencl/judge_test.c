/* SPDX-License-Identifier: BSD-3-Clause */
/* Which devices are refused, and in what words; and what is kept on disk. Needs no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../backends/opencl/cache.h"
#include "../../../backends/opencl/judge.h"

#define ATOMICS                                                                                              \
	(CL_DEVICE_ATOMIC_ORDER_RELAXED | CL_DEVICE_ATOMIC_ORDER_ACQ_REL | CL_DEVICE_ATOMIC_SCOPE_DEVICE)
#define SVM (CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER | CL_DEVICE_SVM_ATOMICS)

/* What a processor says that will do, and a graphics processor that would. */
static const struct opencl_record PROCESSOR = {
	.version = 30,
	.type = CL_DEVICE_TYPE_CPU,
	.available = true,
	.compiler = true,
	.little_endian = true,
	.address_bits = 64,
	.svm = SVM,
	.atomics = ATOMICS,
	.order_acq_rel = true,
	.scope_device = true,
	.int64_atomics = true,
	.clock = true,
};
static const struct opencl_record GRAPHICS = {
	.version = 30,
	.type = CL_DEVICE_TYPE_GPU,
	.available = true,
	.compiler = true,
	.little_endian = true,
	.address_bits = 64,
	.svm = SVM,
	.atomics = ATOMICS | CL_DEVICE_ATOMIC_SCOPE_ALL_DEVICES,
	.order_acq_rel = true,
	.scope_device = true,
	.scope_all_devices = true,
	.int64_atomics = true,
	.clock = true,
};
/* What NVIDIA's says of an H100. */
static const struct opencl_record NVIDIA = {
	.version = 30,
	.type = CL_DEVICE_TYPE_GPU,
	.available = true,
	.compiler = true,
	.little_endian = true,
	.address_bits = 64,
	.svm = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER,
	.atomics = CL_DEVICE_ATOMIC_ORDER_RELAXED | CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP,
	.int64_atomics = true,
	.nvidia = true,
	.compute = 90,
};

static void test_enough(void **state)
{
	enum opencl_memory memory;

	(void)state;
	assert_null(opencl_judge(&PROCESSOR, OPENCL_MEMORY_NONE, &memory));
	assert_int_equal(memory, OPENCL_MEMORY_FINE);
	assert_true(opencl_device_is_system(&PROCESSOR));
	assert_null(opencl_judge(&GRAPHICS, OPENCL_MEMORY_NONE, &memory));
	assert_int_equal(memory, OPENCL_MEMORY_FINE);
	assert_false(opencl_device_is_system(&GRAPHICS));
	assert_null(opencl_judge(&NVIDIA, OPENCL_MEMORY_NONE, &memory));
	assert_int_equal(memory, OPENCL_MEMORY_COARSE);
	assert_false(opencl_device_is_system(&NVIDIA));
}

#define ANY    OPENCL_MEMORY_NONE
#define FINE   OPENCL_MEMORY_FINE
#define COARSE OPENCL_MEMORY_COARSE

/* Which of the two ways a device gets, or the word of its refusal. */
static void test_memory(void **state)
{
	static const struct {
		const struct opencl_record *record;
		cl_device_svm_capabilities svm;
		enum opencl_memory asked, memory;
		const char *word;
	} ROWS[] = {
		{ &PROCESSOR, SVM, FINE, FINE, NULL },
		{ &PROCESSOR, SVM, COARSE, COARSE, NULL },
		{ &PROCESSOR, CL_DEVICE_SVM_COARSE_GRAIN_BUFFER, ANY, COARSE, NULL },
		{ &PROCESSOR, CL_DEVICE_SVM_COARSE_GRAIN_BUFFER, FINE, ANY, "FINE_GRAIN_BUFFER" },
		{ &PROCESSOR, CL_DEVICE_SVM_FINE_GRAIN_BUFFER, ANY, ANY, "SVM_ATOMICS" },
		{ &PROCESSOR, 0, ANY, ANY, "FINE_GRAIN_BUFFER" },
		{ &PROCESSOR, 0, COARSE, ANY, "COARSE_GRAIN_BUFFER" },
		{ &GRAPHICS, SVM, FINE, FINE, NULL },
		{ &GRAPHICS, SVM, COARSE, ANY, "mapped host memory" },
		{ &GRAPHICS, CL_DEVICE_SVM_COARSE_GRAIN_BUFFER, ANY, ANY, "FINE_GRAIN_BUFFER" },
		{ &NVIDIA, CL_DEVICE_SVM_COARSE_GRAIN_BUFFER, COARSE, COARSE, NULL },
		{ &NVIDIA, CL_DEVICE_SVM_COARSE_GRAIN_BUFFER, FINE, ANY, "FINE_GRAIN_BUFFER" },
		{ &NVIDIA, SVM, ANY, FINE, NULL },
		{ &NVIDIA, SVM, COARSE, COARSE, NULL },
		{ &NVIDIA, 0, ANY, ANY, "FINE_GRAIN_BUFFER" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
		struct opencl_record record = *ROWS[i].record;
		enum opencl_memory memory = (enum opencl_memory)99;
		const char *lacks;

		record.svm = ROWS[i].svm;
		lacks = opencl_judge(&record, ROWS[i].asked, &memory);
		if (memory != ROWS[i].memory || !lacks != !ROWS[i].word ||
		    (lacks && !strstr(lacks, ROWS[i].word)))
			fail_msg("row %zu: way %d, \"%s\"", i, memory, lacks ? lacks : "it will do");
	}
}

static void test_memory_asked(void **state)
{
	enum opencl_memory asked;

	(void)state;
	assert_true(opencl_memory_asked(NULL, &asked) && asked == OPENCL_MEMORY_NONE);
	assert_true(opencl_memory_asked("", &asked) && asked == OPENCL_MEMORY_NONE);
	assert_true(opencl_memory_asked("fine", &asked) && asked == OPENCL_MEMORY_FINE);
	assert_true(opencl_memory_asked("coarse", &asked) && asked == OPENCL_MEMORY_COARSE);
	assert_false(opencl_memory_asked("coarser", &asked));
	assert_false(opencl_memory_asked("1", &asked));
}

static void test_waves(void **state)
{
	(void)state;
	assert_int_equal(opencl_wave_lanes(&NVIDIA, NULL), 32);
	assert_int_equal(opencl_wave_lanes(&NVIDIA, "32"), 32);
	assert_int_equal(opencl_wave_lanes(&NVIDIA, "1"), 1);
	assert_int_equal(opencl_wave_lanes(&NVIDIA, "64"), 0);
	assert_int_equal(opencl_wave_lanes(&GRAPHICS, NULL), 1);
	assert_int_equal(opencl_wave_lanes(&PROCESSOR, ""), 1);
	assert_int_equal(opencl_wave_lanes(&PROCESSOR, "1"), 1);
	assert_int_equal(opencl_wave_lanes(&PROCESSOR, "32"), 0);
}

/* PTX stands in for the orders that NVIDIA's compiler does not offer, if the device knows them. */
static void test_compute_capability(void **state)
{
	struct opencl_record record = NVIDIA;
	enum opencl_memory memory;
	const char *lacks;

	(void)state;
	record.compute = 70;
	assert_null(opencl_judge(&record, OPENCL_MEMORY_NONE, &memory));
	record.compute = 61;
	lacks = opencl_judge(&record, OPENCL_MEMORY_NONE, &memory);
	assert_non_null(lacks);
	assert_non_null(strstr(lacks, "compute capability 7.0"));
	assert_int_equal(memory, OPENCL_MEMORY_NONE);
}

/* One thing less each time, and the word that its sentence must have. */
static void test_each_thing_is_needed(void **state)
{
#define WITHOUT(field, value, word)                                                                          \
	{                                                                                                    \
		{ .field = 0 }, offsetof(struct opencl_record, field),                                       \
			sizeof(((struct opencl_record *)0)->field), value, word                              \
	}
	static const struct {
		struct opencl_record none;
		size_t offset, bytes;
		uint64_t value;
		const char *word;
	} ROWS[] = {
		WITHOUT(version, 20, "OpenCL 3.0"),
		WITHOUT(available, 0, "CL_DEVICE_AVAILABLE"),
		WITHOUT(compiler, 0, "CL_DEVICE_COMPILER_AVAILABLE"),
		WITHOUT(little_endian, 0, "little-endian"),
		WITHOUT(address_bits, 32, "64-bit"),
		WITHOUT(svm, 0, "FINE_GRAIN_BUFFER"),
		WITHOUT(svm, CL_DEVICE_SVM_COARSE_GRAIN_BUFFER, "FINE_GRAIN_BUFFER"),
		WITHOUT(svm, CL_DEVICE_SVM_FINE_GRAIN_BUFFER, "CL_DEVICE_SVM_ATOMICS"),
		WITHOUT(atomics, CL_DEVICE_ATOMIC_ORDER_RELAXED | CL_DEVICE_ATOMIC_SCOPE_DEVICE,
			"order_acq_rel"),
		WITHOUT(atomics, CL_DEVICE_ATOMIC_ORDER_ACQ_REL, "scope_device"),
		WITHOUT(order_acq_rel, 0, "order_acq_rel"),
		WITHOUT(scope_device, 0, "scope_device"),
		WITHOUT(int64_atomics, 0, "cl_khr_int64"),
		WITHOUT(scope_all_devices, 0, "scope_all_devices"),
		WITHOUT(clock, 0, "WEIR_OPENCL_CLOCK_NS"),
	};
#undef WITHOUT

	(void)state;
	for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
		struct opencl_record record = GRAPHICS;
		enum opencl_memory memory;
		const char *lacks;

		memcpy((char *)&record + ROWS[i].offset, &ROWS[i].value, ROWS[i].bytes);
		lacks = opencl_judge(&record, OPENCL_MEMORY_NONE, &memory);
		if (!lacks || !strstr(lacks, ROWS[i].word) || strncmp(lacks, "no ", 3))
			fail_msg("row %zu: \"%s\" does not speak of %s", i, lacks ? lacks : "it will do",
				 ROWS[i].word);
	}
}

static char folder[] = "/tmp/weir-opencl-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return !mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1);
}

static void entry_path(uint64_t key, char *path, size_t bytes)
{
	snprintf(path, bytes, "%s/weir/%016llx.cl", folder, (unsigned long long)key);
}

static int remove_folder(void **state)
{
	char path[256];

	(void)state;
	entry_path(7, path, sizeof(path));
	(void)unlink(path);
	snprintf(path, sizeof(path), "%s/weir", folder);
	(void)rmdir(path);
	return rmdir(folder);
}

static void test_kept(void **state)
{
	static const char program[] = "what a compiler made";
	size_t bytes = 0;
	char *back;

	(void)state;
	assert_null(opencl_cache_load(7, &bytes));
	opencl_cache_store(7, program, sizeof(program));
	back = opencl_cache_load(7, &bytes);
	assert_non_null(back);
	assert_int_equal(bytes, sizeof(program));
	assert_string_equal(back, program);
	free(back);
	assert_null(opencl_cache_load(8, &bytes));
}

/* Whichever byte is another, and however much is missing. */
static void test_damage_is_seen(void **state)
{
	char path[256], whole[256];
	size_t length, bytes;
	FILE *file;

	(void)state;
	opencl_cache_store(7, "12345678", 8);
	entry_path(7, path, sizeof(path));
	file = fopen(path, "r");
	length = fread(whole, 1, sizeof(whole), file);
	fclose(file);
	assert_int_equal(length, 40);
	for (size_t i = 0; i < length; i++) {
		file = fopen(path, "r+");
		fseek(file, (long)i, SEEK_SET);
		fputc(whole[i] ^ 1, file);
		fclose(file);
		assert_null(opencl_cache_load(7, &bytes));
		assert_int_equal(truncate(path, (off_t)i), 0);
		assert_null(opencl_cache_load(7, &bytes));
		file = fopen(path, "w");
		assert_int_equal(fwrite(whole, 1, length, file), length);
		fclose(file);
	}
	opencl_cache_store(7, "87654321", 8);
	free(opencl_cache_load(7, &bytes));
	assert_int_equal(bytes, 8);
}

/* Said once: a line with the folder and the reason. */
static void test_nowhere_to_keep(void **state)
{
	char path[256], said[512] = "", again[8] = "";
	int keep = dup(STDERR_FILENO);
	FILE *captured = tmpfile();

	(void)state;
	snprintf(path, sizeof(path), "%s/weir/%016llx.cl", folder,
		 7ull); /* a file where a folder should be */
	setenv("XDG_CACHE_HOME", path, 1);
	dup2(fileno(captured), STDERR_FILENO);
	opencl_cache_store(9, "1", 1);
	opencl_cache_store(9, "1", 1);
	dup2(keep, STDERR_FILENO);
	close(keep);
	setenv("XDG_CACHE_HOME", folder, 1);
	rewind(captured);
	assert_non_null(fgets(said, sizeof(said), captured));
	assert_non_null(strstr(said, path));
	assert_non_null(strstr(said, "Not a directory"));
	assert_null(fgets(again, sizeof(again), captured));
	fclose(captured);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_enough),
		cmocka_unit_test(test_each_thing_is_needed),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_memory_asked),
		cmocka_unit_test(test_waves),
		cmocka_unit_test(test_compute_capability),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_damage_is_seen),
		cmocka_unit_test(test_nowhere_to_keep),
	};

	return cmocka_run_group_tests_name("judge", tests, make_folder, remove_folder);
}
