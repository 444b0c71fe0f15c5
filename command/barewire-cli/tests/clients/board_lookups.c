// Looks the board up as libraries for Raspberry Pi do, each by the files that it reads, and prints what each would take the
// board for. With a GPIO chip as its argument, it also prints what the chip says of itself and of some of its lines.
#include <errno.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned big_endian(const uint8_t *bytes)
{
	return (unsigned)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

// The number behind the first line that has the word, as rpi_ws281x looks for it.
static unsigned long in_cpuinfo(const char *word)
{
	char line[80];
	unsigned long number = 0;
	FILE *file = fopen("/proc/cpuinfo", "r");
	while (file && number == 0 && fgets(line, sizeof line, file)) {
		char *behind = strstr(line, word) ? strstr(line, ": ") : NULL;
		if (behind)
			number = strtoul(behind + 1, NULL, 16);
	}
	if (file)
		fclose(file);
	return number;
}

// Where the processor has the registers, as bcm_host and RPi.GPIO look for it: the second cell, or the third.
static unsigned registers(void)
{
	uint8_t ranges[12] = {0};
	FILE *file = fopen("/proc/device-tree/soc/ranges", "rb");
	if (!file)
		return 0;
	size_t bytes = fread(ranges, 1, sizeof ranges, file);
	fclose(file);
	if (bytes < sizeof ranges || big_endian(ranges) != 0x7e000000)
		return 1;
	return big_endian(ranges + 4) ? big_endian(ranges + 4) : big_endian(ranges + 8);
}

static const char *opened(const char *path)
{
	int fd = open(path, O_RDWR | O_SYNC);
	if (fd >= 0)
		close(fd);
	return fd >= 0 ? "opened" : errno == EPERM ? "EPERM" : errno == ENOENT ? "ENOENT" : "another errno";
}

static void print_line(int chip, unsigned number)
{
	struct gpio_v2_line_info info = {.offset = number};
	struct gpio_v2_line_request request = {
		.offsets = {number}, .num_lines = 1, .config = {.flags = GPIO_V2_LINE_FLAG_INPUT}, .consumer = "lookups"};
	int told = ioctl(chip, GPIO_V2_GET_LINEINFO_IOCTL, &info);
	int taken = ioctl(chip, GPIO_V2_GET_LINE_IOCTL, &request);
	printf("line %u %s \"%s\" %s\n", number, told == 0 ? "told" : "untold", info.name,
	       taken == 0 ? "taken" : errno == EBUSY ? "EBUSY" : errno == EINVAL ? "EINVAL" : "another errno");
	if (taken == 0)
		close(request.fd);
}

int main(int count, char **arguments)
{
	struct stat found;
	uint8_t revision[4] = {0};
	char compatible[64] = "";
	FILE *file = fopen("/proc/device-tree/system/linux,revision", "rb");
	if (file && fread(revision, 1, 4, file) != 4)
		return 1;
	FILE *base = fopen("/sys/firmware/devicetree/base/compatible", "rb");
	if (base && fread(compatible, 1, sizeof compatible - 1, base) == 0)
		return 1;
	printf("revision %lx %x compatible %s\n", in_cpuinfo("Revision"), big_endian(revision), compatible);
	printf("registers %x driver %d\n", registers(),
	       stat("/sys/bus/platform/drivers/gpiomem-bcm2835", &found) == 0);
	printf("gpiomem %s mem %s vcio %s\n", opened("/dev/gpiomem"), opened("/dev/mem"), opened("/dev/vcio"));
	fflush(stdout);
	// Waveshare's way: a shell and its children.
	if (system("cat /proc/cpuinfo | grep Raspberry") == -1)
		return 1;
	if (count < 2)
		return 0;
	struct gpiochip_info chip_info;
	int chip = open(arguments[1], O_RDWR);
	if (chip < 0 || ioctl(chip, GPIO_GET_CHIPINFO_IOCTL, &chip_info) != 0)
		return 1;
	printf("chip \"%s\" with %u lines\n", chip_info.label, chip_info.lines);
	const unsigned numbers[] = {2, 24, 27, 32, 53, 57, 58};
	for (unsigned index = 0; index < sizeof numbers / sizeof *numbers; index++)
		print_line(chip, numbers[index]);
	return 0;
}
