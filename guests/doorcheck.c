// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The kernel module's device as a program in C sees it, by its header alone.
 *
 *   doorcheck abi NODE      what each call does and refuses, one line for each that is wrong
 *   doorcheck hold NODE     takes it, unmasks its interrupt, selects the first GPIO, says "held", and waits to be killed
 *   doorcheck share NODE    shares it, says "held", and waits
 *   doorcheck unbound NODE  takes it and says "held"; once a line comes on stdin, expects every call to fail and its page to be gone
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../kernel/module/barewire_door.h"

static int wrong;
static sigjmp_buf back;

static void expect(const char *what, long is, long wanted)
{
	if (is == wanted)
		return;
	fprintf(stderr, "%s: %ld, expected %ld\n", what, is, wanted);
	wrong = 1;
}

/* The result of a call, as the kernel returned it. */
static long of(long result)
{
	return result < 0 ? -errno : result;
}

static int taken(const char *node, int flags)
{
	int file = open(node, flags | O_CLOEXEC);

	if (file < 0) {
		perror(node);
		exit(1);
	}
	return file;
}

static volatile uint32_t *mapped(int file)
{
	void *page = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (page == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return page;
}

static struct barewire_door_info asked(int file)
{
	struct barewire_door_info info = { .size = sizeof(info) };

	expect("info", of(ioctl(file, BAREWIRE_DOOR_INFO, &info)), 0);
	return info;
}

static int first_gpio(const struct barewire_door_info *info)
{
	for (unsigned int i = 0; i < info->lines; i++)
		if (info->line[i].kind == BAREWIRE_DOOR_GPIO)
			return i;
	return -1;
}

static void abi(const char *node)
{
	int reader = taken(node, O_RDONLY), file = taken(node, O_RDWR), other;
	struct barewire_door_info info = asked(reader), less = { .size = 8, .version = 7, .block = "?" };
	int page = getpagesize(), line = first_gpio(&info), on = 1, strange = 2;
	uint32_t count;

	printf("%s at %#llx + %u bytes, %u Hz, flags %u, %u users, first GPIO %d\n", info.block,
	       (unsigned long long)info.address, info.length, info.reference_hz, info.flags, info.users, line);
	expect("size", info.size, sizeof(info));
	expect("version", info.version, BAREWIRE_DOOR_VERSION);
	expect("users", info.users, 1);
	expect("offset", info.offset, info.address % page);
	expect("a program that knows less", of(ioctl(reader, BAREWIRE_DOOR_INFO, &less)), 0);
	expect("gets less", less.size == 8 && less.version == BAREWIRE_DOOR_VERSION && less.block[0] == '?', 1);
	less.size = 4;
	expect("a size of 4", of(ioctl(reader, BAREWIRE_DOOR_INFO, &less)), -EINVAL);
	expect("a bad address", of(ioctl(reader, BAREWIRE_DOOR_INFO, 8)), -EFAULT);
	expect("an unknown call", of(ioctl(file, _IO(0xE7, 9))), -ENOTTY);

	expect("a second open", of(open(node, O_RDWR)), -EBUSY);
	expect("select by a reader", of(ioctl(reader, BAREWIRE_DOOR_SELECT, line)), -EBADF);
	expect("share by a reader", of(ioctl(reader, BAREWIRE_DOOR_SHARE)), -EBADF);
	expect("a read by a reader", of(read(reader, &count, 4)), -EBADF);

	expect("a private page", mmap(NULL, page, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED ? -errno : 0, -EINVAL);
	expect("two pages", mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED ? -errno : 0, -EINVAL);
	expect("the next page", mmap(NULL, page, PROT_READ, MAP_SHARED, file, page) == MAP_FAILED ? -errno : 0, -EINVAL);
	munmap((void *)mapped(file), page);

	expect("select", of(ioctl(file, BAREWIRE_DOOR_SELECT, line | BAREWIRE_DOOR_ACTIVE)), 0);
	expect("deselect", of(ioctl(file, BAREWIRE_DOOR_SELECT, line)), 0);
	expect("a line too many", of(ioctl(file, BAREWIRE_DOOR_SELECT, info.lines)), -EINVAL);
	expect("a line that is none", of(ioctl(file, BAREWIRE_DOOR_SELECT, 3 | BAREWIRE_DOOR_ACTIVE)), -EINVAL);
	expect("a line of another kind", of(ioctl(file, BAREWIRE_DOOR_SELECT, 0x200)), -EINVAL);

	expect("flags", info.flags & BAREWIRE_DOOR_HAS_INTERRUPT, BAREWIRE_DOOR_HAS_INTERRUPT);
	expect("unmask", of(write(file, &on, 4)), 4);
	expect("unmask by 2", of(write(file, &strange, 4)), -EINVAL);
	expect("a short read", of(read(file, &count, 2)), -EINVAL);
	fcntl(file, F_SETFL, O_NONBLOCK);
	expect("no interrupt yet", of(read(file, &count, 4)), -EAGAIN);
	expect("nor to poll for", poll(&(struct pollfd){ .fd = file, .events = POLLIN }, 1, 0), 0);

	/* Shared: with who asks for the same, and for nobody else. */
	expect("share", of(ioctl(file, BAREWIRE_DOOR_SHARE)), 0);
	other = taken(node, O_RDWR);
	expect("users", asked(reader).users, 2);
	expect("select by one that does not share", of(ioctl(other, BAREWIRE_DOOR_SELECT, line)), -EBUSY);
	expect("its page", mmap(NULL, page, PROT_READ, MAP_SHARED, other, 0) == MAP_FAILED ? -errno : 0, -EBUSY);
	expect("a third open meanwhile", of(open(node, O_RDWR)), -EBUSY);
	expect("share too", of(ioctl(other, BAREWIRE_DOOR_SHARE)), 0);
	expect("select by the other", of(ioctl(other, BAREWIRE_DOOR_SELECT, line)), 0);
	close(file);
	expect("users", asked(reader).users, 1);
	close(other);
	expect("users", asked(reader).users, 0);
}

static void gone(int signal)
{
	siglongjmp(back, 1);
}

static void unbound(int file, volatile uint32_t *registers)
{
	struct barewire_door_info info = { .size = sizeof(info) };
	struct pollfd polled = { .fd = file, .events = POLLIN };
	uint32_t word = 1;

	expect("info", of(ioctl(file, BAREWIRE_DOOR_INFO, &info)), -ENODEV);
	expect("select", of(ioctl(file, BAREWIRE_DOOR_SELECT, BAREWIRE_DOOR_ACTIVE)), -ENODEV);
	expect("share", of(ioctl(file, BAREWIRE_DOOR_SHARE)), -ENODEV);
	expect("read", of(read(file, &word, 4)), -ENODEV);
	expect("write", of(write(file, &word, 4)), -ENODEV);
	expect("poll", poll(&polled, 1, 1000), 1);
	expect("poll says", polled.revents & (POLLERR | POLLHUP), POLLERR | POLLHUP);
	expect("mmap", mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED ? -errno : 0, -ENODEV);
	signal(SIGBUS, gone);
	if (!sigsetjmp(back, 1)) {
		word = *registers;
		expect("its page", word, -1);
	}
}

int main(int count, char **words)
{
	const char *what = count == 3 ? words[1] : "";
	struct barewire_door_info info;
	volatile uint32_t *registers;
	int file, on = 1;

	if (!strcmp(what, "abi")) {
		abi(words[2]);
		return wrong;
	}
	file = taken(words[2], O_RDWR);
	info = asked(file);
	if (!strcmp(what, "share"))
		expect("share", of(ioctl(file, BAREWIRE_DOOR_SHARE)), 0);
	registers = (void *)((char *)mapped(file) + info.offset);
	/* A register that may be read at any time: of ECSPI the second control register, of the others their first. */
	(void)registers[!strcmp(info.block, "ecspi") ? 2 : 0];
	if (!strcmp(what, "hold")) {
		expect("unmask", of(write(file, &on, 4)), 4);
		expect("select", of(ioctl(file, BAREWIRE_DOOR_SELECT, first_gpio(&info) | BAREWIRE_DOOR_ACTIVE)), 0);
	}
	printf("held\n");
	fflush(stdout);
	if (strcmp(what, "unbound")) {
		pause();
		return 2;
	}
	getchar();
	unbound(file, registers);
	return wrong;
}
