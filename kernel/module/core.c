// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * barewire: SPI controllers in place of Linux's drivers, for every SPI client there is.
 *
 * This half knows the kernel; the registers are the Rust half's (barewire.h). A message runs in transfer_one_message, in
 * the context of its caller where the bus is idle, under the SPI core's io_mutex: that is the only lock of a message.
 *
 * Power: a message finds the block awake, or wakes it. While messages come the block stays awake, so a message does not
 * count references: bw_idle looks once in an autosuspend delay whether any came, and else gives the reference back. It
 * takes io_mutex for that, so no message is under way. Whenever the block wakes, its registers and its clock may be
 * others: it is brought up anew, and every chip is configured anew before its next message (`generation`).
 *
 * Interrupts: a transfer that takes longer on the wire than poll_limit_us is left in flight, and the caller sleeps. The
 * handler continues the message; `lock` keeps it and the sleeper, who looks whether the time is over, apart.
 */
#include <linux/amba/bus.h>
#include <linux/clk.h>
#include <linux/delay.h>
#include <linux/gpio/consumer.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/of.h>
#include <linux/pinctrl/consumer.h>
#include <linux/platform_device.h>
#include <linux/pm_runtime.h>
#include <linux/reset.h>
#include <linux/slab.h>
#include <linux/spi/spi.h>
#include <linux/version.h>
#include "barewire.h"

/* Transfers of a message for which there is always memory. */
#define BW_TRANSFERS 16
#define BW_AUTOSUSPEND_MS 2000
/* A delay up to this may be spun in the interrupt handler; a message with a longer one is polled. */
#define BW_SPIN_NS 10000

static unsigned int poll_limit_us = 30;
module_param(poll_limit_us, uint, 0444);
MODULE_PARM_DESC(poll_limit_us, "transfers that take longer on the wire wait by interrupt (microseconds, default 30)");

struct bw_host {
	void *slot;
	struct spi_controller *ctlr;
	/* A message came since bw_idle looked. */
	bool used;
	bool awake;
	/* A panic ended it. */
	bool dead;
	/* How often the block was brought up. */
	u32 generation;
	struct task_struct *runner;
	struct gpio_desc *lines[BW_LINES];
	bool line_low[BW_LINES];
	/* For messages that are not one plain exchange. */
	struct bw_transfer *transfers;
	void *memory;
	unsigned int capacity;

	/* Guards `flying`, `result`, and the slot while a message is in flight. */
	spinlock_t lock;
	bool flying;
	int result;
	struct completion done;

	struct device *dev;
	struct clk *per, *ipg;
	int irq;
	struct bw_board board;
	struct delayed_work idle;
	struct list_head all;
};

/* A chip's settings as register values. */
struct bw_chip {
	u32 generation;
	u32 effective_hz;
	u8 preset[] __aligned(16);
};

static struct bw_sizes sizes;
static LIST_HEAD(hosts);
static DEFINE_SPINLOCK(hosts_lock);

/* What the Rust half calls. */

void bw_line_set(void *context, u32 line, bool active)
{
	struct bw_host *host = context;

	if (line < BW_LINES && host->lines[line])
		gpiod_set_raw_value(host->lines[line], active != host->line_low[line]);
}

u64 bw_now_ns(void)
{
	return ktime_get_ns();
}

void bw_wait_ns(u64 ns)
{
	u64 begun = ktime_get_ns();

	if (ns > BW_SPIN_NS && in_task() && !irqs_disabled() && preemptible())
		usleep_range(DIV_ROUND_UP_ULL(ns, 1000), DIV_ROUND_UP_ULL(ns, 1000) + 50);
	while (ktime_get_ns() - begun <= ns)
		cpu_relax();
}

#ifdef CONFIG_PREEMPT_RT
static void bw_give_up(struct mutex *lock) {}
#else
/* Unlocks what the ending task holds, so that others get an error, and do not wait for ever. */
static void bw_give_up(struct mutex *lock)
{
	if ((atomic_long_read(&lock->owner) & ~7l) == (long)current)
		mutex_unlock(lock);
}
#endif

void __noreturn bw_panicked(const u8 *file, size_t length, u32 line)
{
	struct bw_host *host;
	unsigned int i;

	pr_emerg("barewire: panic at %.*s:%u\n", (int)length, file, line);
	/* Without hosts_lock: a host whose message is running is not removed. */
	list_for_each_entry(host, &hosts, all) {
		if (READ_ONCE(host->runner) != current && !(in_hardirq() && host->flying))
			continue;
		WRITE_ONCE(host->dead, true);
		for (i = 0; i < BW_LINES; i++)
			bw_line_set(host, i, false);
		dev_emerg(host->dev, "given up: every message fails with -EIO until the driver is bound anew\n");
		if (in_task()) {
			host->runner = NULL;
			if (host->ctlr->cur_msg) {
				host->ctlr->cur_msg->status = -EIO;
				spi_finalize_current_message(host->ctlr);
			}
			bw_give_up(&host->ctlr->io_mutex);
			bw_give_up(&host->ctlr->bus_lock_mutex);
		}
	}
	BUG();
}

/* Power. */

static int bw_bring_up(struct bw_host *host)
{
	host->board.reference_hz = clk_get_rate(host->per);
	host->generation++;
	return bw_init(host->slot, &host->board);
}

static int bw_clocks_on(struct bw_host *host)
{
	int ret = clk_prepare_enable(host->per);

	if (ret)
		return ret;
	ret = clk_prepare_enable(host->ipg);
	if (ret)
		clk_disable_unprepare(host->per);
	return ret;
}

static void bw_clocks_off(struct bw_host *host)
{
	clk_disable_unprepare(host->ipg);
	clk_disable_unprepare(host->per);
}

static int bw_runtime_suspend(struct device *dev)
{
	struct bw_host *host = dev_get_drvdata(dev);

	if (!host->dead)
		bw_leave(host->slot);
	bw_clocks_off(host);
	pinctrl_pm_select_sleep_state(dev);
	return 0;
}

static int bw_runtime_resume(struct device *dev)
{
	struct bw_host *host = dev_get_drvdata(dev);
	int ret;

	pinctrl_pm_select_default_state(dev);
	ret = bw_clocks_on(host);
	if (ret)
		return ret;
	ret = bw_bring_up(host);
	if (ret)
		bw_clocks_off(host);
	return ret;
}

static unsigned long bw_idle_jiffies(struct bw_host *host)
{
	int ms = READ_ONCE(host->dev->power.autosuspend_delay);

	return msecs_to_jiffies(ms < 0 ? BW_AUTOSUSPEND_MS : max(ms, 1));
}

static noinline int bw_wake(struct bw_host *host)
{
	int ret;

	if (host->dead)
		return -EIO;
	ret = pm_runtime_resume_and_get(host->dev);
	if (ret < 0)
		return ret;
	host->awake = true;
	schedule_delayed_work(&host->idle, bw_idle_jiffies(host));
	return 0;
}

static void bw_idle(struct work_struct *work)
{
	struct bw_host *host = container_of(work, struct bw_host, idle.work);

	mutex_lock(&host->ctlr->io_mutex);
	if (host->used) {
		host->used = false;
		pm_runtime_mark_last_busy(host->dev);
		schedule_delayed_work(&host->idle, bw_idle_jiffies(host));
	} else {
		host->awake = false;
		pm_runtime_put_autosuspend(host->dev);
	}
	mutex_unlock(&host->ctlr->io_mutex);
}

/* Chips. */

static u32 bw_delay_ns(const struct spi_delay *delay, struct spi_transfer *transfer)
{
	struct spi_delay copy = *delay;
	int ns = copy.value ? spi_delay_to_ns(&copy, transfer) : 0;

	return ns < 0 ? 0 : ns;
}

static int bw_configure_chip(struct bw_host *host, struct spi_device *spi, struct bw_chip *chip)
{
	u8 select = spi_get_chipselect(spi, 0);
	struct spi_transfer pace = { .effective_speed_hz = spi->max_speed_hz };
	struct bw_settings settings = {
		.speed_hz = spi->max_speed_hz,
		.cs_setup_ns = bw_delay_ns(&spi->cs_setup, NULL),
		.cs_hold_ns = bw_delay_ns(&spi->cs_hold, NULL),
		.cs_inactive_ns = bw_delay_ns(&spi->cs_inactive, NULL),
		.word_delay_ns = bw_delay_ns(&spi->word_delay, &pace),
		.chip_select = select,
		.mode = spi->mode & 0xff,
		.bits_per_word = spi->bits_per_word,
	};
	s64 hz;

	/* gpiolib knows the polarity of a GPIO: its logical level is high while the chip is selected. */
	if (select < BW_LINES && host->lines[select] && !(spi->mode & SPI_NO_CS))
		settings.mode |= SPI_CS_HIGH;
	hz = bw_configure(host->slot, chip->preset, &settings);
	if (hz < 0) {
		dev_err(&spi->dev, "%u Hz, %u bits, mode %#x on chip select %u: not possible on this controller\n",
			spi->max_speed_hz, spi->bits_per_word, spi->mode, select);
		chip->generation = 0;
		return hz;
	}
	chip->effective_hz = hz;
	chip->generation = host->generation;
	return 0;
}

/* Under io_mutex. */
static int bw_setup(struct spi_device *spi)
{
	struct bw_host *host = spi_controller_get_devdata(spi->controller);
	struct bw_chip *chip = spi_get_ctldata(spi);
	int ret;

	if (!host->awake) {
		ret = bw_wake(host);
		if (ret)
			return ret;
	}
	if (!chip) {
		chip = kzalloc(struct_size(chip, preset, sizes.preset), GFP_KERNEL);
		if (!chip)
			return -ENOMEM;
		ret = bw_configure_chip(host, spi, chip);
		if (ret) {
			kfree(chip);
			return ret;
		}
		spi_set_ctldata(spi, chip);
		return 0;
	}
	return bw_configure_chip(host, spi, chip);
}

static void bw_cleanup(struct spi_device *spi)
{
	kfree(spi_get_ctldata(spi));
	spi_set_ctldata(spi, NULL);
}

/* Messages. */

static irqreturn_t bw_interrupt(int irq, void *data)
{
	struct bw_host *host = data;
	irqreturn_t ours = IRQ_NONE;

	spin_lock(&host->lock);
	if (host->flying) {
		ours = IRQ_HANDLED;
		host->result = bw_resume(host->slot);
		if (host->result == BW_PENDING) {
			bw_arm(host->slot);
		} else {
			host->flying = false;
			complete(&host->done);
		}
	}
	spin_unlock(&host->lock);
	return ours;
}

/* Sleeps until the message in flight has ended. */
static noinline int bw_sleep(struct bw_host *host)
{
	unsigned long flags;

	reinit_completion(&host->done);
	spin_lock_irqsave(&host->lock, flags);
	host->flying = true;
	bw_arm(host->slot);
	spin_unlock_irqrestore(&host->lock, flags);
	while (!wait_for_completion_timeout(&host->done, msecs_to_jiffies(100))) {
		/* The Rust half knows how long it may take, and gives up after that. */
		spin_lock_irqsave(&host->lock, flags);
		if (host->flying) {
			host->result = bw_resume(host->slot);
			host->flying = host->result == BW_PENDING;
			if (host->flying)
				bw_arm(host->slot);
			else
				complete(&host->done);
		}
		spin_unlock_irqrestore(&host->lock, flags);
	}
	return host->result;
}

static int bw_reserve(struct bw_host *host, unsigned int count)
{
	struct bw_transfer *transfers = kmalloc_array(count, sizeof(*transfers), GFP_NOIO);
	void *memory = kmalloc_array(count, sizes.transfer, GFP_NOIO);

	if (!transfers || !memory) {
		kfree(transfers);
		kfree(memory);
		return -ENOMEM;
	}
	kfree(host->transfers);
	kfree(host->memory);
	host->transfers = transfers;
	host->memory = memory;
	host->capacity = count;
	return 0;
}

static bool bw_same_delay(const struct spi_delay *a, const struct spi_delay *b)
{
	return a->value == b->value && (a->unit == b->unit || !a->value);
}

/* Whether a transfer has its chip's settings. */
static __always_inline bool bw_is_plain(const struct spi_transfer *x, const struct spi_device *spi)
{
	return x->speed_hz == spi->max_speed_hz && x->bits_per_word == spi->bits_per_word && !x->delay.value &&
	       !x->cs_change && !x->cs_off && bw_same_delay(&x->word_delay, &spi->word_delay);
}

static __always_inline bool bw_overlap(const void *a, const void *b, size_t len)
{
	return a < b + len && b < a + len;
}

static int bw_list_special(struct bw_transfer *to, struct spi_transfer *x, struct spi_device *spi, bool *slow)
{
	if (x->cs_off)
		return -EINVAL;
	if (x->speed_hz != spi->max_speed_hz)
		to->speed_hz = x->speed_hz;
	if (x->bits_per_word != spi->bits_per_word)
		to->bits_per_word = x->bits_per_word;
	x->effective_speed_hz = x->speed_hz;
	if (!bw_same_delay(&x->word_delay, &spi->word_delay))
		to->word_delay_ns = bw_delay_ns(&x->word_delay, x);
	to->delay_ns = bw_delay_ns(&x->delay, x);
	if (x->cs_change) {
		to->cs_change = 1;
		/* 10 us unless told otherwise: the SPI core's own rule. */
		to->cs_change_delay_ns =
			x->cs_change_delay.value ? bw_delay_ns(&x->cs_change_delay, x)
						 : (x->cs_change_delay.unit == SPI_DELAY_UNIT_USECS ? 10000 : 0);
	}
	*slow |= to->word_delay_ns > BW_SPIN_NS || to->delay_ns > BW_SPIN_NS || to->cs_change_delay_ns > BW_SPIN_NS;
	return 0;
}

static noinline int bw_message_any(struct bw_host *host, struct spi_message *msg, struct bw_chip *chip)
{
	struct spi_device *spi = msg->spi;
	unsigned int count = 0;
	struct spi_transfer *x;
	bool slow = !host->irq;
	int ret;

	list_for_each_entry(x, &msg->transfers, transfer_list) {
		struct bw_transfer *to;

		if (unlikely(count == host->capacity)) {
			unsigned int all = 0;

			list_for_each_entry(x, &msg->transfers, transfer_list)
				all++;
			ret = bw_reserve(host, all);
			if (ret)
				return ret;
			/* From the beginning: the list was in the old memory. */
			return bw_message_any(host, msg, chip);
		}
		to = &host->transfers[count++];
		*to = (struct bw_transfer){ .tx = x->tx_buf, .rx = x->rx_buf, .len = x->len };
		if (unlikely(x->tx_buf && x->rx_buf && x->tx_buf != x->rx_buf && bw_overlap(x->tx_buf, x->rx_buf, x->len)))
			return -EINVAL;
		if (unlikely(!x->tx_buf && !x->rx_buf && x->len)) {
			if (x->len > PAGE_SIZE)
				return -EINVAL;
			to->tx = page_address(ZERO_PAGE(0));
		}
		x->effective_speed_hz = chip->effective_hz;
		if (unlikely(!bw_is_plain(x, spi))) {
			ret = bw_list_special(to, x, spi, &slow);
			if (ret)
				return ret;
		}
	}
	ret = bw_run(host->slot, chip->preset, host->transfers, count, host->memory, !slow);
	return ret == BW_PENDING ? bw_sleep(host) : ret;
}

static int bw_message_one(struct bw_host *host, struct spi_message *msg, struct bw_chip *chip)
{
	struct spi_transfer *x = list_first_entry(&msg->transfers, struct spi_transfer, transfer_list);
	int ret;

	if (list_is_singular(&msg->transfers) && x->tx_buf && x->rx_buf && bw_is_plain(x, msg->spi) &&
	    !bw_overlap(x->tx_buf, x->rx_buf, x->len)) {
		ret = bw_exchange(host->slot, chip->preset, x->tx_buf, x->rx_buf, x->len);
		if (likely(ret != -EAGAIN)) {
			x->effective_speed_hz = chip->effective_hz;
			return ret;
		}
	}
	return bw_message_any(host, msg, chip);
}

static int bw_transfer_one_message(struct spi_controller *ctlr, struct spi_message *msg)
{
	struct bw_host *host = spi_controller_get_devdata(ctlr);
	struct bw_chip *chip = spi_get_ctldata(msg->spi);
	int ret = 0;

	host->used = true;
	if (unlikely(!host->awake))
		ret = bw_wake(host);
	if (unlikely(host->dead))
		ret = -EIO;
	if (likely(!ret) && unlikely(chip->generation != host->generation))
		ret = bw_configure_chip(host, msg->spi, chip);
	if (likely(!ret)) {
		host->runner = current;
		ret = bw_message_one(host, msg, chip);
		host->runner = NULL;
	}
	if (likely(!ret))
		msg->actual_length = msg->frame_length;
	msg->status = ret;
	spi_finalize_current_message(ctlr);
	return 0;
}

/* Binding. */

/* The board's select lines: GPIOs where `cs-gpios` has them, else native ones, where a chip has one. */
static int bw_find_lines(struct bw_host *host)
{
	struct bw_line *lines = host->board.lines;
	int i, count = gpiod_count(host->dev, "cs");
	struct device_node *child;

	if (count > BW_LINES)
		return dev_err_probe(host->dev, -EINVAL, "%d cs-gpios; at most %d\n", count, BW_LINES);
	for (i = 0; i < count; i++) {
		struct gpio_desc *line = devm_gpiod_get_index_optional(host->dev, "cs", i, GPIOD_OUT_LOW);

		if (IS_ERR(line))
			return dev_err_probe(host->dev, PTR_ERR(line), "chip select %d\n", i);
		if (!line)
			continue;
		if (gpiod_cansleep(line))
			return dev_err_probe(host->dev, -EOPNOTSUPP, "chip select %d: its GPIO's driver sleeps\n", i);
		gpiod_set_consumer_name(line, dev_name(host->dev));
		host->lines[i] = line;
		host->line_low[i] = gpiod_is_active_low(line);
		lines[i] = (struct bw_line){ .kind = 2, .channel = i };
	}
	for_each_available_child_of_node(host->dev->of_node, child) {
		u32 select;

		if (!of_property_read_u32(child, "reg", &select) && select < BW_LINES && !lines[select].kind)
			lines[select] = (struct bw_line){ .kind = 1, .channel = select,
				.active_high = of_property_read_bool(child, "spi-cs-high") };
	}
	return 0;
}

static void bw_forget(void *data)
{
	struct bw_host *host = data;

	kfree(host->slot);
	kfree(host->transfers);
	kfree(host->memory);
}

static int bw_probe(struct device *dev, struct resource *where, int irq, enum bw_block block)
{
	struct bw_limits limits = {};
	struct reset_control *reset;
	struct spi_controller *ctlr;
	struct bw_host *host;
	int ret;

	ctlr = devm_spi_alloc_master(dev, sizeof(*host));
	if (!ctlr)
		return -ENOMEM;
	host = spi_controller_get_devdata(ctlr);
	host->ctlr = ctlr;
	host->dev = dev;
	host->irq = irq;
	spin_lock_init(&host->lock);
	init_completion(&host->done);
	INIT_DELAYED_WORK(&host->idle, bw_idle);
	dev_set_drvdata(dev, host);
	ret = devm_add_action(dev, bw_forget, host);
	if (ret)
		return ret;
	host->slot = kzalloc(sizes.host, GFP_KERNEL);
	if (!host->slot)
		return -ENOMEM;
	ret = bw_reserve(host, BW_TRANSFERS);
	if (ret)
		return ret;

	host->board.context = host;
	host->board.block = block;
	host->board.poll_limit_ns = irq ? min(poll_limit_us, 4000000u) * 1000 : U32_MAX;
	host->board.registers = devm_ioremap_resource(dev, where);
	if (IS_ERR(host->board.registers))
		return PTR_ERR(host->board.registers);
	ret = bw_find_lines(host);
	if (ret)
		return ret;
	host->per = devm_clk_get(dev, block == BW_ECSPI ? "per" : NULL);
	if (IS_ERR(host->per))
		return dev_err_probe(dev, PTR_ERR(host->per), "its clock\n");
	host->ipg = devm_clk_get_optional(dev, block == BW_ECSPI ? "ipg" : "apb_pclk");
	if (IS_ERR(host->ipg))
		return dev_err_probe(dev, PTR_ERR(host->ipg), "its bus clock\n");
	reset = devm_reset_control_get_optional_exclusive(dev, NULL);
	if (IS_ERR(reset))
		return dev_err_probe(dev, PTR_ERR(reset), "its reset\n");
	ret = reset_control_deassert(reset);
	if (ret)
		return dev_err_probe(dev, ret, "its reset\n");

	ret = bw_clocks_on(host);
	if (ret)
		return dev_err_probe(dev, ret, "its clock\n");
	ret = bw_bring_up(host);
	if (ret) {
		dev_err(dev, "its clock has %u Hz\n", host->board.reference_hz);
		goto clocks;
	}
	bw_limits(host->slot, &limits);
	if (irq) {
		ret = devm_request_irq(dev, irq, bw_interrupt, IRQF_SHARED, dev_name(dev), host);
		if (ret) {
			dev_err(dev, "interrupt %d: %d\n", irq, ret);
			goto leave;
		}
	}

	ctlr->bus_num = -1;
	ctlr->num_chipselect = BW_LINES;
	ctlr->dev.of_node = dev->of_node;
	ctlr->mode_bits = SPI_CPOL | SPI_CPHA | SPI_CS_HIGH | SPI_NO_CS | (block == BW_BCM2835 ? 0 : SPI_LOOP);
	ctlr->bits_per_word_mask = limits.bits_per_word_mask;
	ctlr->min_speed_hz = limits.min_speed_hz;
	ctlr->max_speed_hz = limits.max_speed_hz;
	ctlr->setup = bw_setup;
	ctlr->cleanup = bw_cleanup;
	ctlr->transfer_one_message = bw_transfer_one_message;

	pm_runtime_set_autosuspend_delay(dev, BW_AUTOSUSPEND_MS);
	pm_runtime_use_autosuspend(dev);
	pm_runtime_get_noresume(dev);
	if (block != BW_PL022) { /* the AMBA bus has done so */
		pm_runtime_set_active(dev);
		pm_runtime_enable(dev);
	}
	host->awake = true;
	schedule_delayed_work(&host->idle, bw_idle_jiffies(host));
	spin_lock(&hosts_lock);
	list_add(&host->all, &hosts);
	spin_unlock(&hosts_lock);
	ret = spi_register_controller(ctlr);
	if (!ret)
		return 0;
	dev_err(dev, "the SPI core does not take it: %d\n", ret);
	spin_lock(&hosts_lock);
	list_del(&host->all);
	spin_unlock(&hosts_lock);
	cancel_delayed_work_sync(&host->idle);
	if (block != BW_PL022)
		pm_runtime_disable(dev);
	pm_runtime_dont_use_autosuspend(dev);
	pm_runtime_put_noidle(dev);
leave:
	bw_leave(host->slot);
clocks:
	bw_clocks_off(host);
	return ret;
}

static void bw_remove(struct device *dev)
{
	struct bw_host *host = dev_get_drvdata(dev);
	bool amba = host->board.block == BW_PL022;

	/* Unbinds all chips; no message comes after it. */
	spi_unregister_controller(host->ctlr);
	cancel_delayed_work_sync(&host->idle);
	spin_lock(&hosts_lock);
	list_del(&host->all);
	spin_unlock(&hosts_lock);
	if (!host->awake)
		pm_runtime_get_sync(dev);
	if (host->irq)
		devm_free_irq(dev, host->irq, host);
	pm_runtime_dont_use_autosuspend(dev);
	if (!amba)
		pm_runtime_disable(dev);
	if (!host->dead)
		bw_leave(host->slot);
	bw_clocks_off(host);
	if (!amba)
		pm_runtime_set_suspended(dev);
	pm_runtime_put_noidle(dev);
}

static int __maybe_unused bw_suspend(struct device *dev)
{
	struct bw_host *host = dev_get_drvdata(dev);
	int ret = spi_controller_suspend(host->ctlr);

	if (ret)
		return ret;
	cancel_delayed_work_sync(&host->idle);
	return pm_runtime_force_suspend(dev);
}

static int __maybe_unused bw_resume_system(struct device *dev)
{
	struct bw_host *host = dev_get_drvdata(dev);
	int ret = pm_runtime_force_resume(dev);

	if (ret)
		return ret;
	if (host->awake)
		schedule_delayed_work(&host->idle, bw_idle_jiffies(host));
	return spi_controller_resume(host->ctlr);
}

static const struct dev_pm_ops bw_pm = {
	SET_SYSTEM_SLEEP_PM_OPS(bw_suspend, bw_resume_system)
	SET_RUNTIME_PM_OPS(bw_runtime_suspend, bw_runtime_resume, NULL)
};

/* The compatibles of Linux's drivers are here to name the block, and not for the driver to be bound by them: that takes
 * driver_override, or a compatible of this driver's own.
 */
static const struct of_device_id bw_blocks[] = {
	{ .compatible = "fsl,imx51-ecspi", .data = (void *)BW_ECSPI },
	{ .compatible = "fsl,imx53-ecspi", .data = (void *)BW_ECSPI },
	{ .compatible = "fsl,imx6ul-ecspi", .data = (void *)BW_ECSPI },
	{ .compatible = "barewire,ecspi", .data = (void *)BW_ECSPI },
	{ .compatible = "brcm,bcm2835-spi", .data = (void *)BW_BCM2835 },
	{ .compatible = "brcm,bcm2711-spi", .data = (void *)BW_BCM2835 },
	{ .compatible = "barewire,bcm2835-spi", .data = (void *)BW_BCM2835 },
	{}
};

static const struct of_device_id bw_own[] = {
	{ .compatible = "barewire,ecspi" },
	{ .compatible = "barewire,bcm2835-spi" },
	{}
};
#ifdef CONFIG_ARM64
/* The build program of aliases for 32-bit Arm in Debian's packages does not run beside them. */
MODULE_DEVICE_TABLE(of, bw_own);
#endif

static int bw_platform_probe(struct platform_device *pdev)
{
	struct resource *where = platform_get_resource(pdev, IORESOURCE_MEM, 0);
	const struct of_device_id *block = of_match_node(bw_blocks, pdev->dev.of_node);
	int irq = platform_get_irq_optional(pdev, 0);

	if (!block || !where)
		return dev_err_probe(&pdev->dev, -ENODEV, "no controller that this driver knows\n");
	if (irq == -EPROBE_DEFER)
		return irq;
	return bw_probe(&pdev->dev, where, max(irq, 0), (uintptr_t)block->data);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static void bw_platform_remove(struct platform_device *pdev)
{
	bw_remove(&pdev->dev);
}
#else
static int bw_platform_remove(struct platform_device *pdev)
{
	bw_remove(&pdev->dev);
	return 0;
}
#endif

static struct platform_driver bw_platform = {
	.probe = bw_platform_probe,
	.remove = bw_platform_remove,
	.driver = { .name = "barewire", .of_match_table = bw_own, .pm = &bw_pm },
};

#ifdef CONFIG_ARM_AMBA
static int bw_amba_probe(struct amba_device *adev, const struct amba_id *id)
{
	return bw_probe(&adev->dev, &adev->res, adev->irq[0], BW_PL022);
}

static void bw_amba_remove(struct amba_device *adev)
{
	bw_remove(&adev->dev);
}

/* No part: by driver_override only. */
static const struct amba_id bw_amba_ids[] = { {} };

static struct amba_driver bw_amba = {
	.drv = { .name = "barewire", .pm = &bw_pm },
	.id_table = bw_amba_ids,
	.probe = bw_amba_probe,
	.remove = bw_amba_remove,
};
#endif

static int __init bw_module_init(void)
{
	int ret;

	sizes = bw_sizes();
	ret = platform_driver_register(&bw_platform);
#ifdef CONFIG_ARM_AMBA
	if (!ret) {
		ret = amba_driver_register(&bw_amba);
		if (ret)
			platform_driver_unregister(&bw_platform);
	}
#endif
	return ret;
}
module_init(bw_module_init);

static void __exit bw_module_exit(void)
{
#ifdef CONFIG_ARM_AMBA
	amba_driver_unregister(&bw_amba);
#endif
	platform_driver_unregister(&bw_platform);
}
module_exit(bw_module_exit);

MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("SPI at the cost of the wire: ECSPI, BCM2835 and PL022 controllers");
