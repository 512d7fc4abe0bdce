/* SPDX-License-Identifier: BSD-3-Clause */
/* fault_fuzz.c: tables of faults in a URI; what is accepted passes the check, too, or is refused by it with a
 * sentence. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

#include "transport/virtual/fault.h"

#include "fuzz.h"

enum { MOST_ROWS = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct weir_virtual_fault rows[MOST_ROWS];
	char text[1025];
	size_t length = bytes < sizeof(text) - 1 ? bytes : sizeof(text) - 1;
	unsigned count = 0;
	int error;

	memcpy(text, data, length);
	text[length] = '\0';
	error = weir_virtual_faults_parse(text, rows, MOST_ROWS, &count);
	fuzz_must(error == -EINVAL ? weir_last_error()[0] != '\0' : error == 0 && count <= MOST_ROWS);
	if (error)
		return 0;
	error = weir_virtual_faults_check(rows, count);
	fuzz_must(error == 0 || (error == -EINVAL && weir_last_error()[0]));
	return 0;
}
