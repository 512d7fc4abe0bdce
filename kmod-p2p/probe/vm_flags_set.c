// SPDX-License-Identifier: GPL-2.0-only
/* Linux 6.3: vm_flags is not to be written to directly. */
#include <linux/mm.h>

void weir_probe(struct vm_area_struct *vma);
void weir_probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_MIXEDMAP);
}
