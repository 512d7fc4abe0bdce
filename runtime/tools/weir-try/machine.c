/* SPDX-License-Identifier: BSD-3-Clause */
/* What there is, as weir-check finds it, and what is missing for more. */
#include "try.h"

#include <stdio.h>
#include <string.h>

#include "survey.h"

static json_t *survey(const void *arguments)
{
	int status = survey_print(arguments);

	return json_pack("{s:s, s:i}", "verdict", "good", "status", status);
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void add_missing(struct try_results *results, const char *what, const char *why, const char *remedy)
{
	json_array_append_new(results->missing,
			      json_pack("{s:s, s:s, s:s}", "what", what, "why", why, "remedy", remedy));
}

/* GPUs that no backend can use, and that there is none that one can. */
static void miss_gpus(struct try_results *results)
{
	bool usable = false;
	const json_t *gpu;
	size_t index;

	json_array_foreach(json_object_get(results->machine, "gpus"), index, gpu)
	{
		const char *address = text_of(gpu, "pci_address");

		if (!*address)
			continue;
		if (!strcmp(text_of(gpu, "usable"), "yes"))
			usable = true;
		else
			add_missing(results, address, text_of(gpu, "why"), "weir-info says more");
	}
	if (!usable)
		add_missing(results, "a GPU",
			    "there is none that a backend of this build can use: only lanes of the host were "
			    "tested",
			    "install its driver, and build weir with its backend (meson option backends)");
}

/* Each reason why lanes do not drive an SSD, once. */
static void miss_direct(struct try_results *results, const json_t *pair)
{
	const json_t *direct = json_object_get(json_object_get(pair, "paths"), "direct"), *reason;
	size_t index;
	char what[TRY_TEXT];

	snprintf(what, sizeof(what), "%s driving %s", text_of(pair, "lanes"), text_of(pair, "ssd"));
	if (!strcmp(text_of(direct, "answer"), "yes"))
		return;
	json_array_foreach(json_object_get(direct, "reasons"), index, reason)
		add_missing(results, what, text_of(reason, "why"), text_of(reason, "remedy"));
}

static void miss_ssds(struct try_results *results)
{
	const json_t *pair;
	size_t index;

	if (!json_array_size(json_object_get(results->machine, "ssds")))
		add_missing(results, "an NVMe SSD", "no NVMe controller can be seen: only a file was tested",
			    "");
	json_array_foreach(json_object_get(results->machine, "pairs"), index, pair)
		miss_direct(results, pair);
}

void try_machine(struct try_results *results)
{
	json_t *found = try_child(survey, &(struct survey){ .json = true });
	json_t *text = try_child(survey, &(struct survey){ .json = false });
	const char *said = text_of(found, "said");
	const char *object = strchr(said, '{'); /* sentences on stderr may come first */

	results->machine = object ? json_loads(object, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
	results->machine_text = strdup(text_of(text, "said"));
	if (results->machine) {
		miss_gpus(results);
		miss_ssds(results);
	} else {
		results->machine = json_object();
		add_missing(results, "what there is", *said ? said : text_of(found, "why"), "weir-check");
	}
	json_decref(found);
	json_decref(text);
}
