// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * barewire: SPI controllers in place of Linux's drivers, for every SPI client there is.
 *
 * The C half knows the kernel; the registers are the Rust half's (barewire.h). This file binds: blocks.c knows the kinds of
 * blocks, message.c runs messages, memory.c a flash's operations, line.c drives chip selects, power.c keeps clocks, panic.c
 * ends what went wrong. door_bind.c gives a controller to programs instead, and door.c is what they call. um.c is for user-mode
 * Linux alone, which has no door: its registers are no memory.
 */
#include <linux/amba/bus.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/version.h>
#include "host.h"

/* Transfers of a message for which there is always memory. */
#define BW_TRANSFERS 16

static unsigned int poll_limit_us = 30;
module_param(poll_limit_us, uint, 0444);
MODULE_PARM_DESC(poll_limit_us, "transfers that take longer on the wire wait by interrupt (microseconds, default 30)");

struct bw_sizes bw_size;

static void bw_forget(void *data)
{
	struct bw_host *host = data;

	del_timer_sync(&host->watch);
	kfree(host->slot);
	kfree(host->transfers);
	kfree(host->memory);
}

/* The block with all that it needs, awake and brought up; `host` is zeroed. An error leaves it without its clock. */
int bw_begin(struct bw_host *host, struct device *dev, struct resource *where, int irq, const struct bw_kind *kind)
{
	int ret;

	host->dev = dev;
	host->kind = kind;
	host->irq = irq;
	spin_lock_init(&host->lock);
	INIT_LIST_HEAD(&host->prepared);
	init_completion(&host->done);
	timer_setup(&host->watch, bw_watch, 0);
	INIT_DELAYED_WORK(&host->idle, bw_idle);
	dev_set_drvdata(dev, host);
	ret = devm_add_action(dev, bw_forget, host);
	if (ret)
		return ret;
	host->slot = kzalloc(bw_size.host, GFP_KERNEL);
	if (!host->slot)
		return -ENOMEM;

	host->board.context = host;
	host->board.block = kind->block;
	host->board.poll_limit_ns = irq ? min(poll_limit_us, 4000000u) * 1000 : U32_MAX;
	host->board.registers = devm_ioremap_resource(dev, where);
	if (IS_ERR(host->board.registers))
		return PTR_ERR(host->board.registers);
	ret = bw_find_properties(host);
	if (!ret)
		ret = bw_find_lines(host);
	if (ret)
		return ret;
	ret = bw_find_clocks(host);
	if (ret)
		return ret;

	ret = bw_clocks_on(host);
	if (ret)
		return dev_err_probe(dev, ret, "its clock\n");
	ret = bw_bring_up(host);
	if (ret) {
		dev_err(dev, "its clock has %u Hz\n", host->board.reference_hz);
		bw_clocks_off(host);
	}
	return ret;
}

static int bw_probe(struct device *dev, struct resource *where, int irq, const struct bw_kind *kind)
{
	struct bw_limits limits = {};
	struct spi_controller *ctlr;
	struct bw_host *host;
	int ret;

	ctlr = devm_spi_alloc_master(dev, sizeof(*host));
	if (!ctlr)
		return -ENOMEM;
	host = spi_controller_get_devdata(ctlr);
	host->ctlr = ctlr;
	ret = bw_begin(host, dev, where, irq, kind);
	if (ret)
		return ret;
	ret = bw_reserve(host, BW_TRANSFERS);
	if (ret)
		goto leave;
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
	ctlr->mode_bits = SPI_CPOL | SPI_CPHA | SPI_CS_HIGH | SPI_NO_CS | (kind->loops ? SPI_LOOP : 0);
	ctlr->bits_per_word_mask = limits.bits_per_word_mask;
	ctlr->min_speed_hz = limits.min_speed_hz;
	ctlr->max_speed_hz = limits.max_speed_hz;
	ctlr->setup = bw_setup;
	ctlr->cleanup = bw_cleanup;
	ctlr->transfer_one_message = bw_transfer_one_message;
	ctlr->mem_ops = &bw_mem_ops;

	bw_power_begins(host);
	bw_idle_later(host);
	bw_panic_knows(host);
	ret = spi_register_controller(ctlr);
	if (!ret)
		return 0;
	dev_err(dev, "the SPI core does not take it: %d\n", ret);
	bw_panic_forgets(host);
	bw_power_ends(host);
	return ret;
leave:
	bw_leave(host->slot);
	bw_clocks_off(host);
	return ret;
}

static void bw_remove(struct device *dev)
{
	struct bw_host *host = dev_get_drvdata(dev);

	/* Unbinds all chips; no message comes after it. */
	spi_unregister_controller(host->ctlr);
	bw_close(host, &host->gone);
	bw_panic_forgets(host);
	bw_power_ends(host);
}

int bw_platform_found(struct platform_device *pdev, bw_prober *probe)
{
	struct resource *where = platform_get_resource(pdev, IORESOURCE_MEM, 0);
	const struct of_device_id *block = of_match_node(bw_blocks, pdev->dev.of_node);
	int irq = platform_get_irq_optional(pdev, 0);

	if (!block || !where)
		return dev_err_probe(&pdev->dev, -ENODEV, "no controller that this driver knows\n");
	if (irq == -EPROBE_DEFER)
		return irq;
	return probe(&pdev->dev, where, max(irq, 0), block->data);
}

static int bw_platform_probe(struct platform_device *pdev)
{
	return bw_platform_found(pdev, bw_probe);
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
	.driver = { .name = "barewire", .of_match_table = bw_own, .pm = &bw_pm, .dev_groups = bw_folders },
};

#ifdef CONFIG_ARM_AMBA
static int bw_amba_probe(struct amba_device *adev, const struct amba_id *id)
{
	return bw_probe(&adev->dev, &adev->res, adev->irq[0], &bw_kinds[BW_PL022]);
}

static void bw_amba_remove(struct amba_device *adev)
{
	bw_remove(&adev->dev);
}

/* No part: by driver_override only. */
static const struct amba_id bw_amba_ids[] = { {} };

static struct amba_driver bw_amba = {
	.drv = { .name = "barewire", .pm = &bw_pm, .dev_groups = bw_folders },
	.id_table = bw_amba_ids,
	.probe = bw_amba_probe,
	.remove = bw_amba_remove,
};
#endif

static int __init bw_module_init(void)
{
	int ret;

	bw_size = bw_sizes();
	ret = bw_doors_begin();
	if (ret)
		return ret;
	ret = platform_driver_register(&bw_platform);
	if (ret)
		goto doors;
#ifdef CONFIG_ARM_AMBA
	ret = amba_driver_register(&bw_amba);
	if (ret) {
		platform_driver_unregister(&bw_platform);
		goto doors;
	}
#endif
	return 0;
doors:
	bw_doors_end();
	return ret;
}
module_init(bw_module_init);

static void __exit bw_module_exit(void)
{
#ifdef CONFIG_ARM_AMBA
	amba_driver_unregister(&bw_amba);
#endif
	platform_driver_unregister(&bw_platform);
	bw_doors_end();
}
module_exit(bw_module_exit);

MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("SPI at the cost of the wire: controllers in place of the kernel's drivers");
