// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The switch and the files of statistics.h. */
#include <linux/device.h>
#include <linux/module.h>
#include <linux/sysfs.h>
#include "statistics.h"

DEFINE_STATIC_KEY_FALSE(bw_statistics);

static int bw_switch(const char *text, const struct kernel_param *param)
{
	bool on;
	int ret = kstrtobool(text, &on);

	if (ret)
		return ret;
	if (on)
		static_branch_enable(&bw_statistics);
	else
		static_branch_disable(&bw_statistics);
	return 0;
}

static int bw_switched(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%c\n", static_key_enabled(&bw_statistics) ? 'Y' : 'N');
}

static const struct kernel_param_ops bw_switch_ops = { .set = bw_switch, .get = bw_switched };
module_param_cb(statistics, &bw_switch_ops, NULL, 0644);
MODULE_PARM_DESC(statistics, "count prepared accesses, in the controllers' folder `barewire` (default off)");

#define BW_FILE(name, format, value) \
	static ssize_t name##_show(struct device *dev, struct device_attribute *attribute, char *text) \
	{ \
		struct bw_host *host = dev_get_drvdata(dev); \
\
		return sysfs_emit(text, format "\n", value); \
	} \
	static DEVICE_ATTR_RO(name)

/* Runs that found the bus free and went well, and their bytes. */
BW_FILE(runs, "%lu", READ_ONCE(host->runs));
BW_FILE(run_bytes, "%lu", READ_ONCE(host->run_bytes));
/* Runs that became messages, and try_runs that were refused. */
BW_FILE(run_waits, "%u", atomic_read(&host->run_waits));
BW_FILE(run_refusals, "%u", atomic_read(&host->run_refusals));

static struct attribute *bw_files[] = {
	&dev_attr_runs.attr, &dev_attr_run_bytes.attr, &dev_attr_run_waits.attr, &dev_attr_run_refusals.attr, NULL,
};

static const struct attribute_group bw_folder = { .name = "barewire", .attrs = bw_files };
const struct attribute_group *bw_folders[] = { &bw_folder, NULL };
