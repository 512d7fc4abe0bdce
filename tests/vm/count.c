/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plugin of QEMU's software emulation: how many instructions the processors have carried out whenever the
 * guest comes to a mark, a nop that says its number (p2p_file.c). Idle processors carry out none. -plugin
 * count.so,out=FILE; a line of FILE is a mark and a count.
 *
 * What is declared here of QEMU's interface for plugins, version 1, stands in its documentation.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
					   void (*call)(uint64_t id, struct qemu_plugin_tb *block));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int add, void *to, uint64_t what);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction,
					    void (*call)(unsigned processor, void *of), int registers,
					    void *of);

EXPORT extern int qemu_plugin_version;
EXPORT int qemu_plugin_install(uint64_t id, const void *machine, int count, char **arguments);

int qemu_plugin_version = 1;

static const unsigned char nop[] = { 0x0f, 0x1f, 0x84, 0x00 }, sign[] = { 0x49, 0x45, 0x57 };
static uint64_t instructions;
static FILE *out;

static void marked(unsigned processor, void *number)
{
	(void)processor;
	fprintf(out, "%u %llu\n", (unsigned)(uintptr_t)number, (unsigned long long)instructions);
	fflush(out);
}

static void translated(uint64_t id, struct qemu_plugin_tb *block)
{
	size_t count = qemu_plugin_tb_n_insns(block);

	(void)id;
	qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &instructions, count);
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
		const unsigned char *data = qemu_plugin_insn_data(instruction);

		if (qemu_plugin_insn_size(instruction) == 8 && !memcmp(data, nop, sizeof(nop)) &&
		    !memcmp(data + 5, sign, sizeof(sign)))
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, marked, 0,
							       (void *)(uintptr_t)data[4]);
	}
}

int qemu_plugin_install(uint64_t id, const void *machine, int count, char **arguments)
{
	(void)machine;
	if (count != 1 || strncmp(arguments[0], "out=", 4) || !(out = fopen(arguments[0] + 4, "w")))
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
