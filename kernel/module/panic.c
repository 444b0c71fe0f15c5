// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The end of a task whose message panicked in the Rust half. */
#include <linux/bug.h>
#include <linux/device.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include "line.h"

static LIST_HEAD(hosts);
static DEFINE_SPINLOCK(hosts_lock);

void bw_panic_knows(struct bw_host *host)
{
	spin_lock(&hosts_lock);
	list_add(&host->all, &hosts);
	spin_unlock(&hosts_lock);
}

void bw_panic_forgets(struct bw_host *host)
{
	spin_lock(&hosts_lock);
	list_del(&host->all);
	spin_unlock(&hosts_lock);
}

#ifdef CONFIG_PREEMPT_RT
/* Who holds a mutex is not to be seen there: every controller that is in use is given up, and its waiters stay. */
static bool bw_holds(struct mutex *lock)
{
	return mutex_is_locked(lock);
}

static void bw_unlock(struct mutex *lock) {}
#else
static bool bw_holds(struct mutex *lock)
{
	return in_task() && (atomic_long_read(&lock->owner) & ~7l) == (long)current;
}

static void bw_unlock(struct mutex *lock)
{
	if (bw_holds(lock))
		mutex_unlock(lock);
}
#endif

/* Deselects the chips, gives the controller up, ends its message, and lets go of the SPI core's locks that this task
 * holds, so that others get -EIO and do not wait for ever.
 */
void __noreturn bw_panicked(const u8 *file, size_t length, u32 line)
{
	struct bw_host *host;
	unsigned int i;

	pr_emerg("barewire: panic at %.*s:%u\n", (int)length, file, line);
	/* Without hosts_lock: a host whose message is running is not removed. */
	list_for_each_entry(host, &hosts, all) {
		struct spi_controller *ctlr = host->ctlr;

		/* A run of this context: preemption is off. */
		bool runs = atomic_long_read(&host->owner) == (long)current;

		if (!runs && !bw_holds(&ctlr->io_mutex) && !(in_hardirq() && host->flying))
			continue;
#ifdef BW_SHADOW
		/* selected.h: only its paths have interrupts off and a chip that the block is configured for. */
		if (irqs_disabled() && host->last && host->last->generic && !host->quiet)
			raw_spin_unlock(&host->last->generic->bgpio_lock);
#endif
		WRITE_ONCE(host->dead, true);
		WRITE_ONCE(host->ready, 0);
		for (i = 0; i < BW_LINES; i++)
			bw_line_set(host, i, false);
		dev_emerg(host->dev, "given up: every message fails with -EIO until the driver is bound anew\n");
		if (runs || bw_holds(&ctlr->io_mutex))
			atomic_long_set_release(&host->owner, BW_FREE);
		if (!in_task())
			continue;
		if (runs) {
			preempt_enable();
			continue;
		}
		if (ctlr->cur_msg) {
			ctlr->cur_msg->status = -EIO;
			spi_finalize_current_message(ctlr);
		}
		bw_unlock(&ctlr->io_mutex);
		bw_unlock(&ctlr->bus_lock_mutex);
	}
	BUG();
}
