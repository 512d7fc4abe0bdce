/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm_handshake: in the guest, TLS handshakes for the kernel, which leaves them to a program: tlshd of
 * ktls-utils, which Debian 12 does not have.
 *
 *   vm_handshake key FILE HOSTNQN SUBNQN     the key of FILE, derived for both, into the keyring .nvme;
 * prints its serial number vm_handshake serve                       do what the kernel asks for until killed;
 * prints a line for each handshake
 *
 * As Linux's Documentation/networking/tls-handshake.rst and Documentation/netlink/specs/handshake.yaml have
 * it.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/weir.h>

#include "handshake.h"

/* Of include/uapi/linux/handshake.h, which Debian 12's headers do not have. */
enum {
	CMD_ACCEPT = 2,
	CMD_DONE = 3,
	ACCEPT_SOCKET = 1,
	ACCEPT_CLASS = 2,
	ACCEPT_TYPE = 3,
	ACCEPT_TIMEOUT = 4,
	ACCEPT_PEER = 6,
	DONE_STATUS = 1,
	DONE_SOCKET = 2,
	DONE_AUTH = 3,
	CLASS_TLSHD = 1,
	CLIENT_HELLO = 1,
};

enum { MESSAGE_BYTES = 4096, HEAD_BYTES = NLMSG_HDRLEN + GENL_HDRLEN };

/** struct message - of generic netlink */
struct message {
	union {
		struct nlmsghdr header;
		char bytes[MESSAGE_BYTES];
	};
};

/** struct family - what the kernel's handshakes are known by */
struct family {
	uint16_t id;
	uint32_t group;
};

/** struct request - a handshake that the kernel asks for */
struct request {
	int socket;
	uint32_t type;
	uint32_t timeout_ms;
	int32_t peer;
};

/* ---- messages ---- */

static void begin(struct message *message, uint16_t family, uint8_t command, uint16_t flags)
{
	const struct genlmsghdr head = { .cmd = command, .version = 1 };

	memset(message, 0, HEAD_BYTES);
	message->header.nlmsg_len = HEAD_BYTES;
	message->header.nlmsg_type = family;
	message->header.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	memcpy(message->bytes + NLMSG_HDRLEN, &head, sizeof(head));
}

static void put(struct message *message, uint16_t type, const void *value, size_t bytes)
{
	const struct nlattr head = { .nla_len = (uint16_t)(NLA_HDRLEN + bytes), .nla_type = type };
	char *at = message->bytes + message->header.nlmsg_len;

	memset(at, 0, NLA_HDRLEN + NLA_ALIGN(bytes));
	memcpy(at, &head, sizeof(head));
	memcpy(at + NLA_HDRLEN, value, bytes);
	message->header.nlmsg_len += (uint32_t)(NLA_HDRLEN + NLA_ALIGN(bytes));
}

static void put_number(struct message *message, uint16_t type, uint32_t value)
{
	put(message, type, &value, sizeof(value));
}

/** struct attributes - those of a message, or of one of its attributes */
struct attributes {
	const char *at;
	size_t bytes;
};

/* The next one; false: there is none. */
static bool next(struct attributes *list, uint16_t *type, struct attributes *value)
{
	struct nlattr head;
	size_t whole;

	if (list->bytes < NLA_HDRLEN)
		return false;
	memcpy(&head, list->at, sizeof(head));
	if (head.nla_len < NLA_HDRLEN || head.nla_len > list->bytes)
		return false;
	*type = head.nla_type & NLA_TYPE_MASK;
	*value = (struct attributes){ list->at + NLA_HDRLEN, head.nla_len - NLA_HDRLEN };
	whole = NLA_ALIGN((size_t)head.nla_len);
	list->bytes -= whole < list->bytes ? whole : list->bytes;
	list->at += whole;
	return true;
}

static uint32_t number_of(const struct attributes *value)
{
	uint32_t number = 0;

	memcpy(&number, value->at, value->bytes < sizeof(number) ? value->bytes : sizeof(number));
	return number;
}

/* @message and what the kernel says to it, in its place; its attributes are @list. 0 or a negative errno */
static int ask(int netlink, struct message *message, struct attributes *list)
{
	ssize_t bytes = send(netlink, message, message->header.nlmsg_len, 0);
	int error;

	if (bytes >= 0)
		bytes = recv(netlink, message, sizeof(*message), 0);
	if (bytes < 0)
		return -errno;
	if (bytes < HEAD_BYTES)
		return -EPROTO;
	if (message->header.nlmsg_type == NLMSG_ERROR) {
		memcpy(&error, NLMSG_DATA(&message->header), sizeof(error));
		return error;
	}
	*list = (struct attributes){ message->bytes + HEAD_BYTES, (size_t)bytes - HEAD_BYTES };
	return 0;
}

/* Bound: an event would not reach it otherwise. -1: errno says why */
static int open_netlink(void)
{
	const struct sockaddr_nl any = { .nl_family = AF_NETLINK };
	int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);

	if (netlink >= 0 && bind(netlink, (const struct sockaddr *)&any, sizeof(any)) != 0) {
		(void)close(netlink);
		return -1;
	}
	return netlink;
}

/* ---- the family ---- */

static void take_group(struct attributes group, struct family *family)
{
	struct attributes value;
	bool ours = false;
	uint32_t id = 0;
	uint16_t type;

	while (next(&group, &type, &value))
		if (type == CTRL_ATTR_MCAST_GRP_ID)
			id = number_of(&value);
		else if (type == CTRL_ATTR_MCAST_GRP_NAME)
			ours = !strcmp(value.at, "tlshd");
	if (ours)
		family->group = id;
}

static int resolve(int netlink, struct family *family)
{
	struct message message;
	struct attributes list, value, group;
	uint16_t type, index;
	int error;

	begin(&message, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0);
	put(&message, CTRL_ATTR_FAMILY_NAME, "handshake", sizeof("handshake"));
	error = ask(netlink, &message, &list);
	if (error)
		return error;
	*family = (struct family){ 0 };
	while (next(&list, &type, &value))
		if (type == CTRL_ATTR_FAMILY_ID)
			family->id = (uint16_t)number_of(&value);
		else if (type == CTRL_ATTR_MCAST_GROUPS)
			while (next(&value, &index, &group))
				take_group(group, family);
	return family->id && family->group ? 0 : -EPROTO;
}

/* ---- requests ---- */

/* The next one; -EAGAIN: there is none. */
static int accept_request(int netlink, const struct family *family, struct request *out)
{
	struct message message;
	struct attributes list = { 0 }, value;
	uint16_t type;
	int error;

	begin(&message, family->id, CMD_ACCEPT, 0);
	put_number(&message, ACCEPT_CLASS, CLASS_TLSHD);
	error = ask(netlink, &message, &list);
	*out = (struct request){ .socket = -1 };
	while (!error && next(&list, &type, &value))
		switch (type) {
		case ACCEPT_SOCKET: out->socket = (int)number_of(&value); break;
		case ACCEPT_TYPE: out->type = number_of(&value); break;
		case ACCEPT_TIMEOUT: out->timeout_ms = number_of(&value); break;
		case ACCEPT_PEER: out->peer = (int32_t)number_of(&value); break;
		default: break;
		}
	return error ? error : out->socket < 0 ? -EPROTO : 0;
}

static int finish(int netlink, const struct family *family, const struct request *request, int error,
		  int32_t peer)
{
	struct message message;
	struct attributes list;

	begin(&message, family->id, CMD_DONE, NLM_F_ACK);
	put_number(&message, DONE_STATUS, (uint32_t)-error);
	put_number(&message, DONE_SOCKET, (uint32_t)request->socket);
	if (!error)
		put_number(&message, DONE_AUTH, (uint32_t)peer);
	return ask(netlink, &message, &list);
}

/* A process of its own: the other end may be silent, and the kernel waits no longer than it said. Exit status
 */
static int answer(const struct family *family, const struct request *request)
{
	int netlink = open_netlink(), error = 0, reported;
	bool client = request->type == CLIENT_HELLO;
	struct handshake_key key = { 0 };

	(void)alarm(request->timeout_ms / 1000 + 1);
	if (client)
		error = handshake_key_read(request->peer, &key);
	if (!error)
		error = handshake_tls(request->socket, client, &key);
	reported = finish(netlink, family, request, error, key.serial);
	printf("vm_handshake: %s, key of %u bytes \"%s\": %s%s%s\n", client ? "client" : "server",
	       key.psk.bytes, key.psk.identity, error ? strerror(-error) : "good",
	       reported ? ", not reported: " : "", reported ? strerror(-reported) : "");
	(void)fflush(stdout);
	return error != 0;
}

static int serve(void)
{
	int netlink = open_netlink(), events = open_netlink();
	struct message event;
	struct request request;
	struct family family;

	if (handshake_keyring() < 0 || resolve(netlink, &family) != 0 ||
	    setsockopt(events, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &family.group, sizeof(family.group)) != 0)
		return fprintf(stderr, "vm_handshake: the kernel asks for no handshakes\n"), 2;
	(void)signal(SIGCHLD, SIG_IGN);
	printf("vm_handshake: serving\n");
	(void)fflush(stdout);
	while (recv(events, &event, sizeof(event), 0) > 0 || errno == EINTR || errno == ENOBUFS)
		while (accept_request(netlink, &family, &request) == 0) {
			if (fork() == 0)
				_exit(answer(&family, &request));
			(void)close(request.socket);
		}
	return 2;
}

static int add_key(char **arguments)
{
	struct weir_tls_key key;
	struct weir_tls_psk psk;
	int32_t serial;

	if (weir_tls_key_load(arguments[0], &key) != 0)
		return fprintf(stderr, "vm_handshake: %s\n", weir_last_error()), 1;
	if (!weir_tls_derive(&key, arguments[1], arguments[2], &psk))
		return fprintf(stderr, "vm_handshake: no key can be derived\n"), 1;
	serial = handshake_key_add(&psk);
	if (serial < 0)
		return fprintf(stderr, "vm_handshake: the kernel's keyring: %s\n", strerror(-serial)), 1;
	printf("%d\n", serial);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "key"))
		return add_key(argv + 2);
	if (argc == 2 && !strcmp(argv[1], "serve"))
		return serve();
	return fprintf(stderr, "usage: vm_handshake key FILE HOSTNQN SUBNQN | vm_handshake serve\n"), 2;
}
