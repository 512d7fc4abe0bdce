/* SPDX-License-Identifier: BSD-3-Clause */
/* losses.h: closing goes on after an error; what went wrong on the way becomes one sentence. */
#ifndef WEIR_RUNTIME_LOSSES_H
#define WEIR_RUNTIME_LOSSES_H

/** struct weir_losses - the first error so far, and the sentences of all; zeroed at first */
struct weir_losses {
	int error;
	char text[1000];
};

/** weir_losses_add() - @error of a step, with its sentence in weir_last_error(); 0 is fine */
void weir_losses_add(struct weir_losses *losses, int error);

/** weir_losses_end() - 0, or the first error with the sentences of all */
int weir_losses_end(const struct weir_losses *losses);

#endif
