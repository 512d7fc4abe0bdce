/* SPDX-License-Identifier: BSD-3-Clause */
/* file_module_test.c: files and the kernel module's path, on a pretended GPU. */
#include "file_module_rig.h"

#include "../rig/leaks.h"

static struct weir_file_io write_of(int file)
{
	return (struct weir_file_io){
		.registration = registration, .file = file, .operation = WEIR_FILE_WRITE, .bytes = 2 * PAGE
	};
}

static void the_module_is_the_way(void **state)
{
	struct weir_file_route route = { .size = sizeof(route) };

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	must(weir_file_route(registration, open_file, &route));
	assert_int_equal(route.path, WEIR_FILE_MODULE);
}

/* What is in the way is what is said: there may be memory again, and threads for it. */
static void want_of_memory_is_said(void **state)
{
	struct weir_file_io io = { .registration = registration, .file = open_file, .bytes = PAGE };

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	no_memory = true;
	assert_int_equal(weir_file_batch(&context, &io, 1), -ENOMEM);
	no_memory = false;
}

/* The first write of a file system is tried before it is made: not where the batch is refused. */
static void a_refused_batch_writes_nothing(void **state)
{
	struct weir_file_io io[2] = { write_of(open_file), write_of(9999) };

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	assert_int_equal(weir_file_batch(&context, io, 2), -EBADF);
	assert_int_equal(first_byte(), 'f');
}

/* ... nor where there is no memory to do it with. */
static void without_memory_nothing_is_written(void **state)
{
	struct weir_file_io io = write_of(open_file);

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	no_memory = true;
	assert_int_not_equal(weir_file_batch(&context, &io, 1), 0);
	no_memory = false;
	assert_int_equal(first_byte(), 'f');
}

/* ... and not before the stream has come to it. */
static void an_enqueued_write_waits_for_its_turn(void **state)
{
	struct weir_file_io io = write_of(open_file);

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	must(weir_file_enqueue(&context, NULL, &io, 1));
	assert_int_equal(first_byte(), 'f');
	assert_int_equal(io.result, -EINPROGRESS);
	memset(gpu, 'k', BYTES);
	deferred(deferred_of);
	while (__atomic_load_n(&io.result, __ATOMIC_ACQUIRE) == -EINPROGRESS)
		usleep(1000);
	assert_int_equal(io.result, 2 * PAGE);
	assert_int_equal(first_byte(), 'k');
}

/* Registrations share a range that has all of them; it goes with the last. What reaches beyond one has none
 * of it. */
static void ranges_go_with_their_registrations(void **state)
{
	enum { AT = 8 * BYTES };
	struct weir_file_route route = { .size = sizeof(route) };
	struct weir_registration *first, *last, *beyond;
	unsigned before;

	(void)state;
	if (open_file < 0)
		skip();                                         /* no O_DIRECT there */
	must(weir_file_route(registration, open_file, &route)); /* what it is tried with has a range, too */
	before = registered();
	first = register_at(&context, AT + PAGE, PAGE);
	last = register_at(&context, AT + BYTES - 2 * PAGE, 2 * PAGE);
	beyond = register_at(&context, AT + BYTES - PAGE, 2 * PAGE);
	assert_int_equal(registered(), before + 1);
	assert_non_null(first->pin);
	assert_ptr_equal(last->pin, first->pin);
	assert_null(beyond->pin);
	reads(first, AT + PAGE, PAGE);
	reads(last, AT + BYTES - 2 * PAGE, 2 * PAGE);
	reads(beyond, AT + BYTES - PAGE, 2 * PAGE);
	must(weir_deregister(first));
	assert_int_equal(registered(), before + 1);
	must(weir_deregister(beyond));
	must(weir_deregister(last));
	assert_int_equal(registered(), before);
}

/* One of weir's own gets pages as a whole for the first of its parts, and keeps them until it is freed and no
 * part is registered. */
static void an_allocation_keeps_its_pages(void **state)
{
	struct weir_memory_block block = { .address = BASE + 10 * BYTES,
					   .bytes = 2 * BYTES,
					   .kind = WEIR_MEMORY_DEVICE };
	unsigned before = registered();

	(void)state;
	for (unsigned freed_first = 0; freed_first < 2; freed_first++) {
		struct weir_registration *one, *other;

		context.memory = &block;
		one = register_at(&context, 10 * BYTES, PAGE);
		other = register_at(&context, 11 * BYTES + PAGE, PAGE);
		assert_int_equal(registered(), before + 2);
		assert_non_null(one->pin);
		assert_ptr_equal(one->pin, other->pin);
		must(weir_deregister(one));
		if (!freed_first)
			must(weir_deregister(other));
		assert_int_equal(registered(), before + 2);
		weir_files_forget(&context, block.address + BYTES); /* of another one */
		assert_int_equal(registered(), before + 2);
		weir_files_forget(&context, block.address);
		assert_int_equal(registered(), before + (freed_first ? 2 : 0));
		if (freed_first)
			must(weir_deregister(other));
		assert_int_equal(registered(), before);
		context.memory = NULL;
	}
}

/* Another allocation may have the address of one that was freed while a part of it was registered: to free
 * that one, too, takes nothing from the part. */
static void an_allocation_at_the_place_of_another(void **state)
{
	struct weir_memory_block block = { .address = BASE + 10 * BYTES,
					   .bytes = 2 * BYTES,
					   .kind = WEIR_MEMORY_DEVICE };
	unsigned before = registered();
	struct weir_registration *part;

	(void)state;
	context.memory = &block;
	part = register_at(&context, 11 * BYTES, PAGE);
	for (unsigned i = 0; i < 3; i++) {
		weir_files_forget(&context, block.address);
		assert_int_equal(registered(), before + 2);
	}
	must(weir_deregister(part));
	assert_int_equal(registered(), before);
	part = register_at(&context, 12 * BYTES, PAGE); /* right behind it is none of it */
	assert_int_equal(registered(), before + 1);
	must(weir_deregister(part));
	context.memory = NULL;
}

/* What is registered bars what has a byte of it, and nothing beside it. */
static void registrations_bar_what_they_have(void **state)
{
	static const struct {
		int64_t at;
		uint64_t bytes;
		int error;
	} rows[] = {
		{ -PAGE, PAGE, 0 },           { -PAGE, PAGE + 1, -EBUSY },
		{ -PAGE, GPU_BYTES, -EBUSY }, { 0, 1, -EBUSY },
		{ 0, BYTES, -EBUSY },         { BYTES - 1, 1, -EBUSY },
		{ BYTES - 1, PAGE, -EBUSY },  { BYTES, 1, 0 },
		{ BYTES, PAGE, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(
			weir_files_registered(&context, (uint64_t)(BASE + rows[i].at), rows[i].bytes),
			rows[i].error);
}

static void pages_that_cannot_be_mapped_are_given_back(void **state)
{
	unsigned before = registered();
	struct weir_registration *made;

	(void)state;
	no_mapping = true;
	assert_int_equal(weir_register(&context, BASE + 8 * BYTES, PAGE,
				       WEIR_OPTIONS(register, .path = WEIR_FILE_MODULE), &made),
			 -ENOTSUP);
	assert_non_null(strstr(weir_last_error(), "pages of weir_p2p cannot be mapped"));
	assert_int_equal(registered(), before);
	made = register_at(&context, 8 * BYTES, PAGE);
	no_mapping = false;
	assert_int_equal(made->path, WEIR_FILE_BOUNCE);
	assert_int_equal(registered(), before);
	must(weir_deregister(made));
}

static void read_pages(struct weir_registration *made, int result)
{
	struct weir_file_io io[4];
	unsigned before = flushes;

	for (unsigned i = 0; i < 4; i++)
		io[i] = (struct weir_file_io){
			.registration = made, .file = open_file, .bytes = PAGE, .at = i * PAGE
		};
	assert_int_equal(weir_file_batch(&late, io, 4), result < 0 ? result : 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(io[i].result, result);
	assert_int_equal(flushes, before + 1);
	assert_int_equal(weir_file_read(made, open_file, PAGE, 0, 0), result);
	assert_true(flushes > before + 1);
}

/* What an SSD has put into the device's memory lanes see when the host has flushed it: else it is not read.
 */
static void what_arrives_is_flushed(void **state)
{
	struct weir_registration_info info = { .size = sizeof(info) };
	unsigned before = registered();
	struct weir_registration *made;

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	open_late();
	peer_writes = WEIR_PEER_WRITES_FLUSHED;
	made = register_at(&late, 9 * BYTES, BYTES);
	must(weir_registration_info(made, &info));
	assert_null(info.host); /* what is written there by a pointer nobody flushes */
	reads(made, 9 * BYTES, PAGE);
	for (unsigned attached = 0; attached < 2; attached++) {
		if (attached)
			must(weir_file_attach(&late, open_file));
		read_pages(made, PAGE);
		flush_fails = true;
		read_pages(made, -EIO);
		assert_non_null(strstr(weir_last_error(), "no flush of the device's memory"));
		flush_fails = false;
	}
	must(weir_deregister(made));
	must(weir_files_close(&late));
	assert_int_equal(registered(), before); /* what it was tried with, too */
	peer_writes = WEIR_PEER_WRITES_ORDERED;
}

/* A window over other memory than the device says: that is tried, and files go by staging. */
static void what_does_not_arrive_is_not_believed(void **state)
{
	struct weir_file_route route = { .size = sizeof(route) };
	struct weir_registration *made;

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	open_late();
	lies_elsewhere = true;
	made = register_at(&late, 9 * BYTES, BYTES);
	assert_int_equal(made->path, WEIR_FILE_MODULE);
	must(weir_file_route(made, open_file, &route));
	assert_int_equal(route.path, WEIR_FILE_BOUNCE);
	assert_non_null(strstr(route.reason, "the device finds 65536 wrong, the first at 0"));
	reads(made, 9 * BYTES, PAGE);
	must(weir_deregister(made));
	must(weir_files_close(&late));
	lies_elsewhere = false;
}

/* Of one batch some goes straight to the device's memory, some by staging: what fails for want of a flush is
 * the former. */
static void a_flush_that_fails_is_of_what_needs_it(void **state)
{
	struct weir_registration *straight, *staged;
	struct weir_file_io io[3];

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	open_late();
	peer_writes = WEIR_PEER_WRITES_FLUSHED;
	straight = register_at(&late, 9 * BYTES, BYTES);
	must(weir_register(&late, BASE + 8 * BYTES, BYTES, WEIR_OPTIONS(register, .path = WEIR_FILE_BOUNCE),
			   &staged));
	for (unsigned first = 0; first < 3; first++) { /* which of them goes straight */
		for (unsigned i = 0; i < 3; i++)
			io[i] = (struct weir_file_io){ .registration = i == first ? straight : staged,
						       .file = open_file,
						       .bytes = PAGE,
						       .at = i * PAGE };
		must(weir_file_batch(&late, io, 3));
		flush_fails = true;
		assert_int_equal(weir_file_batch(&late, io, 3), -EIO);
		flush_fails = false;
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(io[i].result, i == first ? -EIO : PAGE);
	}
	must(weir_deregister(straight));
	must(weir_deregister(staged));
	must(weir_files_close(&late));
	peer_writes = WEIR_PEER_WRITES_ORDERED;
}

/* Without a way to know that what an SSD wrote is there, there is no such path. */
static void what_may_not_arrive_is_not_offered(void **state)
{
	static const struct {
		enum weir_peer_writes writes;
		bool flushes;
		const char *says;
	} rows[] = { { WEIR_PEER_WRITES_UNKNOWN, true, "the host may have to flush" },
		     { WEIR_PEER_WRITES_FLUSHED, false, "the host has to flush" },
		     { WEIR_PEER_WRITES_FLUSHED, true, NULL },
		     { WEIR_PEER_WRITES_ORDERED, false, NULL },
		     { WEIR_PEER_WRITES_ORDERED_ALL, false, NULL } };

	(void)state;
	open_late();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct weir_registration_info info = { .size = sizeof(info) };
		struct weir_registration *made;
		int error;

		peer_writes = rows[i].writes;
		ops.peer_flush = rows[i].flushes ? peer_flush : NULL;
		error = weir_register(&late, BASE + 8 * BYTES, PAGE,
				      WEIR_OPTIONS(register, .path = WEIR_FILE_MODULE), &made);
		assert_int_equal(error, rows[i].says ? -ENOTSUP : 0);
		if (rows[i].says) {
			assert_non_null(strstr(weir_last_error(), rows[i].says));
		} else {
			must(weir_registration_info(made, &info));
			assert_int_equal(info.host != NULL, peer_writes != WEIR_PEER_WRITES_FLUSHED);
			must(weir_deregister(made));
		}
		must(weir_files_close(&late));
	}
	ops.peer_flush = peer_flush;
	peer_writes = WEIR_PEER_WRITES_ORDERED;
}

/* A window that is none to use is closed again, and what is wrong with it is said. */
static void a_window_that_is_no_good_is_let_go(void **state)
{
	static const char *const says[] = { [WINDOW_NEWER] = "is of ABI 2, and this library of 1",
					    [WINDOW_WITHOUT_SHIM] = "no vendor's shim is loaded",
					    [WINDOW_SILENT] = "says nothing of itself" };
	unsigned before = test_files();

	(void)state;
	open_late();
	for (window = WINDOW_NEWER; window <= WINDOW_SILENT; window++) {
		struct weir_registration *made;

		assert_int_equal(weir_register(&late, BASE + 8 * BYTES, PAGE,
					       WEIR_OPTIONS(register, .path = WEIR_FILE_MODULE), &made),
				 -ENOTSUP);
		assert_non_null(strstr(weir_last_error(), says[window]));
		assert_int_equal(test_files(), before);
		must(weir_files_close(&late));
	}
	window = WINDOW_GOOD;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_module_is_the_way),
		cmocka_unit_test(want_of_memory_is_said),
		cmocka_unit_test(a_refused_batch_writes_nothing),
		cmocka_unit_test(without_memory_nothing_is_written),
		cmocka_unit_test(an_enqueued_write_waits_for_its_turn),
		cmocka_unit_test(ranges_go_with_their_registrations),
		cmocka_unit_test(an_allocation_keeps_its_pages),
		cmocka_unit_test(an_allocation_at_the_place_of_another),
		cmocka_unit_test(registrations_bar_what_they_have),
		cmocka_unit_test(pages_that_cannot_be_mapped_are_given_back),
		cmocka_unit_test(what_arrives_is_flushed),
		cmocka_unit_test(a_flush_that_fails_is_of_what_needs_it),
		cmocka_unit_test(what_may_not_arrive_is_not_offered),
		cmocka_unit_test(a_window_that_is_no_good_is_let_go),
		cmocka_unit_test(what_does_not_arrive_is_not_believed),
	};
	int failed;

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	failed = cmocka_run_group_tests_name("file_module", tests, set_up, tear_down);

	fflush(NULL);
	_exit(failed); /* threads of files wait for more */
}
