// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A controller that stops answering (barewire_mmio.c's `mute`): each message and each prepared access ends in time with ETIMEDOUT and
 * the chip deselected, and the next one, once the controller answers again, gets its own bytes and no left-over of the last.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/spi/spidev.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "checks.h"

#define MOST 1024
#define DEVICE "/sys/bus/spi/devices/%s"
/* The module looks ten times a second whether a message that sleeps has taken too long. */
#define LONGEST_MS 250

static uint8_t sent[MOST], heard[MOST];
static char why[256], idle[2048];

static bool put(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);
	bool right = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);

	if (!right)
		snprintf(why, sizeof(why), "%s to %s: %s", text, path, strerror(errno));
	if (file >= 0)
		close(file);
	return right;
}

static bool mute(bool on)
{
	return put("/sys/module/barewire_mmio/parameters/mute", !on ? "0" : option("mute", 1) == 2 ? "2" : "1");
}

static double ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* The GPIOs as they were, the select line among them: the chip is deselected. */
static bool deselected(void)
{
	char text[sizeof(idle)];

	if (strcmp(content("/sys/kernel/debug/gpio", text, sizeof(text)), idle) == 0)
		return true;
	snprintf(why, sizeof(why), "the GPIOs are not as they were: %.200s", text);
	return false;
}

static int exchange(int bus, size_t length)
{
	struct spi_ioc_transfer transfer = {
		.tx_buf = (uintptr_t)sent,
		.rx_buf = (uintptr_t)heard,
		.len = length,
		.speed_hz = 10000000,
	};
	size_t index;

	for (index = 0; index < length; index++)
		sent[index] = random_number();
	memset(heard, 0, length);
	return ioctl(bus, SPI_IOC_MESSAGE(1), &transfer) == (int)length ? 0 : -errno;
}

static bool message(int bus, size_t length)
{
	double begun, took;
	int result;

	if (!mute(true))
		return false;
	begun = ms();
	result = exchange(bus, length);
	took = ms() - begun;
	if (!mute(false))
		return false;
	note("%zu bytes to a controller that does not answer: %s after %.1f ms", length, strerror(-result), took);
	snprintf(why, sizeof(why), "%zu bytes: %s after %.1f ms", length, strerror(-result), took);
	if (result != -ETIMEDOUT || took > LONGEST_MS || !deselected())
		return false;
	result = exchange(bus, length);
	snprintf(why, sizeof(why), "%zu bytes behind one that timed out: %s", length,
		 result ? strerror(-result) : "other bytes came back");
	return !result && memcmp(sent, heard, length) == 0;
}

/* One prepared access by guests/spicount/spiapi.c, whose answer is the number of the call, three times. */
static bool access_says(const char *which, int result)
{
	static unsigned int calls;
	char path[96], text[64], wanted[64];

	calls++;
	snprintf(wanted, sizeof(wanted), result ? "%d 000000" : "%d %02x%02x%02x", result, calls, calls, calls);
	snprintf(path, sizeof(path), "/sys/module/spiapi/parameters/%s", which);
	content(path, text, sizeof(text));
	snprintf(why, sizeof(why), "%s, call %u: %s, not %s", which, calls, text, wanted);
	return strcmp(text, wanted) == 0;
}

static bool prepared(const char *device)
{
	char path[128];
	int module = open("/spiapi.ko", O_RDONLY);

	snprintf(path, sizeof(path), DEVICE "/driver/unbind", device);
	if (!put(path, device))
		return false;
	snprintf(path, sizeof(path), DEVICE "/driver_override", device);
	if (!put(path, "spiapi"))
		return false;
	if (module < 0 || syscall(SYS_finit_module, module, "", 0)) {
		snprintf(why, sizeof(why), "cannot load spiapi.ko: %s", strerror(errno));
		return false;
	}
	return access_says("run", 0) && access_says("run", 0) && mute(true) && access_says("run", -ETIMEDOUT) && deselected() &&
	       access_says("try_run", -ETIMEDOUT) && deselected() && mute(false) && access_says("try_run", 0) &&
	       access_says("run", 0) && mute(true) && access_says("try_run", -ETIMEDOUT) && mute(false) &&
	       access_says("run", 0) && deselected();
}

void check_mute(void)
{
	static const size_t lengths[] = { 4, 24, MOST };
	char path[64], device[32];
	bool right;
	size_t index;
	int bus = -1;

	if (find("/dev/spidev*", path, sizeof(path), 5))
		bus = open(path, O_RDWR);
	if (bus < 0) {
		failed("mute-messages", "no /dev/spidev");
		return;
	}
	right = exchange(bus, 4) == 0 && memcmp(sent, heard, 4) == 0;
	snprintf(why, sizeof(why), "nothing comes back from the chip");
	content("/sys/kernel/debug/gpio", idle, sizeof(idle));
	for (index = 0; index < sizeof(lengths) / sizeof(lengths[0]) && right; index++)
		/* Twice: the first one finds the block configured by a shorter path. */
		right = message(bus, lengths[index]) && message(bus, lengths[index]);
	judge("mute-messages", right, why);
	close(bus);
	snprintf(device, sizeof(device), "spi%s", strrchr(path, '/') + strlen("/spidev"));
	judge("mute-prepared", prepared(device), why);
	syscall(SYS_delete_module, "spiapi", O_NONBLOCK);
}
