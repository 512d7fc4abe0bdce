/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp_pdu.h"

#include <string.h>

#include "../../base/crc32c.h"

enum { LEAST_ALIGNMENT = 4, MOST_PDA = 31, LEAST_MAXH2CDATA = 4096, FROM_HOST = 1, FROM_CONTROLLER = 2 };

/** struct type - what is fixed about a PDU type: its header, whose it is, whether data and digests may be
 * there */
struct type {
	uint8_t header_bytes;
	uint8_t from;
	bool data;
	bool digests;
	uint8_t flags; /* those of its own */
};

static const struct type types[] = {
	[NVME_TCP_ICREQ] = { sizeof(struct nvme_tcp_icreq), FROM_HOST, false, false, 0 },
	[NVME_TCP_ICRESP] = { sizeof(struct nvme_tcp_icresp), FROM_CONTROLLER, false, false, 0 },
	[NVME_TCP_H2C_TERM_REQ] = { sizeof(struct nvme_tcp_term_req), FROM_HOST, true, false, 0 },
	[NVME_TCP_C2H_TERM_REQ] = { sizeof(struct nvme_tcp_term_req), FROM_CONTROLLER, true, false, 0 },
	[NVME_TCP_CAPSULE_CMD] = { sizeof(struct nvme_tcp_cmd), FROM_HOST, true, true, 0 },
	[NVME_TCP_CAPSULE_RESP] = { sizeof(struct nvme_tcp_resp), FROM_CONTROLLER, false, true, 0 },
	[NVME_TCP_H2C_DATA] = { sizeof(struct nvme_tcp_data), FROM_HOST, true, true, NVME_TCP_LAST_PDU },
	[NVME_TCP_C2H_DATA] = { sizeof(struct nvme_tcp_data), FROM_CONTROLLER, true, true,
				NVME_TCP_LAST_PDU | NVME_TCP_SUCCESS },
	[NVME_TCP_R2T] = { sizeof(struct nvme_tcp_r2t), FROM_CONTROLLER, false, true, 0 },
};

static const struct type *type_of(uint8_t type)
{
	return type < sizeof(types) / sizeof(types[0]) && types[type].header_bytes ? &types[type] : NULL;
}

uint32_t weir_tcp_header_bytes(uint8_t type)
{
	const struct type *of = type_of(type);

	return of ? of->header_bytes : 0;
}

static bool is_term(uint8_t type)
{
	return type == NVME_TCP_H2C_TERM_REQ || type == NVME_TCP_C2H_TERM_REQ;
}

static bool refuse(struct weir_tcp_error *error, uint16_t fes, uint32_t fei)
{
	*error = (struct weir_tcp_error){ .fes = fes, .fei = fei };
	return false;
}

static bool refuse_field(struct weir_tcp_error *error, size_t offset)
{
	return refuse(error, NVME_TCP_FES_INVALID_HEADER, (uint32_t)offset);
}

static uint32_t alignment_of(const struct weir_tcp_rules *rules)
{
	return rules->alignment ? rules->alignment : LEAST_ALIGNMENT;
}

/* The digest flags are as agreed: of data, only where there is some. */
static bool check_flags(const struct nvme_tcp_common *common, const struct type *type,
			const struct weir_tcp_rules *rules)
{
	uint8_t allowed = type->flags;

	if (type->digests && rules->header_digest)
		allowed |= NVME_TCP_HDGSTF;
	if (type->digests && type->data && rules->data_digest)
		allowed |= NVME_TCP_DDGSTF;
	if (common->flags & ~allowed)
		return false;
	return !(type->digests && rules->header_digest) || (common->flags & NVME_TCP_HDGSTF);
}

/* Data, from PDO to its digest or PLEN. A TermReq's follows its header, whatever PDO says. */
static bool check_data(const struct nvme_tcp_common *common, const struct weir_tcp_rules *rules,
		       struct weir_tcp_layout *layout, struct weir_tcp_error *error)
{
	uint32_t head = layout->header_bytes + (layout->header_digest ? NVME_TCP_DIGEST_BYTES : 0);
	uint32_t begin = is_term(common->type) ? head : common->pdo;
	uint32_t tail = common->flags & NVME_TCP_DDGSTF ? NVME_TCP_DIGEST_BYTES : 0;
	uint32_t most = is_term(common->type) ? NVME_TCP_LONGEST_HEADER : rules->most_data;

	if (begin < head || (!is_term(common->type) && begin % alignment_of(rules)))
		return refuse_field(error, offsetof(struct nvme_tcp_common, pdo));
	if (common->plen <= begin + tail)
		return refuse_field(error, offsetof(struct nvme_tcp_common, plen));
	layout->pad_bytes = begin - head;
	layout->data_bytes = common->plen - begin - tail;
	layout->data_digest = tail;
	if (layout->data_bytes > most)
		return refuse(error, NVME_TCP_FES_LIMIT, 0);
	if (rules->data_digest && !is_term(common->type) && !layout->data_digest)
		return refuse_field(error, offsetof(struct nvme_tcp_common, flags));
	return true;
}

bool weir_tcp_check(const struct nvme_tcp_common *common, bool to_host, const struct weir_tcp_rules *rules,
		    struct weir_tcp_layout *layout, struct weir_tcp_error *error)
{
	const struct type *type = type_of(common->type);
	uint32_t head;

	if (!type || type->from != (to_host ? FROM_CONTROLLER : FROM_HOST))
		return refuse_field(error, offsetof(struct nvme_tcp_common, type));
	if (!check_flags(common, type, rules))
		return refuse_field(error, offsetof(struct nvme_tcp_common, flags));
	if (common->hlen != type->header_bytes)
		return refuse_field(error, offsetof(struct nvme_tcp_common, hlen));
	*layout = (struct weir_tcp_layout){ .type = common->type,
					    .header_bytes = common->hlen,
					    .header_digest = common->flags & NVME_TCP_HDGSTF };
	head = layout->header_bytes + (layout->header_digest ? NVME_TCP_DIGEST_BYTES : 0);
	if (common->plen == head) /* no data; of data PDUs, DATAL has to say so as well */
		return true;
	if (common->plen < head || !type->data)
		return refuse_field(error, offsetof(struct nvme_tcp_common, plen));
	return check_data(common, rules, layout, error);
}

static bool check_digest(const union nvme_tcp_header *header, const struct weir_tcp_layout *layout)
{
	uint32_t digest;

	if (!layout->header_digest)
		return true;
	memcpy(&digest, header->bytes + layout->header_bytes, sizeof(digest));
	return digest == weir_crc32c(0, header->bytes, layout->header_bytes);
}

static bool check_icreq(const struct nvme_tcp_icreq *icreq, struct weir_tcp_error *error)
{
	if (icreq->pfv)
		return refuse(error, NVME_TCP_FES_UNSUPPORTED, offsetof(struct nvme_tcp_icreq, pfv));
	if (icreq->hpda > MOST_PDA)
		return refuse_field(error, offsetof(struct nvme_tcp_icreq, hpda));
	if (icreq->dgst & ~(NVME_TCP_HDGST_ENABLE | NVME_TCP_DDGST_ENABLE))
		return refuse_field(error, offsetof(struct nvme_tcp_icreq, dgst));
	return true;
}

static bool check_icresp(const struct nvme_tcp_icresp *icresp, struct weir_tcp_error *error)
{
	if (icresp->pfv)
		return refuse(error, NVME_TCP_FES_UNSUPPORTED, offsetof(struct nvme_tcp_icresp, pfv));
	if (icresp->cpda > MOST_PDA)
		return refuse_field(error, offsetof(struct nvme_tcp_icresp, cpda));
	if (icresp->dgst & ~(NVME_TCP_HDGST_ENABLE | NVME_TCP_DDGST_ENABLE))
		return refuse_field(error, offsetof(struct nvme_tcp_icresp, dgst));
	if (icresp->maxh2cdata < LEAST_MAXH2CDATA)
		return refuse_field(error, offsetof(struct nvme_tcp_icresp, maxh2cdata));
	return true;
}

static bool check_data_header(const struct nvme_tcp_data *data, const struct weir_tcp_layout *layout,
			      struct weir_tcp_error *error)
{
	if (data->datal != layout->data_bytes || !data->datal)
		return refuse_field(error, offsetof(struct nvme_tcp_data, datal));
	if (data->datao > UINT32_MAX - data->datal)
		return refuse_field(error, offsetof(struct nvme_tcp_data, datao));
	if ((data->common.flags & NVME_TCP_SUCCESS) && !(data->common.flags & NVME_TCP_LAST_PDU))
		return refuse_field(error, offsetof(struct nvme_tcp_common, flags));
	return true;
}

static bool check_r2t(const struct nvme_tcp_r2t *r2t, struct weir_tcp_error *error)
{
	if (!r2t->r2tl)
		return refuse_field(error, offsetof(struct nvme_tcp_r2t, r2tl));
	if (r2t->r2to > UINT32_MAX - r2t->r2tl)
		return refuse_field(error, offsetof(struct nvme_tcp_r2t, r2to));
	return true;
}

bool weir_tcp_check_header(const union nvme_tcp_header *header, const struct weir_tcp_layout *layout,
			   struct weir_tcp_error *error)
{
	if (!check_digest(header, layout))
		return refuse(error, NVME_TCP_FES_HEADER_DIGEST, 0);
	switch (layout->type) {
	case NVME_TCP_ICREQ: return check_icreq(&header->icreq, error);
	case NVME_TCP_ICRESP: return check_icresp(&header->icresp, error);
	case NVME_TCP_H2C_DATA:
	case NVME_TCP_C2H_DATA: return check_data_header(&header->data, layout, error);
	case NVME_TCP_R2T: return check_r2t(&header->r2t, error);
	default: return true;
	}
}

size_t weir_tcp_build(union nvme_tcp_header *header, uint8_t type, uint32_t data_bytes,
		      const struct weir_tcp_rules *rules)
{
	const struct type *of = &types[type];
	uint32_t head = of->header_bytes, begin;
	uint8_t *bytes = (uint8_t *)
		header; /* some compilers take header->bytes for as long as the member written last */
	uint32_t digest;

	header->common.type = type;
	header->common.flags &= of->flags;
	header->common.hlen = of->header_bytes;
	if (of->digests && rules->header_digest) {
		header->common.flags |= NVME_TCP_HDGSTF;
		head += NVME_TCP_DIGEST_BYTES;
	}
	begin = data_bytes ? (head + alignment_of(rules) - 1) / alignment_of(rules) * alignment_of(rules)
			   : head;
	header->common.pdo = data_bytes ? (uint8_t)begin : 0;
	header->common.plen = begin + data_bytes;
	if (of->digests && data_bytes && rules->data_digest) {
		header->common.flags |= NVME_TCP_DDGSTF;
		header->common.plen += NVME_TCP_DIGEST_BYTES;
	}
	if (header->common.flags & NVME_TCP_HDGSTF) {
		digest = weir_crc32c(0, bytes, of->header_bytes);
		memcpy(bytes + of->header_bytes, &digest, sizeof(digest));
	}
	memset(bytes + head, 0, begin - head);
	return begin;
}

size_t weir_tcp_build_term(void *to, bool to_host, const struct weir_tcp_error *error, const void *bad,
			   size_t bad_bytes)
{
	struct nvme_tcp_term_req term = {
		.common = { .type = to_host ? NVME_TCP_C2H_TERM_REQ : NVME_TCP_H2C_TERM_REQ,
			    .hlen = sizeof(term) },
		.fes = error->fes,
		.fei_low = (u16)error->fei,
		.fei_high = (u16)(error->fei >> 16),
	};
	size_t kept = bad_bytes < NVME_TCP_LONGEST_HEADER ? bad_bytes : NVME_TCP_LONGEST_HEADER;

	term.common.plen = (u32)(sizeof(term) + kept);
	memcpy(to, &term, sizeof(term));
	if (kept)
		memcpy((char *)to + sizeof(term), bad, kept);
	return sizeof(term) + kept;
}
