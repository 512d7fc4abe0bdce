/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_chap.h: hosts that prove who they are, for tests of the target.
 *
 * Owns: the messages of one authentication as commands, and files of secrets.
 */
#ifndef WEIR_TESTS_TARGET_CHAP_H
#define WEIR_TESTS_TARGET_CHAP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "target_host.h"
#include "transport/fabrics/chap.h"

/** chap_make_secret() - a new secret in a file at @path, a template as mkstemp() has them */
static inline void chap_make_secret(char *path, struct weir_chap_secret *secret)
{
	char text[WEIR_CHAP_SECRET_TEXT];
	int file = mkstemp(path);

	assert_true(file >= 0);
	assert_int_equal(weir_chap_secret_text(text), 0);
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
	close(file);
	assert_int_equal(weir_chap_secret_parse(text, secret), 0);
}

static inline struct nvme_sqe chap_command(struct host *host, u8 type, u32 bytes)
{
	struct nvme_sqe sqe = host_command(host, NVME_OPCODE_FABRICS, type);

	sqe.cdw10 = (u32)NVME_AUTH_SECP << 24 | 1u << 16 | 1u << 8;
	sqe.cdw11 = bytes;
	return sqe;
}

static inline void chap_give(struct host *host, const void *message, u32 bytes)
{
	assert_int_equal(host_give(host, chap_command(host, NVME_FCTYPE_AUTHENTICATION_SEND, bytes), message,
				   bytes, true),
			 0);
}

static inline void chap_take(struct host *host)
{
	assert_int_equal(
		host_take(host,
			  chap_command(host, NVME_FCTYPE_AUTHENTICATION_RECEIVE, WEIR_CHAP_MESSAGE_BYTES),
			  WEIR_CHAP_MESSAGE_BYTES),
		0);
}

/** chap_prove() - as far as the controller's answer to the reply; @answer: what is to be sent then, whose
 * length it returns */
static inline u32 chap_prove(struct host *host, struct weir_chap *chap, u8 *answer)
{
	u32 bytes = weir_chap_negotiate(chap, 1, answer);

	chap_give(host, answer, bytes);
	chap_take(host);
	bytes = weir_chap_reply(chap, host->data, WEIR_CHAP_MESSAGE_BYTES, answer);
	assert_true(bytes);
	chap_give(host, answer, bytes);
	chap_take(host);
	return weir_chap_check(chap, host->data, WEIR_CHAP_MESSAGE_BYTES, answer);
}

#endif
