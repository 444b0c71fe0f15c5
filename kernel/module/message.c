// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Messages: in transfer_one_message, in the context of the caller where the bus is idle, under the SPI core's io_mutex.
 * That is the only lock of a message.
 *
 * A transfer that takes longer on the wire than poll_limit_us is left in flight, and the caller sleeps. The interrupt
 * handler continues the message; `lock` keeps it apart from the timer that looks whether the time is over.
 */
#include <linux/device.h>
#include <linux/slab.h>
#include <linux/math64.h>
#include <linux/version.h>
#include "selected.h"

#define BW_BATCH_NS 10000
#define BW_WATCH msecs_to_jiffies(100)

static u32 bw_delay_ns(const struct spi_delay *delay, struct spi_transfer *transfer)
{
	struct spi_delay copy = *delay;
	int ns = copy.value ? spi_delay_to_ns(&copy, transfer) : 0;

	return ns < 0 ? 0 : ns;
}

/* The longest transfer that is polled. A block that interrupts for each few bytes would keep the processor busier than
 * polling does: where the bytes of one interrupt take less than BW_BATCH_NS on the wire, all is polled.
 */
static u32 bw_poll_limit_ns(struct bw_host *host, u32 speed_hz)
{
	u64 batch_ns = div_u64(host->kind->batch_bytes * 8ull * NSEC_PER_SEC, speed_hz);

	return batch_ns < BW_BATCH_NS ? U32_MAX : host->board.poll_limit_ns;
}

int bw_configure_chip(struct bw_host *host, struct spi_device *spi, struct bw_chip *chip, u32 speed_hz, u32 poll_limit_ns)
{
	u8 select = spi_get_chipselect(spi, 0);
	struct spi_transfer pace = { .effective_speed_hz = speed_hz };
	struct bw_settings settings = {
		.speed_hz = speed_hz,
		.cs_setup_ns = bw_delay_ns(&spi->cs_setup, NULL),
		.cs_hold_ns = bw_delay_ns(&spi->cs_hold, NULL),
		.cs_inactive_ns = bw_delay_ns(&spi->cs_inactive, NULL),
		.word_delay_ns = bw_delay_ns(&spi->word_delay, &pace),
		.poll_limit_ns = poll_limit_ns,
		.chip_select = select,
		.mode = spi->mode & 0xff,
		.bits_per_word = spi->bits_per_word,
	};
	s64 hz;

	/* gpiolib knows the polarity of a GPIO: its logical level is high while the chip is selected. */
	if (select < BW_LINES && host->gpios[select].desc && !(spi->mode & SPI_NO_CS))
		settings.mode |= SPI_CS_HIGH;
	bw_forget_selected(host, chip);
	bw_find_edges(host, spi, chip);
	hz = bw_configure(host->slot, chip->preset, &settings);
	if (hz < 0) {
		dev_err(&spi->dev, "%u Hz, %u bits, mode %#x on chip select %u: not possible on this controller\n",
			speed_hz, spi->bits_per_word, spi->mode, select);
		chip->ready = BW_UNREADY;
		return hz;
	}
	chip->effective_hz = hz;
	chip->ready = host->ready;
	chip->key = ++host->keys ?: ++host->keys;
	return 0;
}

/* Deselects the chip that a message left selected. */
static void bw_release_kept(struct bw_host *host)
{
	bw_line_set(host, spi_get_chipselect(host->kept, 0), false);
	host->kept = NULL;
}

/* The chip's register values for the block as it is now, awake. Under io_mutex. */
noinline int bw_make_ready(struct bw_host *host, struct spi_device *spi, struct bw_chip *chip)
{
	if (host->kept && host->kept != spi)
		bw_release_kept(host);
	if (!host->ready) {
		int ret = bw_wake(host);

		if (ret)
			return ret;
	}
	if (chip->ready == host->ready)
		return 0;
	return bw_configure_chip(host, spi, chip, spi->max_speed_hz, bw_poll_limit_ns(host, spi->max_speed_hz));
}

struct bw_chip *bw_ready_chip(struct bw_host *host, struct spi_device *spi)
{
	struct bw_chip *chip = spi_get_ctldata(spi);

	host->used = true;
	/* spidev of 6.1 lets a message through that began before its chip was removed. */
	if (unlikely(!chip))
		return ERR_PTR(-ESHUTDOWN);
	if (unlikely(chip->ready != host->ready)) {
		int ret = bw_make_ready(host, spi, chip);

		if (ret)
			return ERR_PTR(ret);
		/* Its message goes on with the chip selected. */
		host->kept = NULL;
	}
	return chip;
}

/* Under io_mutex. */
int bw_setup(struct spi_device *spi)
{
	struct bw_host *host = spi_controller_get_devdata(spi->controller);
	struct bw_chip *chip = spi_get_ctldata(spi);
	bool entered;
	int ret;

	host->used = true;
	if (chip) {
		entered = bw_enter(host);
		if (host->kept == spi)
			bw_release_kept(host);
		chip->ready = BW_UNREADY;
		ret = bw_make_ready(host, spi, chip);
		bw_exit(host, entered);
		return ret;
	}
	chip = kzalloc(struct_size(chip, preset, bw_size.preset), GFP_KERNEL);
	if (!chip)
		return -ENOMEM;
	chip->ready = BW_UNREADY;
	entered = bw_enter(host);
	ret = bw_make_ready(host, spi, chip);
	bw_exit(host, entered);
	if (ret)
		kfree(chip);
	else
		spi_set_ctldata(spi, chip);
	return ret;
}

void bw_cleanup(struct spi_device *spi)
{
	struct bw_host *host = spi_controller_get_devdata(spi->controller);
	bool entered;

	/* No message is under way that uses it. */
	mutex_lock(&spi->controller->io_mutex);
	entered = bw_enter(host);
	if (host->kept == spi)
		bw_release_kept(host);
	bw_forget_selected(host, spi_get_ctldata(spi));
	bw_exit(host, entered);
	kfree(spi_get_ctldata(spi));
	spi_set_ctldata(spi, NULL);
	mutex_unlock(&spi->controller->io_mutex);
}

/* Continues the message in flight, if there is one. Under `lock`. */
static bool bw_continue(struct bw_host *host)
{
	if (!host->flying)
		return false;
	host->result = bw_resume(host->slot);
	host->flying = host->result == BW_PENDING;
	if (host->flying)
		bw_arm(host->slot);
	else
		complete(&host->done);
	return true;
}

irqreturn_t bw_interrupt(int irq, void *data)
{
	struct bw_host *host = data;
	bool ours;

	spin_lock(&host->lock);
	ours = bw_continue(host);
	spin_unlock(&host->lock);
	return IRQ_RETVAL(ours);
}

/* Looks ten times a second whether the message in flight has taken too long: the Rust half knows how long it may take, and gives
 * up after that. So a message that sleeps needs no timer of its own.
 */
void bw_watch(struct timer_list *timer)
{
	struct bw_host *host = container_of(timer, struct bw_host, watch);
	unsigned long flags;

	spin_lock_irqsave(&host->lock, flags);
	if (bw_continue(host))
		mod_timer(timer, jiffies + BW_WATCH);
	spin_unlock_irqrestore(&host->lock, flags);
}

/* Sleeps until the message in flight has ended. */
static noinline int bw_sleep(struct bw_host *host)
{
	unsigned long flags;

	reinit_completion(&host->done);
	spin_lock_irqsave(&host->lock, flags);
	host->flying = true;
	bw_arm(host->slot);
	if (!timer_pending(&host->watch))
		mod_timer(&host->watch, jiffies + BW_WATCH);
	spin_unlock_irqrestore(&host->lock, flags);
	wait_for_completion(&host->done);
	return host->result;
}

int bw_reserve(struct bw_host *host, unsigned int count)
{
	struct bw_transfer *transfers = kmalloc_array(count, sizeof(*transfers), GFP_NOIO);
	void *memory = kmalloc_array(count, bw_size.transfer, GFP_NOIO);

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

/* Whether a transfer has its chip's settings, as almost all have, and no delays: the core gives it the chip's between words. */
static __always_inline bool bw_is_plain(const struct spi_transfer *x, const struct spi_device *spi)
{
	return x->speed_hz == spi->max_speed_hz && x->bits_per_word == spi->bits_per_word && !x->delay.value &&
	       !x->cs_change && !x->cs_off && !x->word_delay.value;
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

/* Runs the first `count` of host->transfers. */
int bw_run_listed(struct bw_host *host, struct bw_chip *chip, unsigned int count, bool may_wait)
{
	int ret;

	bw_forget_selected(host, NULL);
	ret = bw_run(host->slot, chip->preset, host->transfers, count, host->memory, may_wait && host->irq);

	return ret == BW_PENDING ? bw_sleep(host) : ret;
}

/* Runs a message with cs_change on its last transfer, which asks for the chip to stay selected: its GPIO passes over the
 * last of the message's releases. Another chip's message releases it. Native lines cannot be kept.
 */
static noinline int bw_run_keeping(struct bw_host *host, struct bw_chip *chip, struct spi_device *spi, unsigned int count,
				   unsigned int releases)
{
	u8 select = spi_get_chipselect(spi, 0);
	struct bw_gpio *gpio = &host->gpios[select & (BW_LINES - 1)];
	int ret;

	if (!gpio->desc || (spi->mode & SPI_NO_CS))
		return -EINVAL;
	host->transfers[count - 1].cs_change = 0;
	host->transfers[count - 1].cs_change_delay_ns = 0;
	gpio->keep_after = releases;
	ret = bw_run_listed(host, chip, count, false);
	gpio->keep_after = 0;
	if (ret) {
		bw_line_set(host, select, false);
		return ret;
	}
	host->kept = spi;
	/* Every chip's next message looks at `kept`. */
	bw_next_ready(host);
	return 0;
}

static noinline int bw_message_any(struct bw_host *host, struct spi_message *msg, struct bw_chip *chip)
{
	struct spi_device *spi = msg->spi;
	unsigned int count = 0, releases = 0;
	struct spi_transfer *x;
	bool slow = false;
	int ret;

	list_for_each_entry(x, &msg->transfers, transfer_list)
		count++;
	if (unlikely(count > host->capacity)) {
		ret = bw_reserve(host, count);
		if (ret)
			return ret;
	}
	count = 0;
	list_for_each_entry(x, &msg->transfers, transfer_list) {
		struct bw_transfer *to = &host->transfers[count++];

		*to = (struct bw_transfer){ .tx = x->tx_buf, .rx = x->rx_buf, .len = x->len };
		/* One buffer for both is fine, and parts of one are not. */
		if (x->tx_buf && x->rx_buf) {
			if (unlikely(x->tx_buf != x->rx_buf && bw_overlap(x->tx_buf, x->rx_buf, x->len)))
				return -EINVAL;
		} else if (unlikely(!x->tx_buf && !x->rx_buf)) {
			/* As the SPI core's own loop: nothing is clocked. */
			to->len = 0;
		}
		x->effective_speed_hz = chip->effective_hz;
		if (unlikely(!bw_is_plain(x, spi))) {
			ret = bw_list_special(to, x, spi, &slow);
			if (ret)
				return ret;
			releases += to->cs_change;
		}
	}
	if (unlikely(count && host->transfers[count - 1].cs_change))
		return bw_run_keeping(host, chip, spi, count, releases);
	return bw_run_listed(host, chip, count, !slow);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
/* A message that its client has prepared (spi_optimize_message) does not change until it is given up, but for what its buffers
 * hold. So it is looked at once for each configuration of its chip: the core clears opt_state when it is given up.
 */
static __always_inline bool bw_was_plain(const struct spi_message *msg, const struct bw_chip *chip)
{
	return msg->opt_state == (void *)chip->key;
}

static __always_inline void bw_remember_plain(struct spi_message *msg, const struct bw_chip *chip)
{
	if (msg->pre_optimized)
		msg->opt_state = (void *)chip->key;
}
#else
static __always_inline bool bw_was_plain(const struct spi_message *msg, const struct bw_chip *chip)
{
	return false;
}

static __always_inline void bw_remember_plain(struct spi_message *msg, const struct bw_chip *chip) {}
#endif

static __always_inline int bw_message_one(struct bw_host *host, struct spi_message *msg, struct bw_chip *chip)
{
	struct spi_transfer *x = list_first_entry(&msg->transfers, struct spi_transfer, transfer_list);
	int ret;

	if (!bw_was_plain(msg, chip)) {
		if (x->transfer_list.next != &msg->transfers || !x->tx_buf || !x->rx_buf || !bw_is_plain(x, msg->spi) ||
		    bw_overlap(x->tx_buf, x->rx_buf, x->len))
			return bw_message_any(host, msg, chip);
		x->effective_speed_hz = chip->effective_hz;
		bw_remember_plain(msg, chip);
	}
	if (likely(x->len - 1 < chip->held_len)) {
		local_irq_disable();
		ret = bw_exchange_held(host, chip, x->tx_buf, x->rx_buf, x->len);
		local_irq_enable();
		return ret;
	}
	if (x->len - 1 < chip->selected_len) {
		local_irq_disable();
		ret = bw_exchange_quiet(host, chip, x->tx_buf, x->rx_buf, x->len);
		local_irq_enable();
		return ret;
	}
	ret = bw_exchange_any(host, chip, x->tx_buf, x->rx_buf, x->len);
	return ret == -EAGAIN ? bw_message_any(host, msg, chip) : ret;
}

/* A message beside handles, or of a chip whose register values are not those of the block as it is now. */
static noinline int bw_message_entered(struct bw_host *host, struct spi_message *msg)
{
	bool entered = bw_enter(host);
	struct bw_chip *chip = bw_ready_chip(host, msg->spi);
	int ret = IS_ERR(chip) ? PTR_ERR(chip) : bw_message_one(host, msg, chip);

	bw_exit(host, entered);
	return ret;
}

int __attribute__((flatten)) bw_transfer_one_message(struct spi_controller *ctlr, struct spi_message *msg)
{
	struct bw_host *host = spi_controller_get_devdata(ctlr);
	struct bw_chip *chip = spi_get_ctldata(msg->spi);
	int ret;

	host->used = true;
	if (likely(chip && chip->ready == host->ready && list_empty(&host->prepared)))
		ret = bw_message_one(host, msg, chip);
	else
		ret = bw_message_entered(host, msg);
	if (likely(!ret))
		msg->actual_length = msg->frame_length;
	msg->status = ret;
	/* Its completion may run a handle: the block was given back. */
	spi_finalize_current_message(ctlr);
	return 0;
}
