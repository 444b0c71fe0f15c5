// SPDX-License-Identifier: MIT OR Apache-2.0
/* mtdpart NODE OFFSET LENGTH: makes a partition of a flash, as the next node. Tests that write anywhere get that part. */
#include <fcntl.h>
#include <linux/blkpg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

int main(int count, char **words)
{
	struct blkpg_partition part = { .pno = 1 };
	struct blkpg_ioctl_arg add = { .op = BLKPG_ADD_PARTITION, .datalen = sizeof(part), .data = &part };
	int flash = count == 4 ? open(words[1], O_RDWR) : -1;

	if (flash < 0) {
		fprintf(stderr, "mtdpart: no flash\n");
		return 2;
	}
	part.start = strtoll(words[2], NULL, 0);
	part.length = strtoll(words[3], NULL, 0);
	strcpy(part.devname, "part");
	if (ioctl(flash, BLKPG, &add)) {
		perror("mtdpart: BLKPG");
		return 1;
	}
	return 0;
}
