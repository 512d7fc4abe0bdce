// SPDX-License-Identifier: GPL-2.0-only
/* Can this SSD reach this BAR? What is between them, and what is known of that. */
#include <linux/iommu.h>

#include "p2p.h"

/* The bridge nearest to both, or NULL: only host bridges join them. */
static struct pci_dev *joining(struct pci_dev *a, struct pci_dev *b)
{
	struct pci_dev *up, *other;

	for (up = pci_upstream_bridge(a); up; up = pci_upstream_bridge(up))
		for (other = pci_upstream_bridge(b); other; other = pci_upstream_bridge(other))
			if (up == other)
				return up;
	return NULL;
}

static struct pci_bus *root_of(struct pci_dev *pdev)
{
	struct pci_bus *bus = pdev->bus;

	while (bus->parent)
		bus = bus->parent;
	return bus;
}

static u32 topology_of(struct pci_dev *gpu, struct pci_dev *ssd, struct pci_dev *bridge)
{
	if (!bridge)
		return root_of(gpu) == root_of(ssd) ? WEIR_P2P_HOST_BRIDGE : WEIR_P2P_FAR;
	if (pci_is_pcie(bridge) && pci_pcie_type(bridge) == PCI_EXP_TYPE_UPSTREAM)
		return WEIR_P2P_SAME_SWITCH;
	return WEIR_P2P_SAME_ROOT_PORT;
}

static bool redirects(struct pci_dev *bridge)
{
	int location = pci_find_ext_capability(bridge, PCI_EXT_CAP_ID_ACS);
	u16 control = 0;

	if (location)
		pci_read_config_word(bridge, location + PCI_ACS_CTRL, &control);
	return control & (PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC);
}

/* Whether a bridge below @end sends peers' requests up; *count becomes larger by the number of bridges. */
static bool redirected(struct pci_dev *pdev, struct pci_dev *end, int *count)
{
	struct pci_dev *bridge;
	bool found = false;

	for (bridge = pci_upstream_bridge(pdev); bridge && bridge != end;
	     bridge = pci_upstream_bridge(bridge)) {
		found |= redirects(bridge);
		++*count;
	}
	return found;
}

static u32 iommu_of(struct pci_dev *pdev)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&pdev->dev);

	if (!domain)
		return WEIR_P2P_IOMMU_NONE;
	switch (domain->type) {
	case IOMMU_DOMAIN_IDENTITY: return WEIR_P2P_IOMMU_IDENTITY;
	case IOMMU_DOMAIN_BLOCKED: return WEIR_P2P_IOMMU_BLOCKED;
	default: return WEIR_P2P_IOMMU_TRANSLATES;
	}
}

static u32 verdict_of(const struct weir_p2p_verdict *arg)
{
	const u32 never = WEIR_P2P_WHY_BUS_OFFSET | WEIR_P2P_WHY_NO_DRIVER | WEIR_P2P_WHY_KERNEL;
	const u32 perhaps = WEIR_P2P_WHY_ACS | WEIR_P2P_WHY_HOST_BRIDGE | WEIR_P2P_WHY_IOMMU;

	if (arg->reasons & never || arg->iommu == WEIR_P2P_IOMMU_BLOCKED)
		return WEIR_P2P_NO;
	if (!(arg->reasons & WEIR_P2P_WHY_NO_P2PDMA))
		return WEIR_P2P_YES;
	if (arg->topology == WEIR_P2P_FAR)
		return WEIR_P2P_NO;
	return arg->reasons & perhaps ? WEIR_P2P_UNKNOWN : WEIR_P2P_YES;
}

static void say(struct weir_p2p_verdict *arg, struct pci_dev *gpu, struct pci_dev *ssd)
{
	static const char *const verdicts[] = { "cannot", "may", "can" };
	static const char *const locations[] = { "", "one switch", "one root port", "one host bridge",
						 "different host bridges" };
	static const char *const iommus[] = { "no IOMMU", "an IOMMU that passes through",
					      "an IOMMU that translates", "an IOMMU that blocks it" };
	static const char *const why[] = { "; ACS sends it up",
					   "; whether the host bridge forwards is not known",
					   "; translated requests go through the root",
					   "; bus addresses differ",
					   "; the SSD has no driver",
					   "; the kernel refuses",
					   "; the kernel has no check" };
	int used, i;

	used = scnprintf(arg->text, sizeof(arg->text), "%s %s reach BAR %u of %s: behind %s, %s",
			 pci_name(ssd), verdicts[arg->verdict], arg->gpu.bar, pci_name(gpu),
			 locations[arg->topology], iommus[arg->iommu]);
	for (i = 0; i < ARRAY_SIZE(why); i++)
		if (arg->reasons & 1U << i)
			used += scnprintf(arg->text + used, sizeof(arg->text) - used, "%s", why[i]);
}

/**
 * weir_judge() - whether a controller reaches a BAR
 * @arg: its GPU's BAR is given; filled in
 * @gpu: the GPU
 * @ssd: the controller
 */
void weir_judge(struct weir_p2p_verdict *arg, struct pci_dev *gpu, struct pci_dev *ssd)
{
	struct pci_dev *bridge = joining(gpu, ssd);
	int bridges = bridge ? 1 : 0;
	bool up = redirected(gpu, bridge, &bridges);

	up |= redirected(ssd, bridge, &bridges);
	arg->topology = topology_of(gpu, ssd, bridge);
	arg->iommu = iommu_of(ssd);
	arg->reasons = 0;
	if (up && bridge)
		arg->reasons |= WEIR_P2P_WHY_ACS;
	if (arg->iommu == WEIR_P2P_IOMMU_TRANSLATES)
		arg->reasons |= WEIR_P2P_WHY_IOMMU;
	if (!bridge || arg->reasons)
		arg->reasons |= WEIR_P2P_WHY_HOST_BRIDGE;
	if (pci_bus_address(gpu, arg->gpu.bar) != pci_resource_start(gpu, arg->gpu.bar))
		arg->reasons |= WEIR_P2P_WHY_BUS_OFFSET;
	if (!READ_ONCE(ssd->dev.driver))
		arg->reasons |= WEIR_P2P_WHY_NO_DRIVER;
	arg->distance = weir_distance(gpu, ssd, bridges, &arg->reasons);
	arg->verdict = verdict_of(arg);
	say(arg, gpu, ssd);
}

static bool has_memory(struct pci_dev *pdev, u8 bar)
{
	return bar <= PCI_STD_RESOURCE_END && pci_resource_flags(pdev, bar) & IORESOURCE_MEM &&
	       pci_resource_len(pdev, bar);
}

int weir_verdict(struct weir_file *file, struct weir_p2p_verdict *arg)
{
	struct pci_dev *gpu, *ssd;
	int error = 0;

	if (arg->flags || arg->reserved)
		return weir_refuse(file, -EINVAL, "flags 0x%x are not known", arg->flags | arg->reserved);
	gpu = weir_find(file, &arg->gpu);
	if (IS_ERR(gpu))
		return PTR_ERR(gpu);
	ssd = weir_find_ssd(file, &arg->ssd);
	if (IS_ERR(ssd))
		error = PTR_ERR(ssd);
	else if (!has_memory(gpu, arg->gpu.bar))
		error = weir_refuse(file, -ENXIO, "%s has no memory in BAR %u", pci_name(gpu), arg->gpu.bar);
	else
		weir_judge(arg, gpu, ssd);
	pci_dev_put(gpu);
	if (!IS_ERR(ssd))
		pci_dev_put(ssd);
	return error;
}
