// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/*
 * The host's part of barewire_mmio: a Unix socket, and the page that the server passes over it.
 *
 * The layout of the page and the order of accesses are those of docs/mmio.md. This file is compiled with the
 * host's headers and knows nothing of the kernel.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "barewire_mmio.h"

#define PAGE_BYTES 4096
#define SLOTS 32
#define ASKED 8
#define ANSWERED 16
#define SERVER_SLEEPS 24
#define CLIENT_SLEEPS 28
#define FIRST_SLOT 32
#define SLOT_WORDS 8
#define MAGIC 0x31306f696d6d7762ULL /* "bwmmio01" */

/* Turns of a spin loop before the kernel is asked to wake us: some microseconds. */
#define SPIN_TURNS 100
/* How long that sleep may last before the socket is looked at. */
#define PATIENCE_NS 100000000

static int send_words(int fd, const unsigned long long words[4])
{
	const char *bytes = (const char *)words;
	size_t sent = 0;

	while (sent < 32) {
		ssize_t more = send(fd, bytes + sent, 32 - sent, MSG_NOSIGNAL);

		if (more < 0 && errno != EINTR)
			return -errno;
		if (more > 0)
			sent += more;
	}
	return 0;
}

static int receive_words(int fd, unsigned long long words[4], int *file)
{
	char room[CMSG_SPACE(sizeof(int))];
	char *bytes = (char *)words;
	size_t got = 0;

	while (got < 32) {
		struct iovec into = { .iov_base = bytes + got, .iov_len = 32 - got };
		struct msghdr message = {
			.msg_iov = &into,
			.msg_iovlen = 1,
			.msg_control = room,
			.msg_controllen = sizeof(room),
		};
		ssize_t more = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
		struct cmsghdr *beside;

		if (more == 0)
			return -EPIPE;
		if (more < 0 && errno != EINTR)
			return -errno;
		if (more < 0)
			continue;
		beside = CMSG_FIRSTHDR(&message);
		if (file && beside && beside->cmsg_level == SOL_SOCKET &&
		    beside->cmsg_type == SCM_RIGHTS)
			memcpy(file, CMSG_DATA(beside), sizeof(*file));
		got += more;
	}
	return 0;
}

int bw_link_open(struct bw_link *link, const char *path, unsigned long long words[4])
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int file = -1, result;
	void *page;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	link->asked = 0;
	link->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (link->fd < 0)
		return -errno;
	if (connect(link->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	words[0] = BW_HEAD(BW_HELLO, 0, 0, BW_VERSION);
	words[1] = 1;
	words[2] = words[3] = 0;
	result = send_words(link->fd, words);
	if (!result)
		result = receive_words(link->fd, words, &file);
	if (result)
		return result;
	if (BW_KIND(words[0]) != BW_WELCOME || file < 0)
		return -EPROTO;
	page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (page == MAP_FAILED)
		return -errno;
	link->page = page;
	return link->page[0] == MAGIC ? 0 : -EPROTO;
}

int bw_link_socket(struct bw_link *link, unsigned long long words[4])
{
	int result = send_words(link->fd, words);

	return result ? result : receive_words(link->fd, words, NULL);
}

static void pause_once(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

static int is_answered(struct bw_link *link, unsigned long long count, int order)
{
	return (long long)(count - __atomic_load_n(&link->page[ANSWERED], order)) <= 0;
}

/* Sleeps until the server answers. 0, or -1 if it has gone. */
static int sleep_for(struct bw_link *link, unsigned long long count)
{
	struct timespec longest = { .tv_nsec = PATIENCE_NS };
	char byte;

	while (!is_answered(link, count, __ATOMIC_ACQUIRE)) {
		unsigned long long seen;

		__atomic_store_n(&link->page[CLIENT_SLEEPS], 1, __ATOMIC_SEQ_CST);
		seen = __atomic_load_n(&link->page[ANSWERED], __ATOMIC_SEQ_CST);
		if ((long long)(count - seen) > 0 &&
		    syscall(SYS_futex, &link->page[ANSWERED], FUTEX_WAIT, (unsigned int)seen,
			    &longest, NULL, 0) < 0 &&
		    errno == ETIMEDOUT &&
		    recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
			return -1;
	}
	__atomic_store_n(&link->page[CLIENT_SLEEPS], 0, __ATOMIC_RELAXED);
	return 0;
}

/* Until count requests are answered. 0, or -1 if the server has gone. */
static int wait_for(struct bw_link *link, unsigned long long count)
{
	unsigned int turns;

	for (turns = 0; turns < SPIN_TURNS; turns++) {
		if (is_answered(link, count, __ATOMIC_ACQUIRE))
			return 0;
		pause_once();
	}
	return sleep_for(link, count);
}

int bw_link_post(struct bw_link *link, const unsigned long long words[4])
{
	unsigned long long *slot = &link->page[FIRST_SLOT + link->asked % SLOTS * SLOT_WORDS];
	int index;

	if (wait_for(link, link->asked - (SLOTS - 1)))
		return -1;
	for (index = 0; index < 4; index++)
		__atomic_store_n(&slot[index], words[index], __ATOMIC_RELAXED);
	link->asked++;
	__atomic_store_n(&link->page[ASKED], link->asked, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&link->page[SERVER_SLEEPS], __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &link->page[ASKED], FUTEX_WAKE, 1, NULL, NULL, 0);
	return 0;
}

int bw_link_wait(struct bw_link *link, unsigned long long words[4])
{
	unsigned long long *slot =
		&link->page[FIRST_SLOT + (link->asked - 1) % SLOTS * SLOT_WORDS];
	int index;

	if (wait_for(link, link->asked))
		return -1;
	for (index = 0; index < 4; index++)
		words[index] = __atomic_load_n(&slot[4 + index], __ATOMIC_RELAXED);
	return 0;
}
