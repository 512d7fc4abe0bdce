/* SPDX-License-Identifier: BSD-3-Clause */
/* format_cifar.c: the binary versions of CIFAR-10 and CIFAR-100: a label, or a coarse and a fine one, and
 * 3,072 bytes of image. */
#include "source.h"

enum { IMAGE_BYTES = 3072 };

static int index_cifar10(struct weir_dataset_source *source, const char *parameters,
			 struct weir_dataset_list *list)
{
	(void)parameters;
	return weir_dataset_records_index(source, list, 0, 1 + IMAGE_BYTES, 1, 0);
}

static int index_cifar100(struct weir_dataset_source *source, const char *parameters,
			  struct weir_dataset_list *list)
{
	(void)parameters;
	return weir_dataset_records_index(source, list, 0, 2 + IMAGE_BYTES, 2, 1);
}

const struct weir_dataset_format weir_dataset_format_cifar10 = { "cifar10", NULL, index_cifar10 };
const struct weir_dataset_format weir_dataset_format_cifar100 = { "cifar100", NULL, index_cifar100 };
