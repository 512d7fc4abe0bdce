/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trial.c: whether what is read into a buffer is what the device finds there.
 *
 * The buffer is first filled with the complement of what is to arrive, so that each byte that does not is
 * seen.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "module.h"

enum { TRIES = 3 };

/** struct buffers - what is to arrive, the same a moment later, and what is found */
struct buffers {
	char *want;
	char *again;
	char *found;
};

static int failed(int error, const char *what, char why[MODULE_WHY])
{
	snprintf(why, MODULE_WHY, "trying it, %s failed: %s", what, strerror(-error));
	return error;
}

/* Who moves the bytes. */
static const char *driver_of(const struct file_trial *trial)
{
	return trial->driver ? trial->driver : "the SSD";
}

static void complement(char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (char)~bytes[i];
}

/* What is not as it should be, in numbers. Return: 0 if all is. */
static int compare(const struct file_trial *trial, const struct buffers *buffers, char why[MODULE_WHY])
{
	size_t wrong = 0, poison = 0, first = 0;

	for (size_t i = trial->bytes; i-- > 0;) {
		if (buffers->found[i] == buffers->want[i])
			continue;
		wrong++;
		poison += buffers->found[i] == (char)~buffers->want[i];
		first = i;
	}
	if (!wrong)
		return 0;
	if (trial->writes)
		snprintf(why, MODULE_WHY,
			 "of a block of %zu bytes that %s was asked to write from the device's memory, "
			 "the file has %zu "
			 "wrong, the first at %zu: 0x%02x, not 0x%02x",
			 trial->bytes, driver_of(trial), wrong, first, buffers->found[first] & 255,
			 buffers->want[first] & 255);
	else
		snprintf(why, MODULE_WHY,
			 "of a block of %zu bytes that %s was asked to read into the device's memory, "
			 "the device finds %zu "
			 "wrong, the first at %zu: 0x%02x, not 0x%02x; %zu are what was there before",
			 trial->bytes, driver_of(trial), wrong, first, buffers->found[first] & 255,
			 buffers->want[first] & 255, poison);
	return -EIO;
}

static int try_once(const struct file_trial *trial, const struct buffers *buffers, char why[MODULE_WHY])
{
	int error = trial->known(trial->of, buffers->want, trial->bytes);

	if (error)
		return failed(error,
			      trial->writes ? "reading the device's memory"
					    : "reading the block into host memory",
			      why);
	memcpy(buffers->found, buffers->want, trial->bytes);
	complement(buffers->found, trial->bytes);
	error = trial->put(trial->of, buffers->found, trial->bytes);
	if (error)
		return failed(error,
			      trial->writes ? "having another block in the file"
					    : "filling the device's memory",
			      why);
	error = trial->move(trial->of, trial->bytes);
	if (error)
		return failed(error,
			      trial->writes ? "writing a block from the device's memory"
					    : "reading a block into the device's memory",
			      why);
	error = trial->get(trial->of, buffers->found, trial->bytes);
	if (error)
		return failed(error,
			      trial->writes ? "reading the file back" : "reading the device's memory back",
			      why);
	error = compare(trial, buffers, why);
	if (!error)
		return 0;
	if (trial->known(trial->of, buffers->again, trial->bytes) ||
	    !memcmp(buffers->want, buffers->again, trial->bytes))
		return error;
	snprintf(why, MODULE_WHY, "somebody writes to the block that it was tried with");
	return -EAGAIN;
}

int file_trial_run(const struct file_trial *trial, char why[MODULE_WHY])
{
	/* O_DIRECT may read what is to arrive: aligned. */
	char *memory = aligned_alloc(4096, 3 * trial->bytes);
	struct buffers buffers = { memory, memory + trial->bytes, memory + 2 * trial->bytes };
	int error = -EAGAIN;

	if (!memory)
		return failed(-ENOMEM, "getting memory", why);
	for (unsigned i = 0; i < TRIES && error == -EAGAIN; i++)
		error = try_once(trial, &buffers, why);
	if (!error)
		snprintf(why, MODULE_WHY, "tried: %zu bytes that %s %s the device's memory arrived%s",
			 trial->bytes, driver_of(trial), trial->writes ? "wrote from" : "read into",
			 trial->copies ? "; a processor copied them" : "");
	free(memory);
	return error;
}
