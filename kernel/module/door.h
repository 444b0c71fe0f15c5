/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A controller that programs have, as door.c and door_bind.c share it. */
#ifndef BAREWIRE_DOOR_DRIVER_H
#define BAREWIRE_DOOR_DRIVER_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/wait.h>
#include "barewire_door.h"
#include "host.h"

struct bw_visit;

struct bw_door {
	struct bw_host host;
	struct device dev;
	struct cdev cdev;
	/* The place of the first register; the name of the block. */
	struct resource where;
	const char *name;
	/* Another block whose registers are in the page; NULL: none. */
	char *neighbour;

	/* Guards what follows, and every use of the host. Never held while a program's memory is touched. */
	struct mutex lock;
	/* Unbound. */
	bool gone;
	/* Who has the controller. */
	struct list_head visits;
	/* Who selected each line. */
	struct bw_visit *selector[BW_LINES];

	/* The interrupt: requested, how many came, and whether the line is masked. */
	bool interrupts;
	spinlock_t irq_lock;
	bool masked;
	u32 count;
	wait_queue_head_t waiters;
};

/* door.c */
extern const struct file_operations bw_door_operations;
irqreturn_t bw_door_interrupt(int irq, void *data);
void bw_door_mask(struct bw_door *door, bool masked);
void bw_door_quiet(struct bw_door *door);
void bw_door_close_all(struct bw_door *door);

#endif
