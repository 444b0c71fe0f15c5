/* Writes down which code of a guest's kernel runs between marks: a trace from which xtask counts the steps of operations.
 *
 * A TCG plugin (docs/devel/tcg-plugins.rst of QEMU 10.0, https://www.qemu.org/docs/master/devel/tcg-plugins.html). The
 * few functions it uses are declared in plugin.h. It is dumb on purpose: what a function is, who called whom and what a step
 * is, xtask finds out (xtask/src/guests/steps), where it is tested.
 *
 * A mark is an instruction that does nothing and no compiler emits (guests/spisteps.c). Behind the page at SHARED the
 * program leaves what it means: a label, or at the first mark the text of /proc/kallsyms. Until then nothing is
 * instrumented; what is translated then is forgotten, so the trace begins somewhat behind the first mark.
 *
 * Arguments:
 *   trace=FILE     the trace
 *   symbols=FILE   the text of kallsyms
 *
 * Lines of the trace; addresses are hexadecimal:
 *   r CPU ADDRESS INSTRUCTIONS NEXT END   instructions of the kernel that ran one behind the other. NEXT is the address
 *                                         behind them. END is what the last one is: c a call, r a return, e a return
 *                                         from an exception, j anything else
 *   u CPU INSTRUCTIONS                    instructions of user space
 *   s CPU PREVIOUS NEXT                   the next run is the switch of stacks, from one task to another
 *   m LABEL                               a mark; without a label nothing is written until the next
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plugin.h"

/* No plugin API, but exported by Debian's programs: the processor that runs. The number that a callback is given is that
 * of the processor for which the code was translated, if all run in one thread (QEMU 10.0). */
extern __thread void *current_cpu;

/* Where spisteps.c leaves a label (LABEL bytes), the length of the text behind it, and the text. */
enum { SHARED = 0x50000000, LABEL = 56, TEXT = 64 };
/* The marks, by architecture: orr x22,x22,x22 and orr r8,r8,r8. */
static const uint32_t marks[] = { 0xaa1602d6, 0xe1888008 };
/* The symbols of the switch of stacks, and the arguments that tell the tasks. */
static const struct { const char *symbol, *previous, *next; } switches[] = {
	{ " cpu_switch_to\n", "x0", "x1" },	/* arm64: both tasks */
	{ " __switch_to\n", "r1", "r2" },	/* arm: both tasks' thread_info; the first is a task besides */
};

static bool is_arm64, counting;
/* Whether the last mark had a label: what runs behind one without is not written. */
static bool writing;
static FILE *trace;
static const char *symbols;
static uint64_t switch_at;
static const char *previous_register, *next_register;

/* An instruction of the guest. */
struct instruction { uint64_t at; uint8_t size; char end; };

/* The run that is not written yet. */
static struct { uint64_t from, next, instructions; unsigned cpu; bool user; char end; } run;

/* arm's modules, the lowest of the kernel, begin there where user space has 3 GiB. */
static bool is_user(uint64_t address)
{
	return is_arm64 ? !(address >> 63) : address < 0xbf000000;
}

/* The number of the processor that runs, in the order in which they were met. */
static unsigned processor(void)
{
	static void *known[16];

	for (unsigned i = 0; i < 16; i++) {
		if (!known[i])
			known[i] = current_cpu;
		if (known[i] == current_cpu)
			return i;
	}
	fprintf(stderr, "steps: too many processors\n");
	exit(1);
}

static void flush(void)
{
	if (!writing)
		run.instructions = 0;
	else if (run.instructions && run.user)
		fprintf(trace, "u %u %" PRIu64 "\n", run.cpu, run.instructions);
	else if (run.instructions)
		fprintf(trace, "r %u %" PRIx64 " %" PRIu64 " %" PRIx64 " %c\n", run.cpu, run.from,
			run.instructions, run.next, run.end);
	run.instructions = 0;
}

static void executed(unsigned translated_for, void *of)
{
	const struct instruction *one = of;
	bool user = is_user(one->at);
	unsigned cpu;

	(void)translated_for;
	if (!writing)
		return;
	cpu = processor();

	if (run.instructions && (run.cpu != cpu || run.user != user || (!user && run.next != one->at)))
		flush();
	if (!run.instructions) {
		run.from = one->at;
		run.cpu = cpu;
		run.user = user;
	}
	run.instructions++;
	run.next = one->at + one->size;
	run.end = one->end;
	/* A call to what lies behind it is a call too. */
	if (one->end != 'j' && !user)
		flush();
}

static uint64_t expect_register(const char *name)
{
	uint64_t value;

	if (read_register(name, &value))
		return value;
	fprintf(stderr, "steps: no register %s\n", name);
	exit(1);
}

static void switched(unsigned translated_for, void *of)
{
	(void)translated_for;
	(void)of;
	if (!writing)
		return;
	flush();
	fprintf(trace, "s %u %" PRIx64 " %" PRIx64 "\n", processor(), expect_register(previous_register),
		expect_register(next_register));
}

/* What the program left in memory. */
static void left(uint64_t address, void *into, size_t size)
{
	static GByteArray *bytes;

	if (!bytes)
		bytes = g_byte_array_new();
	if (!qemu_plugin_read_memory_vaddr(address, bytes, size)) {
		fprintf(stderr, "steps: no memory at %" PRIx64 "\n", address);
		exit(1);
	}
	memcpy(into, bytes->data, size);
}

static void keep_symbols(uint32_t length)
{
	char *text = malloc(length + 1);
	FILE *file = fopen(symbols, "w");

	if (!text || !file) {
		fprintf(stderr, "steps: cannot write %s\n", symbols);
		exit(1);
	}
	left(SHARED + TEXT, text, length);
	text[length] = '\0';
	fwrite(text, 1, length, file);
	fclose(file);
	for (unsigned i = 0; i < 2 && !switch_at; i++) {
		const char *place = strstr(text, switches[i].symbol);

		if (!place)
			continue;
		while (place > text && place[-1] != '\n')
			place--;
		switch_at = strtoull(place, NULL, 16);
		previous_register = switches[i].previous;
		next_register = switches[i].next;
	}
	free(text);
	if (!switch_at) {
		fprintf(stderr, "steps: kallsyms lack the switch of stacks, or hide addresses\n");
		exit(1);
	}
}

static void translated(uint64_t id, struct qemu_plugin_tb *block);

/* All that was translated before is forgotten. */
static void begin_to_count(uint64_t id)
{
	counting = true;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
}

static uint64_t own_id;

static void marked(unsigned cpu, void *of)
{
	char label[LABEL + 1] = "";
	uint32_t length;

	(void)cpu;
	(void)of;
	left(SHARED, label, LABEL);
	left(SHARED + LABEL, &length, sizeof(length));
	if (length) {
		keep_symbols(length);
		qemu_plugin_reset(own_id, begin_to_count);
		return;
	}
	flush();
	writing = label[0];
	fprintf(trace, "m %s\n", label);
}

/* What an instruction is at the end of a run: Arm Architecture Reference Manual, A64 and A32 instruction sets. */
static char end_of_a64(uint32_t word)
{
	if ((word & 0xfc000000) == 0x94000000)				/* BL */
		return 'c';
	if ((word & 0xfffffc1f) == 0xd63f0000 || (word & 0xfefff800) == 0xd63f0800)	/* BLR, BLRAA… */
		return 'c';
	if ((word & 0xfffffc1f) == 0xd65f0000 || (word & 0xfffffbff) == 0xd65f0bff)	/* RET, RETAA, RETAB */
		return 'r';
	if (word == 0xd69f03e0 || (word & 0xfffffbff) == 0xd69f0bff)	/* ERET, ERETAA, ERETAB */
		return 'e';
	return 'j';
}

static char end_of_a32(uint32_t word)
{
	if ((word & 0xfe500000) == 0xf8100000)				/* RFE */
		return 'e';
	if (word >> 28 == 0xf)
		return 'j';
	if ((word & 0x0f000000) == 0x0b000000 || (word & 0x0ffffff0) == 0x012fff30)	/* BL, BLX */
		return 'c';
	if ((word & 0x0e508000) == 0x08508000)				/* LDM with PC and CPSR */
		return 'e';
	if ((word & 0x0ff0ffff) == 0x01b0f00e || (word & 0x0ff0f000) == 0x0250f000)	/* MOVS PC, LR; SUBS PC */
		return 'e';
	if ((word & 0x0fffffff) == 0x012fff1e || (word & 0x0fffffff) == 0x01a0f00e)	/* BX LR, MOV PC, LR */
		return 'r';
	if ((word & 0x0e508000) == 0x08108000 || (word & 0x0ffff000) == 0x049df000)	/* LDM with PC, POP {PC} */
		return 'r';
	return 'j';
}

static void translated(uint64_t id, struct qemu_plugin_tb *block)
{
	own_id = id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
		uint64_t at = qemu_plugin_insn_vaddr(instruction);
		uint32_t word = 0;

		qemu_plugin_insn_data(instruction, &word, sizeof(word));
		if (is_user(at) && (word == marks[0] || word == marks[1]))
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, marked, NO_REGISTERS, NULL);
		if (!counting)
			continue;
		struct instruction *kept = malloc(sizeof(*kept));

		kept->at = at;
		kept->size = qemu_plugin_insn_size(instruction);
		kept->end = is_arm64 ? end_of_a64(word) : end_of_a32(word);
		if (at == switch_at)
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, switched, READS_REGISTERS, NULL);
		qemu_plugin_register_vcpu_insn_exec_cb(instruction, executed, NO_REGISTERS, kept);
	}
}

static void over(uint64_t id, void *unused)
{
	(void)id;
	(void)unused;
	flush();
	fclose(trace);
}

EXPORT int qemu_plugin_install(uint64_t id, const qemu_info_t *info, int argc, char **argv)
{
	is_arm64 = !strcmp(info->target_name, "aarch64");
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "trace=", 6) && !trace) {
			trace = fopen(argv[i] + 6, "w");
		} else if (!strncmp(argv[i], "symbols=", 8)) {
			symbols = strdup(argv[i] + 8);
		} else {
			fprintf(stderr, "steps: %s: not understood\n", argv[i]);
			return -1;
		}
	}
	if (!trace || !symbols) {
		fprintf(stderr, "steps: trace=FILE and symbols=FILE are needed\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, over, NULL);
	return 0;
}
