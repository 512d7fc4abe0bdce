/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transport_nvmf.c: nvmf: is a controller on a network, reached through NVMe/TCP or NVMe/RDMA.
 *
 * Owns: the URI's keys, and registers as the runtime reads and writes them. To the runtime it is a controller
 * like any other, with queues in memory; mover.c moves what is in them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../backend/error.h"
#include "../../base/crc32c.h"
#include "discover.h"
#include "paths.h"

enum {
	HALT_MS = 3000,
	CLOSE_MS = 60000,
	LEAST_TRANSFER = 8192, /* MDTS of a page would be 0, which means no limit */
	MOST_TRANSFER = 2 << 20,
	DEFAULT_TRANSFER = 1 << 20,
	DEFAULT_CTRL_LOSS_S = 60,
	DEFAULT_KEEP_ALIVE_MS = 5000,
	DEFAULT_CONNECT_MS = 3000,
	LEAST_CAP_TO = 40, /* in 500 ms: a start of ours connects, too */
	WAIT_NS = 5000000,
	LIST_BYTES = 600,
};

#define NVMF_KEYS                                                                                            \
	"nsid, queues, digest, ctrl_loss_s, keep_alive_ms, connect_ms, mdts, hostnqn, hostid, ro, mover, "   \
	"timeout_ms, retries, iopolicy, dhchap_secret, dhchap_ctrl_secret, tls, tls_psk"

static struct nvmf *nvmf_of(struct weir_transport *transport)
{
	return (struct nvmf *)transport;
}

static int take_digests(struct weir_uri *uri, struct nvmf_keys *keys)
{
	const char *text = weir_uri_take_text(uri, "digest");
	bool header, data;

	if (!text || !strcmp(text, "none"))
		return 0;
	header = !strcmp(text, "header") || !strcmp(text, "header,data") || !strcmp(text, "data,header");
	data = !strcmp(text, "data") || !strcmp(text, "header,data") || !strcmp(text, "data,header");
	if (!header && !data)
		return weir_fail(EINVAL,
				 "storage \"%s\": digest=%s is not accepted: digest is none, header, data, "
				 "or header,data",
				 uri->text, text);
	keys->header_digest = header;
	keys->data_digest = data;
	return 0;
}

static int take_host(struct weir_uri *uri, struct nvmf_keys *keys)
{
	const char *nqn = weir_uri_take_text(uri, "hostnqn"), *id = weir_uri_take_text(uri, "hostid");
	int error = nqn && id ? 0 : weir_host_identity(&keys->host);

	if (error)
		return error;
	if (nqn && (strncmp(nqn, "nqn.", 4) != 0 || strlen(nqn) > NVME_NQN_LONGEST))
		return weir_fail(EINVAL,
				 "storage \"%s\": hostnqn=%s is no NQN: at most %d characters, of which the "
				 "first are \"nqn.\"",
				 uri->text, nqn, NVME_NQN_LONGEST);
	if (nqn) {
		memset(keys->host.nqn, 0, sizeof(keys->host.nqn));
		memcpy(keys->host.nqn, nqn, strlen(nqn));
	}
	if (id && weir_host_id_parse(id, keys->host.id) != 0)
		return weir_fail(EINVAL,
				 "storage \"%s\": hostid=%s is no UUID, which has 32 hexadecimal digits",
				 uri->text, id);
	return 0;
}

static int take_secret(struct weir_uri *uri, const char *key, struct weir_chap_secret *secret)
{
	const char *path = weir_uri_take_text(uri, key);

	return path ? weir_chap_secret_load(path, secret) : 0;
}

static int take_secrets(struct weir_uri *uri, struct nvmf_keys *keys)
{
	int error = take_secret(uri, "dhchap_secret", &keys->secret);

	if (!error)
		error = take_secret(uri, "dhchap_ctrl_secret", &keys->controller_secret);
	if (!error && keys->controller_secret.bytes && !keys->secret.bytes)
		error = weir_fail(EINVAL,
				  "storage \"%s\": dhchap_ctrl_secret= without dhchap_secret=: a controller "
				  "proves itself "
				  "to hosts that do so, too",
				  uri->text);
	return error;
}

static int take_tls(struct weir_uri *uri, struct nvmf_keys *keys)
{
	static const char *const words[] = { "default", "on", "off", NULL };
	const char *path = weir_uri_take_text(uri, "tls_psk");
	unsigned tls = 0;
	int error = weir_uri_take_choice(uri, "tls", words, &tls);

	if (!error && tls == 1 && !path)
		return weir_fail(
			EINVAL,
			"storage \"%s\": tls=on without tls_psk=: give the file with the key that the "
			"target has for this host; weir-fabrics psk makes one",
			uri->text);
	return error || !path || tls == 2 ? error : weir_tls_key_load(path, &keys->tls_key);
}

/* What RDMA has not. */
static int check_wire(const struct weir_uri *uri, const struct nvmf_keys *keys)
{
	if (!keys->hosts.address[0].rdma)
		return 0;
	if (keys->header_digest || keys->data_digest)
		return weir_fail(
			EINVAL,
			"storage \"%s\": digest= is of tcp://; devices of RDMA check what they carry by "
			"themselves",
			uri->text);
	if (keys->tls_key.bytes)
		return weir_fail(EINVAL, "storage \"%s\": tls_psk= is of tcp://; RDMA has no TLS", uri->text);
	return 0;
}

/* A URI without a subsystem is refused with those that the host offers. */
static int list_subsystems(const char *uri, const struct nvmf_keys *keys)
{
	struct weir_discovered log;
	char list[LIST_BYTES] = "", nqn[NVME_NQN_BYTES + 1];
	int error = weir_fabrics_discover(uri, &keys->hosts.address[0], &keys->host, keys->connect_ms, &log);
	size_t used = 0;

	if (error)
		return error;
	for (uint32_t i = 0; i < log.count && used < sizeof(list); i++)
		if (log.entries[i].subtype == NVME_SUBTYPE_NVM)
			used += (size_t)snprintf(
				list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
				weir_fabrics_text(log.entries[i].subnqn, NVME_NQN_BYTES, nqn));
	free(log.entries);
	return weir_fail(EINVAL, "storage \"%s\": it names no subsystem; the host offers %s", uri,
			 used ? list : "none to this host");
}

static int take_keys(struct weir_uri *uri, struct weir_transport *base, struct nvmf_keys *keys)
{
	static const char *const policies[] = { "failover", "round-robin", "queue-depth", NULL };
	static const char *const movers[] = { "auto", "direct", "pull", NULL }; /* enum weir_mover */
	uint64_t nsid = 0, queues = 0, ro = 0, loss = DEFAULT_CTRL_LOSS_S;
	unsigned mover = WEIR_MOVER_AUTO;
	int error;

	*keys = (struct nvmf_keys){ .keep_alive_ms = DEFAULT_KEEP_ALIVE_MS,
				    .connect_ms = DEFAULT_CONNECT_MS,
				    .mdts = DEFAULT_TRANSFER };
	if ((error = weir_address_parse(uri->text, uri->body, &keys->hosts, keys->nqn, sizeof(keys->nqn))) !=
		    0 ||
	    (error = weir_uri_take_u64(uri, "nsid", 1, NVME_NSID_BROADCAST - 1, &nsid)) != 0 ||
	    (error = weir_uri_take_u64(uri, "queues", 1, NVMF_MOST_QUEUES, &queues)) != 0 ||
	    (error = weir_uri_take_u64(uri, "ctrl_loss_s", 0, 86400, &loss)) != 0 ||
	    (error = weir_uri_take_u64(uri, "keep_alive_ms", 0, 3600000, &keys->keep_alive_ms)) != 0 ||
	    (error = weir_uri_take_u64(uri, "connect_ms", 1, 600000, &keys->connect_ms)) != 0 ||
	    (error = weir_uri_take_bytes(uri, "mdts", LEAST_TRANSFER, MOST_TRANSFER, &keys->mdts)) != 0 ||
	    (error = weir_uri_take_u64(uri, "ro", 0, 1, &ro)) != 0 ||
	    (error = weir_uri_take_choice(uri, "mover", movers, &mover)) != 0 ||
	    (error = weir_uri_take_choice(uri, "iopolicy", policies, &keys->policy)) != 0 ||
	    (error = take_digests(uri, keys)) != 0 || (error = take_host(uri, keys)) != 0 ||
	    (error = take_secrets(uri, keys)) != 0 || (error = take_tls(uri, keys)) != 0 ||
	    (error = check_wire(uri, keys)) != 0 || (error = weir_uri_finish(uri, NVMF_KEYS)) != 0)
		return error;
	if (keys->mdts & (keys->mdts - 1))
		return weir_fail(EINVAL, "storage \"%s\": mdts=%llu is not a power of two", uri->text,
				 (unsigned long long)keys->mdts);
	if (!keys->nqn[0])
		return list_subsystems(uri->text, keys);
	keys->ctrl_loss_ms = loss * 1000;
	base->nsid = (uint32_t)nsid;
	base->most_queues = (uint32_t)queues;
	base->read_only = ro != 0;
	base->mover = (enum weir_mover)mover;
	base->doorbell_bytes = sizeof(uint32_t);
	return 0;
}

static void report_path(const char *text, const struct nvmf_keys *keys, uint32_t nsid, unsigned host,
			struct weir_path_report *report)
{
	struct nvmf_keys one = *keys;
	struct nvmf *probe;

	*report = (struct weir_path_report){ .address = keys->hosts.address[host] };
	one.hosts = (struct weir_address_list){ .count = 1, .address = { report->address } };
	one.mdts = NVME_PAGE_BYTES;
	report->error = nvmf_new(text, &one, 0, &probe);
	if (!report->error) {
		report->error = nvmf_path_ask(probe, nsid, &report->state);
		nvmf_free(probe);
	}
	if (report->error)
		snprintf(report->sentence, sizeof(report->sentence), "%s", weir_last_error());
}

int weir_fabrics_paths(const char *text, struct weir_path_report reports[WEIR_ADDRESS_MOST], unsigned *count)
{
	struct weir_transport base = { .ops = &weir_transport_nvmf };
	struct nvmf_keys keys;
	struct weir_uri uri;
	int error = weir_uri_parse(text, &uri);

	*count = 0;
	if (error)
		return error;
	error = take_keys(&uri, &base, &keys);
	weir_uri_release(&uri);
	for (unsigned i = 0; !error && i < keys.hosts.count; i++, (*count)++)
		report_path(text, &keys, base.nsid, i, &reports[i]);
	return error;
}

static const char *paths_text(const struct nvmf_keys *keys)
{
	if (keys->hosts.count < 2)
		return "";
	return keys->policy == NVMF_FAILOVER ? ", the first of several paths" : ", one of several paths";
}

static void describe(struct nvmf *nvmf)
{
	const struct nvmf_keys *keys = &nvmf->keys;
	char text[WEIR_ADDRESS_BYTES + 16];
	bool any = keys->header_digest || keys->data_digest;

	snprintf(nvmf->path, sizeof(nvmf->path), "%s to %.80s%s%s%s%s%s%s", nvmf->wire->name,
		 weir_address_text(&keys->hosts.address[nvmf->host], text), paths_text(keys),
		 keys->tls_key.bytes ? ", TLS 1.3" : "", keys->header_digest ? ", header digests" : "",
		 keys->data_digest ? ", data digests" : "", any ? " by " : "", any ? weir_crc32c_how() : "");
}

static int bring_up(struct nvmf *nvmf, const struct weir_transport_request *request)
{
	int error;

	nvmf->dma = request->dma;
	nvmf->doorbells = request->doorbells;
	nvmf->woken = request->host_rings;
	error = nvmf_mover_join(nvmf);
	if (error)
		return error;
	pthread_mutex_lock(&nvmf->mutex);
	error = nvmf_associate(nvmf);
	if (!error && nvmf->keys.hosts.count == 1)
		nvmf_path_set(nvmf, 0, NVME_ANA_OPTIMIZED); /* until it says otherwise */
	pthread_mutex_unlock(&nvmf->mutex);
	if (error)
		return error;
	describe(nvmf);
	error = nvmf_keeper_start(nvmf);
	return error ? error : nvmf_paths_start(nvmf);
}

/* A thread that looks a host's name up cannot be told to stop, and uses what is freed here. */
static void end(struct nvmf *nvmf)
{
	while (nvmf_keeper_stop(nvmf, CLOSE_MS) != 0)
		weir_report("storage \"%s\": the thread that keeps its connections has not ended for %d s; "
			    "it is waited for",
			    nvmf->uri, CLOSE_MS / 1000);
	nvmf_free(nvmf);
}

static int nvmf_open(struct weir_transport_request *request, struct weir_transport **out)
{
	struct weir_transport base = { .ops = &weir_transport_nvmf };
	struct nvmf_keys keys;
	struct nvmf *nvmf;
	int error = take_keys(request->uri, &base, &keys);
	unsigned queues =
		base.most_queues && base.most_queues < request->queues ? base.most_queues : request->queues;

	if (!error)
		error = nvmf_new(request->uri->text, &keys, queues, &nvmf);
	if (error)
		return error;
	nvmf->base = base;
	store_relaxed_u32(&nvmf->registers.nsid, base.nsid); /* relaxed: nobody else has it yet */
	store_relaxed_u64(&nvmf->counters.path_count, keys.hosts.count);
	nvmf->base.network = (uintptr_t)&nvmf->counters;
	error = bring_up(nvmf, request);
	if (error) {
		end(nvmf);
		return error;
	}
	*out = &nvmf->base;
	return 0;
}

static uint64_t read_cap(const struct nvmf *nvmf)
{
	u64 cap = nvmf->controller.cap, to = cap >> 24 & 0xff;

	return to < LEAST_CAP_TO ? (cap & ~(0xffull << 24)) | (u64)LEAST_CAP_TO << 24 : cap;
}

static uint32_t nvmf_read32(struct weir_transport *transport, uint32_t offset)
{
	struct nvmf *nvmf = nvmf_of(transport);

	switch (offset) {
	case NVME_REGISTER_CSTS:
		/* fabrics.R2: pairs with publish() in keeper.c */
		return load_acquire_u32(&nvmf->registers.csts);
	case NVME_REGISTER_CC: return load_relaxed_u32(&nvmf->registers.cc); /* relaxed: the runtime's own */
	case NVME_REGISTER_VS: return nvmf->controller.vs;
	default: return 0;
	}
}

static uint64_t nvmf_read64(struct weir_transport *transport, uint32_t offset)
{
	return offset == NVME_REGISTER_CAP ? read_cap(nvmf_of(transport)) : nvmf_read32(transport, offset);
}

/* fabrics.R1: pairs with the load of CC in mover.c: the registers written before. */
static void write_cc(struct nvmf *nvmf, uint32_t value)
{
	u32 before = exchange_u32(&nvmf->registers.cc, value);

	if ((before & NVME_CC_ENABLE) && !(value & NVME_CC_ENABLE))
		fetch_add_u32(&nvmf->registers.falls, 1);
	nvmf_keeper_wake(nvmf);
}

static void nvmf_write32(struct weir_transport *transport, uint32_t offset, uint32_t value)
{
	struct nvmf *nvmf = nvmf_of(transport);

	if (offset == NVME_REGISTER_CC)
		write_cc(nvmf, value);
	else if (offset == NVME_REGISTER_AQA)
		store_relaxed_u32(&nvmf->registers.aqa, value); /* relaxed: fabrics.R1 orders it */
}

static void nvmf_write64(struct weir_transport *transport, uint32_t offset, uint64_t value)
{
	struct nvmf *nvmf = nvmf_of(transport);

	if (offset == NVME_REGISTER_ASQ)
		store_relaxed_u64(&nvmf->registers.asq, value); /* relaxed: fabrics.R1 orders it */
	else if (offset == NVME_REGISTER_ACQ)
		store_relaxed_u64(&nvmf->registers.acq, value);
}

static uint64_t nvmf_doorbell(struct weir_transport *transport, unsigned index)
{
	return (uint64_t)(uintptr_t)(nvmf_of(transport)->doorbells + index);
}

/* One that is switched off, or has failed, the keeper does not connect to before it is told to. */
static bool is_connecting(const struct nvmf *nvmf)
{
	/* acquire: pairs with the stores in keeper.c */
	return !load_acquire_u32(&nvmf->registers.connected) &&
	       !(load_acquire_u32(&nvmf->registers.csts) & NVME_CSTS_FATAL) &&
	       (load_relaxed_u32(&nvmf->registers.cc) & NVME_CC_ENABLE); /* relaxed: the runtime's own */
}

/* Wait until a lost controller is connected again, or given up. */
static int nvmf_restart(struct weir_transport *transport)
{
	struct nvmf *nvmf = nvmf_of(transport);

	while (is_connecting(nvmf))
		nanosleep(&(struct timespec){ .tv_nsec = WAIT_NS }, NULL);
	if (load_acquire_u32(&nvmf->registers.csts) == UINT32_MAX) /* acquire: as above */
		return weir_fail(ENOTCONN, "storage \"%s\": its controller is not connected any more",
				 nvmf->uri);
	return 0;
}

static bool nvmf_away(struct weir_transport *transport)
{
	struct nvmf *nvmf = nvmf_of(transport);

	/* acquire: as above; all ones have that bit, too */
	return !load_acquire_u32(&nvmf->registers.connected) &&
	       !(load_acquire_u32(&nvmf->registers.csts) & NVME_CSTS_FATAL);
}

static void nvmf_stats(struct weir_transport *transport, struct weir_transport_stats *stats)
{
	struct nvmf *nvmf = nvmf_of(transport);

	stats->bytes_read = load_relaxed_u64(&nvmf->counters.bytes_in); /* relaxed: a snapshot of counters */
	stats->bytes_written = load_relaxed_u64(&nvmf->counters.bytes_out);
	stats->changed = load_relaxed_u32(&nvmf->registers.changed);
}

/* Without its keeper and its mover nothing comes from sockets any more. A device of RDMA needs neither: it
 * writes to memory as long as it has a queue's connection. */
static int nvmf_halt(struct weir_transport *transport)
{
	struct nvmf *nvmf = nvmf_of(transport);

	if (nvmf_keeper_stop(nvmf, HALT_MS) != 0)
		return weir_fail(ETIMEDOUT, "the thread that keeps its connections did not end within %d ms",
				 HALT_MS);
	pthread_mutex_lock(&nvmf->mutex);
	for (u32 i = 0; i < nvmf->queue_count; i++) {
		nvmf_connection_close(&nvmf->queues[i]);
		nvmf_multipath_disconnect(nvmf, i);
	}
	pthread_mutex_unlock(&nvmf->mutex);
	return 0;
}

static const char *nvmf_path(struct weir_transport *transport)
{
	return nvmf_of(transport)->path;
}

static void nvmf_close(struct weir_transport *transport)
{
	end(nvmf_of(transport));
}

const struct weir_transport_ops weir_transport_nvmf = {
	.size = sizeof(struct weir_transport_ops),
	.scheme = "nvmf",
	.open = nvmf_open,
	.read64 = nvmf_read64,
	.read32 = nvmf_read32,
	.write64 = nvmf_write64,
	.write32 = nvmf_write32,
	.doorbell = nvmf_doorbell,
	.restart = nvmf_restart,
	.away = nvmf_away,
	.stats = nvmf_stats,
	.halt = nvmf_halt,
	.path = nvmf_path,
	.close = nvmf_close,
};
