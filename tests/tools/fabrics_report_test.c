/* SPDX-License-Identifier: BSD-3-Clause */
/* What weir-fabrics prints of what hosts offer and of their paths, and how it ends: stand-ins are the
 * network. */
#include "capture.h"

#include <errno.h>
#include <stdlib.h>

#include <weir/weir.h>

#include "backend/error.h"
#include "transport/fabrics/chap.h"
#include "transport/fabrics/discover.h"
#include "transport/fabrics/tls.h"

enum { MOST_ENTRIES = 8, TEXT_BYTES = 256 };

/** network - what there is, and what was asked for */
static struct {
	struct nvme_discovery_entry entries[MOST_ENTRIES];
	unsigned entry_count;
	struct weir_path_report paths[4];
	unsigned path_count;
	struct weir_address asked;
	char what[TEXT_BYTES], host[TEXT_BYTES], uri[TEXT_BYTES];
	struct weir_storage_options storage;
	struct weir_storage_info info;
	uint64_t read_bytes, connect_ms;
	const char *refused; /* the one call that fails */
	int secret_error;
	unsigned closed;
} network;

static int refuse(const char *what)
{
	return network.refused && !strcmp(network.refused, what) ? weir_fail(EIO, "%s is refused", what) : 0;
}

static int discover_host(const char *what, const struct weir_address *address,
			 const struct weir_host_identity *host, uint64_t connect_ms,
			 struct weir_discovered *out)
{
	network.asked = *address;
	(void)snprintf(network.what, sizeof(network.what), "%s", what);
	(void)snprintf(network.host, sizeof(network.host), "%s", host->nqn);
	*out = (struct weir_discovered){ .generation = 1ull << 33, .count = network.entry_count };
	out->entries = calloc(MOST_ENTRIES, sizeof(*out->entries));
	network.connect_ms = connect_ms;
	assert_true(out->entries != NULL);
	memcpy(out->entries, network.entries, sizeof(network.entries));
	if (network.refused && !strcmp(network.refused, "discover"))
		free(out->entries);
	return refuse("discover");
}

static int report_paths(const char *text, struct weir_path_report reports[WEIR_ADDRESS_MOST], unsigned *count)
{
	(void)snprintf(network.uri, sizeof(network.uri), "%s", text);
	memcpy(reports, network.paths, sizeof(network.paths[0]) * network.path_count);
	*count = network.path_count;
	return refuse("paths");
}

static int get_identity(struct weir_host_identity *out)
{
	*out = (struct weir_host_identity){ .nqn = "nqn.test:self",
					    .id = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };
	return refuse("identity");
}

static size_t get_path(char *path, size_t bytes)
{
	return refuse("path") ? 0 : (size_t)snprintf(path, bytes, "/home/me/host");
}

static int make_text(char *text)
{
	(void)strcpy(text, "made");
	return network.secret_error;
}

static int open_context(const char *name, const struct weir_context_options *options,
			struct weir_context **out)
{
	assert_true(!strcmp(name, "cpu") && options->workers == 1);
	*out = (struct weir_context *)&network;
	return refuse("context");
}

static int close_context(struct weir_context *context)
{
	network.closed += context != NULL;
	return 0;
}

static int open_storage(struct weir_context *context, const char *uri,
			const struct weir_storage_options *options, struct weir_storage **out)
{
	(void)context;
	(void)snprintf(network.uri, sizeof(network.uri), "%s", uri);
	network.storage = *options;
	*out = (struct weir_storage *)&network;
	return refuse("storage");
}

static int close_storage(struct weir_storage *storage)
{
	network.closed += 100 * (storage != NULL);
	return 0;
}

static int get_info(struct weir_storage *storage, struct weir_storage_info *info)
{
	(void)storage;
	*info = network.info;
	return refuse("info");
}

static int read_block(struct weir_storage *storage, uint64_t offset, void *data, uint64_t bytes)
{
	(void)storage;
	assert_true(data && offset == 0);
	network.read_bytes = bytes;
	return refuse("read");
}

static int run_fabrics(int count, char **words);

#define weir_fabrics_discover          discover_host
#define weir_fabrics_paths             report_paths
#define weir_host_identity(out)        get_identity(out)
#define weir_host_identity_path        get_path
#define weir_chap_secret_text          make_text
#define weir_tls_key_text              make_text
#define weir_context_open              open_context
#define weir_context_close             close_context
#define weir_storage_open              open_storage
#define weir_storage_close             close_storage
#define weir_storage_info(storage, of) get_info(storage, of)
#define weir_storage_read              read_block
#define main                           run_fabrics
#include "tools/weir-fabrics/main.c"
#undef main

/* As a program begins; what the network is stays. */
static int run_line(const char *line)
{
	json = false;
	network.closed = 0;
	network.read_bytes = 0;
	return capture_run(run_fabrics, line);
}

static void add_entry(unsigned transport, unsigned family, unsigned subtype, const char *address,
		      const char *port, unsigned security)
{
	struct nvme_discovery_entry *entry = &network.entries[network.entry_count++];

	*entry = (struct nvme_discovery_entry){ .trtype = (u8)transport,
						.adrfam = (u8)family,
						.subtype = (u8)subtype,
						.asqsz = (u16)(30 + network.entry_count) };
	memset(entry->traddr, ' ', sizeof(entry->traddr));
	memcpy(entry->traddr, address, strlen(address));
	memset(entry->trsvcid, ' ', sizeof(entry->trsvcid));
	memcpy(entry->trsvcid, port, strlen(port));
	(void)snprintf(entry->subnqn, sizeof(entry->subnqn), "nqn.%u", network.entry_count);
	entry->tsas[0] = (u8)security;
}

static int begin(void **state)
{
	(void)state;
	memset(&network, 0, sizeof(network));
	add_entry(NVME_TRTYPE_TCP, NVME_ADRFAM_IPV4, NVME_SUBTYPE_NVM, "10.0.0.1", "4420", NVME_SECTYPE_NONE);
	add_entry(NVME_TRTYPE_TCP, NVME_ADRFAM_IPV6, NVME_SUBTYPE_NVM, "fe80::1", "4421", NVME_SECTYPE_TLS13);
	add_entry(NVME_TRTYPE_RDMA, NVME_ADRFAM_IPV4, NVME_SUBTYPE_REFERRAL, "10.0.0.2", "8009",
		  NVME_SECTYPE_TLS13);
	add_entry(NVME_TRTYPE_FC, 0, NVME_SUBTYPE_DISCOVERY, "nn-0x1", "none", NVME_SECTYPE_NONE);
	add_entry(254, 0, NVME_SUBTYPE_NVM, "x", "1", NVME_SECTYPE_NONE);
	return 0;
}

static void test_what_a_host_offers(void **state)
{
	(void)state;
	assert_int_equal(run_line("weir-fabrics discover h"), 0);
	assert_string_equal(captured, "storage    nvmf:tcp://10.0.0.1:4420/nqn.1\n"
				      "storage    nvmf:tcp://[fe80::1]:4421/nqn.2  (TLS)\n"
				      "referral   nvmf:rdma://10.0.0.2:8009/nqn.3\n"
				      "discovery  nvmf:fc://nn-0x1:none/nqn.4\n"
				      "storage    nvmf:unknown://x:1/nqn.5\n");
	assert_int_equal(run_line("weir-fabrics discover h --json"), 0);
	capture_expect_json(
		captured,
		"{\"generation\": 8589934592, \"entries\": ["
		"{\"kind\": \"storage\", \"uri\": \"nvmf:tcp://10.0.0.1:4420/nqn.1\", \"transport\": \"tcp\","
		" \"host\": \"10.0.0.1\", \"port\": \"4420\", \"nqn\": \"nqn.1\", \"asqsz\": 31},"
		"{\"kind\": \"storage\", \"uri\": \"nvmf:tcp://[fe80::1]:4421/nqn.2\", \"transport\": "
		"\"tcp\","
		" \"host\": \"fe80::1\", \"port\": \"4421\", \"nqn\": \"nqn.2\", \"asqsz\": 32},"
		"{\"kind\": \"referral\", \"uri\": \"nvmf:rdma://10.0.0.2:8009/nqn.3\", \"transport\": "
		"\"rdma\","
		" \"host\": \"10.0.0.2\", \"port\": \"8009\", \"nqn\": \"nqn.3\", \"asqsz\": 33},"
		"{\"kind\": \"discovery\", \"uri\": \"nvmf:fc://nn-0x1:none/nqn.4\", \"transport\": \"fc\","
		" \"host\": \"nn-0x1\", \"port\": \"none\", \"nqn\": \"nqn.4\", \"asqsz\": 34},"
		"{\"kind\": \"storage\", \"uri\": \"nvmf:unknown://x:1/nqn.5\", \"transport\": \"unknown\","
		" \"host\": \"x\", \"port\": \"1\", \"nqn\": \"nqn.5\", \"asqsz\": 35}]}");
	network.entry_count = 0;
	assert_int_equal(run_line("weir-fabrics discover h"), 0);
	assert_string_equal(captured, "");
}

static void test_where_a_host_is_asked(void **state)
{
	static const struct {
		const char *word, *host, *port;
		bool rdma;
	} rows[] = {
		{ "h", "h", "8009", false },
		{ "h:7", "h", "7", false },
		{ "[::1]", "::1", "8009", false },
		{ "[::1]:7", "::1", "7", false },
		{ "tcp://h:7", "h", "7", false },
		{ "nvmf:tcp://h:7", "h", "7", false },
		{ "nvmf:tcp://h/nqn.x", "h", "4420", false },
		{ "rdma://h", "h", "8009", true },
	};
	char line[TEXT_BYTES];

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(line, sizeof(line), "weir-fabrics discover %s", rows[i].word);
		if (run_line(line) != 0)
			fail_msg("%s: %s", line, captured_errors);
		assert_string_equal(network.asked.host, rows[i].host);
		assert_string_equal(network.asked.port, rows[i].port);
		assert_int_equal(network.asked.rdma, rows[i].rdma);
		assert_string_equal(network.what, rows[i].word);
		assert_string_equal(network.host, "nqn.test:self");
		assert_int_equal(network.connect_ms, 3000);
	}
}

static void add_path(const char *host, unsigned ana, const char *sentence)
{
	struct weir_path_report *path = &network.paths[network.path_count++];

	*path = (struct weir_path_report){ .state = ana, .error = sentence ? -EIO : 0 };
	(void)snprintf(path->address.host, sizeof(path->address.host), "%s", host);
	(void)snprintf(path->address.port, sizeof(path->address.port), "4420");
	(void)snprintf(path->sentence, sizeof(path->sentence), "%s", sentence ? sentence : "");
}

/* One path that is reached is enough, whichever it is. */
static void test_paths(void **state)
{
	(void)state;
	add_path("a", 0, "nobody is there");
	add_path("::1", NVME_ANA_INACCESSIBLE, NULL);
	add_path("c", 0, "nor there");
	assert_int_equal(run_line("weir-fabrics paths nvmf:tcp://a,[::1],c/nqn.x"), 0);
	assert_string_equal(network.uri, "nvmf:tcp://a,[::1],c/nqn.x");
	assert_string_equal(captured, "a:4420                    nobody is there\n"
				      "[::1]:4420                inaccessible\n"
				      "c:4420                    nor there\n");
	network.paths[1].error = -EIO;
	assert_int_equal(run_line("weir-fabrics paths nvmf:tcp://a,[::1],c/nqn.x"), 1);
	network.paths[2].error = 0;
	network.paths[2].state = NVME_ANA_OPTIMIZED;
	assert_int_equal(run_line("weir-fabrics paths nvmf:tcp://a,[::1],c/nqn.x"), 0);
	assert_non_null(strstr(captured, "c:4420                    optimized\n"));
	assert_int_equal(run_line("weir-fabrics paths file:a"), 2);
}

static void test_a_connection(void **state)
{
	(void)state;
	network.info = (struct weir_storage_info){
		.bytes = 1ull << 40, .block_bytes = 4096, .max_transfer_bytes = 65536, .path = "by the air"
	};
	assert_int_equal(run_line("weir-fabrics test nvmf:tcp://h/nqn.x"), 0);
	assert_string_equal(captured,
			    "nvmf:tcp://h/nqn.x\n  reached: by the air\n"
			    "  1099511627776 bytes in blocks of 4096; transfers of up to 65536 bytes\n"
			    "  its first block was read\n");
	assert_true(network.storage.read_only && network.storage.queues == 1);
	assert_int_equal(network.read_bytes, 4096);
	assert_int_equal(network.closed, 101);
	network.info.read_only = 1;
	assert_int_equal(run_line("weir-fabrics test nvmf:tcp://h/nqn.x"), 0);
	assert_non_null(strstr(captured, "in blocks of 4096, read only; transfers"));
	assert_int_equal(run_line("weir-fabrics test file:a"), 2);
}

static void test_who_this_host_is(void **state)
{
	(void)state;
	assert_int_equal(run_line("weir-fabrics show"), 0);
	assert_non_null(strstr(captured, "host NQN         nqn.test:self\n"
					 "host identifier  01020304-0506-0708-090a-0b0c0d0e0f10\n"
					 "kept in          /home/me/host\ndigests by       "));
	network.refused = "path";
	assert_int_equal(run_line("weir-fabrics show"), 0);
	assert_non_null(strstr(captured, "kept in          nothing: this user has no home folder\n"));
	assert_int_equal(run_line("weir-fabrics secret"), 0);
	assert_string_equal(captured, "made\n");
	assert_int_equal(run_line("weir-fabrics psk"), 0);
	assert_string_equal(captured, "made\n");
}

/* Whatever fails is said, and is exit status 1; nothing is printed as if it had gone well. */
static void test_each_failure_is_an_exit_status(void **state)
{
	static const struct {
		const char *refused, *line;
		unsigned closed;
	} rows[] = {
		{ "discover", "discover h", 0 },
		{ "identity", "discover h", 0 },
		{ "discover", "discover h --json", 0 },
		{ "paths", "paths nvmf:tcp://h/nqn.x", 0 },
		{ "identity", "show", 0 },
		{ "context", "test nvmf:tcp://h/nqn.x", 0 },
		{ "storage", "test nvmf:tcp://h/nqn.x", 1 },
		{ "info", "test nvmf:tcp://h/nqn.x", 101 },
		{ "read", "test nvmf:tcp://h/nqn.x", 101 },
	};
	char line[TEXT_BYTES], sentence[TEXT_BYTES];

	(void)state;
	network.info.block_bytes = 512;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		network.refused = rows[i].refused;
		(void)snprintf(line, sizeof(line), "weir-fabrics %s", rows[i].line);
		(void)snprintf(sentence, sizeof(sentence), "weir-fabrics: %s is refused\n", rows[i].refused);
		assert_int_equal(run_line(line), 1);
		assert_string_equal(captured_errors, sentence);
		assert_string_equal(captured, "");
		assert_int_equal(network.closed, rows[i].closed);
	}
	for (unsigned i = 0; i < 2; i++) {
		network.secret_error = i ? -ENOTSUP : -EIO;
		assert_int_equal(run_line("weir-fabrics secret"), 1);
		assert_int_equal(run_line("weir-fabrics psk"), 1);
		assert_string_equal(captured, "");
		assert_non_null(strstr(captured_errors, i ? "no OpenSSL" : "no random numbers"));
	}
	assert_int_equal(run_line("weir-fabrics discover ftp://h"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_what_a_host_offers, begin),
		cmocka_unit_test_setup(test_where_a_host_is_asked, begin),
		cmocka_unit_test_setup(test_paths, begin),
		cmocka_unit_test_setup(test_a_connection, begin),
		cmocka_unit_test_setup(test_who_this_host_is, begin),
		cmocka_unit_test_setup(test_each_failure_is_an_exit_status, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
