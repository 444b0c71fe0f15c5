/*
 * What QEMU's plugins of guests/ need of the interface to TCG plugins (version 4), as documented: QEMU's symbols are looked up when
 * a plugin is loaded.
 */
#ifndef BAREWIRE_GUESTS_PLUGIN_H
#define BAREWIRE_GUESTS_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 4;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_register;
struct qemu_plugin_hwaddr;
enum { NO_REGISTERS = 0, READS_REGISTERS = 1, READS_AND_WRITES = 3 };
/* Of GLib, which QEMU links. */
typedef struct { uint8_t *data; unsigned length; } GByteArray;
typedef struct { char *data; unsigned length; } GArray;
extern GByteArray *g_byte_array_new(void);
extern GByteArray *g_byte_array_set_size(GByteArray *, unsigned);
typedef struct { struct qemu_plugin_register *handle; const char *name, *feature; } qemu_plugin_reg_descriptor;
/* Its beginning is all that is used. */
typedef struct { const char *target_name; } qemu_info_t;
/* What an access had: a kind, and up to 16 bytes. */
typedef struct { int kind; union { uint8_t u8; uint16_t u16; uint32_t u32; uint64_t u64, pair[2]; } data; } qemu_plugin_mem_value;
extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*)(uint64_t id, struct qemu_plugin_tb *));
extern void qemu_plugin_register_atexit_cb(uint64_t id, void (*)(uint64_t id, void *), void *);
extern void qemu_plugin_reset(uint64_t id, void (*)(uint64_t id));
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *, size_t);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
extern void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned cpu, void *),
						   int flags, void *);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *,
					     void (*)(unsigned cpu, uint32_t info, uint64_t virtual, void *),
					     int flags, int kind, void *);
extern struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(uint32_t info, uint64_t virtual);
extern bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *);
extern uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *);
extern bool qemu_plugin_mem_is_store(uint32_t info);
extern qemu_plugin_mem_value qemu_plugin_mem_get_value(uint32_t info);
extern bool qemu_plugin_read_memory_vaddr(uint64_t address, GByteArray *, size_t);
extern GArray *qemu_plugin_get_registers(void);
extern int qemu_plugin_read_register(struct qemu_plugin_register *, GByteArray *);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);

/* A register of the processor; whether there is one of that name. */
static inline bool read_register(const char *name, uint64_t *value)
{
	static GByteArray *bytes;
	GArray *all = qemu_plugin_get_registers();
	const qemu_plugin_reg_descriptor *each = (void *)all->data;

	if (!bytes)
		bytes = g_byte_array_new();
	g_byte_array_set_size(bytes, 0);
	for (unsigned i = 0; i < all->length; i++) {
		if (strcmp(each[i].name, name))
			continue;
		int size = qemu_plugin_read_register(each[i].handle, bytes);

		*value = 0;
		if (size > 0 && size <= 8)
			memcpy(value, bytes->data, size);
		return true;
	}
	return false;
}

#endif
