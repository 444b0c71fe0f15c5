/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Counts of prepared accesses, off unless the module's parameter `statistics` is on: then a run costs one instruction that does nothing. */
#ifndef BAREWIRE_STATISTICS_H
#define BAREWIRE_STATISTICS_H

#include <linux/jump_label.h>
#include "host.h"

DECLARE_STATIC_KEY_FALSE(bw_statistics);

/* Under `owner`. */
static __always_inline void bw_count_run(struct bw_host *host, size_t len, int ret)
{
	if (static_branch_unlikely(&bw_statistics) && !ret) {
		host->runs++;
		host->run_bytes += len;
	}
}

static __always_inline void bw_count_wait(struct bw_host *host)
{
	if (static_branch_unlikely(&bw_statistics))
		atomic_inc(&host->run_waits);
}

static __always_inline void bw_count_busy(struct bw_host *host)
{
	if (static_branch_unlikely(&bw_statistics))
		atomic_inc(&host->run_refusals);
}

#endif
