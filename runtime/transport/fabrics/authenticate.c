/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * authenticate.c: this host proves to a controller who it is, queue by queue, and perhaps the other way
 * round.
 *
 * Owns: the way of chap.h's messages: Authentication Send and Receive, Base 2.0 sections 6.1 and 6.2.
 */
#include <errno.h>
#include <string.h>

#include "../../backend/error.h"
#include "nvmf.h"

static int refused(const struct nvmf *nvmf, const char *why)
{
	return weir_fail(EACCES, "storage \"%s\": the controller does not believe that this is host %s: %s",
			 nvmf->uri, nvmf->keys.host.nqn, why);
}

static int move(struct nvmf_queue *queue, u8 type, void *message, u32 bytes)
{
	struct nvme_fabrics_authentication command = { .opcode = NVME_OPCODE_FABRICS,
						       .fctype = type,
						       .spsp0 = 1,
						       .spsp1 = 1,
						       .secp = NVME_AUTH_SECP,
						       .length = bytes };
	bool send = type == NVME_FCTYPE_AUTHENTICATION_SEND;
	struct nvme_cqe cqe = { .dw3 = 0 };
	struct nvme_sqe sqe;
	int error;

	memcpy(&sqe, &command, sizeof(sqe));
	error = nvmf_command(queue, &sqe, message, bytes, send ? NVMF_TO_CONTROLLER : NVMF_TO_HOST,
			     send ? "Authentication Send" : "Authentication Receive", &cqe,
			     queue->nvmf->keys.connect_ms);
	if (!error && cqe.dw3 >> 17)
		error = refused(queue->nvmf, "it refuses the messages of DH-HMAC-CHAP");
	return error;
}

static int receive(struct nvmf_queue *queue, u8 *message)
{
	memset(message, 0, WEIR_CHAP_MESSAGE_BYTES);
	return move(queue, NVME_FCTYPE_AUTHENTICATION_RECEIVE, message, WEIR_CHAP_MESSAGE_BYTES);
}

/* What it says to this host's proof. Linux's target closes the connection where the proof is wrong. */
static int receive_verdict(struct nvmf_queue *queue, u8 *message)
{
	const struct nvmf *nvmf = queue->nvmf;
	int error = receive(queue, message);

	if (error != -EIO || !nvmf->lost)
		return error;
	return weir_fail(EIO,
			 "storage \"%s\": the controller closed the connection instead of saying whether it "
			 "believes that this is host %s; it may know another secret for that name",
			 nvmf->uri, nvmf->keys.host.nqn);
}

/* It failed here, or there: the controller is told why. */
static int give_up(struct nvmf_queue *queue, const struct weir_chap *chap, u8 *message, bool checking)
{
	const struct nvmf *nvmf = queue->nvmf;
	bool reported = message[0] == NVME_AUTH_COMMON && message[1] == NVME_AUTH_FAILURE1;
	const char *why = weir_chap_explain(chap->explanation);

	if (!reported)
		(void)move(queue, NVME_FCTYPE_AUTHENTICATION_SEND, message,
			   weir_chap_failure(chap, NVME_AUTH_FAILURE2, message));
	if (reported || !checking)
		return refused(nvmf, why);
	return weir_fail(EACCES, "storage \"%s\": the controller does not prove that it is %s: %s", nvmf->uri,
			 nvmf->keys.nqn, why);
}

static int converse(struct nvmf_queue *queue, struct weir_chap *chap)
{
	u8 in[WEIR_CHAP_MESSAGE_BYTES], out[WEIR_CHAP_MESSAGE_BYTES];
	u32 bytes = weir_chap_negotiate(chap, (u16)(queue->id + 1), out);
	int error = move(queue, NVME_FCTYPE_AUTHENTICATION_SEND, out, bytes);

	if (!error)
		error = receive(queue, in);
	if (error)
		return error;
	bytes = weir_chap_reply(chap, in, sizeof(in), out);
	if (chap->failed)
		return give_up(queue, chap, in, false);
	error = move(queue, NVME_FCTYPE_AUTHENTICATION_SEND, out, bytes);
	if (!error)
		error = receive_verdict(queue, in);
	if (error)
		return error;
	bytes = weir_chap_check(chap, in, sizeof(in), out);
	if (chap->failed)
		return give_up(queue, chap, in, true);
	return bytes ? move(queue, NVME_FCTYPE_AUTHENTICATION_SEND, out, bytes) : 0;
}

int nvmf_authenticate(struct nvmf_queue *queue, u32 authreq)
{
	const struct nvmf_keys *keys = &queue->nvmf->keys;
	const struct weir_chap_names names = { keys->host.nqn, keys->nqn };
	struct weir_chap chap;
	int error;

	if (!authreq)
		return keys->controller_secret.bytes ? weir_fail(EACCES,
								 "storage \"%s\": the controller does not "
								 "authenticate, and cannot prove "
								 "that it is %s as dhchap_ctrl_secret= wants",
								 queue->nvmf->uri, keys->nqn)
						     : 0;
	if (authreq << 16 & NVME_CONNECT_ASCR)
		return weir_fail(ENOTSUP,
				 "storage \"%s\": the controller asks for a secure channel, which weir does "
				 "not have yet",
				 queue->nvmf->uri);
	if (!keys->secret.bytes)
		return weir_fail(EACCES,
				 "storage \"%s\": the controller asks host %s to authenticate; give "
				 "dhchap_secret=FILE, with the secret that it knows for this host",
				 queue->nvmf->uri, keys->host.nqn);
	weir_chap_begin(&chap, &names, &keys->secret, &keys->controller_secret);
	error = converse(queue, &chap);
	weir_chap_end(&chap);
	return error;
}
