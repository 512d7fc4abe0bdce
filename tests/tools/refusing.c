/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * refusing: to audit a program with (LD_AUDIT): one of its calls of the library fails.
 *
 * WEIR_REFUSE=weir_storage_open:2: the program's second call of weir_storage_open() returns -EIO and does
 * nothing; the library's own are let alone. WEIR_REFUSED=FILE: is made when that happens.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t refusing_count __attribute__((visibility("hidden"))),
	refusing_at __attribute__((visibility("hidden")));
uintptr_t refusing_real __attribute__((visibility("hidden")));

/* Instead of the call. Its arguments are as the program left them, wherever they are. */
void refusing_call(void) __attribute__((visibility("hidden")));
__asm__(".text\n"
	"refusing_call:\n"
	"	movl $1, %r11d\n"
	"	lock xaddq %r11, refusing_count(%rip)\n"
	"	incq %r11\n"
	"	cmpq %r11, refusing_at(%rip)\n"
	"	je refusing_refuse\n"
	"	jmp *refusing_real(%rip)\n");

int refusing_refuse(void) __attribute__((used, visibility("hidden")));

int refusing_refuse(void)
{
	const char *note = getenv("WEIR_REFUSED");
	int file = note ? open(note, O_WRONLY | O_CREAT, 0600) : -1;

	if (file >= 0)
		close(file);
	return -EIO;
}

unsigned int la_version(unsigned int version)
{
	return version;
}

unsigned int la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
	(void)space;
	*cookie = !map->l_name[0]; /* the program itself */
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned int index, uintptr_t *from, uintptr_t *to,
		       unsigned int *flags, const char *name)
{
	const char *asked = getenv("WEIR_REFUSE");
	size_t length = strlen(name);

	(void)index, (void)to, (void)flags;
	if (!*from || !asked || strncmp(asked, name, length) != 0 || asked[length] != ':')
		return symbol->st_value;
	refusing_real = symbol->st_value;
	refusing_at = strtoul(asked + length + 1, NULL, 10);
	return (uintptr_t)refusing_call;
}
