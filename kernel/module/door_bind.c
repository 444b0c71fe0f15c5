// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The driver `barewire-user`: a controller for programs (door.c), without an SPI controller of the kernel's.
 *
 * The mode is the name of a second driver, and not a parameter: who binds a device says what for by the name in driver_override,
 * each controller may be in another mode, the link `driver` tells which, and nothing takes a controller for programs by accident,
 * because this driver matches none by itself.
 *
 * While no program has the controller, it sleeps: runtime power management as for the other driver, with the open files as references.
 */
#include <linux/amba/bus.h>
#include <linux/idr.h>
#include <linux/io.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/of_address.h>
#include <linux/platform_device.h>
#include <linux/pm_runtime.h>
#include <linux/slab.h>
#include <linux/version.h>
#include "door.h"

#define BW_DOORS 16

static struct class bw_class = { .name = "barewire" };
static dev_t bw_doors;
static DEFINE_IDA(bw_numbers);

/* The names of blocks in barewire's names of buses. */
static const char *const bw_names[] = {
	[BW_ECSPI] = "ecspi", [BW_BCM2835] = "bcm2835", [BW_PL022] = "pl022", [BW_DW_SSI] = "dw-ssi",
	[BW_ATMEL] = "atmel", [BW_CADENCE] = "cadence", [BW_MCSPI] = "mcspi", [BW_SIFIVE] = "sifive",
};

static void bw_door_free(struct device *dev)
{
	struct bw_door *door = container_of(dev, struct bw_door, dev);

	kfree(door->neighbour);
	kfree(door);
}

static void bw_door_put(void *door)
{
	put_device(&((struct bw_door *)door)->dev);
}

static void bw_door_number_free(void *door)
{
	ida_free(&bw_numbers, MINOR(((struct bw_door *)door)->dev.devt) - MINOR(bw_doors));
}

static bool bw_is_above(const struct device_node *node, const struct device_node *of)
{
	for (; of; of = of->parent)
		if (of == node)
			return true;
	return false;
}

/*
 * A device-tree node that has registers in the page of this block's, and outside of this block's; disabled ones too. A node that has
 * the same registers describes the same block, and one above it is its bus.
 */
static int bw_find_neighbour(struct bw_door *door)
{
	const struct resource *where = &door->where;
	resource_size_t first = round_down(where->start, PAGE_SIZE), last = first + PAGE_SIZE - 1;
	struct device_node *node, *found = NULL;

	for_each_node_with_property(node, "reg") {
		struct resource its;
		int i;

		if (bw_is_above(node, door->host.dev->of_node))
			continue;
		for (i = 0; !found && !of_address_to_resource(node, i, &its); i++)
			if ((its.start < where->start && its.end >= first) || (its.end > where->end && its.start <= last))
				found = node;
		if (!found)
			continue;
		door->neighbour = kasprintf(GFP_KERNEL, "%pOF", found);
		of_node_put(node);
		return door->neighbour ? 0 : -ENOMEM;
	}
	return 0;
}

static int bw_door_probe(struct device *dev, struct resource *where, int irq, const struct bw_kind *kind)
{
	struct bw_door *door = kzalloc(sizeof(*door), GFP_KERNEL);
	struct bw_host *host;
	int ret;

	if (!door)
		return -ENOMEM;
	host = &door->host;
	mutex_init(&door->lock);
	spin_lock_init(&door->irq_lock);
	INIT_LIST_HEAD(&door->visits);
	init_waitqueue_head(&door->waiters);
	door->masked = true;
	door->where = *where;
	door->name = bw_names[kind->block];
	device_initialize(&door->dev);
	door->dev.class = &bw_class;
	door->dev.parent = dev;
	door->dev.release = bw_door_free;
	/* The last to be undone: open files keep the memory longer. */
	ret = devm_add_action_or_reset(dev, bw_door_put, door);
	if (ret)
		return ret;
	ret = ida_alloc_max(&bw_numbers, BW_DOORS - 1, GFP_KERNEL);
	if (ret < 0)
		return ret;
	door->dev.devt = MKDEV(MAJOR(bw_doors), MINOR(bw_doors) + ret);
	dev_set_name(&door->dev, "barewire%d", ret);
	ret = devm_add_action_or_reset(dev, bw_door_number_free, door);
	if (ret)
		return ret;

	ret = bw_begin(host, dev, where, irq, kind);
	if (ret)
		return ret;
	ret = bw_find_neighbour(door);
	if (ret)
		goto leave;
	if (irq) {
		/* Masked as a whole line, so it is nobody else's. */
		ret = request_irq(irq, bw_door_interrupt, IRQF_NO_AUTOEN, dev_name(dev), door);
		if (ret)
			dev_warn(dev, "without interrupt %d, which is not its own: %d\n", irq, ret);
		door->interrupts = !ret;
	}
	bw_power_begins(host);
	host->held = false;
	pm_runtime_put_sync_suspend(dev);

	cdev_init(&door->cdev, &bw_door_operations);
	door->cdev.owner = THIS_MODULE;
	ret = cdev_device_add(&door->cdev, &door->dev);
	if (!ret)
		return 0;
	dev_err(dev, "/dev/%s: %d\n", dev_name(&door->dev), ret);
	if (door->interrupts)
		free_irq(irq, door);
	bw_power_ends(host);
	return ret;
leave:
	bw_leave(host->slot);
	bw_clocks_off(host);
	return ret;
}

static void bw_door_remove(struct device *dev)
{
	struct bw_door *door = container_of((struct bw_host *)dev_get_drvdata(dev), struct bw_door, host);

	cdev_device_del(&door->cdev, &door->dev);
	mutex_lock(&door->lock);
	WRITE_ONCE(door->gone, true);
	bw_door_close_all(door);
	mutex_unlock(&door->lock);
	if (door->interrupts)
		free_irq(door->host.irq, door);
	bw_power_ends(&door->host);
}

/* A program's mapping cannot be told that the block lost its registers. Programs are frozen by now: none opens it. */
static int __maybe_unused bw_door_suspend(struct device *dev)
{
	struct bw_door *door = container_of((struct bw_host *)dev_get_drvdata(dev), struct bw_door, host);

	if (list_empty(&door->visits))
		return pm_runtime_force_suspend(dev);
	dev_warn(dev, "a program has /dev/%s open: the system does not sleep\n", dev_name(&door->dev));
	return -EBUSY;
}

static const struct dev_pm_ops bw_door_pm = {
	SET_SYSTEM_SLEEP_PM_OPS(bw_door_suspend, pm_runtime_force_resume)
	SET_RUNTIME_PM_OPS(bw_runtime_suspend, bw_runtime_resume, NULL)
};

static int bw_door_platform_probe(struct platform_device *pdev)
{
	return bw_platform_found(pdev, bw_door_probe);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static void bw_door_platform_remove(struct platform_device *pdev)
{
	bw_door_remove(&pdev->dev);
}
#else
static int bw_door_platform_remove(struct platform_device *pdev)
{
	bw_door_remove(&pdev->dev);
	return 0;
}
#endif

static struct platform_driver bw_door_platform = {
	.probe = bw_door_platform_probe,
	.remove = bw_door_platform_remove,
	.driver = { .name = "barewire-user", .pm = &bw_door_pm },
};

#ifdef CONFIG_ARM_AMBA
static int bw_door_amba_probe(struct amba_device *adev, const struct amba_id *id)
{
	return bw_door_probe(&adev->dev, &adev->res, adev->irq[0], &bw_kinds[BW_PL022]);
}

static void bw_door_amba_remove(struct amba_device *adev)
{
	bw_door_remove(&adev->dev);
}

/* By driver_override only. */
static const struct amba_id bw_door_ids[] = { {} };

static struct amba_driver bw_door_amba = {
	.drv = { .name = "barewire-user", .pm = &bw_door_pm },
	.id_table = bw_door_ids,
	.probe = bw_door_amba_probe,
	.remove = bw_door_amba_remove,
};
#endif

int __init bw_doors_begin(void)
{
	int ret = class_register(&bw_class);

	if (ret)
		return ret;
	ret = alloc_chrdev_region(&bw_doors, 0, BW_DOORS, "barewire");
	if (ret)
		goto class;
	ret = platform_driver_register(&bw_door_platform);
	if (ret)
		goto region;
#ifdef CONFIG_ARM_AMBA
	ret = amba_driver_register(&bw_door_amba);
	if (!ret)
		return 0;
	platform_driver_unregister(&bw_door_platform);
#else
	return 0;
#endif
region:
	unregister_chrdev_region(bw_doors, BW_DOORS);
class:
	class_unregister(&bw_class);
	return ret;
}

void bw_doors_end(void)
{
#ifdef CONFIG_ARM_AMBA
	amba_driver_unregister(&bw_door_amba);
#endif
	platform_driver_unregister(&bw_door_platform);
	unregister_chrdev_region(bw_doors, BW_DOORS);
	class_unregister(&bw_class);
}
