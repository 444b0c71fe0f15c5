/* Counts what a guest does between two marks, for a price list: events with what ran between them.
 *
 * A TCG plugin (docs/devel/tcg-plugins.rst of QEMU 10.0, https://www.qemu.org/docs/master/devel/tcg-plugins.html). The
 * few functions it uses are declared in plugin.h. It is dumb on purpose: what a count costs, and when a word is on the wire,
 * xtask finds out (xtask/src/guests/priced), where it is tested.
 *
 * Marks are instructions that do nothing and no compiler emits (guests/priced/mark.h): one begins an operation, whose
 * label x0 points at, and one ends it. Before an operation whose label ends with " cold" the caches are emptied.
 *
 * The caches are Cortex-A53's: L1I of 32 KiB in 2 ways, L1D of 32 KiB in 4, L2 of 512 KiB in 16, lines of 64 bytes, and
 * a main TLB of 512 entries in 4 ways (Arm Cortex-A53 MPCore Processor Technical Reference Manual, DDI 0500J, 5.1, 6.1,
 * 7.1; the sizes are i.MX 8M Plus's and BCM2837's). The model replaces the line that was not used for the longest time
 * and fetches nothing ahead; the silicon does both otherwise. Every store allocates.
 *
 * Arguments:
 *   trace=FILE
 *
 * Lines of the trace:
 *   b LABEL           an operation begins
 *   x COUNT…          what ran since the last line, in the order of `enum count`; left out if nothing did
 *   r ADDRESS         a register is read, at that physical address (hexadecimal)
 *   w ADDRESS VALUE   a register is written (both hexadecimal)
 *   i                 an interrupt is taken
 *   y                 a system call or another synchronous exception is taken
 *   e                 the end of an exception
 *   c                 the switch from one task's stack to another's
 *   z                 the processor waits for an interrupt
 *   o                 the operation's end
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plugin.h"

/* No plugin API, but exported by Debian's programs: the processor that runs (guests/steps.c). */
extern __thread void *current_cpu;

/* orr x23,x23,x23 and orr x24,x24,x24. */
enum { BEGIN = 0xaa1702f7, END = 0xaa180318, LABEL = 63 };

enum count {
	INSTRUCTIONS,
	CODE_L2, CODE_MEMORY,		/* lines of code that L2 had, and that it had not */
	LOAD_L2, LOAD_MEMORY,		/* lines that a load wanted */
	STORE_L2, STORE_MEMORY,		/* lines that a store wanted */
	WALKS,				/* pages without an entry in the TLB */
	DMB, DSB, ISB,
	EXCLUSIVES,			/* LDXR, STXR and their kin; atomic instructions of Armv8.1 */
	GIC,				/* accesses to the interrupt controller's interface that are system registers */
	COUNTS
};

static uint64_t counts[COUNTS];
static bool counting, open_operation;
static FILE *trace;
static void *own_cpu;
static uint64_t vectors;

/* A set-associative store of keys, the one used last first in each set. */
struct cache { unsigned sets, ways; uint64_t *keys; };
static struct cache l1i = { 256, 2, NULL }, l1d = { 128, 4, NULL }, l2 = { 512, 16, NULL }, tlb = { 128, 4, NULL };
static struct cache *const all_caches[] = { &l1i, &l1d, &l2, &tlb };

static void empty_caches(void)
{
	for (unsigned i = 0; i < 4; i++) {
		size_t bytes = sizeof(uint64_t) * all_caches[i]->sets * all_caches[i]->ways;

		if (!all_caches[i]->keys)
			all_caches[i]->keys = malloc(bytes);
		if (!all_caches[i]->keys)
			exit(1);
		memset(all_caches[i]->keys, 0xff, bytes);
	}
}

/* Whether it has the key, which it has afterwards in any case. */
static bool has(struct cache *cache, uint64_t key)
{
	uint64_t *set = cache->keys + (size_t)(key & (cache->sets - 1)) * cache->ways;
	unsigned at = 0;

	while (at < cache->ways && set[at] != key)
		at++;
	bool found = at < cache->ways;

	if (!found)
		at = cache->ways - 1;
	memmove(set + 1, set, at * sizeof(*set));
	set[0] = key;
	return found;
}

/* A line that L1 wants: counted at `of` if L2 has it, else behind that. */
static void want(struct cache *l1, uint64_t line, enum count of)
{
	if (!has(l1, line))
		counts[has(&l2, line) ? of : of + 1]++;
}

static void want_page(uint64_t page)
{
	static uint64_t last;

	if (page == last)
		return;
	last = page;
	if (!has(&tlb, page))
		counts[WALKS]++;
}

static void flush(void)
{
	bool any = false;

	for (int i = 0; i < COUNTS; i++)
		any |= counts[i] != 0;
	if (any && open_operation) {
		fputc('x', trace);
		for (int i = 0; i < COUNTS; i++)
			fprintf(trace, " %" PRIu64, counts[i]);
		fputc('\n', trace);
	}
	memset(counts, 0, sizeof(counts));
}

static void event(char kind)
{
	if (!open_operation)
		return;
	flush();
	fprintf(trace, "%c\n", kind);
}

/* What an instruction is, besides one. */
enum kind { PLAIN, IS_DMB, IS_DSB, IS_ISB, IS_EXCLUSIVE, IS_GIC, IS_SWITCH, IS_ERET, IS_WFI };
struct instruction { uint64_t at, line; enum kind kind; };

/* Arm Architecture Reference Manual, DDI 0487, C4.1: barriers; loads and stores, exclusive and atomic; system
 * registers. */
static enum kind kind_of(uint32_t word)
{
	if ((word & 0xfffff0ff) == 0xd50330bf)
		return IS_DMB;
	if ((word & 0xfffff0ff) == 0xd503309f)
		return IS_DSB;
	if ((word & 0xfffff0ff) == 0xd50330df)
		return IS_ISB;
	/* LDXR… and STXR…: o2 is 0. CAS…: o2 and o1 are 1. */
	if ((word & 0x3f800000) == 0x08000000 || (word & 0x3fa00000) == 0x08a00000)
		return IS_EXCLUSIVE;
	if ((word & 0x3f200c00) == 0x38200000)				/* LDADD…, SWP… */
		return IS_EXCLUSIVE;
	/* MRS and MSR of ICC_…_EL1: 3, 0, c12, c8 and above; ICC_PMR_EL1: 3, 0, c4, c6. */
	if ((word & 0xffdff800) == 0xd518c800 || (word & 0xffdfffe0) == 0xd5184600)
		return IS_GIC;
	/* Linux's switch of stacks ends with the next task, its second argument, in SP_EL0: msr sp_el0, x1. Entries and
	 * exits of exceptions write it from other registers (arch/arm64/kernel/entry.S of 6.1 and 6.12). */
	if (word == 0xd5184101)
		return IS_SWITCH;
	if (word == 0xd69f03e0)
		return IS_ERET;
	if (word == 0xd503207f)
		return IS_WFI;
	return PLAIN;
}

static void executed(unsigned translated_for, void *of)
{
	static uint64_t last_line;
	const struct instruction *one = of;

	(void)translated_for;
	if (current_cpu != own_cpu)
		return;
	/* The table of vectors: each of sixteen has 128 bytes; sync, irq, fiq and error in turn. */
	uint64_t offset = one->at - vectors;

	if (offset < 0x800 && !(offset & 0x7f)) {
		if ((offset & 0x180) == 0x80)
			event('i');
		else if (!(offset & 0x180))
			event('y');
	}
	counts[INSTRUCTIONS]++;
	if (one->line != last_line) {
		last_line = one->line;
		want(&l1i, one->line, CODE_L2);
		want_page(one->at >> 12);
	}
	switch (one->kind) {
	case PLAIN: break;
	case IS_DMB: counts[DMB]++; break;
	case IS_DSB: counts[DSB]++; break;
	case IS_ISB: counts[ISB]++; break;
	case IS_EXCLUSIVE: counts[EXCLUSIVES]++; break;
	case IS_GIC: counts[GIC]++; break;
	case IS_SWITCH: event('c'); break;
	case IS_ERET: event('e'); break;
	case IS_WFI: event('z'); break;
	}
}

static void accessed(unsigned translated_for, uint32_t info, uint64_t virtual, void *unused)
{
	struct qemu_plugin_hwaddr *place;

	(void)translated_for;
	(void)unused;
	if (current_cpu != own_cpu || !(place = qemu_plugin_get_hwaddr(info, virtual)))
		return;
	uint64_t address = qemu_plugin_hwaddr_phys_addr(place);
	bool store = qemu_plugin_mem_is_store(info);

	if (!qemu_plugin_hwaddr_is_io(place)) {
		/* Not the keys of code, whose places are of the host. */
		want(&l1d, address >> 6, store ? STORE_L2 : LOAD_L2);
		want_page(virtual >> 12);
	} else if (open_operation) {
		flush();
		if (store)
			fprintf(trace, "w %" PRIx64 " %" PRIx32 "\n", address, qemu_plugin_mem_get_value(info).data.u32);
		else
			fprintf(trace, "r %" PRIx64 "\n", address);
	}
}

static void translated(uint64_t id, struct qemu_plugin_tb *block);
static uint64_t own_id;

/* All that was translated before is forgotten. */
static void begin_to_count(uint64_t id)
{
	counting = true;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
}

static void begins(unsigned translated_for, void *unused)
{
	static GByteArray *bytes;
	char label[LABEL + 1] = "";
	uint64_t address;

	(void)translated_for;
	(void)unused;
	if (!counting) {
		own_cpu = current_cpu;
		if (!read_register("VBAR_EL1", &vectors) && !read_register("VBAR", &vectors)) {
			fprintf(stderr, "priced: no register VBAR_EL1\n");
			exit(1);
		}
		qemu_plugin_reset(own_id, begin_to_count);
		return;
	}
	if (!bytes)
		bytes = g_byte_array_new();
	if (!read_register("x0", &address) || !qemu_plugin_read_memory_vaddr(address, bytes, LABEL)) {
		fprintf(stderr, "priced: no label at %" PRIx64 "\n", address);
		exit(1);
	}
	memcpy(label, bytes->data, LABEL);
	if (current_cpu != own_cpu) {
		fprintf(stderr, "priced: %s is on another processor\n", label);
		exit(1);
	}
	size_t length = strlen(label);

	if (length > 5 && !strcmp(label + length - 5, " cold"))
		empty_caches();
	fprintf(trace, "b %s\n", label);
	memset(counts, 0, sizeof(counts));
	open_operation = true;
}

static void ends(unsigned translated_for, void *unused)
{
	(void)translated_for;
	(void)unused;
	event('o');
	open_operation = false;
}

static void translated(uint64_t id, struct qemu_plugin_tb *block)
{
	own_id = id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
		uint32_t word = 0;

		qemu_plugin_insn_data(instruction, &word, sizeof(word));
		if (word == END && counting)
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, ends, NO_REGISTERS, NULL);
		if (counting && word != BEGIN && word != END) {
			struct instruction *kept = malloc(sizeof(*kept));

			if (!kept)
				exit(1);
			kept->at = qemu_plugin_insn_vaddr(instruction);
			kept->line = (uint64_t)(uintptr_t)qemu_plugin_insn_haddr(instruction) >> 6;
			kept->kind = kind_of(word);
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, executed, NO_REGISTERS, kept);
			qemu_plugin_register_vcpu_mem_cb(instruction, accessed, NO_REGISTERS, READS_AND_WRITES, NULL);
		}
		if (word == BEGIN)
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, begins, READS_REGISTERS, NULL);
	}
}

static void over(uint64_t id, void *unused)
{
	(void)id;
	(void)unused;
	fclose(trace);
}

EXPORT int qemu_plugin_install(uint64_t id, const qemu_info_t *info, int argc, char **argv)
{
	if (strcmp(info->target_name, "aarch64")) {
		fprintf(stderr, "priced: for aarch64 alone\n");
		return -1;
	}
	if (argc != 1 || strncmp(argv[0], "trace=", 6) || !(trace = fopen(argv[0] + 6, "w"))) {
		fprintf(stderr, "priced: trace=FILE is needed, and a file that can be written\n");
		return -1;
	}
	empty_caches();
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, over, NULL);
	return 0;
}
