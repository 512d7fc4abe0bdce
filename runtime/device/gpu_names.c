/* SPDX-License-Identifier: BSD-3-Clause */
/* Which device of which backend "gpu", "gpu:N", "gpu:PCI" and "BACKEND:PCI" are. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../backend/error.h"
#include "gpus.h"

/** struct text - a sentence that grows; what does not fit is left out */
struct text {
	char *at;
	size_t room;
};

static void say(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *text, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text->at, text->room, format, arguments);
	va_end(arguments);
	length = length < 0 ? 0 : (size_t)length >= text->room ? (int)text->room - 1 : length;
	text->at += length;
	text->room -= (size_t)length;
}

/* As the backend has it; "" for what is no PCI device, or cannot be opened. */
static void ask_address(const struct weir_backend_ops *backend, uint32_t ordinal, char text[WEIR_PCI_TEXT])
{
	struct weir_context_options options = { .size = sizeof(options) };
	struct weir_backend_properties properties = { .numa_node = -1 };
	struct weir_backend *device;
	char selector[16];

	*text = '\0';
	if (backend->pci_address) {
		if (backend->pci_address(ordinal, text, WEIR_PCI_TEXT) != 0)
			*text = '\0';
		return;
	}
	snprintf(selector, sizeof(selector), "%u", ordinal);
	if (backend->open(selector, &options, &device) != 0)
		return;
	backend->properties(device, &properties);
	backend->close(device);
	memcpy(text, properties.pci_address, WEIR_PCI_TEXT);
}

/* Return: how many of the backend's devices are on the PCI bus. */
static uint32_t add_devices(const struct weir_backend_ops *backend, uint32_t devices,
			    struct weir_gpu_candidates *out)
{
	uint32_t before = out->count;

	for (uint32_t i = 0; i < devices && out->count < WEIR_MOST_GPUS; i++) {
		struct weir_gpu_candidate *candidate = &out->list[out->count];
		char text[WEIR_PCI_TEXT];

		ask_address(backend, i, text);
		if (!weir_pci_parse(text, &candidate->address))
			continue;
		candidate->ordinal = i;
		snprintf(candidate->backend, sizeof(candidate->backend), "%s", backend->name);
		out->count++;
	}
	return out->count - before;
}

/* Behind a backend's name: what it has to do with GPUs. */
static void ask(const struct weir_backend_ops *ops, struct weir_gpu_candidates *out, struct text *why)
{
	uint32_t devices = 0, found = 0;
	int error = !ops ? -ENODEV : ops->devices ? ops->devices(&devices) : 0;

	if (error) {
		say(why, " (%s)", weir_last_error());
		return;
	}
	if (ops->devices)
		found = add_devices(ops, devices, out);
	if (found)
		say(why, " (for %u other%s)", found, found == 1 ? "" : "s");
	else
		say(why, " (not for GPUs%s)", ops->devices ? " that are here" : "");
}

void weir_gpu_candidates(weir_gpu_backends at, struct weir_gpu_candidates *out)
{
	struct text why = { out->why, sizeof(out->why) };
	const struct weir_backend_ops *ops;
	const char *name;

	memset(out, 0, sizeof(*out));
	say(&why, "this build has ");
	for (size_t i = 0; (name = at(i, &ops)); i++) {
		say(&why, "%s%s", i ? ", " : "", name);
		ask(ops, out, &why);
	}
}

/* Candidate @index is the first one at its address. */
static bool is_first(const struct weir_gpu_candidates *candidates, uint32_t index)
{
	for (uint32_t i = 0; i < index; i++)
		if (candidates->list[i].address.packed == candidates->list[index].address.packed)
			return false;
	return true;
}

static uint32_t different(const struct weir_gpu_candidates *candidates)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < candidates->count; i++)
		count += is_first(candidates, i);
	return count;
}

int32_t weir_gpu_number(const struct weir_gpu_candidates *candidates, struct weir_pci address)
{
	int32_t below = 0;
	bool there = false;

	for (uint32_t i = 0; i < candidates->count; i++) {
		there = there || candidates->list[i].address.packed == address.packed;
		below += candidates->list[i].address.packed < address.packed && is_first(candidates, i);
	}
	return there ? below : -1;
}

static int malformed(const char *kind, const char *selector)
{
	if (!strcmp(kind, "gpu"))
		return weir_fail(EINVAL,
				 "\"gpu:%s\" names no GPU: write gpu:N with a number, or "
				 "gpu:DOMAIN:BUS:DEVICE.FUNCTION, such "
				 "as gpu:0000:41:00.0 or gpu:41:00.0",
				 selector);
	return weir_fail(EINVAL,
			 "\"%s:%s\" has no PCI address: write %s:DOMAIN:BUS:DEVICE.FUNCTION, such as "
			 "%s:0000:41:00.0, or "
			 "%s:41:00.0 in domain 0",
			 kind, selector, kind, kind, kind);
}

/* @selector as a number; -EINVAL if it is none. */
static int take_number(const char *kind, const char *selector, unsigned long *number)
{
	char *end;

	*number = 0;
	if (!*selector)
		return 0;
	*number = strtoul(selector, &end, 10);
	return *selector < '0' || *selector > '9' || *end ? malformed(kind, selector) : 0;
}

int weir_gpu_select(const char *kind, const char *selector, const struct weir_gpu_candidates *candidates,
		    uint32_t *index)
{
	bool any = !strcmp(kind, "gpu"), by_address = weir_pci_meant(selector);
	struct weir_pci address = { 0 };
	unsigned long number = 0;
	int error = 0;

	if (by_address)
		error = weir_pci_parse(selector, &address) ? 0 : malformed(kind, selector);
	else
		error = take_number(kind, selector, &number);
	if (error)
		return error;
	for (*index = 0; *index < candidates->count; (*index)++) {
		const struct weir_gpu_candidate *candidate = &candidates->list[*index];

		if (!any && strcmp(candidate->backend, kind))
			continue;
		if (by_address ? candidate->address.packed == address.packed
			       : (unsigned long)weir_gpu_number(candidates, candidate->address) == number)
			return 0;
	}
	return -ENODEV;
}

/* "0000:41:00.0 (NAME, vendor 1234)", for each of the machine's. */
static void say_gpu(struct text *text, const struct weir_gpu_location *gpu)
{
	char address[WEIR_PCI_TEXT];

	weir_pci_print(gpu->address, address);
	say(text, "%s", address);
	if (gpu->vendor_id)
		say(text, " (%s%svendor %04x)", gpu->vendor, *gpu->vendor ? ", " : "", gpu->vendor_id);
}

static void say_machine(struct text *text, const struct weir_gpus *machine)
{
	if (!machine->count)
		say(text, "no GPU can be seen on this machine");
	else
		say(text, "this machine has ");
	for (uint32_t i = 0; i < machine->count; i++) {
		if (i)
			say(text, ", ");
		say_gpu(text, &machine->gpus[i]);
	}
}

static void say_candidate(struct text *text, const struct weir_gpu_candidate *candidate)
{
	char address[WEIR_PCI_TEXT];

	weir_pci_print(candidate->address, address);
	say(text, "%s:%u at %s", candidate->backend, candidate->ordinal, address);
}

/* "gpu:0 is BACKEND:0 at 0000:41:00.0", for each number. */
static void say_numbers(struct text *text, const struct weir_gpu_candidates *candidates)
{
	uint32_t count = different(candidates);

	for (uint32_t number = 0; number < count; number++)
		for (uint32_t i = 0; i < candidates->count; i++)
			if (is_first(candidates, i) &&
			    weir_gpu_number(candidates, candidates->list[i].address) == (int32_t)number) {
				say(text, "%sgpu:%u is ", number ? ", " : "", number);
				say_candidate(text, &candidates->list[i]);
			}
}

/* "BACKEND:0 at 0000:41:00.0", for each of the backend's. */
static void say_devices(struct text *text, const char *backend, const struct weir_gpu_candidates *candidates)
{
	bool first = true;

	for (uint32_t i = 0; i < candidates->count; i++) {
		if (strcmp(candidates->list[i].backend, backend))
			continue;
		say(text, "%s", first ? "" : ", ");
		say_candidate(text, &candidates->list[i]);
		first = false;
	}
	if (first)
		say(text, "%s", candidates->why);
}

static const struct weir_gpu_location *machine_has(const struct weir_gpus *machine, struct weir_pci address)
{
	for (uint32_t i = 0; i < machine->count; i++)
		if (machine->gpus[i].address.packed == address.packed)
			return &machine->gpus[i];
	return NULL;
}

/* No backend has what is at @address: it is there, or it is not. */
static int absent_address(struct weir_pci address, const struct weir_gpu_candidates *candidates,
			  const struct weir_gpus *machine)
{
	const struct weir_gpu_location *there = machine_has(machine, address);
	char composed[896], where[WEIR_PCI_TEXT];
	struct text text = { composed, sizeof(composed) };

	weir_pci_print(address, where);
	if (there) {
		say(&text, "GPU ");
		say_gpu(&text, there);
		say(&text, " is there, but no backend can use it: %s", candidates->why);
	} else {
		say(&text, "there is no GPU at %s: ", where);
		say_machine(&text, machine);
	}
	return weir_fail(ENODEV, "%s", composed);
}

int weir_gpu_absent(const char *kind, const char *selector, const struct weir_gpu_candidates *candidates,
		    const struct weir_gpus *machine)
{
	char composed[896];
	struct text text = { composed, sizeof(composed) };
	struct weir_pci address;

	if (!strcmp(kind, "gpu") && weir_pci_parse(selector, &address))
		return absent_address(address, candidates, machine);
	if (strcmp(kind, "gpu")) {
		say(&text, "%s has no device at %s: ", kind, selector);
		say_devices(&text, kind, candidates);
	} else if (candidates->count) {
		say(&text, "there is no gpu:%s: backends can use %u, ", selector, different(candidates));
		say_numbers(&text, candidates);
	} else {
		say(&text, "no GPU that a backend can use: ");
		say_machine(&text, machine);
		say(&text, "; %s", candidates->why);
	}
	return weir_fail(ENODEV, "%s", composed);
}

static int open_candidate(const struct weir_gpu_candidate *candidate,
			  const struct weir_context_options *options, struct weir_backend **out)
{
	const struct weir_backend_ops *ops;
	const char *name;
	char selector[16];

	snprintf(selector, sizeof(selector), "%u", candidate->ordinal);
	for (size_t i = 0; (name = weir_backend_at(i, &ops)); i++)
		if (ops && !strcmp(name, candidate->backend))
			return ops->open(selector, options, out);
	return weir_fail(ENODEV, "no backend \"%s\" in this build", candidate->backend);
}

/* The sentence needs to know what the machine has. */
static int explain(const char *kind, const char *selector, const struct weir_gpu_candidates *candidates)
{
	struct weir_gpus *machine = calloc(1, sizeof(*machine));
	int error = machine ? weir_gpus_read(machine) : weir_fail(ENOMEM, "no memory for a list of GPUs");

	if (!error)
		error = weir_gpu_absent(kind, selector, candidates, machine);
	free(machine);
	return error;
}

int weir_gpu_open(const char *kind, const char *selector, const struct weir_context_options *options,
		  struct weir_backend **out)
{
	struct weir_gpu_candidates *candidates = calloc(1, sizeof(*candidates));
	uint32_t index;
	int error;

	if (!candidates)
		return weir_fail(ENOMEM, "no memory for a list of GPUs");
	weir_gpu_candidates(weir_backend_at, candidates);
	error = weir_gpu_select(kind, selector, candidates, &index);
	if (!error)
		error = open_candidate(&candidates->list[index], options, out);
	else if (error == -ENODEV)
		error = explain(kind, selector, candidates);
	free(candidates);
	return error;
}
