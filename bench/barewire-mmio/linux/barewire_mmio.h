/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * What the kernel's part and the host's part of barewire_mmio know of each other.
 *
 * The protocol is docs/mmio.md of barewire. A message is four words of 64 bits.
 */
#ifndef BAREWIRE_MMIO_H
#define BAREWIRE_MMIO_H

#define BW_VERSION 1

/* Requests */
#define BW_HELLO 1
#define BW_DESCRIBE 2
#define BW_READ 3
#define BW_WRITE 4
#define BW_WAIT 5
#define BW_LOOK 6
#define BW_DRIVE 7
#define BW_BYE 8

/* Answers */
#define BW_WELCOME 0x81
#define BW_BLOCK 0x82
#define BW_DONE 0x83
#define BW_REFUSED 0x84

#define BW_NEVER (~0ULL)

#define BW_HEAD(kind, width, index, offset)                             \
	((unsigned long long)(kind) | (unsigned long long)(width) << 16 | \
	 (unsigned long long)(index) << 24 |                             \
	 (unsigned long long)(offset) << 32)
#define BW_KIND(head) ((unsigned int)((head) & 0xffff))
#define BW_WIDTH(head) ((unsigned int)((head) >> 16 & 0xff))
#define BW_INDEX(head) ((unsigned int)((head) >> 24 & 0xff))
#define BW_OFFSET(head) ((unsigned int)((head) >> 32))

struct bw_link {
	int fd;
	unsigned long long *page;
	unsigned long long asked;
};

/* Connects, says Hello and maps the page; words become the welcome. 0, or a negative errno. */
int bw_link_open(struct bw_link *link, const char *path, unsigned long long words[4]);
/* A request over the socket; words become its answer. 0, or a negative errno. */
int bw_link_socket(struct bw_link *link, unsigned long long words[4]);
/* Makes a request on the page. 0, or -1 if the server has gone. */
int bw_link_post(struct bw_link *link, const unsigned long long words[4]);
/* Waits until all requests are answered; words become the answer to the last. 0, or -1. */
int bw_link_wait(struct bw_link *link, unsigned long long words[4]);

#endif
