/* A program of spidev's that reads a flash chip whose byte at each address is known, and does to its
 * descriptors, processes and signals what programs do. Knows nothing of barewire.
 * usage: served MODE NODE */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/spi/spidev.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *node;

static uint8_t expected(uint32_t address) { return (uint8_t)(address * 7 + (address >> 8)); }

/* Reads `len` bytes at an address with one message; 0 if they are right. */
static int read_at(int fd, uint32_t address, uint8_t len)
{
	uint8_t tx[4 + 255] = { 0x03, address >> 16, address >> 8, address }, rx[4 + 255];
	struct spi_ioc_transfer message = { .tx_buf = (uintptr_t)tx, .rx_buf = (uintptr_t)rx, .len = 4u + len };
	if (ioctl(fd, SPI_IOC_MESSAGE(1), &message) != 4 + len)
		return -errno;
	for (unsigned at = 0; at < len; at++)
		if (rx[4 + at] != expected(address + at))
			return 1;
	return 0;
}

static int opened(void)
{
	int fd = open(node, O_RDWR);
	if (fd < 0) {
		perror("open");
		exit(2);
	}
	return fd;
}

static int some(int fd, int count, uint32_t seed)
{
	for (int index = 0; index < count; index++) {
		seed = seed * 1664525 + 1013904223;
		int wrong = read_at(fd, seed >> 12 & 0xffff, 1 + (seed >> 4) % 250);
		if (wrong)
			return wrong;
	}
	return 0;
}

static void *a_thread(void *argument)
{
	uintptr_t seed = (uintptr_t)argument;
	int fd = seed % 2 ? opened() : (int)(seed >> 8);
	return (void *)(intptr_t)some(fd, 300, (uint32_t)seed);
}

/* More threads than a process has slots, on files of their own and on one. */
static int threads(int fd)
{
	pthread_t all[24];
	int wrong = 0;
	for (uintptr_t index = 0; index < 24; index++)
		pthread_create(&all[index], NULL, a_thread, (void *)((uintptr_t)fd << 8 | index));
	for (int index = 0; index < 24; index++) {
		void *result;
		pthread_join(all[index], &result);
		wrong |= result != NULL;
	}
	return wrong;
}

/* Processes made in each way, while their parent goes on. */
static int children(int fd)
{
	volatile int wrong = 0;
	for (volatile int round = 0; round < 40; round++) {
		pid_t child = round % 2 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (child == 0) {
			int of_child = some(fd, 20, (uint32_t)round);
			/* A child of the child. */
			if (round % 4 == 1 && fork() == 0)
				_exit(some(fd, 5, 99) != 0);
			_exit(of_child != 0);
		}
		wrong |= some(fd, 10, (uint32_t)round + 1000);
		int status;
		waitpid(child, &status, 0);
		wrong |= status;
		child = vfork();
		if (child == 0)
			_exit(read_at(fd, 77, 9) != 0);
		waitpid(child, &status, 0);
		wrong |= status | read_at(fd, 5, 3);
	}
	return wrong;
}

/* Children that are killed at any moment, between and in their messages. */
static int killed(int fd)
{
	struct timespec pause = { 0, 0 };
	for (int round = 0; round < 200; round++) {
		pid_t child = fork();
		if (child == 0)
			for (;;)
				some(fd, 1000, (uint32_t)round);
		pause.tv_nsec = round * 20000;
		nanosleep(&pause, NULL);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	return some(fd, 100, 1);
}

/* Closes every descriptor but the node's around the C library, and uses the numbers for files of its own. */
static int closes(int fd)
{
	int wrong = some(fd, 10, 3);
	FILE *own = tmpfile();
	for (int number = 3; number < 256; number++)
		if (number != fd && number != fileno(own))
			syscall(SYS_close, number);
	for (int number = 3; number < 256; number++)
		if (number != fd)
			syscall(SYS_dup3, fileno(own), number, 0);
	wrong |= some(fd, 50, 4);
	return wrong | (lseek(fileno(own), 0, SEEK_END) != 0);
}

/* A table of descriptors that is full, before a child is made, too. */
static int full(int fd)
{
	while (dup(0) >= 0)
		;
	if (errno != EMFILE || open(node, O_RDWR) >= 0 || errno != EMFILE)
		return 1;
	return some(fd, 50, 5);
}

/* The user is another one than when the node was opened. */
static int user(int fd)
{
	if (geteuid() != 0 || setuid(65534) != 0)
		return 77;
	int wrong = some(fd, 50, 6);
	return wrong | (open(node, O_RDWR) >= 0) | (errno != EACCES);
}

static int network(int fd)
{
	if (unshare(CLONE_NEWNET) != 0)
		return 77;
	return some(fd, 50, 7);
}

static sigjmp_buf back;
static int handled_fd;
static volatile sig_atomic_t handled, handled_wrong;

static void on_alarm(int signal)
{
	(void)signal;
	handled++;
	if (read_at(handled_fd, 1234, 5))
		handled_wrong = 1;
	if (handled % 3 == 0)
		siglongjmp(back, 1);
}

/* A handler that sends messages itself, and leaves by longjmp. */
static int handlers(int fd)
{
	volatile int wrong = 0;
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval every = { { 0, 300 }, { 0, 300 } };
	handled_fd = fd;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (handled < 600) {
		sigsetjmp(back, 1);
		wrong |= read_at(fd, 4321, 200);
	}
	every = (struct itimerval){ { 0, 0 }, { 0, 0 } };
	setitimer(ITIMER_REAL, &every, NULL);
	return wrong | handled_wrong;
}

/* Opens the node until that fails, and says how; half of them are closed then. */
static int until_full(int fd)
{
	int files[1024], count = 0, wrong = 0;
	while (count < 1024 && (files[count] = open(node, O_RDWR)) >= 0)
		count++;
	printf("%s after %s\n", strerror(errno), count > 20 ? "many" : "few");
	for (int index = 0; index < count; index++)
		wrong |= read_at(files[index], (uint32_t)index, 8);
	/* A child has no memory shared with the server yet. */
	pid_t child = fork();
	if (child == 0)
		_exit(some(fd, 20, 8) != 0);
	int status;
	waitpid(child, &status, 0);
	wrong |= status;
	for (int index = count / 2; index < count; index++)
		close(files[index]);
	int again = opened();
	return wrong | some(again, 20, 9) | some(fd, 20, 10);
}

/* Counts the system calls of three-byte messages: of this program, by a parent that traces it. */
static int calls(int fd)
{
	const int messages = 100;
	pid_t child = fork();
	if (child == 0) {
		uint8_t tx[3] = { 0x9f }, rx[3];
		struct spi_ioc_transfer message = { .tx_buf = (uintptr_t)tx, .rx_buf = (uintptr_t)rx, .len = 3 };
		for (int index = 0; index < 10; index++)
			ioctl(fd, SPI_IOC_MESSAGE(1), &message);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		for (int index = 0; index < messages; index++)
			if (ioctl(fd, SPI_IOC_MESSAGE(1), &message) != 3)
				_exit(1);
		_exit(0);
	}
	int status, stops = 0;
	waitpid(child, &status, 0);
	while (WIFSTOPPED(status)) {
		ptrace(PTRACE_SYSCALL, child, 0, 0);
		waitpid(child, &status, 0);
		stops++;
	}
	/* Two stops a call; a few calls are raise's and the end's. */
	printf("%d system calls a message at most\n", (stops / 2 - 20) / messages + 1);
	return status;
}

int main(int count, char **words)
{
	static const struct {
		const char *name;
		int (*run)(int fd);
	} modes[] = {
		{ "threads", threads }, { "children", children }, { "killed", killed }, { "closes", closes },
		{ "full", full }, { "user", user }, { "network", network }, { "handlers", handlers },
		{ "until-full", until_full }, { "calls", calls },
	};
	if (count != 3)
		return 2;
	node = words[2];
	int fd = opened();
	for (size_t index = 0; index < sizeof(modes) / sizeof(modes[0]); index++)
		if (strcmp(modes[index].name, words[1]) == 0) {
			int wrong = modes[index].run(fd);
			printf("%s: %s\n", words[1], wrong == 77 ? "not here" : wrong ? "wrong" : "right");
			return wrong && wrong != 77;
		}
	return 2;
}
