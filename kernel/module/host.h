/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A controller, as the files of the C half share it. */
#ifndef BAREWIRE_HOST_H
#define BAREWIRE_HOST_H

#include <linux/clk.h>
#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/mutex.h>
#include <linux/spi/spi.h>
#include <linux/workqueue.h>
#include "barewire.h"

/* A delay up to this may be spun in the interrupt handler; a message with a longer one is polled. */
#define BW_SPIN_NS 10000

struct gpio_chip;
struct gpio_desc;

/* A kind of block, as the C half knows it. */
struct bw_kind {
	enum bw_block block;
	/* Names of its clocks and its reset; NULL: the first one, for `bus_clock` none. */
	const char *clock, *bus_clock, *reset;
	/* Its clock's rate where the device tree has no clock. */
	u32 fixed_hz;
	/* Native select lines. */
	u8 lines;
	/* Bytes that one interrupt brings at most. */
	u8 batch_bytes;
	/* It can connect its output to its input. */
	bool loops;
};

/* The GPIO of a chip select. */
struct bw_gpio {
	/* Set where the line is driven by the generic driver's own shadow: line.c. */
	struct gpio_chip *generic;
	void __iomem *data;
	/* Where it is driven by writes of its bit to one of two registers. */
	void __iomem *set, *clear;
	u32 mask;
	bool active_low;
	/* The release that is passed over, counted down; 0: none. */
	u32 keep_after;
	struct gpio_desc *desc;
};

struct bw_host {
	void *slot;
	/* Which bring-up of the block is in force: a chip with this number is configured for it. 0: the block sleeps, or
	 * was given up. */
	u32 ready;
	/* A message came since bw_idle looked. */
	bool used;
	/* It has its reference of runtime power management: from bw_wake to bw_idle. */
	bool held;
	/* A panic ended it. */
	bool dead;
	/* The chip that the last message left selected. */
	struct spi_device *kept;
	struct bw_gpio gpios[BW_LINES];
	/* For messages that are not one plain exchange. */
	struct bw_transfer *transfers;
	void *memory;
	unsigned int capacity;

	/* Guards `flying`, `result`, and the slot while a message is in flight. */
	spinlock_t lock;
	bool flying;
	int result;
	struct completion done;

	const struct bw_kind *kind;
	struct spi_controller *ctlr;
	struct device *dev;
	struct clk *per, *ipg;
	int irq;
	u32 generation;
	struct bw_board board;
	struct delayed_work idle;
	struct list_head all;
};

/* A chip's settings as register values. */
struct bw_chip {
	u32 ready;
	u32 effective_hz;
	u8 preset[] __aligned(16);
};

/* What the Rust half asks for: bind.c. */
extern struct bw_sizes bw_size;

/* blocks.c */
extern const struct bw_kind bw_kinds[];
extern const struct of_device_id bw_blocks[], bw_own[];
int bw_find_properties(struct bw_host *host);
int bw_find_clocks(struct bw_host *host);

/* line.c */
int bw_find_lines(struct bw_host *host);

/* message.c */
int bw_reserve(struct bw_host *host, unsigned int count);
int bw_run_listed(struct bw_host *host, struct bw_chip *chip, unsigned int count, bool may_wait);
struct bw_chip *bw_ready_chip(struct bw_host *host, struct spi_device *spi);
int bw_setup(struct spi_device *spi);
void bw_cleanup(struct spi_device *spi);
int bw_transfer_one_message(struct spi_controller *ctlr, struct spi_message *msg);
irqreturn_t bw_interrupt(int irq, void *data);

/* memory.c */
extern const struct spi_controller_mem_ops bw_mem_ops;

/* power.c */
extern const struct dev_pm_ops bw_pm;
int bw_clocks_on(struct bw_host *host);
void bw_clocks_off(struct bw_host *host);
int bw_bring_up(struct bw_host *host);
void bw_next_ready(struct bw_host *host);
int bw_wake(struct bw_host *host);
void bw_power_begins(struct bw_host *host);
void bw_power_ends(struct bw_host *host);
void bw_idle(struct work_struct *work);
void bw_idle_later(struct bw_host *host);

/* panic.c */
void bw_panic_knows(struct bw_host *host);
void bw_panic_forgets(struct bw_host *host);

#endif
