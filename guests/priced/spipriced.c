/* Operations of a guest's kernel between marks: guests/priced.c counts what runs.
 *
 *   spipriced spidev NODE HZ NAME BYTES…    SPI_IOC_MESSAGE(1), full duplex
 *   spipriced mtd NODE NAME BYTES…          pread from the flash's beginning
 *   spipriced on0 COMMAND…                  runs a command on processor 0
 *
 * The program stays on processor 0. An operation after idling follows five seconds' sleep.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <linux/spi/spidev.h>
#include "mark.h"

static uint8_t sent[4096] = { 0x9f }, received[4096];

static void die(const char *what)
{
	fprintf(stderr, "spipriced: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void idle(void)
{
	struct timespec time = { .tv_sec = IDLE_MS / 1000 };

	nanosleep(&time, NULL);
}

int main(int count, char **given)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
	if (count > 2 && !strcmp(given[1], "on0")) {
		execvp(given[2], given + 2);
		die(given[2]);
	}
	if (count < 4)
		return 2;
	int spi = !strcmp(given[1], "spidev"), first = spi ? 5 : 4;
	int file = open(given[2], spi ? O_RDWR : O_RDONLY);

	if (file < 0)
		die(given[2]);
	for (int i = first; i < count; i++) {
		int bytes = atoi(given[i]);
		long ended = bytes;
		struct spi_ioc_transfer message = { .tx_buf = (uintptr_t)sent, .rx_buf = (uintptr_t)received,
			.len = bytes, .speed_hz = spi ? atoi(given[3]) : 0 };

		if (bytes < 1 || bytes > (int)sizeof(received))
			return 2;
		if (spi)
			PRICE(given[4], bytes, idle(), ended |= ioctl(file, SPI_IOC_MESSAGE(1), &message));
		else
			PRICE(given[3], bytes, idle(), ended |= pread(file, received, bytes, 0));
		if (ended != bytes)
			die(given[2]);
	}
	/* The chip's identification, behind its opcode. */
	if (spi && (received[1] == 0xff || !received[1])) {
		fprintf(stderr, "spipriced: no chip answers\n");
		return 1;
	}
	return 0;
}
