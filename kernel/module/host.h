/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A controller, as the files of the C half share it. */
#ifndef BAREWIRE_HOST_H
#define BAREWIRE_HOST_H

#include <linux/atomic.h>
#include <linux/clk.h>
#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spi/spi.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include "barewire.h"

/* A delay up to this may be spun in the interrupt handler; a message with a longer one is polled. */
#define BW_SPIN_NS 10000

struct gpio_chip;
struct gpio_desc;
struct platform_device;
struct resource;

/* A write to a register. */
struct bw_write {
	void __iomem *at;
	u32 value;
};

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
	u32 mask;
	/* Where one write is the whole edge. */
	struct bw_write high, low;
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

	/* Who has the block, for messages and for api.c, which explains it: BW_FREE, BW_CORE, or the task in whose
	 * context (that of an interrupt is the interrupted one) a run is under way. Not used while `prepared` is empty.
	 */
	atomic_long_t owner;
	/* Handles, under io_mutex. */
	struct list_head prepared;
	/* The chip, or handle, that the block is configured for; selected.h. */
	struct bw_chip *last;
	/* bw_exchange_quiet is under way. For panic.c, which must know whether the bank's lock is held. */
	bool quiet;
	/* The last `key` that a chip got. */
	unsigned long keys;
	/* The `ready` for which the handles are configured. */
	u32 prepared_ready;
	/* statistics.h */
	unsigned long runs, run_bytes;
	atomic_t run_waits, run_refusals;
	/* Unbound; and asleep with the system: both under io_mutex. */
	bool gone, asleep;

	/* Guards `flying`, `result`, and the slot while a message is in flight. */
	spinlock_t lock;
	bool flying;
	int result;
	struct completion done;
	struct timer_list watch;

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

/* What host->ready never is. */
#define BW_UNREADY U32_MAX

/* A chip's settings as register values. */
struct bw_chip {
	/* The host's `ready` for which they are, or BW_UNREADY. */
	u32 ready;
	u32 effective_hz;
	/* selected.h: exchanges up to these take the two shortest paths; 0 unless this is host->last. */
	size_t held_len, selected_len;
	/* Which configuration of the chip this is, among all of the controller's chips: never 0. */
	unsigned long key;
	enum bw_block block;
	bool direct;
	/* How it is selected: by the generic driver's shadow, or by one write. */
	struct gpio_chip *generic;
	void __iomem *data;
	/* Its bit of the bank, and what of it is low while the chip is selected, and while it is not. */
	unsigned long mask, selected_low, deselected_low;
	struct bw_write select, deselect;
	u8 preset[] __aligned(16);
};

/* What the Rust half asks for: bind.c. */
extern struct bw_sizes bw_size;

#define BW_FREE 0l
#define BW_CORE 1l

/* door_bind.c */
#ifdef CONFIG_UML
static inline int bw_doors_begin(void)
{
	return 0;
}

static inline void bw_doors_end(void) {}
#else
int bw_doors_begin(void);
void bw_doors_end(void);
#endif

/* api.c */
void bw_enter_shared(struct bw_host *host);
void bw_exit_shared(struct bw_host *host);

/* Under io_mutex, around all that uses the block or `ready`: takes it from handles, and gives it back. */
static __always_inline bool bw_enter(struct bw_host *host)
{
	if (likely(list_empty(&host->prepared)))
		return false;
	bw_enter_shared(host);
	return true;
}

static __always_inline void bw_exit(struct bw_host *host, bool entered)
{
	if (unlikely(entered))
		bw_exit_shared(host);
}

static __always_inline bool bw_overlap(const void *a, const void *b, size_t len)
{
	return a < b + len && b < a + len;
}
/* bind.c */
typedef int bw_prober(struct device *dev, struct resource *where, int irq, const struct bw_kind *kind);
int bw_platform_found(struct platform_device *pdev, bw_prober *probe);
int bw_begin(struct bw_host *host, struct device *dev, struct resource *where, int irq, const struct bw_kind *kind);

/* blocks.c */
extern const struct bw_kind bw_kinds[];
extern const struct of_device_id bw_blocks[], bw_own[];
int bw_find_properties(struct bw_host *host);
int bw_find_clocks(struct bw_host *host);

/* line.c */
int bw_find_lines(struct bw_host *host);

/* message.c */
int bw_configure_chip(struct bw_host *host, struct spi_device *spi, struct bw_chip *chip, u32 speed_hz, u32 poll_limit_ns);
int bw_reserve(struct bw_host *host, unsigned int count);
int bw_run_listed(struct bw_host *host, struct bw_chip *chip, unsigned int count, bool may_wait);
int bw_make_ready(struct bw_host *host, struct spi_device *spi, struct bw_chip *chip);
struct bw_chip *bw_ready_chip(struct bw_host *host, struct spi_device *spi);
int bw_setup(struct spi_device *spi);
void bw_cleanup(struct spi_device *spi);
int bw_transfer_one_message(struct spi_controller *ctlr, struct spi_message *msg);
irqreturn_t bw_interrupt(int irq, void *data);
void bw_watch(struct timer_list *timer);

/* memory.c */
extern const struct spi_controller_mem_ops bw_mem_ops;

/* power.c */
extern const struct dev_pm_ops bw_pm;
int bw_runtime_suspend(struct device *dev);
int bw_runtime_resume(struct device *dev);
int bw_clocks_on(struct bw_host *host);
void bw_clocks_off(struct bw_host *host);
int bw_bring_up(struct bw_host *host);
void bw_next_ready(struct bw_host *host);
int bw_wake(struct bw_host *host);
void bw_power_begins(struct bw_host *host);
void bw_close(struct bw_host *host, bool *why);
void bw_power_ends(struct bw_host *host);
void bw_idle(struct work_struct *work);
void bw_idle_later(struct bw_host *host);

/* selected.c */
void bw_find_edges(struct bw_host *host, struct spi_device *spi, struct bw_chip *chip);
void bw_forget_selected(struct bw_host *host, struct bw_chip *chip);
void bw_remember_selected(struct bw_host *host, struct bw_chip *chip, size_t len);
int bw_exchange_any(struct bw_host *host, struct bw_chip *chip, const void *tx, void *rx, size_t len);
int bw_exchange_quiet(struct bw_host *host, struct bw_chip *chip, const void *tx, void *rx, size_t len);
int bw_exchange_failed(struct bw_host *host, int ret);

/* statistics.c */
extern const struct attribute_group *bw_folders[];

/* panic.c */
void bw_panic_knows(struct bw_host *host);
void bw_panic_forgets(struct bw_host *host);

#endif
