// SPDX-License-Identifier: MIT OR Apache-2.0
/* The pen by evdev: it lands, moves from a quarter of the panel to three quarters, and leaves. */
#include <errno.h>
#include <fcntl.h>
#include <linux/input.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"

/* Codes of 12 bits; a stroke is sampled some time after it began, and before it ended. */
#define QUARTER 1024
#define NEAR 160

static bool is_near(int value, int expected)
{
	return value > expected - NEAR && value < expected + NEAR;
}

void check_touch(void)
{
	int first[2] = { -1, -1 }, last[2] = { -1, -1 }, samples = 0, strokes = 0, pressure = 0;
	int back_from = 0, back_to = 0;
	bool down = false;
	struct pollfd ready;
	char path[64];

	if (!find("/dev/input/event0", path, sizeof(path), 5)) {
		failed("touch", "no /dev/input/event0 appeared");
		return;
	}
	ready.fd = open(path, O_RDONLY);
	ready.events = POLLIN;
	while (strokes < 2) {
		struct input_event event;
		int axis;

		/* A stroke begins every two seconds. */
		if (poll(&ready, 1, 5000) != 1 ||
		    read(ready.fd, &event, sizeof(event)) != sizeof(event)) {
			failed("touch-pen", "no event for 5 s: %d strokes, %d samples", strokes, samples);
			return;
		}
		axis = event.code == ABS_Y;
		if (event.type == EV_KEY && event.code == BTN_TOUCH) {
			down = event.value;
			strokes += !down;
			if (down)
				last[0] = last[1] = -1;
		} else if (event.type == EV_ABS && event.code == ABS_PRESSURE && event.value) {
			pressure = event.value;
		} else if (event.type == EV_ABS && (event.code == ABS_X || event.code == ABS_Y)) {
			if (first[axis] < 0)
				first[axis] = event.value;
			if (event.value < last[axis] - 16) {
				back_from = last[axis];
				back_to = event.value;
			}
			last[axis] = event.value;
			samples++;
		}
	}
	note("pen: %d samples in 2 strokes, from %d,%d to %d,%d, pressure %d", samples, first[0], first[1],
	     last[0], last[1], pressure);
	passed("touch-pen");
	if (!is_near(first[0], QUARTER) || !is_near(first[1], QUARTER) ||
	    !is_near(last[0], 3 * QUARTER) || !is_near(last[1], 3 * QUARTER))
		failed("touch-moves", "from %d,%d to %d,%d", first[0], first[1], last[0], last[1]);
	else if (back_from)
		failed("touch-moves", "it jumps back from %d to %d", back_from, back_to);
	else
		judge("touch-moves", samples >= 40, "it has few samples");
}
