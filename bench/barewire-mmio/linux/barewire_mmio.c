// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/*
 * A simulated board's registers, interrupt lines and pads for user-mode Linux.
 *
 * Read first: docs/mmio.md of barewire for the protocol; Linux's include/linux/logic_iomem.h.
 *
 * How it works
 * - The board's blocks lie in one region of logic_iomem. A read asks the server and waits; a write is
 *   posted.
 * - Time travel must be on (time-travel=inf-cpu), and the kernel's time is the board's. An access lets the
 *   kernel's time pass where that is allowed. In an interrupt, and with interrupts off, it is not: then the
 *   board is ahead until the kernel idles, or makes an access where it is allowed.
 * - The server's answers say when an interrupt line may change. One time-travel event is set for
 *   that time; it asks the server again.
 * - Looks that find no line asserted come ever more slowly, up to LOOK_MOST_NS apart: most events of a board
 *   are words on a wire. So an interrupt may be that late.
 * - Lines are levels; a line requested for edges reports each rise.
 *
 * Ordering
 * 1. Every request is made with interrupts off, so none comes between a request and its answer.
 * 2. After a posted write a look is set for soon: the lines may have changed.
 */
#include <linux/delay.h>
#include <linux/gpio/driver.h>
#include <linux/init.h>
#include <linux/ioport.h>
#include <linux/irq.h>
#include <linux/irqdomain.h>
#include <linux/kernel.h>
#include <linux/logic_iomem.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/platform_device.h>
#include <linux/time-internal.h>

#include "barewire_mmio.h"

#define MAX_BLOCKS 8
#define MAX_LINES 12
/* A bank of i.MX's has a number for each pad. */
#define BANK_IRQS 32
/* How often lines that stay asserted are handled at one instant, before time passes. */
#define MAX_ROUNDS 8
#define RETRY_NS 1000
/* The time between looks: at first, and at most. */
#define LOOK_LEAST_NS 500
#define LOOK_MOST_NS 8000

struct bw_block {
	u64 base;
	u32 bytes;
	u32 write_ns;
	u8 index;
};

static char *socket;
module_param(socket, charp, 0444);
MODULE_PARM_DESC(socket, "the Unix socket of the simulated board's server");

/* Accesses of the controller: what a message costs. */
static unsigned long reads, writes;
module_param(reads, ulong, 0444);
module_param(writes, ulong, 0444);

/* A fault. While it is set the controller does not answer: its registers read as zeros (1) or as ones (2). Writes still arrive, and
 * the wire works.
 */
static unsigned int mute;
module_param(mute, uint, 0644);

static struct bw_link bw_link;
static bool bw_open;
static struct bw_block blocks[MAX_BLOCKS];
static unsigned int block_count;
static struct irq_domain *domain;
/* The lines' levels, the rises that wait, the lines that want rises, and those not masked. */
static u32 lines, rises, edges, enabled;
/* The time until the next look, if none finds anything. */
static u64 look_ns = LOOK_LEAST_NS;
/* The kernel's time at which the board's began, and the latest known time of the board. */
static u64 started_ns, known_ns;
static struct time_travel_event look_event;

static void bw_probe(struct time_travel_event *e)
{
}

/* The kernel's time. The header has no function for that: an event says when it would come. */
static u64 kernel_ns(void)
{
	struct time_travel_event probe = { .fn = bw_probe };

	time_travel_add_event_rel(&probe, 0);
	time_travel_del_event(&probe);
	return probe.time;
}

static u64 board_ns(void)
{
	return max(kernel_ns() - started_ns, known_ns);
}

/* Looks at the lines at the board's time due_ns, if no earlier look is set. Interrupts are off. */
static void look_at(u64 due_ns)
{
	u64 now_ns = kernel_ns() - started_ns;

	if (look_event.pending) {
		if (look_event.time <= due_ns + started_ns)
			return;
		time_travel_del_event(&look_event);
	}
	time_travel_add_event_rel(&look_event, due_ns > now_ns ? due_ns - now_ns : 0);
}

static void take_lines(u32 now)
{
	rises |= now & ~lines & edges;
	lines = now;
}

/* The lines that are to be handled. */
static u32 pending(void)
{
	return ((lines & ~edges) | rises) & enabled;
}

/* A request whose answer is awaited; interrupts are off. Returns the value. */
static u32 ask(u64 head, u64 value)
{
	unsigned long long words[4] = { head, value, board_ns(), 0 };

	if (bw_link_post(&bw_link, words) || bw_link_wait(&bw_link, words))
		panic("barewire_mmio: the server of the simulated board has gone\n");
	if (BW_KIND(words[0]) != BW_DONE) {
		pr_err_ratelimited("barewire_mmio: request %llx refused: reason %u, %llu\n",
				   head, BW_OFFSET(words[0]), words[1]);
		return ~0u;
	}
	take_lines(BW_OFFSET(words[0]));
	known_ns = max_t(u64, known_ns, words[2]);
	if (pending())
		look_at(known_ns);
	else if (words[3] != BW_NEVER)
		look_at(max_t(u64, words[3], known_ns + look_ns));
	return words[1];
}

/* Advances the kernel's time to the board's, where it may pass. */
static void catch_up(void)
{
	u64 ahead_ns = board_ns() - (kernel_ns() - started_ns);

	if (ahead_ns && !in_interrupt() && !irqs_disabled())
		time_travel_ndelay(ahead_ns);
}

static u32 request(u64 head, u64 value)
{
	unsigned long flags;
	u32 answer;

	local_irq_save(flags);
	answer = ask(head, value);
	local_irq_restore(flags);
	catch_up();
	return answer;
}

/* Without an access, which may have taken a word from a FIFO. Time passes, with interrupts off too: a delay is allowed there. */
static u32 mute_read(struct bw_block *block)
{
	if (!in_interrupt())
		ndelay(block->write_ns);
	return mute == 1 ? 0 : ~0u;
}

static unsigned long bw_read(void *priv, unsigned int offset, int size)
{
	struct bw_block *block = priv;

	if (block->index == 0)
		reads++;
	if (block->index == 0 && mute)
		return mute_read(block);
	return request(BW_HEAD(BW_READ, size, block->index, offset), 0);
}

static void bw_write(void *priv, unsigned int offset, int size, unsigned long value)
{
	struct bw_block *block = priv;
	unsigned long long words[4];
	unsigned long flags;

	if (block->index == 0)
		writes++;
	local_irq_save(flags);
	words[0] = BW_HEAD(BW_WRITE, size, block->index, offset);
	words[1] = value;
	words[2] = board_ns();
	words[3] = 0;
	if (bw_link_post(&bw_link, words))
		panic("barewire_mmio: the server of the simulated board has gone\n");
	known_ns = words[2] + block->write_ns;
	look_at(known_ns + LOOK_LEAST_NS);
	local_irq_restore(flags);
	catch_up();
}

static const struct logic_iomem_ops bw_ops = {
	.read = bw_read,
	.write = bw_write,
};

static struct resource region = {
	.name = "barewire_mmio",
	.start = ~(resource_size_t)0,
	.flags = IORESOURCE_MEM,
};

static long bw_map(unsigned long offset, size_t size, const struct logic_iomem_ops **ops, void **priv)
{
	u64 address = region.start + offset;
	unsigned int index;

	for (index = 0; index < block_count; index++) {
		struct bw_block *block = &blocks[index];

		if (address >= block->base && address + size <= block->base + block->bytes) {
			*ops = &bw_ops;
			*priv = block;
			return address - block->base;
		}
	}
	return -ENOENT;
}

static const struct logic_iomem_region_ops bw_region_ops = { .map = bw_map };

/* Handles the lines that are asserted. In an interrupt. */
static void bw_look(struct time_travel_event *e)
{
	unsigned int round;

	for (round = 0; round < MAX_ROUNDS; round++) {
		u32 now;
		int line;

		/* This look stands for one that was set earlier. */
		time_travel_del_event(&look_event);
		ask(BW_HEAD(BW_WAIT, 0, 0, 0), 0);
		now = pending();
		if (!now) {
			look_ns = min_t(u64, 2 * look_ns, LOOK_MOST_NS);
			return;
		}
		look_ns = LOOK_LEAST_NS;
		rises &= ~now;
		for (line = 0; line < MAX_LINES; line++)
			if (now & BIT(line))
				generic_handle_domain_irq(domain, line);
	}
	/* Whatever is still asserted is handled again later: time must pass. */
	time_travel_del_event(&look_event);
	look_at(board_ns() + RETRY_NS);
}

static void bw_mask(struct irq_data *d)
{
	enabled &= ~BIT(d->hwirq);
}

static void bw_unmask(struct irq_data *d)
{
	unsigned long flags;

	local_irq_save(flags);
	enabled |= BIT(d->hwirq);
	look_at(board_ns());
	local_irq_restore(flags);
}

static void bw_ack(struct irq_data *d)
{
}

static int bw_set_type(struct irq_data *d, unsigned int type)
{
	if (type & IRQ_TYPE_EDGE_BOTH) {
		edges |= BIT(d->hwirq);
		irq_set_handler_locked(d, handle_edge_irq);
	} else {
		edges &= ~BIT(d->hwirq);
		irq_set_handler_locked(d, handle_level_irq);
	}
	return 0;
}

static struct irq_chip bw_chip = {
	.name = "barewire",
	.irq_mask = bw_mask,
	.irq_unmask = bw_unmask,
	.irq_ack = bw_ack,
	.irq_set_type = bw_set_type,
};

static int bw_irq_map(struct irq_domain *d, unsigned int irq, irq_hw_number_t line)
{
	irq_set_chip_and_handler(irq, &bw_chip, handle_level_irq);
	return 0;
}

static const struct irq_domain_ops bw_domain_ops = {
	.map = bw_irq_map,
	.xlate = irq_domain_xlate_onecell,
};

static int __init bw_describe(unsigned int index)
{
	unsigned long long words[4] = { BW_HEAD(BW_DESCRIBE, 0, index, 0) };
	struct bw_block *block = &blocks[index];
	int result = bw_link_socket(&bw_link, words);

	if (result)
		return result;
	if (BW_KIND(words[0]) != BW_BLOCK)
		return -EPROTO;
	block->index = index;
	block->base = words[1];
	block->bytes = BW_OFFSET(words[0]);
	block->write_ns = words[2];
	region.start = min_t(resource_size_t, region.start, block->base);
	region.end = max_t(resource_size_t, region.end, block->base + block->bytes - 1);
	return 0;
}

static int __init bw_init(void)
{
	struct device_node *node = of_find_compatible_node(NULL, NULL, "barewire,lines");
	unsigned long long words[4];
	unsigned int index;
	int result;

	if (!socket || !node)
		return 0;
	if (time_travel_mode != TT_MODE_INFCPU) {
		pr_err("barewire_mmio: boot with time-travel=inf-cpu\n");
		return -EINVAL;
	}
	result = bw_link_open(&bw_link, socket, words);
	if (result) {
		pr_err("barewire_mmio: cannot open %s: error %d\n", socket, result);
		return result;
	}
	block_count = min_t(unsigned int, BW_INDEX(words[0]), MAX_BLOCKS);
	for (index = 0; index < block_count; index++) {
		result = bw_describe(index);
		if (result)
			return result;
	}
	result = logic_iomem_add_region(&region, &bw_region_ops);
	if (result)
		return result;
	time_travel_set_event_fn(&look_event, bw_look);
	started_ns = kernel_ns();
	/* User-mode Linux reserves all interrupt numbers for its signals and uses the first of them. */
	irq_free_descs(UM_LAST_SIGNAL_IRQ - BANK_IRQS - MAX_LINES, BANK_IRQS + MAX_LINES);
	domain = irq_domain_add_linear(node, MAX_LINES, &bw_domain_ops, NULL);
	if (!domain)
		return -ENOMEM;
	bw_open = true;
	return 0;
}
postcore_initcall(bw_init);

/* A bank of pads without a driver of Linux's. */
struct bw_pads {
	struct gpio_chip chip;
	u32 bank;
};

static int pads_get(struct gpio_chip *chip, unsigned int pad)
{
	struct bw_pads *pads = gpiochip_get_data(chip);

	return request(BW_HEAD(BW_LOOK, 0, pads->bank, pad), 0) & 1;
}

static void pads_set(struct gpio_chip *chip, unsigned int pad, int value)
{
	struct bw_pads *pads = gpiochip_get_data(chip);

	request(BW_HEAD(BW_DRIVE, 0, pads->bank, pad), !!value);
}

static int pads_output(struct gpio_chip *chip, unsigned int pad, int value)
{
	pads_set(chip, pad, value);
	return 0;
}

static int pads_input(struct gpio_chip *chip, unsigned int pad)
{
	struct bw_pads *pads = gpiochip_get_data(chip);

	request(BW_HEAD(BW_DRIVE, 0, pads->bank, pad), 2);
	return 0;
}

static int pads_probe(struct platform_device *pdev)
{
	struct device *dev = &pdev->dev;
	struct bw_pads *pads;
	u32 count = 32;

	if (!bw_open)
		return -ENODEV;
	pads = devm_kzalloc(dev, sizeof(*pads), GFP_KERNEL);
	if (!pads)
		return -ENOMEM;
	of_property_read_u32(dev->of_node, "barewire,bank", &pads->bank);
	of_property_read_u32(dev->of_node, "ngpios", &count);
	pads->chip.label = "barewire-pads";
	pads->chip.parent = dev;
	pads->chip.base = -1;
	pads->chip.ngpio = count;
	pads->chip.get = pads_get;
	pads->chip.set = pads_set;
	pads->chip.direction_input = pads_input;
	pads->chip.direction_output = pads_output;
	return devm_gpiochip_add_data(dev, &pads->chip, pads);
}

static const struct of_device_id pads_ids[] = {
	{ .compatible = "barewire,pads" },
	{}
};

static struct platform_driver pads_driver = {
	.driver = {
		.name = "barewire-pads",
		.of_match_table = pads_ids,
	},
	.probe = pads_probe,
};
builtin_platform_driver(pads_driver);
