/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir-fabrics: storages on a network (docs/network.md): what a host offers, whether it can be reached, who
 * this host is.
 *
 * Owns: its commands and what they print. Opens nothing for writing.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <weir/weir.h>

#include "tool_options.h"
#include "base/crc32c.h"
#include "transport/fabrics/chap.h"
#include "transport/fabrics/discover.h"
#include "transport/fabrics/tls.h"

enum {
	EXIT_BAD = 1,
	CONNECT_MS = 3000,
	PATH_BYTES = 512,
	BODY_BYTES = 512,
	TEST_QUEUES = 1,
	TEST_DEPTH = 16
};

static const char about[] =
	"usage: weir-fabrics discover HOST[:PORT] [--json]\n"
	"       weir-fabrics test URI\n"
	"       weir-fabrics paths URI\n"
	"       weir-fabrics show\n"
	"       weir-fabrics secret >FILE\n"
	"       weir-fabrics psk >FILE\n"
	"\n"
	"  discover  list the subsystems that a host offers, each as a storage's URI; port 8009 without one\n"
	"  test      connect as a storage would, read its first block, and say what is there\n"
	"  paths     connect to each host of a storage's URI, and say which ANA state its namespace has\n"
	"            there\n"
	"  show      who this host is to targets: its NQN and identifier, and the file that keeps them\n"
	"  secret    make a secret by which a host and a target authenticate; umask 077 first\n"
	"  psk       make a key by which TLS protects the connections of a host and a target; umask 077\n"
	"            first\n";

static const char notes[] = "Exit status: 0 done; 1 it cannot be reached, or refuses; 2 bad usage.";

static bool json;
static char **words;

static const struct tool_option options[] = {
	{ "json", NULL, TOOL_FLAG, &json, 0, 0, "discover: print one JSON object", NULL, NULL },
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-fabrics", .about = about, .options = options, .all = &words, .notes = notes
};

static int bad(void)
{
	return tool_failed();
}

/** struct entry - a discovery log page entry as text */
struct entry {
	char transport[16];
	char host[WEIR_ADDRESS_BYTES + 1];
	char port[33];
	char nqn[NVME_NQN_BYTES + 1];
	char uri[WEIR_ADDRESS_BYTES + NVME_NQN_BYTES + 64];
};

static const char *transport_text(uint8_t type)
{
	return type == NVME_TRTYPE_TCP    ? "tcp"
	       : type == NVME_TRTYPE_RDMA ? "rdma"
	       : type == NVME_TRTYPE_FC   ? "fc"
					  : "unknown";
}

static void read_entry(const struct nvme_discovery_entry *from, struct entry *to)
{
	const char *form = from->adrfam == NVME_ADRFAM_IPV6 ? "nvmf:%s://[%s]:%s/%s" : "nvmf:%s://%s:%s/%s";

	snprintf(to->transport, sizeof(to->transport), "%s", transport_text(from->trtype));
	weir_fabrics_text(from->traddr, sizeof(from->traddr), to->host);
	weir_fabrics_text(from->trsvcid, sizeof(from->trsvcid), to->port);
	weir_fabrics_text(from->subnqn, sizeof(from->subnqn), to->nqn);
	snprintf(to->uri, sizeof(to->uri), form, to->transport, to->host, to->port, to->nqn);
}

static const char *kind_text(uint8_t subtype)
{
	return subtype == NVME_SUBTYPE_NVM        ? "storage"
	       : subtype == NVME_SUBTYPE_REFERRAL ? "referral"
						  : "discovery";
}

static void print_text(const struct weir_discovered *log)
{
	for (uint32_t i = 0; i < log->count; i++) {
		struct entry entry;

		read_entry(&log->entries[i], &entry);
		printf("%-9s  %s%s\n", kind_text(log->entries[i].subtype), entry.uri,
		       log->entries[i].tsas[0] == NVME_SECTYPE_TLS13 &&
				       log->entries[i].trtype == NVME_TRTYPE_TCP
			       ? "  (TLS)"
			       : "");
	}
}

static int print_json(const struct weir_discovered *log)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < log->count; i++) {
		struct entry entry;

		read_entry(&log->entries[i], &entry);
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i}", "kind",
						      kind_text(log->entries[i].subtype), "uri", entry.uri,
						      "transport", entry.transport, "host", entry.host,
						      "port", entry.port, "nqn", entry.nqn, "asqsz",
						      log->entries[i].asqsz));
	}
	list = json_pack("{s:I, s:o}", "generation", (json_int_t)log->generation, "entries", list);
	json_dumpf(list, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(list);
	return 0;
}

static int discover(char **operands)
{
	const char *where = operands[0];
	struct weir_address_list list;
	struct weir_host_identity host;
	struct weir_discovered log;
	char body[BODY_BYTES], nqn[NVME_NQN_BYTES];

	snprintf(body, sizeof(body), "%s%s", strstr(where, "://") ? "" : "tcp://",
		 strncmp(where, "nvmf:", 5) ? where : where + 5);
	if (weir_address_parse(where, body, &list, nqn, sizeof(nqn)) != 0 || weir_host_identity(&host) != 0)
		return bad();
	if (weir_fabrics_discover(where, &list.address[0], &host, CONNECT_MS, &log) != 0)
		return bad();
	if (json)
		print_json(&log);
	else
		print_text(&log);
	free(log.entries);
	return 0;
}

static int report(struct weir_storage *storage, const char *uri)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	unsigned char *block;
	int error = weir_storage_info(storage, &info);

	if (error)
		return error;
	block = malloc(info.block_bytes);
	error = block ? weir_storage_read(storage, 0, block, info.block_bytes) : -1;
	free(block);
	if (error)
		return error;
	printf("%s\n  reached: %s\n  %llu bytes in blocks of %u%s; transfers of up to %u bytes\n  its first "
	       "block was read\n",
	       uri, info.path, (unsigned long long)info.bytes, info.block_bytes,
	       info.read_only ? ", read only" : "", info.max_transfer_bytes);
	return 0;
}

static int test(char **operands)
{
	const char *uri = operands[0];
	struct weir_context *context;
	struct weir_storage *storage;
	int error;

	if (strncmp(uri, "nvmf:", 5) != 0)
		return tool_usage("test takes a storage on a network: nvmf:tcp://HOST/NQN");
	if (weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context) != 0)
		return bad();
	error = weir_storage_open(
		context, uri,
		WEIR_OPTIONS(storage, .queues = TEST_QUEUES, .depth = TEST_DEPTH, .read_only = true),
		&storage);
	if (!error) {
		error = report(storage, uri);
		if (error)
			bad();
		weir_storage_close(storage);
	} else {
		bad();
	}
	weir_context_close(context);
	return error ? EXIT_BAD : 0;
}

static int paths(char **operands)
{
	const char *uri = operands[0];
	static struct weir_path_report reports[WEIR_ADDRESS_MOST];
	char text[WEIR_ADDRESS_BYTES + 16];
	unsigned count, good = 0;

	if (strncmp(uri, "nvmf:", 5) != 0)
		return tool_usage("paths takes a storage on a network: nvmf:tcp://HOST,HOST/NQN");
	if (weir_fabrics_paths(uri, reports, &count) != 0)
		return bad();
	for (unsigned i = 0; i < count; i++) {
		good += !reports[i].error;
		printf("%-24s  %s\n", weir_address_text(&reports[i].address, text),
		       reports[i].error ? reports[i].sentence : weir_ana_text(reports[i].state));
	}
	return good ? 0 : EXIT_BAD;
}

static int show(char **operands)
{
	struct weir_host_identity host;
	char path[PATH_BYTES], id[WEIR_HOST_ID_TEXT];
	bool location = weir_host_identity_path(path, sizeof(path)) != 0;

	(void)operands;
	if (weir_host_identity(&host) != 0)
		return bad();
	printf("host NQN         %s\nhost identifier  %s\nkept in          %s\ndigests by       %s\n",
	       host.nqn, weir_host_id_text(host.id, id),
	       location ? path : "nothing: this user has no home folder", weir_crc32c_how());
	return 0;
}

static int print_secret(char *text, size_t bytes, int error)
{
	if (error == -ENOTSUP)
		return tool_complain("this build has no OpenSSL; install libssl-dev and build again");
	if (error)
		return tool_complain("there are no random numbers");
	puts(text);
	explicit_bzero(text, bytes);
	return 0;
}

static int make_secret(char **operands)
{
	char text[WEIR_CHAP_SECRET_TEXT];

	(void)operands;
	return print_secret(text, sizeof(text), weir_chap_secret_text(text));
}

static int make_psk(char **operands)
{
	char text[WEIR_TLS_KEY_TEXT];

	(void)operands;
	return print_secret(text, sizeof(text), weir_tls_key_text(text));
}

static const struct tool_command commands[] = {
	{ "discover", "HOST", 1, 1, discover },
	{ "test", "URI", 1, 1, test },
	{ "paths", "URI", 1, 1, paths },
	{ "show", NULL, 0, 0, show },
	{ "secret", NULL, 0, 0, make_secret },
	{ "psk", NULL, 0, 0, make_psk },
	{ NULL, NULL, 0, 0, NULL },
};

int main(int count, char **arguments)
{
	int status = tool_parse(&program, count, arguments);

	return status < 0 ? tool_run(&program, commands) : status;
}
