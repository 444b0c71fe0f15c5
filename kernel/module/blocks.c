// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The blocks: what the device tree calls them, and what the kernel keeps for each. */
#include <linux/clk.h>
#include <linux/device.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/property.h>
#include <linux/reset.h>
#include "host.h"

const struct bw_kind bw_kinds[] = {
	[BW_ECSPI] = { BW_ECSPI, .clock = "per", .bus_clock = "ipg", .lines = 4, .batch_bytes = 128, .loops = true },
	[BW_BCM2835] = { BW_BCM2835, .lines = 2, .batch_bytes = 48 },
	/* The AMBA bus keeps its bus clock. */
	[BW_PL022] = { BW_PL022, .lines = 4, .batch_bytes = 4, .loops = true },
	[BW_DW_SSI] = { BW_DW_SSI, .bus_clock = "pclk", .reset = "spi", .lines = 4, .batch_bytes = 32, .loops = true },
	[BW_ATMEL] = { BW_ATMEL, .clock = "spi_clk", .lines = 4, .batch_bytes = 1, .loops = true },
	[BW_CADENCE] = { BW_CADENCE, .clock = "ref_clk", .bus_clock = "pclk", .lines = 3, .batch_bytes = 64 },
	/* Its clock is that of the bus above it, and the same in every part. */
	[BW_MCSPI] = { BW_MCSPI, .fixed_hz = 48000000, .lines = 4, .batch_bytes = 16 },
	[BW_SIFIVE] = { BW_SIFIVE, .lines = 4, .batch_bytes = 4 },
};

#define BW_NAMED(name, block) { .compatible = name, .data = &bw_kinds[block] }

/* The compatibles of Linux's drivers are here to name the block, and not for the driver to be bound by them: that takes
 * driver_override, or a compatible of this driver's own.
 */
const struct of_device_id bw_blocks[] = {
	BW_NAMED("fsl,imx51-ecspi", BW_ECSPI),
	BW_NAMED("fsl,imx53-ecspi", BW_ECSPI),
	BW_NAMED("fsl,imx6ul-ecspi", BW_ECSPI),
	BW_NAMED("barewire,ecspi", BW_ECSPI),
	BW_NAMED("brcm,bcm2835-spi", BW_BCM2835),
	BW_NAMED("brcm,bcm2711-spi", BW_BCM2835),
	BW_NAMED("barewire,bcm2835-spi", BW_BCM2835),
	BW_NAMED("snps,dw-apb-ssi", BW_DW_SSI),
	BW_NAMED("barewire,dw-apb-ssi", BW_DW_SSI),
	BW_NAMED("atmel,at91rm9200-spi", BW_ATMEL),
	BW_NAMED("microchip,sam9x60-spi", BW_ATMEL),
	BW_NAMED("barewire,atmel-spi", BW_ATMEL),
	BW_NAMED("cdns,spi-r1p6", BW_CADENCE),
	BW_NAMED("xlnx,zynq-spi-r1p6", BW_CADENCE),
	BW_NAMED("barewire,cadence-spi", BW_CADENCE),
	BW_NAMED("ti,omap4-mcspi", BW_MCSPI),
	BW_NAMED("ti,am654-mcspi", BW_MCSPI),
	BW_NAMED("barewire,mcspi", BW_MCSPI),
	BW_NAMED("sifive,spi0", BW_SIFIVE),
	BW_NAMED("barewire,sifive-spi", BW_SIFIVE),
	{}
};

const struct of_device_id bw_own[] = {
	{ .compatible = "barewire,ecspi" },
	{ .compatible = "barewire,bcm2835-spi" },
	{ .compatible = "barewire,dw-apb-ssi" },
	{ .compatible = "barewire,atmel-spi" },
	{ .compatible = "barewire,cadence-spi" },
	{ .compatible = "barewire,mcspi" },
	{ .compatible = "barewire,sifive-spi" },
	{}
};
#ifdef CONFIG_ARM64
/* The build program of aliases for 32-bit Arm in Debian's packages does not run beside them. */
MODULE_DEVICE_TABLE(of, bw_own);
#endif

/* What the device tree says of the block beyond its registers and lines. Before bw_find_lines. */
int bw_find_properties(struct bw_host *host)
{
	const struct bw_kind *kind = host->kind;
	u32 count = kind->lines, width = 4;

	if (kind->block == BW_DW_SSI) {
		device_property_read_u32(host->dev, "num-cs", &count);
		device_property_read_u32(host->dev, "reg-io-width", &width);
	}
	if (count < 1 || count > 16)
		return dev_err_probe(host->dev, -EINVAL, "num-cs is %u; the block has 1 to 16\n", count);
	if (width != 4)
		return dev_err_probe(host->dev, -EINVAL, "its registers take accesses of %u bytes, not of 4\n", width);
	host->board.native_lines = count;
	host->board.d0_sends = device_property_read_bool(host->dev, "ti,pindir-d0-out-d1-in");
	return 0;
}

/* Its clocks and its reset, which is released. */
int bw_find_clocks(struct bw_host *host)
{
	const struct bw_kind *kind = host->kind;
	struct reset_control *reset;
	int ret;

	if (kind->fixed_hz)
		host->per = devm_clk_get_optional(host->dev, kind->clock);
	else
		host->per = devm_clk_get(host->dev, kind->clock);
	if (IS_ERR(host->per))
		return dev_err_probe(host->dev, PTR_ERR(host->per), "its clock\n");
	host->ipg = kind->bus_clock ? devm_clk_get_optional(host->dev, kind->bus_clock) : NULL;
	if (IS_ERR(host->ipg))
		return dev_err_probe(host->dev, PTR_ERR(host->ipg), "its bus clock\n");
	reset = devm_reset_control_get_optional_exclusive(host->dev, kind->reset);
	if (IS_ERR(reset))
		return dev_err_probe(host->dev, PTR_ERR(reset), "its reset\n");
	ret = reset_control_deassert(reset);
	if (ret)
		return dev_err_probe(host->dev, ret, "its reset\n");
	return 0;
}
