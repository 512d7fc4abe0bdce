/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir-fabrics: storages on a network (docs/network.md): what a host offers, whether it can be reached, who
 * this host is.
 *
 * Owns: its commands and what they print. Opens nothing for writing.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "base/crc32c.h"
#include "transport/fabrics/chap.h"
#include "transport/fabrics/discover.h"

enum {
	EXIT_BAD = 1,
	EXIT_USAGE = 2,
	CONNECT_MS = 3000,
	PATH_BYTES = 512,
	BODY_BYTES = 512,
	TEST_QUEUES = 1,
	TEST_DEPTH = 16
};

static const char usage_text[] =
	"usage: weir-fabrics discover HOST[:PORT] [--json]\n"
	"       weir-fabrics test URI\n"
	"       weir-fabrics show\n"
	"       weir-fabrics secret >FILE\n"
	"\n"
	"  discover  list the subsystems that a host offers, each as a storage's URI; port 8009 without one\n"
	"  test      connect as a storage would, read its first block, and say what is there\n"
	"  show      who this host is to targets: its NQN and identifier, and the file that keeps them\n"
	"  secret    make a secret by which a host and a target authenticate; umask 077 first\n"
	"\n"
	"  --json     discover: print one JSON object\n"
	"  --version  print the version\n"
	"\n"
	"Exit status: 0 done; 1 it cannot be reached, or refuses; 2 bad usage.\n";

static int usage(const char *what)
{
	fprintf(stderr, "weir-fabrics: %s; see weir-fabrics --help\n", what);
	return EXIT_USAGE;
}

static int bad(void)
{
	fprintf(stderr, "weir-fabrics: %s\n", weir_last_error());
	return EXIT_BAD;
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

static int discover(const char *where, bool json)
{
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

static int test(const char *uri)
{
	struct weir_context *context;
	struct weir_storage *storage;
	int error;

	if (strncmp(uri, "nvmf:", 5) != 0)
		return usage("test takes a storage on a network: nvmf:tcp://HOST/NQN");
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

static int show(void)
{
	struct weir_host_identity host;
	char path[PATH_BYTES], id[WEIR_HOST_ID_TEXT];
	bool location = weir_host_identity_path(path, sizeof(path)) != 0;

	if (weir_host_identity(&host) != 0)
		return bad();
	printf("host NQN         %s\nhost identifier  %s\nkept in          %s\ndigests by       %s\n",
	       host.nqn, weir_host_id_text(host.id, id),
	       location ? path : "nothing: this user has no home folder", weir_crc32c_how());
	return 0;
}

static int make_secret(void)
{
	char text[WEIR_CHAP_SECRET_TEXT];
	int error = weir_chap_secret_text(text);

	if (error) {
		fputs(error == -ENOTSUP ? "weir-fabrics: this build has no OpenSSL; install libssl-dev and "
					  "build again\n"
					: "weir-fabrics: there are no random numbers\n",
		      stderr);
		return EXIT_BAD;
	}
	puts(text);
	explicit_bzero(text, sizeof(text));
	return 0;
}

int main(int count, char **words)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
						 { "version", no_argument, NULL, 'v' },
						 { "help", no_argument, NULL, 'h' },
						 { NULL, 0, NULL, 0 } };
	bool json = false;
	int option;

	while ((option = getopt_long(count, words, "h", options, NULL)) != -1) {
		if (option == 'h')
			return fputs(usage_text, stdout) == EOF;
		if (option == 'v')
			return printf("weir-fabrics %s\n", weir_version()) < 0;
		if (option != 'j')
			return usage("an option that there is not");
		json = true;
	}
	if (count - optind == 2 && !strcmp(words[optind], "discover"))
		return discover(words[optind + 1], json);
	if (count - optind == 2 && !strcmp(words[optind], "test"))
		return test(words[optind + 1]);
	if (count - optind == 1 && !strcmp(words[optind], "show"))
		return show();
	if (count - optind == 1 && !strcmp(words[optind], "secret"))
		return make_secret();
	return usage("which command? discover HOST, test URI, show, or secret");
}
