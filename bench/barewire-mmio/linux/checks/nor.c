// SPDX-License-Identifier: MIT OR Apache-2.0
/* The flash by spi-nor's MTD: identified, erased, written, read. */
#include <errno.h>
#include <fcntl.h>
#include <mtd/mtd-user.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "checks.h"

/* The bytes written to a block. */
#define WRITTEN 5000

static char why[256];

static bool blank(const uint8_t *bytes, size_t length)
{
	while (length--)
		if (*bytes++ != 0xff)
			return false;
	return true;
}

static bool read_at(int mtd, uint8_t *into, size_t length, off_t at)
{
	if (pread(mtd, into, length, at) == (ssize_t)length)
		return true;
	snprintf(why, sizeof(why), "read at %#lx: %s", (long)at, strerror(errno));
	return false;
}

static bool erase_at(int mtd, uint32_t at, uint32_t length)
{
	struct erase_info_user erase = { .start = at, .length = length };

	if (ioctl(mtd, MEMERASE, &erase) == 0)
		return true;
	snprintf(why, sizeof(why), "erase at %#x: %s", at, strerror(errno));
	return false;
}

/* A blank block that is written in pieces of odd lengths, read back and, if asked, erased. */
static bool block(int mtd, const struct mtd_info_user *info, uint32_t at, bool erased)
{
	/* An erase takes long, and most of it is polling: a few pages show as much as a block. */
	size_t size = info->erasesize, most = size < WRITTEN ? size : WRITTEN, done = 0, index;
	uint8_t *bytes = malloc(size), *back = malloc(size);
	bool right = false;

	if (!bytes || !back)
		return false;
	for (index = 0; index < size; index++)
		bytes[index] = random_number();
	if (!read_at(mtd, back, size, at))
		goto out;
	if (!blank(back, size)) {
		snprintf(why, sizeof(why), "the block at %#x of a new chip is not blank", at);
		goto out;
	}
	while (done < most) {
		size_t piece = 1 + random_number() % 1000;

		if (piece > most - done)
			piece = most - done;
		if (pwrite(mtd, bytes + done, piece, at + done) != (ssize_t)piece) {
			snprintf(why, sizeof(why), "write at %#zx: %s", at + done, strerror(errno));
			goto out;
		}
		done += piece;
	}
	if (!read_at(mtd, back, size, at))
		goto out;
	for (index = 0; index < size; index++)
		if (back[index] != (index < most ? bytes[index] : 0xff)) {
			snprintf(why, sizeof(why), "at %#zx is %#x, not what was written", at + index,
				 back[index]);
			goto out;
		}
	if (erased && (!erase_at(mtd, at, size) || !read_at(mtd, back, size, at)))
		goto out;
	right = !erased || blank(back, size);
	snprintf(why, sizeof(why), "the block at %#x is not blank after its erase", at);
out:
	free(bytes);
	free(back);
	return right;
}

void check_nor(void)
{
	char path[64], name[64], id[64];
	struct mtd_info_user info;
	int mtd;

	if (!find("/dev/mtd0", path, sizeof(path), 5)) {
		failed("nor", "no /dev/mtd0 appeared");
		return;
	}
	mtd = open(path, O_RDWR);
	if (mtd < 0 || ioctl(mtd, MEMGETINFO, &info) < 0) {
		failed("nor", "%s: %s", path, strerror(errno));
		return;
	}
	if (find("/sys/bus/spi/devices/*/spi-nor/jedec_id", path, sizeof(path), 1))
		content(path, id, sizeof(id));
	else
		id[0] = 0;
	if (find("/sys/bus/spi/devices/*/spi-nor/partname", path, sizeof(path), 1))
		content(path, name, sizeof(name));
	else
		strcpy(name, "(by SFDP)");
	note("flash %s, %s: %u bytes, blocks of %u", id, name, info.size, info.erasesize);
	passed("nor-identify");
	judge("nor-first-block", block(mtd, &info, 0, true), why);
	judge("nor-last-block", block(mtd, &info, info.size - info.erasesize, false), why);
	close(mtd);
}
