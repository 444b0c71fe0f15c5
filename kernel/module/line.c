// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Chip selects by GPIO: gpiolib's call that does not sleep, and for two drivers a shorter way.
 *
 * gpio-mxc is a user of the kernel's generic GPIO driver (gpio-mmio), which keeps the bank's data register in memory:
 * bgpio_data, under bgpio_lock, both public in 6.1 and 6.12. An edge is then what the generic driver itself does: take the
 * lock, change the shadow, write it. Both sides see each other's edges, because lock and shadow are the same. The bank
 * cannot go away: gpio-mxc does not let itself be unbound. Only lines without flags other than their polarity, since an
 * open drain is driven by its direction.
 *
 * BCM2835's GPIO block has one register that sets pins and one that clears them ("BCM2835 ARM Peripherals", 6.1, GPSETn and
 * GPCLRn: a 0 has no effect). A write of one bit is the whole edge, which no lock could make safer. Again only lines that
 * have no other flags.
 *
 * PL061's data register is at 256 addresses, each of which lets a write through to the pins of its bits alone (PrimeCell GPIO
 * PL061 TRM, 3.3.1): one write too, to the address that has the pin's bit.
 */
#include <linux/gpio/consumer.h>
#include <linux/ktime.h>
#include <linux/delay.h>
#include <linux/of.h>
#include <linux/of_address.h>
#include <linux/preempt.h>
#include "line.h"

/* The registers that set and clear the pins below 32; for those above, 4 bytes on. */
#define BCM2835_GPSET0 0x1c
#define BCM2835_GPCLR0 0x28

static const struct of_device_id bw_set_clear[] = {
	{ .compatible = "brcm,bcm2835-gpio", .data = (void *)54 },
	{ .compatible = "brcm,bcm2711-gpio", .data = (void *)54 },
	{ .compatible = "arm,pl061", .data = (void *)8 },
	{}
};

static void bw_unmap(void *registers)
{
	iounmap((void __iomem __force *)registers);
}

static void bw_find_set_clear(struct bw_host *host, int index)
{
	struct bw_gpio *gpio = &host->gpios[index];
	const struct of_device_id *block;
	struct of_phandle_args args;

	if (of_parse_phandle_with_args(host->dev->of_node, "cs-gpios", "#gpio-cells", index, &args))
		return;
	block = of_match_node(bw_set_clear, args.np);
	if (block && args.args_count == 2 && args.args[0] < (uintptr_t)block->data && !(args.args[1] & ~1u)) {
		/* Beside the GPIO driver's own mapping: it keeps the region. */
		void __iomem *registers = of_iomap(args.np, 0);
		u32 pin = args.args[0], offset = pin / 32 * 4;

		if (registers && !devm_add_action_or_reset(host->dev, bw_unmap, (void __force *)registers)) {
			gpio->mask = BIT(pin % 32);
			gpio->high = (struct bw_write){ registers + BCM2835_GPSET0 + offset, gpio->mask };
			gpio->low = (struct bw_write){ registers + BCM2835_GPCLR0 + offset, gpio->mask };
			if ((uintptr_t)block->data == 8) {
				gpio->high = (struct bw_write){ registers + (gpio->mask << 2), gpio->mask };
				gpio->low = (struct bw_write){ registers + (gpio->mask << 2), 0 };
			}
		}
	}
	of_node_put(args.np);
}

#ifdef BW_SHADOW
static const struct of_device_id bw_generic[] = {
	{ .compatible = "fsl,imx35-gpio" },
	{ .compatible = "fsl,imx31-gpio" },
	{}
};

static void bw_find_generic(struct bw_host *host, int index)
{
	struct bw_gpio *gpio = &host->gpios[index];
	struct gpio_chip *chip = gpiod_to_chip(gpio->desc);
	struct of_phandle_args args;

	if (!chip || of_parse_phandle_with_args(host->dev->of_node, "cs-gpios", "#gpio-cells", index, &args))
		return;
	if (of_match_node(bw_generic, args.np) && args.args_count == 2 && args.args[0] < 32 && !(args.args[1] & ~1u) &&
	    chip->bgpio_bits == 32 && !chip->be_bits && chip->reg_set && !chip->reg_clr) {
		gpio->data = chip->reg_set;
		gpio->mask = BIT(args.args[0]);
		gpio->generic = chip;
	}
	of_node_put(args.np);
}
#else
static void bw_find_generic(struct bw_host *host, int index) {}
#endif

static noinline void bw_line_slow(struct bw_gpio *gpio, bool high)
{
	if (gpio->keep_after && high == gpio->active_low && !--gpio->keep_after)
		return;
#ifdef BW_SHADOW
	if (gpio->generic) {
		unsigned long flags;

		raw_spin_lock_irqsave(&gpio->generic->bgpio_lock, flags);
		bw_edge(gpio->generic, gpio->data, gpio->mask, high ? 0 : gpio->mask);
		raw_spin_unlock_irqrestore(&gpio->generic->bgpio_lock, flags);
		return;
	}
#endif
	if (gpio->high.at)
		bw_write(high ? &gpio->high : &gpio->low);
	else if (gpio->desc)
		gpiod_set_raw_value(gpio->desc, high);
}

void bw_line_set(void *context, u32 line, bool active)
{
	struct bw_gpio *gpio = &((struct bw_host *)context)->gpios[line & (BW_LINES - 1)];
	bool high = active ^ gpio->active_low;
#ifdef BW_SHADOW
	struct gpio_chip *chip = gpio->generic;

	if (likely(chip && !gpio->keep_after) && likely(bw_edge_unlocked(chip, gpio->data, gpio->mask, high ? 0 : gpio->mask)))
		return;
#endif
	if (gpio->high.at && !gpio->keep_after)
		bw_write(high ? &gpio->high : &gpio->low);
	else
		bw_line_slow(gpio, high);
}

#ifdef CONFIG_UML
/* No time passes there while a loop runs. */
static void bw_relax(void)
{
	ndelay(100);
}
#else
static __always_inline void bw_relax(void)
{
	cpu_relax();
}
#endif

u64 bw_now_ns(void)
{
	return ktime_get_ns();
}

void bw_wait_ns(u64 ns)
{
	u64 begun = ktime_get_ns();

	if (ns > BW_SPIN_NS && in_task() && !irqs_disabled()) {
		u64 us = DIV_ROUND_UP_ULL(ns, 1000);

		usleep_range(us, us + 50);
	}
	while (ktime_get_ns() - begun <= ns)
		bw_relax();
}

/* The board's select lines: GPIOs where `cs-gpios` has them, else native ones, where a chip has one. */
int bw_find_lines(struct bw_host *host)
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
		host->gpios[i].desc = line;
		host->gpios[i].active_low = gpiod_is_active_low(line);
		bw_find_generic(host, i);
		bw_find_set_clear(host, i);
		lines[i] = (struct bw_line){ .kind = 2, .channel = i };
	}
	for_each_available_child_of_node(host->dev->of_node, child) {
		u32 select;

		if (!of_property_read_u32(child, "reg", &select) && select < BW_LINES &&
		    select < host->board.native_lines && !lines[select].kind)
			lines[select] = (struct bw_line){ .kind = 1, .channel = select,
				.active_high = of_property_read_bool(child, "spi-cs-high") };
	}
	return 0;
}
