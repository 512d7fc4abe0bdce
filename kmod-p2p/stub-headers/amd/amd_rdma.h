/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Of the interface of amdgpu-dkms (peerdirect, version 2.0): with the published names, types and layouts, so
 * that shims/amd.c compiles where the driver's own header is not. As that one it includes nothing. Never for
 * a module that is to be loaded.
 */
#ifndef WEIR_STUB_AMD_RDMA_H
#define WEIR_STUB_AMD_RDMA_H

struct amd_p2p_info {
	uint64_t va;
	uint64_t size;
	struct pid *pid;
	struct sg_table *pages;
	void *priv;
};

struct amd_rdma_interface {
	int (*get_pages)(uint64_t address, uint64_t length, struct pid *pid, struct device *dma_dev,
			 struct amd_p2p_info **amd_p2p_data, void (*free_callback)(void *client_priv),
			 void *client_priv);
	int (*put_pages)(struct amd_p2p_info **amd_p2p_data);
	int (*is_gpu_address)(uint64_t address, struct pid *pid);
	int (*get_page_size)(uint64_t address, uint64_t length, struct pid *pid, unsigned long *page_size);
};

int amdkfd_query_rdma_interface(const struct amd_rdma_interface **rdma);

#endif
