// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Registers in user-mode Linux: no memory, but what the kernel calls for an address of ioremap's. */
#include <linux/io.h>
#include "barewire.h"

u32 bw_register_read(const void __iomem *at)
{
	return readl_relaxed(at);
}

void bw_register_write(void __iomem *at, u32 value)
{
	writel_relaxed(value, at);
}
