// SPDX-License-Identifier: MIT OR Apache-2.0
/* This project's kernel module in place of Linux's driver of the controller, as docs/kernel.md tells users to bind it, and back. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checks.h"

#define DEVICES "/sys/bus/platform/devices"
#define DRIVERS "/sys/bus/platform/drivers"

/* The controller's name among the platform's devices, and its driver's. */
static char device[64], linux_driver[64];
static char why[512];

static bool put(const char *text, const char *format, const char *name)
{
	char path[256];
	int file;
	bool right;

	snprintf(path, sizeof(path), format, name);
	file = open(path, O_WRONLY);
	right = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
	if (!right)
		snprintf(why, sizeof(why), "%s to %s: %s", text, path, strerror(errno));
	if (file >= 0)
		close(file);
	return right;
}

/* The last name of a link's target; empty: there is no such link. */
static const char *target(const char *link, char *name, size_t size)
{
	char path[256] = "";
	const char *last;

	if (readlink(link, path, sizeof(path) - 1) < 0)
		path[0] = 0;
	last = strrchr(path, '/');
	snprintf(name, size, "%s", last ? last + 1 : path);
	return name;
}

static const char *driver(char *name, size_t size)
{
	char link[256];

	snprintf(link, sizeof(link), DEVICES "/%s/driver", device);
	return target(link, name, size);
}

static bool is_driven_by(const char *wanted)
{
	char name[64];

	snprintf(why + strlen(why), sizeof(why) - strlen(why), " (bound to %s, not to %s)", driver(name, sizeof(name)),
		 wanted);
	return strcmp(name, wanted) == 0;
}

static bool load(void)
{
	int module = open("/barewire.ko", O_RDONLY);
	char parameters[64];
	bool right;

	snprintf(parameters, sizeof(parameters), "poll_limit_us=%lu", option("poll_limit", 30));
	right = module >= 0 && syscall(SYS_finit_module, module, parameters, 0) == 0;
	snprintf(why, sizeof(why), "cannot load it: %s", strerror(errno));
	if (module >= 0)
		close(module);
	return right;
}

bool take_module(void)
{
	char path[256];
	bool right;

	if (!find(DEVICES "/*.spi", path, sizeof(path), 5)) {
		failed("module-bound", "no controller");
		return false;
	}
	snprintf(device, sizeof(device), "%s", strrchr(path, '/') + 1);
	driver(linux_driver, sizeof(linux_driver));
	right = load();
	judge("module-loaded", right, why);
	why[0] = 0;
	/* It takes nothing unasked. */
	right = right && is_driven_by(linux_driver) && put(device, DRIVERS "/%s/unbind", linux_driver) &&
		put("barewire", DEVICES "/%s/driver_override", device) && put(device, DRIVERS "/%s/bind", "barewire") &&
		is_driven_by("barewire");
	judge("module-bound", right, why);
	return right;
}

void leave_module(void)
{
	bool right;

	why[0] = 0;
	right = put(device, DRIVERS "/%s/unbind", "barewire") && put("\n", DEVICES "/%s/driver_override", device) &&
		put(device, DRIVERS "/%s/bind", linux_driver) && is_driven_by(linux_driver);
	if (right && syscall(SYS_delete_module, "barewire", O_NONBLOCK)) {
		snprintf(why, sizeof(why), "rmmod: %s", strerror(errno));
		right = false;
	}
	judge("module-left", right, why);
}
