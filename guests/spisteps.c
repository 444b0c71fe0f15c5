/* Operations of a guest's kernel, each over and over, with a mark before each: guests/steps.c writes down what runs
 * between two marks, and xtask counts the steps of it.
 *
 *   spisteps NAME COMMAND [ARGUMENT…]    under a label NAME:
 *     null                      nothing: the mark itself
 *     call                      getppid
 *     spidev NODE N             SPI_IOC_MESSAGE(N) of 4 bytes each, at 20 MHz
 *     sleep MS                  clock_nanosleep
 *     spin                      20 ms in user space, which the tick interrupts
 *     hand-over [OTHER]         a byte to another thread and one back, by two pipes; on processor OTHER
 *     read FILE BYTES           pread from its beginning
 *     write FILE TEXT           a write to a file of sysfs
 *
 * The first call gives the text of /proc/kallsyms too, so it must be `null`. The program stays on processor 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <linux/spi/spidev.h>

#ifdef __aarch64__
#define MARK() __asm__ volatile(".inst 0xaa1602d6" ::: "memory") /* orr x22,x22,x22 */
#else
#define MARK() __asm__ volatile(".inst 0xe1888008" ::: "memory") /* orr r8,r8,r8 */
#endif

enum { REPEATS = 40, TRANSFERS_MAX = 16, SHARED = 0x50000000, SHARED_SIZE = 32 << 20 };

/* At SHARED, for guests/steps.c. */
static struct { char label[56]; uint32_t length; uint32_t unused; char text[]; } *shared = (void *)SHARED;

static void die(const char *what)
{
	fprintf(stderr, "spisteps: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void stay(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

/* The functions of the kernel and of its modules; a line of a variable is left out. */
static void give_symbols(void)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	char line[512];

	if (!file)
		die("/proc/kallsyms");
	while (fgets(line, sizeof(line), file)) {
		char *kind = strchr(line, ' ');

		if (!kind || !strchr("tTwW", kind[1]))
			continue;
		size_t length = strlen(line);

		if (shared->length + length > SHARED_SIZE - sizeof(*shared))
			break;
		memcpy(shared->text + shared->length, line, length);
		shared->length += length;
	}
	fclose(file);
	MARK();
	shared->length = 0;
}

static int spi, transfers, file, bytes, sleep_ms;
static struct spi_ioc_transfer message[TRANSFERS_MAX];
static uint8_t sent[4] = { 0x9f }, received[TRANSFERS_MAX][4];
static int there[2], back[2];
static const char *text;
static char buffer[1 << 16] __attribute__((aligned(4096)));

static void null(void) { }
static void call(void) { getppid(); }

static void exchange(void)
{
	if (ioctl(spi, SPI_IOC_MESSAGE(transfers), message) != 4 * transfers)
		die("SPI_IOC_MESSAGE");
}

static void nap(void)
{
	struct timespec time = { .tv_nsec = sleep_ms * 1000000 };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static void spin(void)
{
	for (volatile long i = 0; i < 4000000; i++)
		;
}

static void *answer(void *processor)
{
	char byte;

	stay((int)(intptr_t)processor);
	while (read(there[0], &byte, 1) == 1)
		if (write(back[1], &byte, 1) != 1)
			die("write");
	return NULL;
}

static void hand_over(void)
{
	char byte = 0;

	if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
		die("hand-over");
}

static void read_file(void)
{
	if (pread(file, buffer, bytes, 0) != bytes)
		die("pread");
}

static void write_file(void)
{
	if (pwrite(file, text, strlen(text), 0) < 0)
		die("pwrite");
}

int main(int count, char **given)
{
	if (count < 3)
		return 2;
	const char *name = given[1], *what = given[2];
	void (*run)(void) = NULL;

	stay(0);
	if (mmap(shared, SHARED_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != shared)
		die("mmap");
	if (!strcmp(what, "null")) {
		give_symbols();
		run = null;
	} else if (!strcmp(what, "call")) {
		run = call;
	} else if (!strcmp(what, "spidev") && count > 4) {
		transfers = atoi(given[4]);
		spi = open(given[3], O_RDWR);
		if (spi < 0 || transfers < 1 || transfers > TRANSFERS_MAX)
			die(given[3]);
		for (int i = 0; i < transfers; i++)
			message[i] = (struct spi_ioc_transfer){ .tx_buf = (uintptr_t)sent, .rx_buf = (uintptr_t)received[i],
				.len = 4, .speed_hz = 20000000 };
		run = exchange;
	} else if (!strcmp(what, "sleep") && count > 3) {
		sleep_ms = atoi(given[3]);
		run = nap;
	} else if (!strcmp(what, "spin")) {
		run = spin;
	} else if (!strcmp(what, "hand-over")) {
		pthread_t thread;

		if (pipe(there) || pipe(back) ||
		    pthread_create(&thread, NULL, answer, (void *)(intptr_t)(count > 3 ? atoi(given[3]) : 0)))
			die("thread");
		run = hand_over;
	} else if (!strcmp(what, "read") && count > 4) {
		file = open(given[3], O_RDONLY);
		bytes = atoi(given[4]);
		if (file < 0 || bytes < 1 || bytes > (int)sizeof(buffer))
			die(given[3]);
		run = read_file;
	} else if (!strcmp(what, "write") && count > 4) {
		file = open(given[3], O_WRONLY);
		text = given[4];
		if (file < 0)
			die(given[3]);
		run = write_file;
	} else {
		fprintf(stderr, "spisteps: %s: not understood\n", what);
		return 2;
	}
	/* What `-` stands at is not counted: the kernel's allocators fill their caches, and xtask learns who called what. */
	for (int i = -8; i < REPEATS; i++) {
		strcpy(shared->label, i < 0 ? "-" : name);
		MARK();
		run();
	}
	strcpy(shared->label, "");
	MARK();
	return 0;
}
