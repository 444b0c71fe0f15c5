// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A client of barewire_spi.h. Bound to a flash chip, it prepares it. With counts=1 it counts what an access costs. With mixed_ms=N
 * it mixes, for so long, all that may share a bus, on two processors and in a hard interrupt, and compares each answer: the flash's
 * identification is wrong if two messages interleave, and its write enable latch is lost if somebody comes between two messages of
 * a holder of the bus. With provoke=1 a thread runs what a module built to be tested panics at. Reading the parameters `run` and
 * `try_run` runs one access: its result, and the chip's answer.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include "barewire_spi.h"
#include "count.h"

#define WRITE_ENABLE 0x06
#define WRITE_DISABLE 0x04
#define READ_STATUS 0x05
#define WRITE_LATCH 0x02

static bool counts, provoke, keep;
static unsigned int mixed_ms;
module_param(counts, bool, 0444);
module_param(mixed_ms, uint, 0444);
module_param(provoke, bool, 0444);
/* The handle outlives the driver's binding, as it should not. */
module_param(keep, bool, 0444);

static struct barewire_spi *prepared;
static struct spi_device *device;
static u8 id[3];

static int by_run(struct spi_device *spi, u8 *b)
{
	return barewire_spi_run(prepared, b, b + 64, 4);
}

static int by_try_run(struct spi_device *spi, u8 *b)
{
	return barewire_spi_try_run(prepared, b, b + 64, 4);
}

/* A message while there are handles. */
static int by_message(struct spi_device *spi, u8 *b)
{
	struct spi_transfer x = { .tx_buf = b, .rx_buf = b + 64, .len = 4 };
	struct spi_message m;

	spi_message_init_with_transfers(&m, &x, 1);
	return spi_sync(spi, &m);
}

static struct { atomic_t sync, async, locked, run, try, busy, wrong, order, intruded, failed; } seen;

static void judge(int ret, const u8 *answer, atomic_t *of)
{
	if (ret)
		atomic_inc(&seen.failed);
	else if (memcmp(answer, id, 3))
		atomic_inc(&seen.wrong);
	else
		atomic_inc(of);
}

static int syncs(void *b)
{
	u8 *at = b;

	while (!kthread_should_stop()) {
		judge(by_message(device, at), at + 65, &seen.sync);
		cond_resched();
	}
	return 0;
}

/* Clears the latch too, whenever it is this thread's turn. */
static int runs(void *b)
{
	u8 *at = b;

	while (!kthread_should_stop()) {
		judge(by_run(device, at), at + 65, &seen.run);
		at[8] = WRITE_DISABLE;
		if (barewire_spi_run(prepared, at + 8, at + 9, 1))
			atomic_inc(&seen.failed);
		cond_resched();
	}
	return 0;
}

static void ended(void *flag)
{
	WRITE_ONCE(*(int *)flag, 1);
}

/* A run behind a message of the same thread that nobody waits for. */
static int orders(void *b)
{
	u8 *at = b;

	while (!kthread_should_stop()) {
		struct spi_transfer x = { .tx_buf = at, .rx_buf = at + 96, .len = 4 };
		struct spi_message m;
		int over = 0, ret;

		spi_message_init_with_transfers(&m, &x, 1);
		m.complete = ended;
		m.context = &over;
		ret = spi_async(device, &m);
		/* Somebody has locked the bus. */
		if (ret == -EBUSY) {
			usleep_range(10, 50);
			continue;
		}
		judge(by_run(device, at), at + 65, &seen.run);
		if (!ret && !READ_ONCE(over))
			atomic_inc(&seen.order);
		while (!ret && !READ_ONCE(over))
			usleep_range(10, 50);
		judge(ret ?: m.status, at + 97, &seen.async);
		cond_resched();
	}
	return 0;
}

/* The latch that one message sets is there in the next. */
static int locks(void *b)
{
	u8 *at = b;

	while (!kthread_should_stop()) {
		struct spi_transfer enable = { .tx_buf = at + 8, .len = 1 };
		struct spi_message m;
		int ret;

		at[8] = WRITE_ENABLE;
		at[12] = READ_STATUS;
		spi_message_init_with_transfers(&m, &enable, 1);
		spi_bus_lock(device->controller);
		ret = spi_sync_locked(device, &m);
		if (!ret)
			ret = barewire_spi_run_locked(prepared, at + 12, at + 16, 2);
		spi_bus_unlock(device->controller);
		if (ret)
			atomic_inc(&seen.failed);
		else if (!(at[17] & WRITE_LATCH))
			atomic_inc(&seen.intruded);
		else
			atomic_inc(&seen.locked);
		usleep_range(50, 200);
	}
	return 0;
}

static u8 timer_bytes[128];

static enum hrtimer_restart interrupt(struct hrtimer *timer)
{
	int ret = by_try_run(device, timer_bytes);

	if (ret == -EBUSY)
		atomic_inc(&seen.busy);
	else
		judge(ret, timer_bytes + 65, &seen.try);
	if (!in_hardirq())
		atomic_inc(&seen.failed);
	timer_bytes[8] = WRITE_DISABLE;
	barewire_spi_try_run(prepared, timer_bytes + 8, timer_bytes + 9, 1);
	hrtimer_forward_now(timer, ns_to_ktime(100000));
	return HRTIMER_RESTART;
}

static int mix(struct spi_device *spi)
{
	static int (*const works[])(void *) = { syncs, runs, orders, locks };
	struct task_struct *tasks[ARRAY_SIZE(works)];
	struct hrtimer timer;
	int i;

	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	timer.function = interrupt;
	timer_bytes[0] = JEDEC;
	for (i = 0; i < ARRAY_SIZE(works); i++) {
		u8 *b = devm_kzalloc(&spi->dev, 128, GFP_KERNEL);

		if (!b)
			return -ENOMEM;
		b[0] = JEDEC;
		tasks[i] = kthread_create(works[i], b, "spiapi-%d", i);
		if (IS_ERR(tasks[i]))
			return PTR_ERR(tasks[i]);
		kthread_bind(tasks[i], i % num_online_cpus());
		wake_up_process(tasks[i]);
	}
	hrtimer_start(&timer, ns_to_ktime(100000), HRTIMER_MODE_REL_HARD);
	msleep(mixed_ms);
	hrtimer_cancel(&timer);
	for (i = 0; i < ARRAY_SIZE(works); i++)
		kthread_stop(tasks[i]);
#define SEEN(of) atomic_read(&seen.of)
	pr_info("spiapi: mixed sync=%d async=%d locked=%d run=%d try=%d busy=%d wrong=%d order=%d intruded=%d failed=%d\n",
		SEEN(sync), SEEN(async), SEEN(locked), SEEN(run), SEEN(try), SEEN(busy), SEEN(wrong), SEEN(order), SEEN(intruded),
		SEEN(failed));
	return 0;
}

/* The shortest path, of a handle that ran before. */
static int provoking(void *b)
{
	u8 *at = b;

	by_run(device, at);
	memcpy(at, "\xbd\0\0", 3);
	pr_info("spiapi: provoking returned %d\n", barewire_spi_run(prepared, at, at + 64, 3));
	return 0;
}

/* A flash does not look at what follows its command; a chip that sends back what it is sent answers with the number of the call. */
static int told(char *text, int (*call)(struct spi_device *, u8 *))
{
	u8 *b = kzalloc(128, GFP_KERNEL);
	static u8 calls;
	int ret;

	if (!b)
		return -ENOMEM;
	b[0] = JEDEC;
	memset(b + 1, ++calls, 3);
	ret = call(device, b);
	ret = sysfs_emit(text, "%d %3phN\n", ret, b + 65);
	kfree(b);
	return ret;
}

static int run_told(char *text, const struct kernel_param *param)
{
	return prepared ? told(text, by_run) : -ENODEV;
}

static int try_run_told(char *text, const struct kernel_param *param)
{
	return prepared ? told(text, by_try_run) : -ENODEV;
}

static const struct kernel_param_ops run_ops = { .get = run_told }, try_run_ops = { .get = try_run_told };
module_param_cb(run, &run_ops, NULL, 0444);
module_param_cb(try_run, &try_run_ops, NULL, 0444);

static int probe(struct spi_device *spi)
{
	u8 *b = devm_kzalloc(&spi->dev, 128, GFP_KERNEL);
	int ret;

	if (!b)
		return -ENOMEM;
	device = spi;
	prepared = barewire_spi_prepare(spi, 64, 0);
	if (IS_ERR(prepared)) {
		ret = PTR_ERR(prepared);
		prepared = NULL;
		return ret;
	}
	b[0] = JEDEC;
	/* Twice: the second is the shortest path. Neither the longest access nor one more byte. */
	ret = by_message(spi, b) ?: by_run(spi, b) ?: by_run(spi, b);
	memcpy(id, b + 65, 3);
	if (!ret && (barewire_spi_run(prepared, b, NULL, 65) != -EMSGSIZE || barewire_spi_run(prepared, b, b, 0) != -EMSGSIZE ||
		     barewire_spi_run(prepared, b, b + 3, 4) != -EINVAL || barewire_spi_run(prepared, NULL, NULL, 4) != -EINVAL))
		ret = -EDOM;
	if (!ret && counts) {
		count("run-4", spi, b, by_run);
		count("try-run-4", spi, b, by_try_run);
		count("shared-sync-4", spi, b, by_message);
	}
	if (!ret && provoke)
		ret = PTR_ERR_OR_ZERO(kthread_run(provoking, b, "provoking"));
	if (!ret && mixed_ms)
		ret = mix(spi);
	if (!ret)
		return 0;
	barewire_spi_release(prepared);
	prepared = NULL;
	return ret;
}

static void stop(struct spi_device *spi)
{
	if (keep)
		return;
	barewire_spi_release(prepared);
	prepared = NULL;
}

static struct spi_driver driver = { .driver = { .name = "spiapi" }, .probe = probe, .remove = stop };

static int __init begin(void)
{
	return spi_register_driver(&driver);
}
module_init(begin);

static void __exit end(void)
{
	spi_unregister_driver(&driver);
	barewire_spi_release(prepared);
}
module_exit(end);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("checks and counts prepared accesses");
