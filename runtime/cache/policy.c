/* SPDX-License-Identifier: BSD-3-Clause */
/* Replacement policies by name, and which of them a program has. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../device/context.h"
#include "../backend/error.h"

static const char *const names[WEIR_POLICY_COUNT] = {
	[WEIR_POLICY_CLOCK] = "clock",         [WEIR_POLICY_LRU] = "lru",       [WEIR_POLICY_FIFO] = "fifo",
	[WEIR_POLICY_RANDOM] = "random",       [WEIR_POLICY_DIRECT] = "direct", [WEIR_POLICY_SIEVE] = "sieve",
	[WEIR_POLICY_FREQUENCY] = "frequency", [WEIR_POLICY_USER] = "user",
};

static bool user_policy; /* set before main() only */

void weir_user_policy_built(void)
{
	user_policy = true;
}

const char *weir_policy_name(enum weir_policy policy)
{
	return (unsigned)policy < WEIR_POLICY_COUNT ? names[policy] : NULL;
}

int weir_policy_of_name(const char *name, enum weir_policy *policy)
{
	char list[128] = "";
	int error = weir_given(name, "weir_policy_of_name", "name");

	if (error || (error = weir_given(policy, "weir_policy_of_name", "policy")) != 0)
		return error;
	for (int i = 0; i < WEIR_POLICY_COUNT; i++) {
		size_t used = strlen(list);

		if (!strcmp(names[i], name)) {
			*policy = (enum weir_policy)i;
			return 0;
		}
		snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "", names[i]);
	}
	return weir_fail(EINVAL, "no cache policy is called \"%s\"; there are %s", name, list);
}

int weir_policy_check(const struct weir_cache_options *options)
{
	if (!weir_policy_name(options->policy))
		return weir_fail(EINVAL, "cache: there is no policy number %u; take one of enum weir_policy",
				 (unsigned)options->policy);
	if (options->policy == WEIR_POLICY_USER && !user_policy)
		return weir_fail(
			EINVAL,
			"cache: policy \"user\": no kernel of this program was built with one; give its "
			"header to "
			"the build, -Duser_policy=HEADER, or to the compiler of the program's kernels, "
			"-DWEIR_USER_POLICY='\"HEADER\"'");
	if (options->policy != WEIR_POLICY_USER && options->policy_parameter)
		return weir_fail(EINVAL,
				 "cache: policy_parameter is for a policy of the user's; \"%s\" takes none",
				 weir_policy_name(options->policy));
	return 0;
}
