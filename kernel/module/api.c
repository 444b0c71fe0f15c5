// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Prepared accesses (barewire_spi.h) beside the SPI core's messages.
 *
 * The core's messages are ordered by io_mutex, which an interrupt cannot take. So the block has an owner, one word:
 * 1. A run takes it by a compare-and-swap with preemption off, or gives up. It holds it for one short, polled exchange, never
 *    across a sleep. An interrupt on the same processor finds it taken, and gives up: nothing spins for a run that it interrupted.
 * 2. A message (under io_mutex) takes it too, if there are handles at all, and keeps it while it sleeps. It spins while a run of
 *    another processor ends. Meanwhile `ready` is 0, at which new runs give up.
 * 3. A run looks only once it is the owner whether it may go on: the chip's register values are those of the block as it is now
 *    (`ready`: awake, brought up, no other chip left selected), the core has nothing queued (a context's spi_async comes first), and
 *    the bus is not locked. Who locks the bus sets the flag before its first message takes the word, so no run comes between its
 *    messages.
 * 4. A thread's run that had to give up is a spi_sync: it waits its turn in the core's own order.
 *
 * `prepared`, and with it whether messages take the word, changes under io_mutex.
 */
#include <linux/atomic.h>
#include <linux/device.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include "barewire_spi.h"
#include "selected.h"
#include "statistics.h"

/* Exchanges a second, of the longest that there may be: preemption is off meanwhile. */
#define BW_RUN_HZ 1000

/* Of slower clocks, the two that a block needs to settle would be slept: BW_SPIN_NS. */
#define BW_SLOWEST_HZ 400000

struct barewire_spi {
	struct bw_host *host;
	struct spi_controller *ctlr;
	/* That of the chip, or BW_UNREADY for a chip whose delays would be slept. */
	u32 ready;
	bool polled;
	size_t max_len;
	u32 speed_hz;
	struct spi_device *spi;
	struct list_head all;
	/* The last: its size is the Rust half's. */
	struct bw_chip chip;
};

void bw_enter_shared(struct bw_host *host)
{
	u32 ready = host->ready;

	while (unlikely(atomic_long_cmpxchg_acquire(&host->owner, BW_FREE, BW_CORE) != BW_FREE)) {
		WRITE_ONCE(host->ready, 0);
		cpu_relax();
	}
	/* A run that panicked has ended it. */
	if (unlikely(host->ready != ready) && !READ_ONCE(host->dead))
		WRITE_ONCE(host->ready, ready);
}

static int bw_configure_handle(struct barewire_spi *p)
{
	int ret = bw_configure_chip(p->host, p->spi, &p->chip, p->speed_hz, U32_MAX);

	p->ready = p->polled && !ret ? p->chip.ready : BW_UNREADY;
	return ret;
}

void bw_exit_shared(struct bw_host *host)
{
	struct barewire_spi *p;

	/* While a chip is left selected, only messages run: they deselect it. */
	if (unlikely(host->ready && host->ready != host->prepared_ready && !host->kept)) {
		list_for_each_entry(p, &host->prepared, all)
			bw_configure_handle(p);
		host->prepared_ready = host->ready;
	}
	atomic_long_set_release(&host->owner, BW_FREE);
}

/* Any exchange. */
static noinline int bw_run_any(struct barewire_spi *p, const void *tx, void *rx, size_t len)
{
	struct bw_host *host = p->host;
	int ret = -EAGAIN;

	if (!len || len > p->max_len)
		return -EMSGSIZE;
	if (!tx && !rx)
		return -EINVAL;
	if (tx && rx && !bw_overlap(tx, rx, len))
		ret = bw_exchange_any(host, &p->chip, tx, rx, len);
	else if (tx && rx && tx != rx)
		return -EINVAL;
	if (ret != -EAGAIN)
		return ret;
	host->transfers[0] = (struct bw_transfer){ .tx = tx, .rx = rx, .len = len };
	ret = bw_run_listed(host, &p->chip, 1, false);
	if (!ret)
		bw_remember_selected(host, &p->chip, len);
	return ret;
}

/* Whether the core has no message. Its own flag is set at the end of a run of its queue, after it let go of the queue's lock, so it
 * may be wrong about a message that came in between: that one is on the list, and then the current one.
 */
static __always_inline bool bw_is_idle(const struct spi_controller *ctlr)
{
	return ctlr->queue_empty && list_empty(&ctlr->queue) && !READ_ONCE(ctlr->cur_msg);
}

static __always_inline void bw_interrupts_off(bool thread, unsigned long *flags)
{
	if (thread) {
		lockdep_assert_irqs_enabled();
		local_irq_disable();
	} else {
		local_irq_save(*flags);
	}
}

static __always_inline void bw_interrupts_back(bool thread, unsigned long flags)
{
	if (thread)
		local_irq_enable();
	else
		local_irq_restore(flags);
}

/* -EBUSY, with nothing done, if it is not this handle's turn. In a thread interrupts are on. */
static __always_inline int bw_try(struct barewire_spi *p, const void *tx, void *rx, size_t len, bool thread, bool locked)
{
	struct bw_host *host = p->host;
	unsigned long flags = 0;
	int ret = -EBUSY;

	bw_interrupts_off(thread, &flags);
	if (unlikely(atomic_long_cmpxchg_acquire(&host->owner, BW_FREE, (long)current) != BW_FREE))
		goto out;
	if (unlikely(READ_ONCE(host->ready) != p->ready || !bw_is_idle(p->ctlr) || (!locked && p->ctlr->bus_lock_flag)))
		goto release;
	if (likely(len - 1 < p->chip.held_len && tx && rx && !bw_overlap(tx, rx, len))) {
		ret = bw_exchange_held(host, &p->chip, tx, rx, len);
	} else if (len - 1 < p->chip.selected_len && tx && rx && !bw_overlap(tx, rx, len)) {
		ret = bw_exchange_quiet(host, &p->chip, tx, rx, len);
	} else {
		/* Longer ones let interrupts in. */
		preempt_disable();
		bw_interrupts_back(thread, flags);
		ret = bw_run_any(p, tx, rx, len);
		bw_count_run(host, len, ret);
		atomic_long_set_release(&host->owner, BW_FREE);
		preempt_enable();
		return ret;
	}
	bw_count_run(host, len, ret);
release:
	atomic_long_set_release(&host->owner, BW_FREE);
out:
	bw_interrupts_back(thread, flags);
	return ret;
}

/* In the order of the core's messages. */
static noinline int bw_run_waiting(struct barewire_spi *p, const void *tx, void *rx, size_t len, bool locked)
{
	struct spi_transfer transfer = { .tx_buf = tx, .rx_buf = rx, .len = len, .speed_hz = p->speed_hz };
	struct spi_message message;

	if (READ_ONCE(p->host->gone))
		return -ESHUTDOWN;
	bw_count_wait(p->host);
	if (!len || len > p->max_len)
		return -EMSGSIZE;
	if (!tx && !rx)
		return -EINVAL;
	spi_message_init_with_transfers(&message, &transfer, 1);
	return locked ? spi_sync_locked(p->spi, &message) : spi_sync(p->spi, &message);
}

int __attribute__((flatten)) barewire_spi_run(struct barewire_spi *p, const void *tx, void *rx, size_t len)
{
	int ret = bw_try(p, tx, rx, len, true, false);

	return likely(ret != -EBUSY) ? ret : bw_run_waiting(p, tx, rx, len, false);
}
EXPORT_SYMBOL_GPL(barewire_spi_run);

int barewire_spi_run_locked(struct barewire_spi *p, const void *tx, void *rx, size_t len)
{
	int ret = bw_try(p, tx, rx, len, true, true);

	return likely(ret != -EBUSY) ? ret : bw_run_waiting(p, tx, rx, len, true);
}
EXPORT_SYMBOL_GPL(barewire_spi_run_locked);

static noinline int bw_refused(struct barewire_spi *p)
{
	struct bw_host *host = p->host;

	if (!p->polled)
		return -EOPNOTSUPP;
	if (READ_ONCE(host->gone) || READ_ONCE(host->asleep))
		return -ESHUTDOWN;
	if (READ_ONCE(host->dead))
		return -EIO;
	bw_count_busy(host);
	return -EBUSY;
}

int __attribute__((flatten)) barewire_spi_try_run(struct barewire_spi *p, const void *tx, void *rx, size_t len)
{
	int ret = bw_try(p, tx, rx, len, false, false);

	return likely(ret != -EBUSY) ? ret : bw_refused(p);
}
EXPORT_SYMBOL_GPL(barewire_spi_try_run);

static bool bw_is_long(const struct spi_delay *delay, u32 speed_hz)
{
	struct spi_delay copy = *delay;
	int ns = copy.value ? spi_delay_to_ns(&copy, &(struct spi_transfer){ .effective_speed_hz = speed_hz }) : 0;

	return ns < 0 || ns > BW_SPIN_NS;
}

/* Under io_mutex: adds the handle to its host, awake. */
static int bw_add(struct bw_host *host, struct barewire_spi *p)
{
	int ret = 0;

	/* From the first handle on, messages take the owner's word. */
	list_add(&p->all, &host->prepared);
	bw_enter_shared(host);
	if (host->gone || host->asleep)
		ret = -ESHUTDOWN;
	else if (!host->ready)
		ret = bw_wake(host);
	if (!ret)
		ret = bw_configure_handle(p);
	if (ret)
		list_del(&p->all);
	else if (host->kept)
		/* Its values are made again once that chip is deselected. */
		p->ready = BW_UNREADY;
	bw_exit_shared(host);
	return ret;
}

struct barewire_spi *barewire_spi_prepare(struct spi_device *spi, size_t max_len, u32 speed_hz)
{
	struct spi_controller *ctlr = spi->controller;
	struct bw_host *host = spi_controller_get_devdata(ctlr);
	struct barewire_spi *p;
	int ret;

	if (ctlr->transfer_one_message != bw_transfer_one_message)
		return ERR_PTR(-ENODEV);
	speed_hz = min(speed_hz ?: spi->max_speed_hz, ctlr->max_speed_hz);
	if (!max_len || max_len > speed_hz / (8 * BW_RUN_HZ))
		return ERR_PTR(-EMSGSIZE);
	p = kzalloc(sizeof(*p) + bw_size.preset, GFP_KERNEL);
	if (!p)
		return ERR_PTR(-ENOMEM);
	p->host = host;
	p->ctlr = ctlr;
	p->spi = spi_dev_get(spi);
	p->max_len = max_len;
	p->speed_hz = speed_hz;
	p->polled = speed_hz >= BW_SLOWEST_HZ && !bw_is_long(&spi->cs_setup, speed_hz) &&
		    !bw_is_long(&spi->cs_hold, speed_hz) && !bw_is_long(&spi->cs_inactive, speed_hz) &&
		    !bw_is_long(&spi->word_delay, speed_hz);
	mutex_lock(&ctlr->io_mutex);
	ret = bw_add(host, p);
	mutex_unlock(&ctlr->io_mutex);
	if (!ret)
		return p;
	spi_dev_put(spi);
	kfree(p);
	return ERR_PTR(ret);
}
EXPORT_SYMBOL_GPL(barewire_spi_prepare);

void barewire_spi_release(struct barewire_spi *p)
{
	if (IS_ERR_OR_NULL(p))
		return;
	mutex_lock(&p->ctlr->io_mutex);
	bw_enter_shared(p->host);
	list_del(&p->all);
	bw_forget_selected(p->host, &p->chip);
	bw_exit_shared(p->host);
	mutex_unlock(&p->ctlr->io_mutex);
	/* The last reference of a chip that is gone may be the last one of the host's memory. */
	spi_dev_put(p->spi);
	kfree(p);
}
EXPORT_SYMBOL_GPL(barewire_spi_release);

static void bw_release_managed(void *p)
{
	barewire_spi_release(p);
}

struct barewire_spi *devm_barewire_spi_prepare(struct spi_device *spi, size_t max_len, u32 speed_hz)
{
	struct barewire_spi *p = barewire_spi_prepare(spi, max_len, speed_hz);
	int ret = PTR_ERR_OR_ZERO(p);

	if (!ret)
		ret = devm_add_action_or_reset(&spi->dev, bw_release_managed, p);
	return ret ? ERR_PTR(ret) : p;
}
EXPORT_SYMBOL_GPL(devm_barewire_spi_prepare);
