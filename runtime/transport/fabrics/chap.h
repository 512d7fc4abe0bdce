/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chap.h: DH-HMAC-CHAP, by which a host and a controller prove to each other that they know a secret.
 *
 * Owns: one authentication of one queue, at either end, from message to message; not how messages travel.
 * Base 2.0, section 8.13.5. Hashes and Diffie-Hellman come from OpenSSL; a build without it refuses to
 * authenticate.
 */
#ifndef WEIR_FABRICS_CHAP_H
#define WEIR_FABRICS_CHAP_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/nvme_fabrics.h>

enum {
	WEIR_CHAP_MESSAGE_BYTES =
		sizeof(struct nvme_auth_challenge) + 2 * NVME_AUTH_HASH_MOST + NVME_AUTH_DH_MOST,
	WEIR_CHAP_SECRET_TEXT = 160,
};

/**
 * struct weir_chap_secret - what both ends know
 * @bytes: of @key, 32, 48 or 64; 0: there is none
 * @transform: hash that it goes through with its owner's NQN, NVME_AUTH_SHA...; 0: it is used as it is
 */
struct weir_chap_secret {
	u8 key[NVME_AUTH_HASH_MOST];
	u8 bytes;
	u8 transform;
};

/** struct weir_chap_names - whose secrets they are; NQNs as they stood in Connect */
struct weir_chap_names {
	const char *host;
	const char *subsystem;
};

struct weir_chap_dh;

/**
 * struct weir_chap - an authentication under way; zeroed, then weir_chap_begin()
 * @host_secret: by which the host is known
 * @controller_secret: by which the controller is, if @bytes
 * @names: live as long as it
 * @hash, @hash_bytes, @group: as negotiated
 * @challenge, @sequence: to the host; @host_challenge, @host_sequence: to the controller, if @mutual
 * @session: hash of what Diffie-Hellman gave, @hash_bytes, unless @group is NVME_AUTH_DH_NULL
 * @expected: AUTH_ID of the host's message that is to come next, of the controller's end
 * @pending: of the one that goes then; 0xff: none
 * @done, @failed: how it ended; @explanation: why it failed
 */
struct weir_chap {
	struct weir_chap_secret host_secret;
	struct weir_chap_secret controller_secret;
	struct weir_chap_names names;
	struct weir_chap_dh *dh;
	u16 t_id;
	u8 hash;
	u8 hash_bytes;
	u8 group;
	u8 expected;
	u8 pending;
	bool mutual;
	bool done;
	bool failed;
	u8 explanation;
	u32 sequence;
	u32 host_sequence;
	u8 challenge[NVME_AUTH_HASH_MOST];
	u8 host_challenge[NVME_AUTH_HASH_MOST];
	u8 session[NVME_AUTH_HASH_MOST];
};

/** weir_chap_available() - whether this build can authenticate */
bool weir_chap_available(void);
/** weir_chap_secret_parse() - "DHHC-1:00:BASE64:", as nvme-cli makes them; -EINVAL without a sentence */
int weir_chap_secret_parse(const char *text, struct weir_chap_secret *out);
/** weir_chap_secret_text() - make a new secret of 32 bytes; 0 or -errno without a sentence */
int weir_chap_secret_text(char text[WEIR_CHAP_SECRET_TEXT]);
/**
 * weir_chap_secret_load() - from the first line of a file that its owner alone can read
 *
 * Return: 0, or a negative errno with a sentence.
 */
int weir_chap_secret_load(const char *path, struct weir_chap_secret *out);

/** weir_chap_begin() - @chap is new; secrets are copied */
void weir_chap_begin(struct weir_chap *chap, const struct weir_chap_names *names,
		     const struct weir_chap_secret *host, const struct weir_chap_secret *controller);
/** weir_chap_end() - forget it; secrets in it are overwritten */
void weir_chap_end(struct weir_chap *chap);

/*
 * The host's end. Each function writes the message to be sent, and returns its length; 0: it failed, for
 * chap->explanation, and what is to be sent then is weir_chap_failure().
 */

/** weir_chap_negotiate() - the first message; @t_id: number of the transaction */
u32 weir_chap_negotiate(struct weir_chap *chap, u16 t_id, void *message);
/** weir_chap_reply() - the answer to a challenge of @bytes */
u32 weir_chap_reply(struct weir_chap *chap, const void *challenge, u32 bytes, void *message);
/** weir_chap_check() - the answer to what the controller says then; chap->done: nothing is to be sent */
u32 weir_chap_check(struct weir_chap *chap, const void *success, u32 bytes, void *message);

/*
 * The controller's end.
 */

/** weir_chap_take() - a message of the host's */
void weir_chap_take(struct weir_chap *chap, const void *message, u32 bytes);
/** weir_chap_give() - the message that is to be received next; its length, 0: none is */
u32 weir_chap_give(struct weir_chap *chap, void *message);

/** weir_chap_failure() - what says that it failed; @id: NVME_AUTH_FAILURE1 (controller) or 2 (host) */
u32 weir_chap_failure(const struct weir_chap *chap, u8 id, void *message);
/** weir_chap_explain() - an explanation of a failure, for people */
const char *weir_chap_explain(u8 explanation);

#endif
