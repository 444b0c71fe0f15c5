/* A program that drives its own pins. The first argument says what it does; MODE is a mode of spidev's, in hexadecimal.
 *   read CHIP LINE NODE MODE   reads a flash behind a select at a GPIO line: each operation is two messages
 *   loop NODE MODE             sends 32 bytes, and prints what comes back
 *   wire CHIP OUT IN           drives one line, and watches another */
#include <fcntl.h>
#include <linux/gpio.h>
#include <linux/spi/spidev.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int line(const char *chip, const char *offset, uint64_t flags) {
    int fd = open(chip, O_RDWR);
    struct gpio_v2_line_request request;
    memset(&request, 0, sizeof request);
    request.offsets[0] = atoi(offset);
    request.num_lines = 1;
    request.config.flags = flags;
    if (flags & GPIO_V2_LINE_FLAG_OUTPUT) {
        /* Inactive from the first moment on. */
        request.config.num_attrs = 1;
        request.config.attrs[0].mask = 1;
        request.config.attrs[0].attr.id = GPIO_V2_LINE_ATTR_ID_OUTPUT_VALUES;
        request.config.attrs[0].attr.values = 1;
    }
    if (ioctl(fd, GPIO_V2_GET_LINE_IOCTL, &request) != 0) {
        perror("line");
        exit(1);
    }
    close(fd);
    return request.fd;
}

static void set(int fd, int level) {
    struct gpio_v2_line_values values = {level, 1};
    if (ioctl(fd, GPIO_V2_LINE_SET_VALUES_IOCTL, &values) != 0)
        exit(2);
}

static int get(int fd) {
    struct gpio_v2_line_values values = {0, 1};
    if (ioctl(fd, GPIO_V2_LINE_GET_VALUES_IOCTL, &values) != 0)
        exit(2);
    return values.bits & 1;
}

static int node(const char *path, const char *mode) {
    int fd = open(path, O_RDWR);
    uint32_t bits = strtoul(mode, NULL, 16);
    if (fd < 0 || ioctl(fd, SPI_IOC_WR_MODE32, &bits) != 0) {
        perror("node");
        exit(1);
    }
    return fd;
}

static void print(const char *what, const uint8_t *bytes, size_t count) {
    printf("%s", what);
    for (size_t at = 0; at < count; at++)
        printf(" %02x", bytes[at]);
    printf("\n");
}

static void ask(int spi, const char *what, const uint8_t *command, size_t sent, size_t received) {
    uint8_t answer[16];
    if (write(spi, command, sent) != (ssize_t)sent || read(spi, answer, received) != (ssize_t)received)
        exit(3);
    print(what, answer, received);
}

static int read_flash(char **arguments) {
    const uint8_t id[1] = {0x9f}, data[4] = {0x03, 0x01, 0x02, 0x03};
    int select = line(arguments[0], arguments[1], GPIO_V2_LINE_FLAG_OUTPUT);
    int spi = node(arguments[2], arguments[3]);
    set(select, 0);
    ask(spi, "id", id, sizeof id, 3);
    set(select, 1);
    set(select, 0);
    ask(spi, "data", data, sizeof data, 16);
    set(select, 1);
    ask(spi, "high", id, sizeof id, 3);
    return 0;
}

static int loop(char **arguments) {
    int spi = node(arguments[0], arguments[1]);
    uint8_t sent[32], back[32];
    for (int at = 0; at < 32; at++)
        sent[at] = at * 37 + 5;
    struct spi_ioc_transfer transfer;
    memset(&transfer, 0, sizeof transfer);
    transfer.tx_buf = (uintptr_t)sent;
    transfer.rx_buf = (uintptr_t)back;
    transfer.len = sizeof sent;
    if (ioctl(spi, SPI_IOC_MESSAGE(1), &transfer) != sizeof sent)
        return 3;
    print(memcmp(sent, back, sizeof sent) == 0 ? "the same" : "other", back, 4);
    return 0;
}

static int wire(char **arguments) {
    int out = line(arguments[0], arguments[1], GPIO_V2_LINE_FLAG_OUTPUT);
    int in = line(arguments[0], arguments[2],
                  GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING | GPIO_V2_LINE_FLAG_EDGE_FALLING);
    for (int round = 0; round < 6; round++) {
        int level = round & 1;
        set(out, level);
        printf("%d%d", get(out), get(in));
        struct pollfd pollfd = {in, POLLIN, 0};
        struct gpio_v2_line_event event;
        if (poll(&pollfd, 1, 5000) != 1 || read(in, &event, sizeof event) != sizeof event)
            return 3;
        printf("%c ", event.id == GPIO_V2_LINE_EVENT_RISING_EDGE ? '+' : '-');
    }
    printf("\n");
    return 0;
}

int main(int count, char **arguments) {
    if (count == 6 && strcmp(arguments[1], "read") == 0)
        return read_flash(arguments + 2);
    if (count == 4 && strcmp(arguments[1], "loop") == 0)
        return loop(arguments + 2);
    if (count == 5 && strcmp(arguments[1], "wire") == 0)
        return wire(arguments + 2);
    return 2;
}
