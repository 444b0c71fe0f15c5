// SPDX-License-Identifier: MIT OR Apache-2.0
/* The converter by IIO: each channel alone and against its neighbour. Channel n of N has (2n + 1) / 2N of VREF. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

#define DEVICE "/sys/bus/iio/devices/iio:device0/"

/* A channel's code; -1 if there is none. */
static long code(const char *channel)
{
	char path[128], text[32], *end;
	long value;

	snprintf(path, sizeof(path), DEVICE "in_voltage%s_raw", channel);
	content(path, text, sizeof(text));
	value = strtol(text, &end, 10);
	return end == text ? -1 : value;
}

void check_adc(void)
{
	char path[128], name[32], channel[48];
	long channels, bits, n;

	if (!find(DEVICE "name", path, sizeof(path), 5)) {
		failed("adc", "no IIO device appeared");
		return;
	}
	/* mcp3008: 30 or 32, 0, the number of channels. */
	content(path, name, sizeof(name));
	channels = name[strlen(name) - 1] - '0';
	bits = strncmp(name, "mcp32", 5) == 0 ? 12 : 10;
	note("converter %s: %ld channels, %ld bits", name, channels, bits);
	for (n = 0; n < channels; n++) {
		long expected = ((2 * n + 1) << bits) / (2 * channels), found;

		snprintf(channel, sizeof(channel), "%ld", n);
		found = code(channel);
		if (labs(found - expected) > 1) {
			failed("adc-channels", "channel %ld: %ld, not %ld", n, found, expected);
			return;
		}
	}
	passed("adc-channels");
	for (n = 0; n < channels; n += 2) {
		long expected = (1L << bits) / channels, up, down;

		snprintf(channel, sizeof(channel), "%ld-voltage%ld", n + 1, n);
		up = code(channel);
		snprintf(channel, sizeof(channel), "%ld-voltage%ld", n, n + 1);
		down = code(channel);
		if (labs(up - expected) > 1 || down != 0) {
			failed("adc-differential", "%ld-%ld: %ld and %ld, not %ld and 0", n + 1, n, up,
			       down, expected);
			return;
		}
	}
	passed("adc-differential");
}
