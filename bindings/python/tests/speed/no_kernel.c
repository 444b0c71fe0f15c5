/* Stands for the kernel's spidev, so that what py-spidev itself executes can be counted: /dev/spidev9.9 opens
 * /dev/null, and every ioctl succeeds at once. Preloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#define RD_BITS_PER_WORD 0x80016b03
#define RD_MODE 0x80016b01
#define RD_MAX_SPEED_HZ 0x80046b04

static int opened(const char *symbol, const char *path, int flags, int mode)
{
	int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, symbol);
	if (strcmp(path, "/dev/spidev9.9") == 0)
		path = "/dev/null";
	return real(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list list;
	va_start(list, flags);
	int mode = va_arg(list, int);
	va_end(list);
	return opened("open64", path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list list;
	va_start(list, flags);
	int mode = va_arg(list, int);
	va_end(list);
	return opened("open", path, flags, mode);
}

int ioctl(int fd, unsigned long number, ...)
{
	va_list list;
	va_start(list, number);
	void *argument = va_arg(list, void *);
	va_end(list);
	(void)fd;
	switch ((uint32_t)number) {
	case RD_MODE:
		*(uint8_t *)argument = 0;
		break;
	case RD_BITS_PER_WORD:
		*(uint8_t *)argument = 8;
		break;
	case RD_MAX_SPEED_HZ:
		*(uint32_t *)argument = 10000000;
		break;
	}
	return 0;
}
