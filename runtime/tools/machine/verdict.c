/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void put_text(char *text, size_t bytes, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (vsnprintf(text, bytes, format, arguments) < 0)
		text[0] = '\0';
	va_end(arguments);
}

void verdict_start(struct verdict *verdict)
{
	memset(verdict, 0, sizeof(*verdict));
	verdict->answer = YES;
}

/* No weighs more than unknown. */
static void weigh(struct verdict *verdict, enum answer answer)
{
	if (answer == NO || verdict->answer == YES)
		verdict->answer = answer;
}

void verdict_add(struct verdict *verdict, enum answer answer, const char *remedy, const char *why, ...)
{
	struct reason *reason = &verdict->reasons[verdict->count];
	va_list arguments;

	weigh(verdict, answer);
	if (verdict->count == CHECK_REASONS)
		return;
	verdict->count++;
	reason->answer = answer;
	put_text(reason->remedy, sizeof(reason->remedy), "%s", remedy);
	va_start(arguments, why);
	if (vsnprintf(reason->why, sizeof(reason->why), why, arguments) < 0)
		reason->why[0] = '\0';
	va_end(arguments);
}

void verdict_join(struct verdict *verdict, const struct verdict *other)
{
	for (unsigned i = 0; i < other->count; i++)
		verdict_add(verdict, other->reasons[i].answer, other->reasons[i].remedy, "%s",
			    other->reasons[i].why);
}
