// SPDX-License-Identifier: MIT OR Apache-2.0
/* spidev through a wire that tells the mode: lengths, modes, word sizes, messages of several transfers; and what they cost. */
#include <errno.h>
#include <fcntl.h>
#include <linux/spi/spidev.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "checks.h"

#define MOST 4096

static uint8_t sent[MOST], heard[MOST];
static char why[256];

static void fill(size_t length, unsigned int bits)
{
	size_t index, width = bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
	uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;

	for (index = 0; index + width <= length; index += width) {
		uint32_t word = (random_number() ^ random_number() << 16) & mask;

		memcpy(sent + index, &word, width);
	}
	memset(heard, 0, length);
}

/* What the chip changes of each half byte: the number of the mode. */
static unsigned int mode_of_chip;

static int exchange(int bus, size_t length, unsigned int bits, unsigned int speed_hz)
{
	size_t index, width = bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
	uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
	struct spi_ioc_transfer transfer = {
		.tx_buf = (uintptr_t)sent,
		.rx_buf = (uintptr_t)heard,
		.len = length,
		.bits_per_word = bits,
		.speed_hz = speed_hz,
	};

	fill(length, bits);
	if (ioctl(bus, SPI_IOC_MESSAGE(1), &transfer) != (int)length)
		return -errno;
	/* A driver may leave anything above a word's bits. */
	for (index = 0; index + width <= length; index += width) {
		uint32_t one = 0, other = 0;

		memcpy(&one, sent + index, width);
		memcpy(&other, heard + index, width);
		if ((one ^ other ^ mode_of_chip * 0x11111111u) & mask)
			return 1;
	}
	return 0;
}

/* All lengths at one speed; false if the driver does not take the speed. */
static bool at_speed(int bus, unsigned int speed_hz, bool *right)
{
	size_t length;

	if (exchange(bus, 1, 8, speed_hz) < 0)
		return false;
	for (length = 1; length <= MOST; length += length < 80 ? 1 : length < 512 ? 61 : 1007) {
		int result = exchange(bus, length, 8, speed_hz);

		if (result) {
			snprintf(why, sizeof(why), "%zu bytes at %u Hz: %s", length, speed_hz,
				 result < 0 ? strerror(-result) : "other bytes came back");
			*right = false;
			return true;
		}
	}
	return true;
}

static bool lengths(int bus)
{
	/* Some drivers do not refuse a speed that they cannot have. */
	unsigned int speeds[] = { option("slowest", 100000), 1000000, 10000000, 20000000 };
	size_t index, taken = 0;
	bool right = true;

	for (index = 0; index < sizeof(speeds) / sizeof(speeds[0]) && right; index++) {
		if (at_speed(bus, speeds[index], &right))
			taken++;
		else
			note("the driver refuses %u Hz", speeds[index]);
	}
	if (right)
		snprintf(why, sizeof(why), "the driver takes %zu of the speeds", taken);
	return right && taken >= 3;
}

static bool modes(int bus)
{
	uint8_t mode;

	for (mode = 0; mode < 4; mode++) {
		int result;

		if (ioctl(bus, SPI_IOC_WR_MODE, &mode) < 0) {
			snprintf(why, sizeof(why), "mode %u: %s", mode, strerror(errno));
			return false;
		}
		mode_of_chip = mode;
		result = exchange(bus, 33, 8, 1000000);
		if (result) {
			snprintf(why, sizeof(why), "mode %u: %s", mode,
				 result < 0 ? strerror(-result) : "other bytes came back");
			return false;
		}
	}
	mode = mode_of_chip = 0;
	return ioctl(bus, SPI_IOC_WR_MODE, &mode) == 0;
}

static bool word_sizes(int bus)
{
	unsigned int bits, taken = 0;
	char list[128] = "";
	uint8_t size;

	for (bits = 1; bits <= 32; bits++) {
		size_t words;

		size = bits;
		if (ioctl(bus, SPI_IOC_WR_BITS_PER_WORD, &size) < 0)
			continue;
		for (words = 1; words <= 40; words += 13) {
			size_t width = bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
			int result = exchange(bus, words * width, bits, 1000000);

			if (result == -EINVAL)
				break;
			if (result) {
				snprintf(why, sizeof(why),
					 "%zu words of %u bits: %s (first word %02x%02x%02x%02x, not %02x%02x%02x%02x)",
					 words, bits,
					 result < 0 ? strerror(-result) : "other bits came back", heard[3],
					 heard[2], heard[1], heard[0], sent[3], sent[2], sent[1], sent[0]);
				return false;
			}
			if (words == 1) {
				taken++;
				if (strlen(list) < sizeof(list) - 8)
					sprintf(list + strlen(list), " %u", bits);
			}
		}
	}
	size = 8;
	ioctl(bus, SPI_IOC_WR_BITS_PER_WORD, &size);
	note("word sizes:%s", list);
	snprintf(why, sizeof(why), "no word size is taken");
	return taken > 0;
}

static bool messages(int bus)
{
	struct spi_ioc_transfer transfers[5];
	/* A block's slowest clock may be faster. */
	unsigned int slow = option("slowest", 0) > 500000 ? option("slowest", 0) : 500000;
	size_t index, total = 0, at = 0;

	for (index = 0; index < 5; index++) {
		memset(&transfers[index], 0, sizeof(transfers[index]));
		transfers[index].tx_buf = (uintptr_t)(sent + at);
		transfers[index].rx_buf = index == 1 ? 0 : (uintptr_t)(heard + at);
		transfers[index].len = 3 + 20 * index;
		transfers[index].cs_change = index == 2;
		transfers[index].delay_usecs = index == 3 ? 50 : 0;
		transfers[index].speed_hz = index == 4 ? slow : 5000000;
		at += transfers[index].len;
		total += transfers[index].len;
	}
	fill(total, 8);
	if (ioctl(bus, SPI_IOC_MESSAGE(5), transfers) != (int)total) {
		snprintf(why, sizeof(why), "%s", strerror(errno));
		return false;
	}
	/* The second transfer only sends. */
	memcpy(heard + 3, sent + 3, transfers[1].len);
	snprintf(why, sizeof(why), "other bytes came back");
	return memcmp(sent, heard, total) == 0;
}

static void costs(int bus)
{
	static const size_t sizes[] = { 4, 6, 64, 1024 };
	size_t index, turn, turns = 16;

	for (index = 0; index < sizeof(sizes) / sizeof(sizes[0]); index++) {
		unsigned long reads, writes;

		/* The first message gives the driver's memory of the settings a known content. */
		exchange(bus, sizes[index], 8, 10000000);
		reads = counted("reads");
		writes = counted("writes");
		for (turn = 0; turn < turns; turn++)
			exchange(bus, sizes[index], 8, 10000000);
		reads = counted("reads") - reads;
		writes = counted("writes") - writes;
		accesses(sizes[index], (double)reads / turns, (double)writes / turns);
	}
}

/* One message for the server's trace, which notes the first accesses: so it comes first. */
static void trace(int bus)
{
	static const uint8_t bytes[] = { 0xa5, 0xc3, 0x5a, 0x3c };
	struct spi_ioc_transfer transfer = {
		.tx_buf = (uintptr_t)bytes,
		.rx_buf = (uintptr_t)heard,
		.len = sizeof(bytes),
		.speed_hz = 10000000,
	};
	unsigned long before = 0;
	int turn;

	/* The first message gives the driver's memory of the settings a known content. */
	for (turn = 0; turn < 2; turn++) {
		before = counted("reads") + counted("writes");
		if (ioctl(bus, SPI_IOC_MESSAGE(1), &transfer) != sizeof(bytes))
			return;
	}
	traced(before, counted("reads") + counted("writes"));
}

void check_spidev(void)
{
	char path[64];
	int bus;

	if (!find("/dev/spidev*", path, sizeof(path), 5)) {
		failed("spidev", "no /dev/spidev appeared");
		return;
	}
	bus = open(path, O_RDWR);
	if (bus < 0) {
		failed("spidev", "%s: %s", path, strerror(errno));
		return;
	}
	trace(bus);
	judge("spidev-lengths", lengths(bus), why);
	judge("spidev-modes", modes(bus), why);
	judge("spidev-words", word_sizes(bus), why);
	judge("spidev-messages", messages(bus), why);
	costs(bus);
	close(bus);
}
