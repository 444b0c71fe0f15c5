/* A program that was written for spidev and knows nothing of barewire: what one MESSAGE(1) of 4 bytes
 * costs it. Linked dynamically, so that `barewire run` can load its library.
 *
 *   spimessage count NODE       prints `PER_OP X`: nanoseconds of one message, the median of the rounds;
 *                               under QEMU's `-icount shift=0` a nanosecond is an instruction
 *   spimessage syscalls NODE    prints `PER_OP X`: the system calls that this program makes for one
 *   spimessage handled NODE     count, in a program that handles a signal
 *   spimessage apart NODE       count, where memory is worst laid out: the transfer, its bytes and the answer
 *                               each across two pages, their addresses a multiple of a MiB apart
 *   spimessage batch NODE       count, for one of ten messages' worth in a MESSAGE(10) with cs_change
 *   spimessage read NODE FILE [TWICE]
 *                               reads the flash from its begin in messages of 4096 bytes and compares it
 *                               with the file; TWICE is 2 for a second reader that was forked
 *   spimessage forever NODE     asks for the id until an answer is wrong; prints RUNS after the first
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/spi/spidev.h>

enum { CALLS = 1000, ROUNDS = 7, PIECE = 4096 };
static const uint32_t HZ = 20000000;
static uint8_t first[3];

static void die(const char *what) {
	fprintf(stderr, "spimessage: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int opened(const char *node) {
	uint32_t hz = HZ;
	int fd = open(node, O_RDWR);
	if (fd < 0)
		die(node);
	if (ioctl(fd, SPI_IOC_WR_MAX_SPEED_HZ, &hz) < 0)
		die("SPI_IOC_WR_MAX_SPEED_HZ");
	return fd;
}

/* Sends that transfer, which asks for the id, that many times. */
static void send(int fd, struct spi_ioc_transfer *transfer, int times) {
	const uint8_t *rx = (const uint8_t *)(uintptr_t)transfer->rx_buf;
	while (times--) {
		if (ioctl(fd, SPI_IOC_MESSAGE(1), transfer) != 4)
			die("SPI_IOC_MESSAGE");
	}
	if (!first[0])
		memcpy(first, rx + 1, 3);
	if (memcmp(first, rx + 1, 3) || first[0] == 0xff || !first[0]) {
		fprintf(stderr, "spimessage: the chip's id is %02x%02x%02x\n", rx[1], rx[2], rx[3]);
		exit(1);
	}
}

static void identify(int fd, int times) {
	static const uint8_t tx[4] = {0x9f};
	uint8_t rx[4] = {0};
	struct spi_ioc_transfer transfer = {.tx_buf = (uintptr_t)tx, .rx_buf = (uintptr_t)rx, .len = 4};
	send(fd, &transfer, times);
}

static void identify_apart(int fd, int times) {
	enum { APART = 1 << 20 };
	static uint8_t *memory;
	if (!memory) {
		memory = mmap(NULL, 4 * APART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			die("mmap");
	}
	struct spi_ioc_transfer *transfer = (void *)(memory + APART - sizeof *transfer / 2);
	uint8_t *tx = memory + 2 * APART - 2, *rx = memory + 3 * APART - 2;
	tx[0] = 0x9f;
	*transfer = (struct spi_ioc_transfer){.tx_buf = (uintptr_t)tx, .rx_buf = (uintptr_t)rx, .len = 4};
	send(fd, transfer, times);
}

/* Ten questions in one message, chip select inactive between them. */
static void identify_batch(int fd, int times) {
	enum { BATCH = 10 };
	static const uint8_t tx[4] = {0x9f};
	uint8_t rx[BATCH][4] = {0};
	struct spi_ioc_transfer transfers[BATCH];
	memset(transfers, 0, sizeof transfers);
	for (int i = 0; i < BATCH; i++) {
		transfers[i].tx_buf = (uintptr_t)tx;
		transfers[i].rx_buf = (uintptr_t)rx[i];
		transfers[i].len = 4;
		transfers[i].cs_change = i < BATCH - 1;
	}
	for (; times > 0; times -= BATCH)
		if (ioctl(fd, SPI_IOC_MESSAGE(BATCH), transfers) != 4 * BATCH)
			die("SPI_IOC_MESSAGE(10)");
	/* Only the first: highbank's driver keeps the chip selected, so the others are no answers. */
	if (rx[0][1] == 0xff || !rx[0][1]) {
		fprintf(stderr, "spimessage: no chip answers a batch\n");
		exit(1);
	}
}

static int by_size(const void *one, const void *other) {
	double a = *(const double *)one, b = *(const double *)other;
	return (a > b) - (a < b);
}

static double now_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void count(int fd, void (*operation)(int fd, int times)) {
	double rounds[ROUNDS];
	for (int round = -1; round < ROUNDS; round++) {
		double begun = now_ns();
		operation(fd, CALLS);
		/* The first round sets everything up. */
		if (round >= 0)
			rounds[round] = (now_ns() - begun) / CALLS;
	}
	qsort(rounds, ROUNDS, sizeof *rounds, by_size);
	printf("PER_OP %.1f\n", rounds[ROUNDS / 2]);
}

/* Stops at system calls of a child that sends `messages`: at the begin and the end of each. */
static long stops(const char *node, int messages) {
	pid_t child = fork();
	if (!child) {
		int fd = opened(node);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		identify(fd, messages);
		_exit(0);
	}
	long seen = 0;
	int status;
	for (;;) {
		if (waitpid(child, &status, 0) < 0)
			die("waitpid");
		if (WIFEXITED(status) || WIFSIGNALED(status))
			break;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			seen++;
		else if (ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD) < 0)
			die("ptrace");
		if (ptrace(PTRACE_SYSCALL, child, 0, 0) < 0)
			die("ptrace");
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		exit(1);
	return seen;
}

/* The smallest count of several runs: if another process has the lock, the message goes to the server. The first
 * messages set things up. */
static void count_syscalls(const char *node) {
	enum { FEW = 10, MANY = 110, RUNS = 6 };
	long few = stops(node, FEW), many = stops(node, MANY);
	for (int run = 1; run < RUNS && many != few; run++) {
		long seen = stops(node, FEW);
		few = seen < few ? seen : few;
		seen = stops(node, MANY);
		many = seen < many ? seen : many;
	}
	printf("PER_OP %.2f\n", (many - few) / 2.0 / (MANY - FEW));
}

static void read_and_compare(int fd, FILE *file) {
	static uint8_t rx[PIECE], expected[PIECE];
	for (uint32_t at = 0; fread(expected, 1, PIECE, file) == PIECE; at += PIECE) {
		uint8_t tx[4] = {3, at >> 16, at >> 8, at};
		struct spi_ioc_transfer transfers[2] = {
			{.tx_buf = (uintptr_t)tx, .len = 4},
			{.rx_buf = (uintptr_t)rx, .len = PIECE},
		};
		if (ioctl(fd, SPI_IOC_MESSAGE(2), transfers) != 4 + PIECE)
			die("SPI_IOC_MESSAGE(2)");
		if (memcmp(rx, expected, PIECE)) {
			fprintf(stderr, "spimessage: wrong bytes at %u\n", at);
			exit(1);
		}
	}
}

static void ignored(int signal) { (void)signal; }

int main(int argc, char **argv) {
	if (argc < 3) {
		fprintf(stderr, "spimessage: what to do, and a node\n");
		return 2;
	}
	const char *what = argv[1], *node = argv[2];
	if (!strcmp(what, "syscalls")) {
		count_syscalls(node);
		return 0;
	}
	if (!strcmp(what, "handled"))
		signal(SIGUSR1, ignored);
	int fd = opened(node);
	if (!strcmp(what, "read") && argc > 3) {
		pid_t other = argc > 4 ? fork() : -1;
		FILE *file = fopen(argv[3], "rb");
		if (!file)
			die(argv[3]);
		read_and_compare(fd, file);
		int status = 0;
		if (other > 0 && (waitpid(other, &status, 0) < 0 || status))
			return 1;
	} else if (!strcmp(what, "forever")) {
		identify(fd, 1);
		puts("RUNS");
		fflush(stdout);
		for (;;)
			identify(fd, 1);
	} else {
		count(fd, !strcmp(what, "apart") ? identify_apart : !strcmp(what, "batch") ? identify_batch : identify);
	}
	return 0;
}
