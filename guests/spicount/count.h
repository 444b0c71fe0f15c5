/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The counting loop of clients in the kernel: spicount.c explains it. */
#ifndef COUNT_H
#define COUNT_H

#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spi/spi.h>

#define CALLS 1000
/* As in spibench.c: guests/wire.c counts accesses to registers between two of them. */
#ifdef CONFIG_ARM64
#define MARK() asm volatile(".inst 0xaa1502b5" ::: "memory")
#elif defined(CONFIG_UML)
#define MARK() do { } while (0)
#else
#define MARK() asm volatile(".inst 0xe1899009" ::: "memory")
#endif
#define JEDEC 0x9f

static __always_inline void count(const char *name, struct spi_device *spi, u8 *b, int (*call)(struct spi_device *, u8 *))
{
	u64 least = ~0ull;
	int i, round, ret = 0;

	memset(b + 64, 0, 64);
	b[0] = JEDEC;
	for (round = 0; round < 5; round++) {
		u64 begun;

		MARK();
		begun = ktime_get_ns();
		for (i = 0; i < CALLS && !ret; i++)
			ret = call(spi, b);
		least = min(least, ktime_get_ns() - begun);
		MARK();
	}
	if (ret)
		pr_info("spicount: %s failed %d\n", name, ret);
	else
		pr_info("spicount: %s %llu %3phN\n", name, div_u64(least, CALLS), b + 65);
}

#endif
