/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_bytes_test.c: what an engine writes is what it has always written, to the byte, so that engines of
 * earlier versions are read. Its format's number, which is drawn, is given here. */
#include <sys/random.h>

#include "engine_model.h"

ssize_t getrandom(void *to, size_t bytes, unsigned int flags)
{
	(void)flags;
	memset(to, 0x5a, bytes);
	return (ssize_t)bytes;
}

static u64 hash_of(const struct lossy *lossy)
{
	u64 hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (u64 i = 0; i < lossy->medium.bytes; i++)
		hash = (hash ^ lossy->durable[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static void test_bytes_stay(void **state)
{
	static const struct {
		u64 bytes, hash;
		unsigned commands;
	} engines[] = {
		{ 2 << 20, UINT64_C(0xe61e969ebecebac8), 0 },
		{ 2 << 20, UINT64_C(0x3d21c4e980c49975), 100 },
		{ 2 << 20, UINT64_C(0xcc6532a0da29cd37), 4000 },
		{ 64 << 20, UINT64_C(0xf69b372968aa45ab), 4000 },
	};

	(void)state;
	direct_lease = ~(u32)0; /* versions have always been those */
	for (unsigned i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		struct model *model = model_create();
		u64 lot = 1, hash;
		struct lossy lossy;
		struct weir_engine *engine = direct_begin(&lossy, engines[i].bytes);

		for (unsigned n = 0; n < engines[i].commands; n++) {
			struct model_command command;

			lot = lot * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			command = model_begin(model, lot >> 20);
			assert_int_equal(model_carry_out(engine, &command), 0);
		}
		direct_close(engine);
		hash = hash_of(&lossy);
		if (hash != engines[i].hash)
			fail_msg("engine %u has 0x%llx", i, (unsigned long long)hash);
		lossy_destroy(&lossy);
		free(model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_stay),
	};

	return cmocka_run_group_tests_name("engine_bytes", tests, NULL, NULL);
}
