/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests by every way there is, whose first tries the controller may refuse. */
#include <weir/async.h>
#include <weir/writer.h>

#include "retry.h"

enum { BLOCK_BYTES = 512, LINE_ELEMENTS = 64, EVICTED_LINES = 6 };

/* A read that is waited for by whoever knows its event alone. */
WEIR_FN weir_status plain_wait(WEIR_GLOBAL struct test_retry_args *args, WEIR_GLOBAL struct weir_event *event)
{
	u64 word = 0;

	if (args->way == TEST_WAY_WAIT)
		return weir_wait(&args->disk, event, args->timeout_us);
	if (args->way == TEST_WAY_ALL)
		return weir_wait_all(&args->disk, event, 1, args->timeout_us);
	if (args->way == TEST_WAY_ANY)
		return weir_wait_any(&args->disk, event, 1, args->timeout_us).status;
	while (weir_ballot(weir_active(), word == 0) != 0) {
		weir_reconverge();
		word = word ? word : weir_test(&args->disk, event);
		weir_relax(0);
	}
	return weir_event_status(word);
}

WEIR_FN weir_status raw_request(WEIR_GLOBAL struct test_retry_args *args, weir_addr buffer,
				WEIR_GLOBAL struct weir_event *event)
{
	if (args->way >= TEST_WAY_WAIT) {
		weir_status status = weir_read_async(&args->disk, 0, 1, buffer, event);

		return status == WEIR_OK ? plain_wait(args, event) : status;
	}
	if (args->way == TEST_WAY_READ)
		return weir_read(&args->disk, 0, 1, buffer, event, args->timeout_us);
	if (args->way == TEST_WAY_WRITE)
		return weir_write(&args->disk, weir_thread(), 1, buffer, event, args->timeout_us);
	return weir_flush(&args->disk, event, args->timeout_us);
}

WEIR_FN weir_status load_word(WEIR_GLOBAL struct weir_array *array, weir_addr result)
{
	struct weir_words words =
		weir_lines_fetch(weir_at(array->lines, struct weir_lines, 0), &array->extent, 0, 0, 1);

	*weir_at(result, u64, 0) = words.word[0];
	return words.status;
}

WEIR_FN weir_status write_through_cache(WEIR_GLOBAL struct test_retry_args *args,
					WEIR_GLOBAL struct weir_writer *writer)
{
	if (args->way == TEST_WAY_EVICT) {
		for (u64 line = 0; line < EVICTED_LINES; line++)
			(void)weir_writer_put_u64(writer, line * LINE_ELEMENTS, 1 + line);
		return WEIR_OK;
	}
	(void)weir_writer_put_u64(writer, 0, 1);
	return weir_writer_flush(writer, 0, 1, 0);
}

WEIR_FN weir_status cached_request(WEIR_GLOBAL struct test_retry_args *args, weir_addr buffer,
				   WEIR_GLOBAL struct weir_event *event, weir_addr result)
{
	WEIR_GLOBAL struct weir_array *array = &args->writer.array;
	weir_status status;

	if (args->way == TEST_WAY_LOAD)
		return load_word(array, result);
	if (args->way == TEST_WAY_BYTES)
		return weir_array_read(array, 0, LINE_ELEMENTS, buffer);
	if (args->way == TEST_WAY_COPY) {
		status = weir_async_read(array, 0, buffer, event);
		return status == WEIR_OK ? weir_async_finish(array, 0, buffer, event, 0) : status;
	}
	if (args->way == TEST_WAY_AHEAD) {
		if (weir_thread() == 0)
			(void)weir_prefetch(array, 0, 1);
		weir_reconverge();
		return load_word(array, result);
	}
	return write_through_cache(args, &args->writer);
}

WEIR_KERNEL(test_retry, struct test_retry_args)
{
	weir_addr buffer = args->buffers + weir_thread() * BLOCK_BYTES;
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_addr result = args->results + weir_thread() * 16;
	u32 raw = args->way <= TEST_WAY_FLUSH || args->way >= TEST_WAY_WAIT;
	weir_status status =
		raw ? raw_request(args, buffer, event) : cached_request(args, buffer, event, result + 8);

	*weir_at(result, u64, 0) = status;
	if (args->way == TEST_WAY_READ || args->way == TEST_WAY_BYTES || args->way == TEST_WAY_COPY ||
	    args->way >= TEST_WAY_WAIT)
		*weir_at(result, u64, 1) = weir_data_load_u64(buffer);
}
