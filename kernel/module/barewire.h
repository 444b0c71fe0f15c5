/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Between the two halves of the module: the structures and functions of the Rust half (src/abi.rs). */
#ifndef BAREWIRE_H
#define BAREWIRE_H

#include <linux/types.h>

#define BW_LINES 4
/* A message waits for the block's interrupt: bw_run and bw_resume. */
#define BW_PENDING 1

enum bw_block { BW_ECSPI, BW_BCM2835, BW_PL022, BW_DW_SSI, BW_ATMEL, BW_CADENCE, BW_MCSPI, BW_SIFIVE };

/* A chip select of the board: none, a native line of the block by its number, a GPIO by its place in the table. */
struct bw_line {
	u8 kind; /* 0 absent, 1 native, 2 GPIO */
	u8 channel;
	u8 active_high;
};

struct bw_board {
	void __iomem *registers;
	void *context; /* handed to bw_line_set */
	u32 block;
	u32 reference_hz;
	u32 poll_limit_ns;
	u8 native_lines; /* DW_apb_ssi: how many the block has */
	u8 d0_sends; /* McSPI: MOSI is on SPIDAT[0] */
	struct bw_line lines[BW_LINES];
};

struct bw_settings {
	u32 speed_hz;
	u32 cs_setup_ns;
	u32 cs_hold_ns;
	u32 cs_inactive_ns;
	u32 word_delay_ns;
	u32 poll_limit_ns;
	u8 chip_select;
	u8 mode;
	u8 bits_per_word;
};

/* A field of 0 is the chip's own. */
struct bw_transfer {
	const void *tx;
	void *rx;
	u32 len;
	u32 speed_hz;
	u32 word_delay_ns;
	u32 delay_ns;
	u32 cs_change_delay_ns;
	u8 bits_per_word;
	u8 cs_change;
};

struct bw_sizes {
	size_t host;
	size_t preset;
	size_t transfer;
};

struct bw_limits {
	u32 min_speed_hz;
	u32 max_speed_hz;
	u32 bits_per_word_mask;
};

/* The Rust half. Calls for one slot never overlap; src/lib.rs has the order. */
struct bw_sizes bw_sizes(void);
int bw_init(void *slot, const struct bw_board *board);
void bw_leave(void *slot);
void bw_limits(const void *slot, struct bw_limits *limits);
s64 bw_configure(const void *slot, void *preset, const struct bw_settings *settings);
int bw_exchange(void *slot, const void *preset, const void *tx, void *rx, size_t len);
int bw_run(void *slot, const void *preset, const struct bw_transfer *transfers, size_t count, void *memory, bool may_wait);
int bw_resume(void *slot);
void bw_arm(void *slot);
bool bw_takes_selected(const void *slot, const void *preset, size_t len);
int bw_exchange_ecspi(void *slot, const void *preset, const void *tx, void *rx, size_t len);
int bw_exchange_bcm2835(void *slot, const void *preset, const void *tx, void *rx, size_t len);
int bw_exchange_pl022(void *slot, const void *preset, const void *tx, void *rx, size_t len);
int bw_exchange_other(void *slot, const void *preset, const void *tx, void *rx, size_t len);
void bw_reclaim(void *slot);

/* What it calls. */
void bw_line_set(void *context, u32 line, bool active);
u64 bw_now_ns(void);
void bw_wait_ns(u64 ns);
#ifdef CONFIG_UML
u32 bw_register_read(const void __iomem *at);
void bw_register_write(void __iomem *at, u32 value);
#endif
void __noreturn bw_panicked(const u8 *file, size_t length, u32 line);

#endif
