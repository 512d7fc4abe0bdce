/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chap_test.c: DH-HMAC-CHAP, both ends against each other, with each of them wrong in turn, and one answer
 * that Python's hmac and zlib gave.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../../rig/leaks.h"
#include "transport/fabrics/chap.h"

static const struct weir_chap_names names = { "nqn.2026-11.org.example:host",
					      "nqn.2026-11.org.example:disk" };
static const char known_secret[] = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
static const u8 known_response[] = { 0x2f, 0xf9, 0x54, 0xd3, 0x13, 0x9a, 0xe2, 0x36, 0xf3, 0xb5, 0x70,
				     0xae, 0x31, 0x0a, 0x99, 0x98, 0x17, 0x32, 0xf0, 0x4f, 0x9a, 0x30,
				     0xab, 0x92, 0x25, 0x29, 0xd6, 0x9d, 0xb9, 0x41, 0x72, 0x93 };
static const struct weir_chap_secret none;

/** struct ends - a host and a controller, and the message that goes between them */
struct ends {
	struct weir_chap host;
	struct weir_chap controller;
	u8 message[WEIR_CHAP_MESSAGE_BYTES];
	u8 answer[WEIR_CHAP_MESSAGE_BYTES];
};

static struct weir_chap_secret new_secret(void)
{
	struct weir_chap_secret secret;
	char text[WEIR_CHAP_SECRET_TEXT];

	assert_int_equal(weir_chap_secret_text(text), 0);
	assert_int_equal(weir_chap_secret_parse(text, &secret), 0);
	return secret;
}

/* An offer with one hash and one group; 0 and 6: all of them. */
static void narrow(u8 *message, u8 hash, u8 group)
{
	struct nvme_auth_negotiate offer;

	memcpy(&offer, message, sizeof(offer));
	if (hash) {
		offer.lists[0] = hash;
		offer.halen = 1;
	}
	if (group <= NVME_AUTH_DH_8192) {
		offer.lists[30] = group;
		offer.dhlen = 1;
	}
	memcpy(message, &offer, sizeof(offer));
}

/* From the offer to the end, or to the first failure. */
static void converse(struct ends *ends, u8 hash, u8 group)
{
	u32 bytes = weir_chap_negotiate(&ends->host, 7, ends->message);

	narrow(ends->message, hash, group);
	weir_chap_take(&ends->controller, ends->message, bytes);
	memset(ends->message, 0, sizeof(ends->message));
	assert_true(weir_chap_give(&ends->controller, ends->message));
	bytes = weir_chap_reply(&ends->host, ends->message, sizeof(ends->message), ends->answer);
	if (ends->host.failed)
		return;
	weir_chap_take(&ends->controller, ends->answer, bytes);
	memset(ends->message, 0, sizeof(ends->message));
	assert_true(weir_chap_give(&ends->controller, ends->message));
	bytes = weir_chap_check(&ends->host, ends->message, sizeof(ends->message), ends->answer);
	if (bytes && !ends->host.failed)
		weir_chap_take(&ends->controller, ends->answer, bytes);
}

static void begin(struct ends *ends, const struct weir_chap_secret *host,
		  const struct weir_chap_secret *controller)
{
	weir_chap_begin(&ends->host, &names, host, controller);
	weir_chap_begin(&ends->controller, &names, host, controller);
}

static void finish(struct ends *ends)
{
	weir_chap_end(&ends->host);
	weir_chap_end(&ends->controller);
}

static void test_each_hash_and_group(void **state)
{
	struct weir_chap_secret host = new_secret(), controller = new_secret();

	(void)state;
	for (u8 hash = NVME_AUTH_SHA256; hash <= NVME_AUTH_SHA512; hash++)
		for (u8 group = NVME_AUTH_DH_NULL; group <= NVME_AUTH_DH_2048 + 1; group++)
			for (unsigned mutual = 0; mutual < 2; mutual++) {
				struct ends ends;

				begin(&ends, &host, mutual ? &controller : &none);
				converse(&ends, hash, group);
				assert_true(ends.host.done && ends.controller.done);
				assert_int_equal(ends.controller.hash, hash);
				assert_int_equal(ends.controller.group, group);
				assert_int_equal(ends.controller.mutual, mutual);
				finish(&ends);
			}
}

static void test_a_group_is_preferred_to_none(void **state)
{
	struct weir_chap_secret host = new_secret();
	struct ends ends;

	(void)state;
	begin(&ends, &host, &none);
	converse(&ends, 0, 6);
	assert_true(ends.controller.done);
	assert_int_equal(ends.controller.group, NVME_AUTH_DH_2048);
	finish(&ends);
}

static void test_a_wrong_secret(void **state)
{
	struct weir_chap_secret host = new_secret(), other = new_secret();
	struct ends ends;

	(void)state;
	for (unsigned group = 0; group < 2; group++) {
		begin(&ends, &host, &none);
		ends.host.host_secret = other;
		converse(&ends, 0, (u8)group);
		assert_true(ends.controller.failed && !ends.controller.done);
		assert_true(ends.host.failed && !ends.host.done);
		assert_int_equal(ends.host.explanation, NVME_AUTH_EXPLAIN_FAILED);
		finish(&ends);
	}
}

static void test_a_wrong_name(void **state)
{
	const struct weir_chap_names another = { names.host, "nqn.2026-11.org.example:other" };
	struct weir_chap_secret host = new_secret();
	struct ends ends;

	(void)state;
	begin(&ends, &host, &none);
	ends.host.names = another;
	converse(&ends, 0, 0);
	assert_true(ends.controller.failed && ends.host.failed);
	finish(&ends);
}

/* It knows the host's secret, and not its own. */
static void test_a_wrong_controller(void **state)
{
	struct weir_chap_secret host = new_secret(), controller = new_secret(), other = new_secret();
	struct ends ends;

	(void)state;
	begin(&ends, &host, &controller);
	ends.controller.controller_secret = other;
	converse(&ends, 0, 0);
	assert_true(ends.host.failed && !ends.host.done);
	assert_false(ends.controller.done);
	finish(&ends);
	begin(&ends, &host, &controller);
	ends.controller.controller_secret = none;
	converse(&ends, 0, 0);
	assert_true(ends.host.failed && !ends.host.done);
	finish(&ends);
}

/* A controller that says success without the proof that the host asked for. */
static void test_a_proof_left_out(void **state)
{
	struct weir_chap_secret host = new_secret(), controller = new_secret();
	struct nvme_auth_success1 success;
	struct ends ends;
	u32 bytes;

	(void)state;
	begin(&ends, &host, &controller);
	bytes = weir_chap_negotiate(&ends.host, 7, ends.message);
	weir_chap_take(&ends.controller, ends.message, bytes);
	bytes = weir_chap_give(&ends.controller, ends.message);
	assert_true(weir_chap_reply(&ends.host, ends.message, bytes, ends.answer));
	success = (struct nvme_auth_success1){ .auth_type = NVME_AUTH_DHCHAP,
					       .auth_id = NVME_AUTH_SUCCESS1,
					       .t_id = 7,
					       .hl = ends.host.hash_bytes };
	memset(ends.message, 0, sizeof(ends.message));
	memcpy(ends.message, &success, sizeof(success));
	weir_chap_check(&ends.host, ends.message, sizeof(ends.message), ends.answer);
	assert_true(ends.host.failed && !ends.host.done);
	finish(&ends);
}

static void test_a_reply_of_another_time(void **state)
{
	struct weir_chap_secret host = new_secret();
	u8 old[WEIR_CHAP_MESSAGE_BYTES];
	struct ends ends;
	u32 bytes;

	(void)state;
	begin(&ends, &host, &none);
	converse(&ends, 0, 0);
	assert_true(ends.controller.done);
	memcpy(old, ends.answer, sizeof(old));
	finish(&ends);
	begin(&ends, &host, &none);
	bytes = weir_chap_negotiate(&ends.host, 7, ends.message);
	narrow(ends.message, 0, 0);
	weir_chap_take(&ends.controller, ends.message, bytes);
	assert_true(weir_chap_give(&ends.controller, ends.message));
	weir_chap_take(&ends.controller, old, sizeof(old));
	assert_true(ends.controller.failed && !ends.controller.done);
	finish(&ends);
}

static void test_messages_out_of_turn(void **state)
{
	static const u8 ids[] = { NVME_AUTH_REPLY, NVME_AUTH_SUCCESS2, NVME_AUTH_CHALLENGE };
	struct weir_chap_secret host = new_secret();
	struct ends ends;

	(void)state;
	for (unsigned i = 0; i < sizeof(ids); i++) {
		begin(&ends, &host, &none);
		memset(ends.message, 0, sizeof(ends.message));
		ends.message[0] = NVME_AUTH_DHCHAP;
		ends.message[1] = ids[i];
		weir_chap_take(&ends.controller, ends.message, sizeof(ends.message));
		assert_true(ends.controller.failed && !ends.controller.done);
		assert_int_equal(weir_chap_give(&ends.controller, ends.message),
				 sizeof(struct nvme_auth_failure));
		assert_int_equal(weir_chap_give(&ends.controller, ends.message), 0);
		finish(&ends);
	}
	begin(&ends, &host, &none);
	assert_int_equal(weir_chap_give(&ends.controller, ends.message), 0);
	finish(&ends);
}

/* Each message cut short, and each of its first bytes another: neither end takes it, and none ends well. */
static void test_garbage(void **state)
{
	struct weir_chap_secret host = new_secret(), controller = new_secret();
	struct ends ends;

	(void)state;
	for (u32 at = 0; at < 16 * 255; at++) {
		u32 bytes;

		begin(&ends, &host, &controller);
		bytes = weir_chap_negotiate(&ends.host, 7, ends.message);
		narrow(ends.message, NVME_AUTH_SHA256, NVME_AUTH_DH_NULL);
		weir_chap_take(&ends.controller, ends.message, bytes);
		bytes = weir_chap_give(&ends.controller, ends.message);
		ends.message[at / 255] = (u8)(ends.message[at / 255] + 1 + at % 255);
		bytes = weir_chap_reply(&ends.host, ends.message, bytes, ends.answer);
		if (bytes)
			weir_chap_take(&ends.controller, ends.answer, bytes);
		/* Bytes 2, 3 and 7 are reserved. */
		assert_true(ends.host.failed || ends.controller.failed || at / 255 == 2 || at / 255 == 3 ||
			    at / 255 == 7);
		finish(&ends);
	}
	for (u32 bytes = 0; bytes < 16 + 2 * 32; bytes++) {
		begin(&ends, &host, &none);
		weir_chap_negotiate(&ends.host, 7, ends.message);
		narrow(ends.message, NVME_AUTH_SHA256, NVME_AUTH_DH_NULL);
		weir_chap_take(&ends.controller, ends.message, sizeof(struct nvme_auth_negotiate));
		weir_chap_give(&ends.controller, ends.message);
		assert_int_equal(weir_chap_reply(&ends.host, ends.message, sizeof(ends.message), ends.answer),
				 16 + 2 * 32);
		weir_chap_take(&ends.controller, ends.answer, bytes);
		assert_true(ends.controller.failed);
		finish(&ends);
	}
}

/* An offer that the controller has nothing in common with: it says what, and the host ends. */
static void refuse_offer(struct nvme_auth_negotiate offer, u32 bytes, u8 explanation)
{
	struct weir_chap_secret host = new_secret();
	struct ends ends;

	begin(&ends, &host, &none);
	(void)weir_chap_negotiate(&ends.host, 7, ends.message);
	memset(ends.message, 0, sizeof(ends.message));
	memcpy(ends.message, &offer, sizeof(offer));
	weir_chap_take(&ends.controller, ends.message, bytes);
	assert_true(ends.controller.failed);
	bytes = weir_chap_give(&ends.controller, ends.message);
	assert_int_equal(bytes, sizeof(struct nvme_auth_failure));
	assert_int_equal(weir_chap_reply(&ends.host, ends.message, bytes, ends.answer), 0);
	assert_true(ends.host.failed && !ends.host.done && !ends.controller.done);
	assert_int_equal(ends.host.explanation, explanation);
	finish(&ends);
}

static void test_offers_without_anything_in_common(void **state)
{
	struct weir_chap_secret host = new_secret();
	struct nvme_auth_negotiate good, offer;
	struct ends ends;

	(void)state;
	begin(&ends, &host, &none);
	(void)weir_chap_negotiate(&ends.host, 7, ends.message);
	memcpy(&good, ends.message, sizeof(good));
	finish(&ends);
	offer = good;
	offer.napd = 0;
	refuse_offer(offer, sizeof(offer), NVME_AUTH_EXPLAIN_PROTOCOL);
	offer = good;
	offer.authid ^= 0x80;
	refuse_offer(offer, sizeof(offer), NVME_AUTH_EXPLAIN_PROTOCOL);
	offer = good;
	offer.sc_c = 1; /* it would take the connection for an encrypted one */
	refuse_offer(offer, sizeof(offer), NVME_AUTH_EXPLAIN_CONCATENATION);
	offer = good;
	offer.halen = 0;
	refuse_offer(offer, sizeof(offer), NVME_AUTH_EXPLAIN_HASH);
	offer = good;
	offer.halen = 1;
	offer.lists[0] = NVME_AUTH_SHA512 + 1;
	refuse_offer(offer, sizeof(offer), NVME_AUTH_EXPLAIN_HASH);
	offer = good;
	offer.dhlen = 1;
	offer.lists[30] = NVME_AUTH_DH_8192 + 1;
	refuse_offer(offer, sizeof(offer), NVME_AUTH_EXPLAIN_DH);
	for (u32 bytes = sizeof(struct nvme_auth_failure); bytes < sizeof(good); bytes++)
		refuse_offer(good, bytes, NVME_AUTH_EXPLAIN_PAYLOAD);
}

/* A challenge that is cut short is none, whatever lies behind it. */
static void test_challenges_cut_short(void **state)
{
	struct weir_chap_secret host = new_secret();

	(void)state;
	for (u8 group = NVME_AUTH_DH_NULL; group <= NVME_AUTH_DH_2048; group++)
		for (u32 bytes = 0, whole = 1; bytes < whole; bytes++) {
			struct ends ends;

			begin(&ends, &host, &none);
			whole = weir_chap_negotiate(&ends.host, 7, ends.message);
			narrow(ends.message, NVME_AUTH_SHA256, group);
			weir_chap_take(&ends.controller, ends.message, whole);
			whole = weir_chap_give(&ends.controller, ends.message);
			assert_int_equal(weir_chap_reply(&ends.host, ends.message, bytes, ends.answer), 0);
			assert_true(ends.host.failed);
			finish(&ends);
			bytes += group ? 13 : 0; /* keys are long to make */
		}
}

/* Success is the controller's, of this conversation, and whole. */
static void test_successes_that_are_none(void **state)
{
	struct weir_chap_secret host = new_secret();
	const struct nvme_auth_success1 good = {
		.auth_type = NVME_AUTH_DHCHAP, .auth_id = NVME_AUTH_SUCCESS1, .t_id = 7, .hl = 32
	};

	(void)state;
	for (unsigned wrong = 0; wrong < 5; wrong++) {
		struct nvme_auth_success1 success = good;
		struct ends ends;
		u32 bytes;

		begin(&ends, &host, &none);
		bytes = weir_chap_negotiate(&ends.host, 7, ends.message);
		weir_chap_take(&ends.controller, ends.message, bytes);
		bytes = weir_chap_give(&ends.controller, ends.message);
		assert_true(weir_chap_reply(&ends.host, ends.message, bytes, ends.answer));
		success.auth_type ^= wrong == 1;
		success.auth_id = wrong == 2 ? NVME_AUTH_SUCCESS2 : success.auth_id;
		success.t_id += wrong == 3;
		memset(ends.message, 0, sizeof(ends.message));
		memcpy(ends.message, &success, sizeof(success));
		weir_chap_check(&ends.host, ends.message, sizeof(success) - (wrong == 4), ends.answer);
		assert_int_equal(ends.host.done, !wrong);
		assert_int_equal(ends.host.failed, wrong != 0);
		finish(&ends);
	}
}

static void test_a_known_answer(void **state)
{
	struct nvme_auth_challenge challenge = { .auth_type = NVME_AUTH_DHCHAP,
						 .auth_id = NVME_AUTH_CHALLENGE,
						 .t_id = 7,
						 .hl = 32,
						 .hashid = NVME_AUTH_SHA256,
						 .seqnum = 0x01020304 };
	u8 message[sizeof(challenge) + 32], answer[WEIR_CHAP_MESSAGE_BYTES];
	struct weir_chap_secret secret;
	struct weir_chap host;

	(void)state;
	assert_int_equal(weir_chap_secret_parse(known_secret, &secret), 0);
	for (u8 i = 0; i < 32; i++)
		assert_int_equal(secret.key[i], i);
	memcpy(message, &challenge, sizeof(challenge));
	for (u8 i = 0; i < 32; i++)
		message[sizeof(challenge) + i] = (u8)(100 + i);
	weir_chap_begin(&host, &names, &secret, &none);
	weir_chap_negotiate(&host, 7, answer);
	assert_int_equal(weir_chap_reply(&host, message, sizeof(message), answer), 16 + 2 * 32);
	assert_memory_equal(answer + 16, known_response, 32);
	weir_chap_end(&host);
}

static void test_secrets_that_are_none(void **state)
{
	static const char *const texts[] = { "",
					     "DHHC-1:01:",
					     "DHHC-1:01::",
					     "DHHC-1:04:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KVwyR:",
					     "DHHC-1:01:AAAA:",
					     "DHHC-1:01:!!!!:",
					     "NVMeTLSkey-1:01:AAAA:" };
	struct weir_chap_secret secret;
	char text[sizeof(known_secret)];

	(void)state;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_true(weir_chap_secret_parse(texts[i], &secret) < 0);
	memcpy(text, known_secret, sizeof(text));
	text[12] ^= 1; /* its checksum finds it */
	assert_true(weir_chap_secret_parse(text, &secret) < 0);
}

static void test_a_secret_that_others_can_read(void **state)
{
	char path[] = "/tmp/weir_chap_test_XXXXXX";
	struct weir_chap_secret secret;
	int file = mkstemp(path);
	unsigned files = test_files();

	(void)state;
	assert_true(file >= 0 && write(file, known_secret, sizeof(known_secret) - 1) > 0 &&
		    write(file, "\r\n", 2) == 2); /* as editors elsewhere end a line */
	assert_int_equal(fchmod(file, 0640), 0);
	assert_true(weir_chap_secret_load(path, &secret) < 0);
	assert_non_null(strstr(weir_last_error(), "can be read by others"));
	assert_int_equal(fchmod(file, 0600), 0);
	assert_int_equal(weir_chap_secret_load(path, &secret), 0);
	assert_int_equal(secret.bytes, 32);
	assert_int_equal(test_files(), files); /* a file that was refused is closed, too */
	close(file);
	unlink(path);
	assert_true(weir_chap_secret_load(path, &secret) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_hash_and_group),
		cmocka_unit_test(test_a_group_is_preferred_to_none),
		cmocka_unit_test(test_a_wrong_secret),
		cmocka_unit_test(test_a_wrong_name),
		cmocka_unit_test(test_a_wrong_controller),
		cmocka_unit_test(test_a_proof_left_out),
		cmocka_unit_test(test_a_reply_of_another_time),
		cmocka_unit_test(test_messages_out_of_turn),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_offers_without_anything_in_common),
		cmocka_unit_test(test_challenges_cut_short),
		cmocka_unit_test(test_successes_that_are_none),
		cmocka_unit_test(test_a_known_answer),
		cmocka_unit_test(test_secrets_that_are_none),
		cmocka_unit_test(test_a_secret_that_others_can_read),
	};

	if (!weir_chap_available()) {
		puts("1..0 # SKIP this build has no OpenSSL");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
