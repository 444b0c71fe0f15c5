// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Clocks and power.
 *
 * A message finds the block awake, or wakes it. While messages come the block stays awake, so a message does not count
 * references: bw_idle looks once in an autosuspend delay whether any came, and else gives the reference back. It takes
 * io_mutex for that, so no message is under way. When the block wakes, its registers and its clock may be others: it is
 * brought up anew, and every chip is configured anew before its next message.
 */
#include <linux/minmax.h>
#include <linux/pinctrl/consumer.h>
#include <linux/pm_runtime.h>
#include "host.h"

#define BW_AUTOSUSPEND_MS 2000

int bw_clocks_on(struct bw_host *host)
{
	int ret = clk_prepare_enable(host->per);

	if (ret)
		return ret;
	ret = clk_prepare_enable(host->ipg);
	if (ret)
		clk_disable_unprepare(host->per);
	return ret;
}

void bw_clocks_off(struct bw_host *host)
{
	clk_disable_unprepare(host->ipg);
	clk_disable_unprepare(host->per);
}

/* Every chip is configured anew before its next message. */
void bw_next_ready(struct bw_host *host)
{
	/* Neither 0 nor BW_UNREADY. */
	if (!(host->generation = (host->generation + 1) & INT_MAX))
		host->generation = 1;
	host->ready = host->generation;
}

int bw_bring_up(struct bw_host *host)
{
	int ret;

	host->board.reference_hz = host->per ? clk_get_rate(host->per) : host->kind->fixed_hz;
	ret = bw_init(host->slot, &host->board);
	if (ret)
		return ret;
	/* It has deselected all chips. */
	host->kept = NULL;
	bw_forget_selected(host, NULL);
	bw_next_ready(host);
	return 0;
}

int __maybe_unused bw_runtime_suspend(struct device *dev)
{
	struct bw_host *host = dev_get_drvdata(dev);

	host->ready = 0;
	if (!host->dead)
		bw_leave(host->slot);
	bw_clocks_off(host);
	pinctrl_pm_select_sleep_state(dev);
	return 0;
}

int __maybe_unused bw_runtime_resume(struct device *dev)
{
	struct bw_host *host = dev_get_drvdata(dev);
	int ret;

	pinctrl_pm_select_default_state(dev);
	ret = bw_clocks_on(host);
	if (ret)
		return ret;
	ret = bw_bring_up(host);
	if (ret)
		bw_clocks_off(host);
	return ret;
}

void bw_idle_later(struct bw_host *host)
{
#ifdef CONFIG_PM
	int ms = READ_ONCE(host->dev->power.autosuspend_delay);
#else
	int ms = BW_AUTOSUSPEND_MS;
#endif

	/* Below 0, and with power/control on, it never suspends. */
	schedule_delayed_work(&host->idle, msecs_to_jiffies(clamp(ms, 1, 60000)));
}

/* Under io_mutex. */
int bw_wake(struct bw_host *host)
{
	int ret;

	if (host->dead)
		return -EIO;
	ret = pm_runtime_resume_and_get(host->dev);
	if (ret < 0)
		return ret;
	host->held = true;
	/* Another reference, such as power/control's, may have kept it awake. */
	host->ready = host->generation;
	bw_idle_later(host);
	return 0;
}

void bw_idle(struct work_struct *work)
{
	struct bw_host *host = container_of(work, struct bw_host, idle.work);

	mutex_lock(&host->ctlr->io_mutex);
	/* A handle keeps it awake. */
	if (host->used || host->kept || !list_empty(&host->prepared)) {
		host->used = false;
		pm_runtime_mark_last_busy(host->dev);
		bw_idle_later(host);
	} else {
		host->ready = 0;
		host->held = false;
		pm_runtime_put_autosuspend(host->dev);
	}
	mutex_unlock(&host->ctlr->io_mutex);
}

/* The block is awake, with a reference that is to be given back: by bw_idle. The AMBA bus has taken one for its drivers. */
void bw_power_begins(struct bw_host *host)
{
	pm_runtime_set_autosuspend_delay(host->dev, BW_AUTOSUSPEND_MS);
	pm_runtime_use_autosuspend(host->dev);
	if (host->board.block != BW_PL022) {
		pm_runtime_get_noresume(host->dev);
		pm_runtime_set_active(host->dev);
		pm_runtime_enable(host->dev);
	}
	host->held = true;
}

/* Silent, its clocks off, and the reference as it was found. */
void bw_power_ends(struct bw_host *host)
{
	bool bus_has_one = host->board.block == BW_PL022, awake = true;

	cancel_delayed_work_sync(&host->idle);
	if (!host->held)
		awake = pm_runtime_get_sync(host->dev) >= 0;
	pm_runtime_dont_use_autosuspend(host->dev);
	if (!bus_has_one)
		pm_runtime_disable(host->dev);
	if (awake) {
		if (!host->dead)
			bw_leave(host->slot);
		bw_clocks_off(host);
	}
	if (!bus_has_one) {
		pm_runtime_set_suspended(host->dev);
		pm_runtime_put_noidle(host->dev);
	}
}

/* No message and no handle uses the block from now on. */
void bw_close(struct bw_host *host, bool *why)
{
	bool entered;

	mutex_lock(&host->ctlr->io_mutex);
	entered = bw_enter(host);
	*why = true;
	host->ready = 0;
	bw_exit(host, entered);
	mutex_unlock(&host->ctlr->io_mutex);
}

static int __maybe_unused bw_suspend(struct device *dev)
{
	struct bw_host *host = dev_get_drvdata(dev);
	int ret = spi_controller_suspend(host->ctlr);

	if (ret)
		return ret;
	cancel_delayed_work_sync(&host->idle);
	bw_close(host, &host->asleep);
	return pm_runtime_force_suspend(dev);
}

static int __maybe_unused bw_resume_system(struct device *dev)
{
	struct bw_host *host = dev_get_drvdata(dev);
	int ret = pm_runtime_force_resume(dev);
	bool entered;

	if (ret)
		return ret;
	mutex_lock(&host->ctlr->io_mutex);
	entered = bw_enter(host);
	host->asleep = false;
	/* Handles are configured anew at its exit. */
	if (entered && !host->ready && !host->held)
		bw_wake(host);
	bw_exit(host, entered);
	mutex_unlock(&host->ctlr->io_mutex);
	if (host->held)
		bw_idle_later(host);
	return spi_controller_resume(host->ctlr);
}

const struct dev_pm_ops bw_pm = {
	SET_SYSTEM_SLEEP_PM_OPS(bw_suspend, bw_resume_system)
	SET_RUNTIME_PM_OPS(bw_runtime_suspend, bw_runtime_resume, NULL)
};
