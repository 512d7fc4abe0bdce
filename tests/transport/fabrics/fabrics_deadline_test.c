/* SPDX-License-Identifier: BSD-3-Clause */
/* fabrics_deadline_test.c: how long a host waits for a controller that says nothing. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/nvme_fabrics.h>
#include <weir/weir.h>

#include "no_wire.h"
#include "stepped_clock.h"
#include "transport/fabrics/address.h"

enum { ASKED_MS = 1000, ADDRESSES = 4, TRANSFER = 8192 };

static void must(int error)
{
	if (error)
		fail_msg("%s", weir_last_error());
}

static struct nvmf *made(const char *body)
{
	struct nvmf_keys keys = { .connect_ms = ASKED_MS, .mdts = TRANSFER };
	struct nvmf *nvmf = NULL;

	must(weir_address_parse("nvmf:made", body, &keys.hosts, keys.nqn, sizeof(keys.nqn)));
	must(nvmf_new("nvmf:made", &keys, 1, &nvmf));
	return nvmf;
}

/* Whoever connects is taken by the system, and nobody answers. */
static void a_connection_that_is_not_answered(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), error;
	socklen_t bytes = sizeof(at);
	struct nvmf *nvmf;
	char body[80];

	(void)state;
	assert_int_equal(bind(file, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(file, 8), 0);
	assert_int_equal(getsockname(file, (struct sockaddr *)&at, &bytes), 0);
	(void)snprintf(body, sizeof(body), "tcp://127.0.0.1:%u/nqn.x", ntohs(at.sin_port));
	nvmf = made(body);
	clock_begins();
	error = nvmf_connection_open(&nvmf->queues[0], &nvmf->keys.hosts.address[0]);
	it_took(ASKED_MS);
	assert_int_equal(error, -ETIMEDOUT);
	nvmf_free(nvmf);
	(void)close(file);
}

/** struct tries - addresses that were tried; @ended_ms: when each had to be given up; @good: this one is
 * there */
struct tries {
	unsigned count, good;
	uint64_t ended_ms[ADDRESSES];
	int error;
};

static int try_one(void *of, const struct addrinfo *info, uint64_t end_ns)
{
	struct tries *tries = of;

	(void)info;
	assert_true(tries->count < ADDRESSES);
	passed_ns = end_ns - BEGIN_S * 1000 * NS_OF_A_MS;
	tries->ended_ms[tries->count] = passed_ns / NS_OF_A_MS;
	return ++tries->count == tries->good ? 0 : tries->error;
}

static struct tries try_each(unsigned good, int error)
{
	struct addrinfo list[ADDRESSES];
	struct tries tries = { .good = good, .error = error };
	int result;

	memset(list, 0, sizeof(list));
	for (unsigned i = 0; i + 1 < ADDRESSES; i++)
		list[i].ai_next = &list[i + 1];
	passed_ns = 0;
	step_ns = 1;
	result = nvmf_connection_each(list, (BEGIN_S * 1000 + ASKED_MS) * NS_OF_A_MS, try_one, &tries);
	step_ns = 0;
	assert_int_equal(result, good ? 0 : error);
	return tries;
}

/* One that does not answer leaves the others their part of the time, and all together have no more than there
 * is. */
static void addresses_share_the_time(void **state)
{
	struct tries tries = try_each(0, -ETIMEDOUT);

	(void)state;
	assert_int_equal(tries.count, ADDRESSES);
	for (unsigned i = 0; i < ADDRESSES; i++)
		assert_in_range(tries.ended_ms[i], (i + 1) * ASKED_MS / ADDRESSES - 1,
				(i + 1) * ASKED_MS / ADDRESSES);
	assert_int_equal(try_each(2, -ECONNREFUSED).count, 2);
	assert_int_equal(try_each(ADDRESSES, -ECONNREFUSED).count, ADDRESSES);
	assert_int_equal(try_each(0, -ECANCELED).count, 1);
}

static void answer_with_zeros(struct nvmf_queue *queue, struct nvmf_request *request)
{
	const struct nvme_cqe answer = { .dw3 = request->cid };

	request->granted = request->received = request->bytes;
	nvmf_request_end(queue, request, &answer);
}

static int ask(struct nvmf *nvmf)
{
	const struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_IDENTIFY };
	struct nvme_cqe cqe;

	return nvmf_command(&nvmf->queues[0], &sqe, NULL, 0, NVMF_NO_DATA, "a command", &cqe, ASKED_MS);
}

static int enable(struct nvmf *nvmf)
{
	nvmf->controller.cap = (u64)(ASKED_MS / 500 - 1) << 24; /* CAP.TO: units of 500 ms, and one more */
	return nvmf_enable(nvmf, NVME_CC_ENABLE);
}

/* @call over a wire that @begin is all of. */
static void call_in_vain(int (*call)(struct nvmf *nvmf),
			 void (*begin)(struct nvmf_queue *queue, struct nvmf_request *request))
{
	struct nvmf *nvmf = made("tcp://127.0.0.1:1/nqn.x");
	const struct nvmf_wire *before = nvmf->wire;
	struct nvmf_wire wire = no_wire;
	int error;

	wire.begin = begin;
	nvmf->wire = &wire;
	nvmf->queues[0].most = 4;
	nvmf->queues[0].connection.open = true;
	clock_begins();
	error = call(nvmf);
	it_took(ASKED_MS);
	assert_int_equal(error, -ETIMEDOUT);
	nvmf->wire = before;
	nvmf->queues[0].connection.open = false;
	nvmf_free(nvmf);
}

static void a_command_that_is_not_answered(void **state)
{
	(void)state;
	call_in_vain(ask, begin_nothing);
}

/* It answers each Property Get: it is not ready. */
static void a_controller_that_does_not_become_ready(void **state)
{
	(void)state;
	call_in_vain(enable, answer_with_zeros);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_that_is_not_answered),
		cmocka_unit_test(addresses_share_the_time),
		cmocka_unit_test(a_command_that_is_not_answered),
		cmocka_unit_test(a_controller_that_does_not_become_ready),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("fabrics_deadline", tests, NULL, NULL);
}
