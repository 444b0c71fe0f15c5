/* What may go wrong where a program's messages do not enter a kernel, asked by a program that was written for
 * spidev and knows nothing of barewire. Behind the node answers a flash chip.
 *
 *   spichecks faults NODE      addresses that were good and are no more
 *   spichecks signals NODE     messages of a handler in the middle of others; a handler that does not return
 *   spichecks threads NODE     threads and processes at once
 *   spichecks settings NODE    settings that others make, and what the last one to close takes along
 *   spichecks descriptors NODE what closes and copies make of a number, whoever makes them
 *
 * Prints what is wrong; the exit code is 1 if something is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/spi/spidev.h>

static const char *node;
static volatile int wrong;
static uint8_t id[3];

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			wrong = 1; \
			fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
		} \
	} while (0)

static int opened(void) {
	int fd = open(node, O_RDWR);
	if (fd < 0) {
		perror(node);
		exit(1);
	}
	return fd;
}

static int message(int fd, const void *tx, void *rx, unsigned len) {
	struct spi_ioc_transfer transfer = {.tx_buf = (uintptr_t)tx, .rx_buf = (uintptr_t)rx, .len = len};
	return ioctl(fd, SPI_IOC_MESSAGE(1), &transfer);
}

static int reads_id(int fd) {
	uint8_t tx[4] = {0x9f}, rx[4] = {0};
	return message(fd, tx, rx, 4) == 4 && !memcmp(rx + 1, id, 3);
}

static void faults(int fd) {
	const size_t page = sysconf(_SC_PAGESIZE);
	static uint8_t spare[4];
	uint8_t tx[4] = {0x9f}, *at = mmap(0, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int round = 0; round < 3; round++) {
		/* Across the two pages, both ways. */
		uint8_t *both = at + page - 2;
		memcpy(both, tx, 4);
		CHECK(message(fd, both, both, 4) == 4 && !memcmp(both + 1, id, 3));
		CHECK(message(fd, tx, at, 4) == 4 && !memcmp(at + 1, id, 3));
		/* The receive buffer can no longer be written; it can still be read. */
		mprotect(at, 2 * page, PROT_READ);
		CHECK(message(fd, tx, at, 4) == -1 && errno == EFAULT);
		CHECK(message(fd, at, at, 4) == -1 && errno == EFAULT);
		CHECK(message(fd, at, 0, 4) == 4);
		mprotect(at + page, page, PROT_NONE);
		CHECK(message(fd, at + page - 2, 0, 4) == -1 && errno == EFAULT);
		CHECK(reads_id(fd));
		mprotect(at, 2 * page, PROT_READ | PROT_WRITE);
	}
	struct spi_ioc_transfer *transfer = (void *)at;
	*transfer = (struct spi_ioc_transfer){.tx_buf = (uintptr_t)tx, .rx_buf = (uintptr_t)spare, .len = 4};
	CHECK(ioctl(fd, SPI_IOC_MESSAGE(1), transfer) == 4);
	/* Another mapping takes its place, then none. */
	mmap(at, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(ioctl(fd, SPI_IOC_MESSAGE(1), transfer) == -1 && errno == EFAULT);
	munmap(at, 2 * page);
	CHECK(ioctl(fd, SPI_IOC_MESSAGE(1), transfer) == -1 && errno == EFAULT);
	CHECK(message(fd, at, 0, 4) == -1 && errno == EFAULT);
	CHECK(reads_id(fd));
}

static volatile int handler_fd, handled;
static sigjmp_buf back;

static void on_alarm(int signal) {
	handled++;
	CHECK(reads_id(handler_fd));
}

static void on_alarm_leave(int signal) { siglongjmp(back, 1); }

static void every(int us, void (*handler)(int)) {
	struct itimerval timer = {{0, us}, {0, us}};
	signal(SIGALRM, handler);
	setitimer(ITIMER_REAL, &timer, 0);
}

static void signals(int fd) {
	handler_fd = fd;
	every(3000, on_alarm);
	while (handled < 100)
		CHECK(reads_id(fd));
	/* A handler that does not return leaves no message in the middle. */
	volatile int left = 0;
	if (sigsetjmp(back, 1))
		left++;
	every(left < 100 ? 7000 : 0, on_alarm_leave);
	while (left < 100)
		CHECK(reads_id(fd));
	every(0, SIG_IGN);
	CHECK(reads_id(fd));
}

static void *identify(void *argument) {
	int fd = *(int *)argument;
	for (int times = 0; times < 500; times++)
		CHECK(reads_id(fd));
	return 0;
}

static void threads(int fd) {
	pid_t child = fork();
	pthread_t thread[3];
	for (int index = 0; index < 3; index++)
		pthread_create(&thread[index], 0, identify, &fd);
	identify(&fd);
	/* One that was made while threads are in messages. */
	pid_t other = fork();
	if (!other) {
		CHECK(reads_id(fd));
		_exit(wrong);
	}
	int status;
	CHECK(waitpid(other, &status, 0) == other && status == 0);
	for (int index = 0; index < 3; index++)
		pthread_join(thread[index], 0);
	if (!child)
		_exit(wrong);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void settings(int fd) {
	uint32_t hz = 5000000, read = 0;
	uint8_t mode = SPI_MODE_3, bits = 16, tx[4] = {0, 0x9f}, rx[4];
	int other = opened();
	CHECK(reads_id(fd) && reads_id(other));
	/* What one opener sets, the other has. */
	CHECK(ioctl(other, SPI_IOC_WR_MODE, &mode) == 0 && ioctl(other, SPI_IOC_WR_MAX_SPEED_HZ, &hz) == 0);
	CHECK(reads_id(fd));
	/* Not every controller has words of 16 bits. */
	if (ioctl(other, SPI_IOC_WR_BITS_PER_WORD, &bits) == 0) {
		CHECK(message(fd, tx, rx, 3) == -1 && errno == EINVAL);
		CHECK(message(fd, tx, rx, 4) == 4);
	}
	bits = 8;
	CHECK(ioctl(other, SPI_IOC_WR_BITS_PER_WORD, &bits) == 0 && reads_id(fd));
	/* A chip that a message leaves selected goes on with the next: the id's bytes, one after the other. */
	uint8_t command = 0x9f, got[3] = {0};
	struct spi_ioc_transfer kept = {.tx_buf = (uintptr_t)&command, .len = 1, .cs_change = 1};
	if (ioctl(fd, SPI_IOC_MESSAGE(1), &kept) == 1) {
		CHECK(message(other, 0, got, 3) == 3 && !memcmp(got, id, 3));
		CHECK(reads_id(fd));
	}
	/* bufsiz, and a bad length. */
	static uint8_t large[4097];
	CHECK(message(fd, large, 0, 4097) == -1 && errno == EMSGSIZE);
	CHECK(message(fd, large, 0, 0) == 0);
	/* The last one to close takes the clock along, mode and word length stay. */
	close(other);
	close(fd);
	fd = opened();
	CHECK(reads_id(fd));
	CHECK(ioctl(fd, SPI_IOC_RD_MAX_SPEED_HZ, &read) == 0 && read != hz);
	CHECK(ioctl(fd, SPI_IOC_RD_MODE, &mode) == 0 && mode == SPI_MODE_3);
	mode = SPI_MODE_0;
	CHECK(ioctl(fd, SPI_IOC_WR_MODE, &mode) == 0 && reads_id(fd));
	/* A descriptor that is another file now is no node. */
	int null = open("/dev/null", O_RDWR);
	dup2(null, fd);
	CHECK(message(fd, tx, rx, 4) == -1 && errno == ENOTTY);
}

/* A message on that number fails as on a pipe's end, and nothing comes out of the pipe. */
static int is_a_pipe(int fd, const int ends[2]) {
	char byte;
	uint8_t tx[4] = {0x9f}, rx[4] = {0};
	int refused = message(fd, tx, rx, 4) == -1 && errno == ENOTTY;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	return refused && read(ends[0], &byte, 1) == -1 && errno == EAGAIN;
}

/* The child closes the node and has a pipe in its place; another copy of the node is left to it. */
static int child_s_own(int fd, int node_again) {
	int ends[2];
	close(fd);
	if (pipe(ends) != 0 || (ends[0] != fd && ends[1] != fd && dup2(ends[1], fd) != fd))
		return 1;
	return !is_a_pipe(fd, ends) || !reads_id(node_again);
}

struct numbers {
	int fd, again;
};

static int shares(void *numbers) {
	const struct numbers *its = numbers;
	return child_s_own(its->fd, its->again);
}

static int ended_well(pid_t child) {
	int status;
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void descriptors(int fd) {
	static char stack[1 << 16] __attribute__((aligned(64)));
	int ends[2], pair[2];
	for (int round = 0; round < 5; round++) {
		/* Closed around the C library: what the number was is known a moment later. */
		int other = opened();
		CHECK(reads_id(other) && reads_id(other));
		syscall(SYS_close, other);
		usleep(200000);
		uint8_t tx[4] = {0x9f}, rx[4] = {0};
		CHECK(message(other, tx, rx, 4) == -1 && errno == EBADF);
		/* Replaced around it. */
		other = opened();
		CHECK(reads_id(other) && reads_id(other) && pipe(ends) == 0);
		syscall(SYS_dup3, ends[1], other, 0);
		usleep(200000);
		CHECK(is_a_pipe(other, ends));
		/* Replaced by the C library: known at once. */
		close(other);
		other = opened();
		CHECK(reads_id(other) && dup2(ends[1], other) == other && is_a_pipe(other, ends));
		close(other), close(ends[0]), close(ends[1]);

		/* Children of each kind, while the parent's descriptors stay what they are. */
		struct numbers its = {fd, dup(fd)};
		CHECK(reads_id(its.again));
		pid_t child = fork();
		if (child == 0)
			_exit(child_s_own(its.fd, its.again));
		CHECK(ended_well(child) && reads_id(fd));
		child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (child == 0)
			_exit(child_s_own(its.fd, its.again));
		CHECK(ended_well(child) && reads_id(fd));
		child = clone(shares, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &its);
		CHECK(ended_well(child) && reads_id(fd));
		child = clone(shares, stack + sizeof stack, CLONE_VM | SIGCHLD, &its);
		CHECK(ended_well(child) && reads_id(fd));
		child = vfork();
		if (child == 0) {
			dup2(its.fd, 0);
			close(its.fd);
			_exit(0);
		}
		CHECK(ended_well(child) && reads_id(fd) && reads_id(its.again));
		close(its.again);

		/* Passed on. */
		char byte = 0, room[CMSG_SPACE(sizeof(int))] = {0};
		struct iovec piece = {&byte, 1};
		struct msghdr letter = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
		struct cmsghdr *head = CMSG_FIRSTHDR(&letter);
		head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(head), &fd, sizeof(int));
		CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
		CHECK(sendmsg(pair[0], &letter, 0) == 1);
		memset(room, 0, sizeof room);
		CHECK(recvmsg(pair[1], &letter, 0) == 1);
		memcpy(&other, CMSG_DATA(CMSG_FIRSTHDR(&letter)), sizeof(int));
		CHECK(reads_id(other) && reads_id(other));
		close(other), close(pair[0]), close(pair[1]);
	}
}

int main(int argc, char **argv) {
	if (argc < 3)
		return 2;
	node = argv[2];
	int fd = opened();
	uint8_t tx[4] = {0x9f}, rx[4] = {0};
	CHECK(message(fd, tx, rx, 4) == 4 && rx[1] && rx[1] != 0xff);
	memcpy(id, rx + 1, 3);
	if (!strcmp(argv[1], "faults"))
		faults(fd);
	else if (!strcmp(argv[1], "signals"))
		signals(fd);
	else if (!strcmp(argv[1], "descriptors"))
		descriptors(fd);
	else if (!strcmp(argv[1], "threads"))
		threads(fd);
	else
		settings(fd);
	return wrong;
}
