/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chap.c: what DH-HMAC-CHAP says and checks, Base 2.0 section 8.13.5.
 *
 * Owns: messages of both ends. Lengths that the other end gives are checked before they are used.
 */
#include <string.h>

#include "chap_crypto.h"

enum { LISTS_DH = 30, HASHES = 3, GROUPS = 6 };

static u32 fail(struct weir_chap *chap, u8 explanation)
{
	chap->failed = true;
	chap->done = false;
	chap->explanation = explanation;
	chap->pending = NVME_AUTH_FAILURE1;
	chap->expected = CHAP_NOTHING;
	return 0;
}

void weir_chap_begin(struct weir_chap *chap, const struct weir_chap_names *names,
		     const struct weir_chap_secret *host, const struct weir_chap_secret *controller)
{
	memset(chap, 0, sizeof(*chap));
	chap->names = *names;
	chap->host_secret = *host;
	chap->controller_secret = *controller;
	chap->pending = CHAP_NOTHING;
}

void weir_chap_end(struct weir_chap *chap)
{
	chap_dh_free(chap->dh);
	chap_wipe(chap, sizeof(*chap));
}

const char *weir_chap_explain(u8 explanation)
{
	switch (explanation) {
	case NVME_AUTH_EXPLAIN_FAILED: return "the secrets differ";
	case NVME_AUTH_EXPLAIN_PROTOCOL: return "no common protocol";
	case NVME_AUTH_EXPLAIN_CONCATENATION: return "no common secure channel";
	case NVME_AUTH_EXPLAIN_HASH: return "no common hash";
	case NVME_AUTH_EXPLAIN_DH: return "no common Diffie-Hellman group";
	case NVME_AUTH_EXPLAIN_PAYLOAD: return "a message that is none";
	case NVME_AUTH_EXPLAIN_MESSAGE: return "a message out of turn";
	default: return "an unknown reason";
	}
}

u32 weir_chap_failure(const struct weir_chap *chap, u8 id, void *message)
{
	const struct nvme_auth_failure failure = { .auth_type = NVME_AUTH_COMMON,
						   .auth_id = id,
						   .t_id = chap->t_id,
						   .reason = NVME_AUTH_FAILED,
						   .explanation = chap->explanation };

	memcpy(message, &failure, sizeof(failure));
	return sizeof(failure);
}

/* ---- responses ---- */

static struct iovec part(const void *at, size_t bytes)
{
	return (struct iovec){ .iov_base = (void *)(uintptr_t)at, .iov_len = bytes };
}

static struct iovec text(const char *at)
{
	return part(at, strlen(at));
}

/* The secret as it is used: by default it goes through a hash with its owner's name. Its length, or 0. */
static u32 transform(const struct weir_chap_secret *secret, const char *owner, u8 *key)
{
	const struct iovec parts[] = { text(owner), text("NVMe-over-Fabrics") };

	memcpy(key, secret->key, secret->bytes);
	if (!secret->transform)
		return secret->bytes;
	return chap_hmac(secret->transform, secret->key, secret->bytes, parts, 2, key)
		       ? chap_hash_bytes(secret->transform)
		       : 0;
}

/* A challenge is bound to what Diffie-Hellman gave, if that was used. */
static bool augment(const struct weir_chap *chap, const u8 *challenge, u8 *augmented)
{
	const struct iovec parts[] = { part(challenge, chap->hash_bytes) };

	memcpy(augmented, challenge, chap->hash_bytes);
	return chap->group == NVME_AUTH_DH_NULL ||
	       chap_hmac(chap->hash, chap->session, chap->hash_bytes, parts, 1, augmented);
}

/** struct proof - who answers which challenge to whom */
struct proof {
	const struct weir_chap_secret *secret;
	const u8 *challenge;
	u32 sequence;
	const char *role;
	const char *owner;
	const char *other;
};

static bool respond(const struct weir_chap *chap, const struct proof *proof, u8 *response)
{
	u8 key[NVME_AUTH_HASH_MOST], augmented[NVME_AUTH_HASH_MOST];
	const u8 zero = 0; /* no secure channel; and what stands between the names */
	u32 bytes = transform(proof->secret, proof->owner, key);
	const struct iovec parts[] = {
		part(augmented, chap->hash_bytes),
		part(&proof->sequence, sizeof(u32)),
		part(&chap->t_id, sizeof(u16)),
		part(&zero, 1),
		text(proof->role),
		text(proof->owner),
		part(&zero, 1),
		text(proof->other),
	};
	bool good = bytes && augment(chap, proof->challenge, augmented) &&
		    chap_hmac(chap->hash, key, bytes, parts, sizeof(parts) / sizeof(*parts), response);

	chap_wipe(key, sizeof(key));
	return good;
}

static bool host_response(const struct weir_chap *chap, u8 *response)
{
	const struct proof proof = { &chap->host_secret, chap->challenge,  chap->sequence,
				     "HostHost",         chap->names.host, chap->names.subsystem };

	return respond(chap, &proof, response);
}

static bool controller_response(const struct weir_chap *chap, u8 *response)
{
	const struct proof proof = { &chap->controller_secret, chap->host_challenge,
				     chap->host_sequence,      "Controller",
				     chap->names.subsystem,    chap->names.host };

	return respond(chap, &proof, response);
}

/* What Diffie-Hellman gives, hashed. */
static bool agree(struct weir_chap *chap, const u8 *value)
{
	u8 shared[NVME_AUTH_DH_MOST];
	bool good = chap_dh_derive(chap->dh, value, shared) &&
		    chap_digest(chap->hash, shared, chap_dh_bytes(chap->group), chap->session);

	chap_wipe(shared, sizeof(shared));
	return good;
}

/* ---- the host's end ---- */

u32 weir_chap_negotiate(struct weir_chap *chap, u16 t_id, void *message)
{
	struct nvme_auth_negotiate negotiate = { .auth_type = NVME_AUTH_COMMON,
						 .auth_id = NVME_AUTH_NEGOTIATE,
						 .t_id = t_id,
						 .napd = 1,
						 .authid = NVME_AUTH_PROTOCOL_DHCHAP,
						 .halen = HASHES,
						 .dhlen = GROUPS };

	chap->t_id = t_id;
	for (u8 i = 0; i < HASHES; i++)
		negotiate.lists[i] = NVME_AUTH_SHA256 + i;
	for (u8 i = 0; i < GROUPS; i++)
		negotiate.lists[LISTS_DH + i] = i;
	memcpy(message, &negotiate, sizeof(negotiate));
	return sizeof(negotiate);
}

/* Failures of the controller end it, whatever was expected. */
static bool is_failure(struct weir_chap *chap, const void *message, u32 bytes)
{
	struct nvme_auth_failure failure;

	if (bytes < sizeof(failure))
		return false;
	memcpy(&failure, message, sizeof(failure));
	if (failure.auth_type != NVME_AUTH_COMMON || failure.auth_id != NVME_AUTH_FAILURE1)
		return false;
	fail(chap, failure.explanation);
	return true;
}

static u8 check_challenge(struct weir_chap *chap, const struct nvme_auth_challenge *challenge, u32 bytes)
{
	if (challenge->auth_type != NVME_AUTH_DHCHAP || challenge->auth_id != NVME_AUTH_CHALLENGE ||
	    challenge->t_id != chap->t_id)
		return NVME_AUTH_EXPLAIN_MESSAGE;
	chap->hash = challenge->hashid;
	chap->hash_bytes = (u8)chap_hash_bytes(challenge->hashid);
	chap->group = challenge->dhgid;
	if (!chap->hash_bytes || challenge->hl != chap->hash_bytes)
		return NVME_AUTH_EXPLAIN_HASH;
	if ((chap->group != NVME_AUTH_DH_NULL && !chap_dh_bytes(chap->group)) ||
	    challenge->dhvlen != chap_dh_bytes(chap->group))
		return NVME_AUTH_EXPLAIN_DH;
	return bytes < sizeof(*challenge) + challenge->hl + challenge->dhvlen ? NVME_AUTH_EXPLAIN_PAYLOAD : 0;
}

/* The reply behind its head. */
static bool put_reply(struct weir_chap *chap, const u8 *value, u8 *to)
{
	u32 bytes = chap->hash_bytes;

	if (chap->group != NVME_AUTH_DH_NULL) {
		chap->dh = chap_dh_new(chap->group, to + 2 * bytes);
		if (!chap->dh || !agree(chap, value))
			return false;
	}
	chap->mutual = chap->controller_secret.bytes;
	if (chap->mutual && (!chap_random(chap->host_challenge, bytes) ||
			     !chap_random(&chap->host_sequence, sizeof(chap->host_sequence))))
		return false;
	chap->host_sequence |= chap->mutual; /* 0 has a meaning of its own */
	memcpy(to + bytes, chap->host_challenge, bytes);
	return host_response(chap, to);
}

u32 weir_chap_reply(struct weir_chap *chap, const void *message, u32 bytes, void *to)
{
	struct nvme_auth_challenge challenge;
	struct nvme_auth_reply reply;
	u8 explanation;

	if (is_failure(chap, message, bytes))
		return 0;
	if (bytes < sizeof(challenge))
		return fail(chap, NVME_AUTH_EXPLAIN_PAYLOAD);
	memcpy(&challenge, message, sizeof(challenge));
	explanation = check_challenge(chap, &challenge, bytes);
	if (explanation)
		return fail(chap, explanation);
	chap->sequence = challenge.seqnum;
	memcpy(chap->challenge, (const u8 *)message + sizeof(challenge), challenge.hl);
	if (!put_reply(chap, (const u8 *)message + sizeof(challenge) + challenge.hl,
		       (u8 *)to + sizeof(reply)))
		return fail(chap, NVME_AUTH_EXPLAIN_FAILED);
	reply = (struct nvme_auth_reply){ .auth_type = NVME_AUTH_DHCHAP,
					  .auth_id = NVME_AUTH_REPLY,
					  .t_id = chap->t_id,
					  .hl = chap->hash_bytes,
					  .cvalid = chap->mutual,
					  .dhvlen = (u16)chap_dh_bytes(chap->group),
					  .seqnum = chap->host_sequence };
	memcpy(to, &reply, sizeof(reply));
	return sizeof(reply) + 2u * reply.hl + reply.dhvlen;
}

/* Whether the controller knows its secret, if it has to. */
static bool proves_itself(const struct weir_chap *chap, const struct nvme_auth_success1 *success,
			  const u8 *response, u32 bytes)
{
	u8 expected[NVME_AUTH_HASH_MOST];

	return success->rvalid && success->hl == chap->hash_bytes && bytes >= chap->hash_bytes &&
	       controller_response(chap, expected) && chap_equal(expected, response, chap->hash_bytes);
}

u32 weir_chap_check(struct weir_chap *chap, const void *message, u32 bytes, void *to)
{
	struct nvme_auth_success1 success;
	struct nvme_auth_success2 answer = { .auth_type = NVME_AUTH_DHCHAP,
					     .auth_id = NVME_AUTH_SUCCESS2,
					     .t_id = chap->t_id };

	if (is_failure(chap, message, bytes))
		return 0;
	if (bytes < sizeof(success))
		return fail(chap, NVME_AUTH_EXPLAIN_PAYLOAD);
	memcpy(&success, message, sizeof(success));
	if (success.auth_type != NVME_AUTH_DHCHAP || success.auth_id != NVME_AUTH_SUCCESS1 ||
	    success.t_id != chap->t_id)
		return fail(chap, NVME_AUTH_EXPLAIN_MESSAGE);
	if (chap->mutual && !proves_itself(chap, &success, (const u8 *)message + sizeof(success),
					   bytes - (u32)sizeof(success)))
		return fail(chap, NVME_AUTH_EXPLAIN_FAILED);
	chap->done = true;
	if (!chap->mutual)
		return 0;
	memcpy(to, &answer, sizeof(answer));
	return sizeof(answer);
}

/* ---- the controller's end ---- */

static bool offers(const u8 *list, u8 count, u8 what)
{
	return memchr(list, what, count);
}

/* The strongest hash that needs no longer secret; the shortest group that hides what passes, or none. */
static u8 choose(struct weir_chap *chap, const struct nvme_auth_negotiate *offer)
{
	u8 groups = offer->dhlen > LISTS_DH ? LISTS_DH : offer->dhlen;

	if (!offer->napd || offer->authid != NVME_AUTH_PROTOCOL_DHCHAP)
		return NVME_AUTH_EXPLAIN_PROTOCOL;
	if (offer->sc_c)
		return NVME_AUTH_EXPLAIN_CONCATENATION;
	for (u8 hash = NVME_AUTH_SHA256; hash <= NVME_AUTH_SHA512 && !chap->hash_bytes; hash++)
		if (offers(offer->lists, offer->halen > LISTS_DH ? LISTS_DH : offer->halen, hash)) {
			chap->hash = hash;
			chap->hash_bytes = (u8)chap_hash_bytes(hash);
		}
	if (!chap->hash_bytes)
		return NVME_AUTH_EXPLAIN_HASH;
	for (u8 group = NVME_AUTH_DH_2048; group <= NVME_AUTH_DH_8192 && !chap->group; group++)
		if (offers(offer->lists + LISTS_DH, groups, group))
			chap->group = group;
	return chap->group || offers(offer->lists + LISTS_DH, groups, NVME_AUTH_DH_NULL)
		       ? 0
		       : NVME_AUTH_EXPLAIN_DH;
}

static void take_negotiate(struct weir_chap *chap, const void *message, u32 bytes)
{
	struct nvme_auth_negotiate offer;
	u8 explanation;

	if (bytes < sizeof(offer)) {
		fail(chap, NVME_AUTH_EXPLAIN_PAYLOAD);
		return;
	}
	memcpy(&offer, message, sizeof(offer));
	chap->t_id = offer.t_id;
	explanation = choose(chap, &offer);
	if (!explanation && (!chap_random(chap->challenge, chap->hash_bytes) ||
			     !chap_random(&chap->sequence, sizeof(chap->sequence))))
		explanation = NVME_AUTH_EXPLAIN_FAILED;
	if (explanation) {
		fail(chap, explanation);
		return;
	}
	chap->sequence |= 1; /* 0 has a meaning of its own */
	chap->expected = CHAP_NOTHING;
	chap->pending = NVME_AUTH_CHALLENGE;
}

static bool reply_is_whole(const struct weir_chap *chap, const struct nvme_auth_reply *reply, u32 bytes)
{
	return reply->hl == chap->hash_bytes && reply->dhvlen == chap_dh_bytes(chap->group) &&
	       bytes >= sizeof(*reply) + 2u * reply->hl + reply->dhvlen;
}

/* A host that asks for a controller's proof where there is none gets no success: it would take it for one. */
static bool reply_is_right(struct weir_chap *chap, const struct nvme_auth_reply *reply, const u8 *response)
{
	u8 expected[NVME_AUTH_HASH_MOST];

	if (chap->group != NVME_AUTH_DH_NULL && !agree(chap, response + 2 * chap->hash_bytes))
		return false;
	chap->mutual = reply->cvalid;
	if (chap->mutual && !chap->controller_secret.bytes)
		return false;
	chap->host_sequence = reply->seqnum;
	memcpy(chap->host_challenge, response + chap->hash_bytes, chap->hash_bytes);
	return host_response(chap, expected) && chap_equal(expected, response, chap->hash_bytes);
}

static void take_reply(struct weir_chap *chap, const void *message, u32 bytes)
{
	struct nvme_auth_reply reply;

	memcpy(&reply, message, bytes < sizeof(reply) ? bytes : sizeof(reply));
	if (bytes < sizeof(reply) || !reply_is_whole(chap, &reply, bytes)) {
		fail(chap, NVME_AUTH_EXPLAIN_PAYLOAD);
		return;
	}
	if (reply.t_id != chap->t_id || !reply_is_right(chap, &reply, (const u8 *)message + sizeof(reply))) {
		fail(chap, NVME_AUTH_EXPLAIN_FAILED);
		return;
	}
	chap->pending = NVME_AUTH_SUCCESS1;
	chap->expected = CHAP_NOTHING;
}

void weir_chap_take(struct weir_chap *chap, const void *message, u32 bytes)
{
	const u8 *head = message;

	if (chap->failed || chap->done)
		return;
	if (bytes >= sizeof(struct nvme_auth_failure) && head[0] == NVME_AUTH_COMMON &&
	    head[1] == NVME_AUTH_FAILURE2) {
		fail(chap, NVME_AUTH_EXPLAIN_FAILED);
		chap->pending = CHAP_NOTHING;
	} else if (bytes < sizeof(struct nvme_auth_failure) || chap->pending != CHAP_NOTHING ||
		   head[1] != chap->expected ||
		   head[0] != (chap->expected == NVME_AUTH_NEGOTIATE ? NVME_AUTH_COMMON : NVME_AUTH_DHCHAP)) {
		fail(chap, NVME_AUTH_EXPLAIN_MESSAGE);
	} else if (chap->expected == NVME_AUTH_NEGOTIATE) {
		take_negotiate(chap, message, bytes);
	} else if (chap->expected == NVME_AUTH_REPLY) {
		take_reply(chap, message, bytes);
	} else {
		chap->done = true; /* Success2 */
	}
}

static u32 give_challenge(struct weir_chap *chap, u8 *to)
{
	const struct nvme_auth_challenge challenge = { .auth_type = NVME_AUTH_DHCHAP,
						       .auth_id = NVME_AUTH_CHALLENGE,
						       .t_id = chap->t_id,
						       .hl = chap->hash_bytes,
						       .hashid = chap->hash,
						       .dhgid = chap->group,
						       .dhvlen = (u16)chap_dh_bytes(chap->group),
						       .seqnum = chap->sequence };

	memcpy(to, &challenge, sizeof(challenge));
	memcpy(to + sizeof(challenge), chap->challenge, chap->hash_bytes);
	if (chap->group != NVME_AUTH_DH_NULL) {
		chap->dh = chap_dh_new(chap->group, to + sizeof(challenge) + chap->hash_bytes);
		if (!chap->dh) {
			fail(chap, NVME_AUTH_EXPLAIN_DH);
			return weir_chap_failure(chap, NVME_AUTH_FAILURE1, to);
		}
	}
	chap->expected = NVME_AUTH_REPLY;
	return sizeof(challenge) + challenge.hl + challenge.dhvlen;
}

static u32 give_success(struct weir_chap *chap, u8 *to)
{
	const struct nvme_auth_success1 success = { .auth_type = NVME_AUTH_DHCHAP,
						    .auth_id = NVME_AUTH_SUCCESS1,
						    .t_id = chap->t_id,
						    .hl = chap->hash_bytes,
						    .rvalid = chap->mutual };

	memcpy(to, &success, sizeof(success));
	memset(to + sizeof(success), 0, chap->hash_bytes);
	if (chap->mutual && !controller_response(chap, to + sizeof(success))) {
		fail(chap, NVME_AUTH_EXPLAIN_FAILED);
		return weir_chap_failure(chap, NVME_AUTH_FAILURE1, to);
	}
	chap->done = !chap->mutual;
	chap->expected = NVME_AUTH_SUCCESS2;
	return (u32)sizeof(success) + chap->hash_bytes;
}

u32 weir_chap_give(struct weir_chap *chap, void *message)
{
	u8 pending = chap->pending;

	chap->pending = CHAP_NOTHING;
	switch (pending) {
	case NVME_AUTH_CHALLENGE: return give_challenge(chap, message);
	case NVME_AUTH_SUCCESS1: return give_success(chap, message);
	case NVME_AUTH_FAILURE1: return weir_chap_failure(chap, NVME_AUTH_FAILURE1, message);
	default: return 0;
	}
}
