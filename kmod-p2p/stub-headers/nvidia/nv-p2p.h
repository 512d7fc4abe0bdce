/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Of the interface that NVIDIA publishes (GPUDirect RDMA; nv-p2p.h of its kernel modules, drivers 470 to
 * 595): what shims/nvidia.c uses, with the published names, types and layouts, so that it compiles where the
 * driver's own header is not. As that one it includes nothing, and leaves integer types to whoever includes
 * it. Never for a module that is to be loaded.
 */
#ifndef WEIR_STUB_NV_P2P_H
#define WEIR_STUB_NV_P2P_H

/* Versions: the upper half has to be the same, the lower at least that. */
#define NVIDIA_P2P_PAGE_TABLE_VERSION 0x00010002
#define NVIDIA_P2P_PAGE_TABLE_VERSION_COMPATIBLE(table)                                                      \
	((table)->version >> 16 == NVIDIA_P2P_PAGE_TABLE_VERSION >> 16 &&                                    \
	 ((table)->version & 0xffff) >= (NVIDIA_P2P_PAGE_TABLE_VERSION & 0xffff))

enum nvidia_p2p_page_size_type {
	NVIDIA_P2P_PAGE_SIZE_4KB = 0,
	NVIDIA_P2P_PAGE_SIZE_64KB,
	NVIDIA_P2P_PAGE_SIZE_128KB,
	NVIDIA_P2P_PAGE_SIZE_COUNT
};

typedef struct nvidia_p2p_page {
	uint64_t physical_address;
	uint32_t registers[6]; /* of mailboxes, a union there */
} nvidia_p2p_page_t;

typedef struct nvidia_p2p_page_table {
	uint32_t version;
	uint32_t page_size;
	struct nvidia_p2p_page **pages;
	uint32_t entries;
	uint8_t *gpu_uuid;
} nvidia_p2p_page_table_t;

int nvidia_p2p_get_pages(uint64_t p2p_token, uint32_t va_space, uint64_t virtual_address, uint64_t length,
			 struct nvidia_p2p_page_table **page_table, void (*free_callback)(void *data),
			 void *data);
int nvidia_p2p_put_pages(uint64_t p2p_token, uint32_t va_space, uint64_t virtual_address,
			 struct nvidia_p2p_page_table *page_table);
int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *page_table);
int nvidia_p2p_get_pages_persistent(uint64_t virtual_address, uint64_t length,
				    struct nvidia_p2p_page_table **page_table, uint32_t flags);
int nvidia_p2p_put_pages_persistent(uint64_t virtual_address, struct nvidia_p2p_page_table *page_table,
				    uint32_t flags);

#endif
