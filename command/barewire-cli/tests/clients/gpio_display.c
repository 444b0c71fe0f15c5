/* Talks to a display as its driver does: RESET low and high, commands with D/C low, data with D/C high.
 * Arguments: a GPIO chip, the lines of D/C and RESET, a spidev node. */
#include <fcntl.h>
#include <linux/gpio.h>
#include <linux/spi/spidev.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int lines;

static void set(uint64_t bits, uint64_t mask) {
    struct gpio_v2_line_values values = {bits, mask};
    if (ioctl(lines, GPIO_V2_LINE_SET_VALUES_IOCTL, &values) != 0)
        exit(2);
}

int main(int count, char **arguments) {
    if (count < 5)
        return 2;
    int chip = open(arguments[1], O_RDWR), spi = open(arguments[4], O_RDWR);
    struct gpio_v2_line_request request;
    memset(&request, 0, sizeof request);
    request.offsets[0] = atoi(arguments[2]);
    request.offsets[1] = atoi(arguments[3]);
    request.num_lines = 2;
    request.config.flags = GPIO_V2_LINE_FLAG_OUTPUT;
    if (ioctl(chip, GPIO_V2_GET_LINE_IOCTL, &request) != 0) {
        perror("lines");
        return 1;
    }
    lines = request.fd;
    set(2, 2);
    for (uint8_t round = 0; round < 50; round++) {
        uint8_t command[2] = {0xae, round}, data[3] = {round, 0x55, 0xaa};
        set(0, 1);
        if (write(spi, command, sizeof command) != sizeof command)
            return 3;
        set(1, 1);
        if (write(spi, data, sizeof data) != sizeof data)
            return 3;
    }
    return 0;
}
