// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The guest's only program: mounts what it needs, does the checks that the kernel's command line names
 * (checks=nor,touch; all at once), and powers off. With module=1 the controller's driver is this project's module.
 *
 * The time in the guest is virtual: whoever sleeps takes no time of the host's.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checks.h"

/* No check takes so long in the guest's time. */
#define LONGEST_S 3600

static const struct {
	const char *name;
	void (*check)(void);
} checks[] = {
	{ "loopback", check_loopback },
	{ "spidev", check_spidev },
	{ "mute", check_mute },
	{ "nor", check_nor },
	{ "can", check_can },
	{ "can-errors", check_can_errors },
	{ "can-off", check_can_off },
	{ "can-flood", check_can_flood },
	{ "can-utils", check_can_utils },
	{ "adc", check_adc },
	{ "touch", check_touch },
};

static char command_line[2048];

/* One write a line: checks may run at once. */
static void line(const char *head, const char *name, const char *format, va_list list)
{
	char text[1024];
	int length = snprintf(text, sizeof(text), "%s %s ", head, name);

	if (format)
		length += vsnprintf(text + length, sizeof(text) - length - 1, format, list);
	if (length > (int)sizeof(text) - 2)
		length = sizeof(text) - 2;
	text[length++] = '\n';
	if (write(1, text, length) != length)
		_exit(1);
}

static void check_line(const char *name, const char *verdict, const char *format, va_list list)
{
	char head[256];

	snprintf(head, sizeof(head), "%s %s", name, verdict);
	line("CHECK", head, format, list);
}

void passed(const char *name)
{
	va_list none;

	memset(&none, 0, sizeof(none));
	check_line(name, "passed", NULL, none);
}

void failed(const char *name, const char *why, ...)
{
	va_list list;

	va_start(list, why);
	check_line(name, "failed", why, list);
	va_end(list);
}

void skipped(const char *name, const char *why, ...)
{
	va_list list;

	va_start(list, why);
	check_line(name, "skipped", why, list);
	va_end(list);
}

void judge(const char *name, bool right, const char *why)
{
	if (right)
		passed(name);
	else
		failed(name, "%s", why);
}

void note(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	line("NOTE", "-", format, list);
	va_end(list);
}

void accesses(size_t bytes, double reads, double writes)
{
	char text[128];
	int length = snprintf(text, sizeof(text), "ACCESSES %zu %g %g\n", bytes, reads, writes);

	if (write(1, text, length) != length)
		_exit(1);
}

void frame_accesses(double reads, double writes)
{
	char text[128];
	int length = snprintf(text, sizeof(text), "FRAME %g %g\n", reads, writes);

	if (write(1, text, length) != length)
		_exit(1);
}

void traced(unsigned long from, unsigned long to)
{
	char text[128];
	int length = snprintf(text, sizeof(text), "TRACED %lu %lu\n", from, to);

	if (write(1, text, length) != length)
		_exit(1);
}

const char *content(const char *path, char *text, size_t size)
{
	int file = open(path, O_RDONLY);
	ssize_t length = file < 0 ? -1 : read(file, text, size - 1);

	if (file >= 0)
		close(file);
	if (length < 0)
		length = 0;
	while (length > 0 && text[length - 1] == '\n')
		length--;
	text[length] = 0;
	return text;
}

bool find(const char *pattern, char *path, size_t size, int seconds)
{
	int tenth;

	for (tenth = 0; tenth <= 10 * seconds; tenth++) {
		glob_t found;

		if (glob(pattern, 0, NULL, &found) == 0) {
			snprintf(path, size, "%s", found.gl_pathv[0]);
			globfree(&found);
			return true;
		}
		usleep(100000);
	}
	return false;
}

unsigned long counted(const char *which)
{
	char path[128], text[64];

	snprintf(path, sizeof(path), "/sys/module/barewire_mmio/parameters/%s", which);
	return strtoul(content(path, text, sizeof(text)), NULL, 10);
}

unsigned int random_number(void)
{
	static unsigned long long state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 33;
}

unsigned long option(const char *name, unsigned long otherwise)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), " %s=", name);
	at = strstr(command_line, key);
	return at ? strtoul(at + strlen(key), NULL, 10) : otherwise;
}

void check_loopback(void)
{
	/* The module's own tests run when it is loaded, and the kernel's log has what they say. */
	int module = open("/spi-loopback-test.ko", O_RDONLY);

	if (module < 0)
		failed("loopback-module", "no module: %s", strerror(errno));
	else if (syscall(SYS_finit_module, module, "loopback=1", 0))
		failed("loopback-module", "cannot load it: %s", strerror(errno));
	/* Or they would run again with the next driver of the controller. */
	else if (syscall(SYS_delete_module, "spi_loopback_test", O_NONBLOCK))
		failed("loopback-module", "cannot remove it: %s", strerror(errno));
	else
		passed("loopback-module");
}

static void wanted(char *list)
{
	char *name, *rest = list;

	while ((name = strsep(&rest, ",")) && *name) {
		size_t index;

		for (index = 0; index < sizeof(checks) / sizeof(checks[0]); index++)
			if (strcmp(checks[index].name, name) == 0)
				break;
		if (index == sizeof(checks) / sizeof(checks[0])) {
			failed(name, "no such check");
			continue;
		}
		if (fork() == 0) {
			checks[index].check();
			_exit(0);
		}
	}
	while (wait(&(int){ 0 }) > 0)
		;
}

static void too_late(int signal)
{
	static const char text[] = "CHECK end failed an hour of the guest's time has passed\n";

	(void)signal;
	if (write(1, text, sizeof(text) - 1))
		reboot(RB_POWER_OFF);
}

int main(void)
{
	char *list, *end;
	bool is_module;

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mount("none", "/proc", "proc", 0, NULL);
	mount("none", "/sys", "sysfs", 0, NULL);
	mount("none", "/dev", "devtmpfs", 0, NULL);
	mount("none", "/sys/kernel/debug", "debugfs", 0, NULL);
	signal(SIGALRM, too_late);
	alarm(LONGEST_S);
	content("/proc/cmdline", command_line + 1, sizeof(command_line) - 1);
	command_line[0] = ' ';
	list = strstr(command_line, " checks=");
	is_module = option("module", 0);
	if (is_module && !take_module())
		list = NULL;
	if (list) {
		char names[256];

		snprintf(names, sizeof(names), "%s", list + strlen(" checks="));
		end = strchr(names, ' ');
		if (end)
			*end = 0;
		wanted(names);
		if (is_module)
			leave_module();
	}
	if (write(1, "DONE\n", 5) == 5)
		sync();
	reboot(RB_POWER_OFF);
	return 1;
}
