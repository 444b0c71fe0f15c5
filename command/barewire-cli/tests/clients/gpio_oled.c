/* Draws on an SSD1306: the byte at column x of page p is 37 p + x. Arguments: a GPIO chip, the lines of D/C and
 * RESET, a spidev node. */
#include <fcntl.h>
#include <linux/gpio.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int output(int chip, unsigned line, int value) {
    struct gpiohandle_request request;
    memset(&request, 0, sizeof request);
    request.lineoffsets[0] = line;
    request.lines = 1;
    request.flags = GPIOHANDLE_REQUEST_OUTPUT;
    request.default_values[0] = value;
    if (ioctl(chip, GPIO_GET_LINEHANDLE_IOCTL, &request) != 0)
        exit(1);
    return request.fd;
}

static void set(int line, int value) {
    struct gpiohandle_data data = {{value}};
    if (ioctl(line, GPIOHANDLE_SET_LINE_VALUES_IOCTL, &data) != 0)
        exit(2);
}

int main(int count, char **arguments) {
    if (count < 5)
        return 2;
    int chip = open(arguments[1], O_RDWR), spi = open(arguments[4], O_RDWR);
    int dc = output(chip, atoi(arguments[2]), 0), reset = output(chip, atoi(arguments[3]), 0);
    usleep(10);
    set(reset, 1);
    for (int page = 0; page < 8; page++) {
        uint8_t command[3] = {0xb0 | page, 0x00, 0x10}, data[128];
        for (int x = 0; x < 128; x++)
            data[x] = 37 * page + x;
        set(dc, 0);
        if (write(spi, command, sizeof command) != sizeof command)
            return 3;
        set(dc, 1);
        if (write(spi, data, sizeof data) != sizeof data)
            return 3;
    }
    set(dc, 0);
    return write(spi, "\xaf", 1) != 1;
}
