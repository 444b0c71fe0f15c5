/* The cases of the GPIO character device's interface, both versions, as Linux 6.1 has them, asked by a program
 * that knows nothing of barewire.
 *
 * Arguments: a chip whose lines 20 to 23 are free, line 9 a chip select, line 12 the INT pin of an MCP2518FD
 * with a crystal of 40 MHz; and that controller's spidev node. Prints a line for each case that fails, and the
 * number of checks at the end; the exit code is 1 if one failed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <linux/spi/spidev.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int checks, failures;

static void check(int good, const char *what, int line) {
    checks++;
    if (!good) {
        failures++;
        printf("line %d: %s (errno %d, %s)\n", line, what, errno, strerror(errno));
    }
}

#define CHECK(condition) check((condition), #condition, __LINE__)
#define FAILS(call, number) \
    do { \
        errno = 0; \
        long result_ = (call); \
        check(result_ == -1 && errno == (number), #call " fails with " #number, __LINE__); \
    } while (0)

enum { A = 20, B = 21, C = 22, D = 23, CS = 9, INT = 12 };

static const char *chip_path, *node;
static int chip;
static void *volatile BAD = (void *)8;

static uint64_t now_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static struct gpio_v2_line_request of(unsigned line, uint64_t flags) {
    struct gpio_v2_line_request request;
    memset(&request, 0, sizeof request);
    request.offsets[0] = line;
    request.num_lines = 1;
    request.config.flags = flags;
    strcpy(request.consumer, "abi");
    return request;
}

static void attribute(struct gpio_v2_line_config *config, unsigned id, uint64_t value, uint64_t mask) {
    struct gpio_v2_line_config_attribute *attr = &config->attrs[config->num_attrs++];
    attr->attr.id = id;
    if (id == GPIO_V2_LINE_ATTR_ID_DEBOUNCE)
        attr->attr.debounce_period_us = value;
    else
        attr->attr.values = value;
    attr->mask = mask;
}

static int get_line(struct gpio_v2_line_request *request) {
    request->fd = -7;
    return ioctl(chip, GPIO_V2_GET_LINE_IOCTL, request) == 0 ? request->fd : -1;
}

static int line_of(unsigned line, uint64_t flags) {
    struct gpio_v2_line_request request = of(line, flags);
    return get_line(&request);
}

static int set(int fd, uint64_t bits, uint64_t mask) {
    struct gpio_v2_line_values values = {bits, mask};
    return ioctl(fd, GPIO_V2_LINE_SET_VALUES_IOCTL, &values);
}

static long get(int fd, uint64_t mask) {
    struct gpio_v2_line_values values = {~0ull, mask};
    return ioctl(fd, GPIO_V2_LINE_GET_VALUES_IOCTL, &values) == 0 ? (long)values.bits : -1;
}

static int configure(int fd, uint64_t flags) {
    struct gpio_v2_line_config config;
    memset(&config, 0, sizeof config);
    config.flags = flags;
    return ioctl(fd, GPIO_V2_LINE_SET_CONFIG_IOCTL, &config);
}

static uint64_t flags_of(unsigned line) {
    struct gpio_v2_line_info info;
    memset(&info, 0, sizeof info);
    info.offset = line;
    return ioctl(chip, GPIO_V2_GET_LINEINFO_IOCTL, &info) == 0 ? info.flags : ~0ull;
}

static int readable(int fd, int timeout_ms) {
    struct pollfd one = {fd, POLLIN | POLLPRI, 0};
    return poll(&one, 1, timeout_ms) == 1 && one.revents & POLLIN;
}

static void the_chip(void) {
    struct gpiochip_info info;
    memset(&info, 0xff, sizeof info);
    CHECK(ioctl(chip, GPIO_GET_CHIPINFO_IOCTL, &info) == 0);
    CHECK(strcmp(info.name, strrchr(chip_path, '/') + 1) == 0 && info.label[0] != 0 && info.lines == 32);
    FAILS(ioctl(chip, GPIO_GET_CHIPINFO_IOCTL, BAD), EFAULT);
    FAILS(ioctl(chip, GPIO_V2_GET_LINEINFO_IOCTL, BAD), EFAULT);
    FAILS(ioctl(chip, GPIO_V2_GET_LINE_IOCTL, BAD), EFAULT);
    FAILS(ioctl(chip, _IOR(0xB4, 0x01, char[67]), &info), EINVAL);
    FAILS(ioctl(chip, _IOWR(0xB4, 0x10, int), &info), EINVAL);
    FAILS(ioctl(chip, GPIO_V2_LINE_GET_VALUES_IOCTL, &info), EINVAL);
    FAILS(ioctl(chip, GPIOHANDLE_GET_LINE_VALUES_IOCTL, &info), EINVAL);
    CHECK(isatty(chip) == 0);
    FAILS(write(chip, "x", 1), EINVAL);
    FAILS(lseek(chip, 0, SEEK_SET), ESPIPE);
    struct stat by_path, by_fd;
    CHECK(stat(chip_path, &by_path) == 0 && S_ISCHR(by_path.st_mode));
    CHECK(fstat(chip, &by_fd) == 0 && S_ISCHR(by_fd.st_mode) && by_fd.st_rdev == by_path.st_rdev);
    CHECK(access(chip_path, R_OK | W_OK) == 0);
    char sys[300], real[4096], link[64], text[32] = {0};
    snprintf(sys, sizeof sys, "/sys/dev/char/%u:%u/subsystem", major(by_path.st_rdev), minor(by_path.st_rdev));
    CHECK(realpath(sys, real) && strcmp(real, "/sys/bus/gpio") == 0);
    snprintf(sys, sizeof sys, "/sys/bus/gpio/devices/%s/dev", strrchr(chip_path, '/') + 1);
    int fd = open(sys, O_RDONLY);
    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0 && close(fd) == 0);
    snprintf(sys, sizeof sys, "%u:%u\n", major(by_path.st_rdev), minor(by_path.st_rdev));
    CHECK(strcmp(text, sys) == 0);
    snprintf(link, sizeof link, "/proc/self/fd/%d", chip);
    ssize_t length = readlink(link, real, sizeof real - 1);
    CHECK(length > 0 && (size_t)length == strlen(chip_path) && memcmp(real, chip_path, length) == 0);
    int listed = 0;
    DIR *dev = opendir("/dev");
    for (struct dirent *entry; (entry = readdir(dev));)
        listed += strcmp(entry->d_name, strrchr(chip_path, '/') + 1) == 0 && entry->d_type == DT_CHR;
    closedir(dev);
    CHECK(listed == 1);
    CHECK((fcntl(chip, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == O_RDWR);
    FAILS(open(chip_path, O_RDWR | O_DIRECTORY), ENOTDIR);
    FAILS(open(chip_path, O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
}

static void line_info(void) {
    struct gpio_v2_line_info info;
    memset(&info, 0, sizeof info);
    info.offset = CS;
    CHECK(ioctl(chip, GPIO_V2_GET_LINEINFO_IOCTL, &info) == 0 && info.offset == CS && info.num_attrs == 0);
    CHECK(info.flags == (GPIO_V2_LINE_FLAG_USED | GPIO_V2_LINE_FLAG_OUTPUT) && info.consumer[0] != 0);
    memset(&info, 0, sizeof info);
    info.offset = A;
    CHECK(ioctl(chip, GPIO_V2_GET_LINEINFO_IOCTL, &info) == 0 && info.flags == GPIO_V2_LINE_FLAG_INPUT);
    CHECK(info.name[0] != 0 && info.consumer[0] == 0);
    info.offset = 32;
    FAILS(ioctl(chip, GPIO_V2_GET_LINEINFO_IOCTL, &info), EINVAL);
    info.offset = A;
    info.padding[3] = 1;
    FAILS(ioctl(chip, GPIO_V2_GET_LINEINFO_IOCTL, &info), EINVAL);
    struct gpioline_info old;
    memset(&old, 0, sizeof old);
    old.line_offset = CS;
    CHECK(ioctl(chip, GPIO_GET_LINEINFO_IOCTL, &old) == 0);
    CHECK(old.flags == (GPIOLINE_FLAG_KERNEL | GPIOLINE_FLAG_IS_OUT) && old.consumer[0] != 0);
    old.line_offset = 32;
    FAILS(ioctl(chip, GPIO_GET_LINEINFO_IOCTL, &old), EINVAL);
}

static void requests(void) {
    struct gpio_v2_line_request request = of(A, GPIO_V2_LINE_FLAG_OUTPUT);
    attribute(&request.config, GPIO_V2_LINE_ATTR_ID_OUTPUT_VALUES, 1, 1);
    int fd = get_line(&request);
    CHECK(fd > 2 && fd == request.fd && get(fd, 1) == 1);
    CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && (fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == O_RDONLY);
    struct gpio_v2_line_info info;
    memset(&info, 0, sizeof info);
    info.offset = A;
    CHECK(ioctl(chip, GPIO_V2_GET_LINEINFO_IOCTL, &info) == 0 && strcmp(info.consumer, "abi") == 0);
    CHECK(info.flags == (GPIO_V2_LINE_FLAG_USED | GPIO_V2_LINE_FLAG_OUTPUT));
    FAILS(line_of(A, GPIO_V2_LINE_FLAG_INPUT), EBUSY);
    FAILS(line_of(CS, GPIO_V2_LINE_FLAG_OUTPUT), EBUSY);
    FAILS(line_of(32, GPIO_V2_LINE_FLAG_OUTPUT), EINVAL);
    request = of(B, GPIO_V2_LINE_FLAG_OUTPUT);
    request.num_lines = 0;
    FAILS(get_line(&request), EINVAL);
    request.num_lines = 65;
    FAILS(get_line(&request), EINVAL);
    request = of(B, GPIO_V2_LINE_FLAG_OUTPUT);
    request.offsets[1] = A;
    request.num_lines = 2;
    FAILS(get_line(&request), EBUSY);
    request.offsets[1] = B;
    FAILS(get_line(&request), EBUSY);
    CHECK(request.fd == -7 && flags_of(B) == GPIO_V2_LINE_FLAG_INPUT);
    request = of(B, GPIO_V2_LINE_FLAG_OUTPUT);
    request.padding[0] = 1;
    FAILS(get_line(&request), EINVAL);
    request = of(B, GPIO_V2_LINE_FLAG_OUTPUT);
    request.config.padding[4] = 1;
    FAILS(get_line(&request), EINVAL);
    request = of(B, GPIO_V2_LINE_FLAG_OUTPUT);
    request.config.num_attrs = 11;
    FAILS(get_line(&request), EINVAL);
    static const uint64_t wrong[] = {
        GPIO_V2_LINE_FLAG_USED,
        1ull << 40,
        GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_OUTPUT,
        GPIO_V2_LINE_FLAG_EDGE_RISING,
        GPIO_V2_LINE_FLAG_OUTPUT | GPIO_V2_LINE_FLAG_EDGE_RISING,
        GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_OPEN_DRAIN,
        GPIO_V2_LINE_FLAG_OUTPUT | GPIO_V2_LINE_FLAG_OPEN_DRAIN | GPIO_V2_LINE_FLAG_OPEN_SOURCE,
        GPIO_V2_LINE_FLAG_BIAS_PULL_UP,
        GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_BIAS_PULL_UP | GPIO_V2_LINE_FLAG_BIAS_DISABLED,
    };
    for (size_t index = 0; index < sizeof wrong / sizeof wrong[0]; index++) {
        FAILS(line_of(B, wrong[index]), EINVAL);
        FAILS(configure(fd, wrong[index]), EINVAL);
    }
    FAILS(line_of(B, GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EVENT_CLOCK_HTE), EOPNOTSUPP);
    request = of(B, GPIO_V2_LINE_FLAG_OUTPUT);
    attribute(&request.config, GPIO_V2_LINE_ATTR_ID_DEBOUNCE, 10, 1);
    FAILS(get_line(&request), EINVAL);
    CHECK(close(fd) == 0 && flags_of(A) == GPIO_V2_LINE_FLAG_OUTPUT);
    FAILS(ioctl(fd, GPIO_V2_LINE_GET_VALUES_IOCTL, &request), EBADF);
    /* As it is. */
    CHECK((fd = line_of(A, 0)) > 2 && get(fd, 1) == 1 && set(fd, 0, 1) == 0 && get(fd, 1) == 0);
    CHECK(close(fd) == 0);
}

static void values(void) {
    struct gpio_v2_line_request request = of(C, GPIO_V2_LINE_FLAG_OUTPUT);
    request.offsets[1] = A;
    request.offsets[2] = B;
    request.num_lines = 3;
    attribute(&request.config, GPIO_V2_LINE_ATTR_ID_OUTPUT_VALUES, 5, 7);
    int fd = get_line(&request);
    CHECK(fd > 2 && get(fd, 7) == 5 && get(fd, 6) == 4 && get(fd, ~0ull) == 5);
    CHECK(set(fd, 2, 3) == 0 && get(fd, 7) == 6);
    FAILS(set(fd, 0, 0), EINVAL);
    FAILS(set(fd, 0, 8), EINVAL);
    FAILS(get(fd, 0), EINVAL);
    FAILS(get(fd, ~7ull), EINVAL);
    FAILS(ioctl(fd, GPIO_V2_LINE_GET_VALUES_IOCTL, BAD), EFAULT);
    FAILS(ioctl(fd, GPIO_V2_LINE_SET_CONFIG_IOCTL, BAD), EFAULT);
    FAILS(ioctl(fd, GPIO_GET_CHIPINFO_IOCTL, &request), EINVAL);
    FAILS(ioctl(fd, GPIO_V2_GET_LINE_IOCTL, &request), EINVAL);
    FAILS(ioctl(fd, GPIOHANDLE_GET_LINE_VALUES_IOCTL, &request), EINVAL);
    CHECK(configure(fd, GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_BIAS_PULL_UP) == 0 && get(fd, 7) == 7);
    FAILS(set(fd, 0, 1), EPERM);
    CHECK(configure(fd, GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_BIAS_PULL_DOWN) == 0 && get(fd, 7) == 0);
    uint64_t low = GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_ACTIVE_LOW;
    CHECK(configure(fd, low) == 0 && get(fd, 7) == 7 && flags_of(A) == (low | GPIO_V2_LINE_FLAG_USED));
    /* An open drain set to 1 lets its pull-up raise the line. */
    uint64_t drain = GPIO_V2_LINE_FLAG_OUTPUT | GPIO_V2_LINE_FLAG_OPEN_DRAIN | GPIO_V2_LINE_FLAG_BIAS_PULL_UP;
    CHECK(configure(fd, drain) == 0 && get(fd, 7) == 0 && set(fd, 5, 7) == 0 && get(fd, 7) == 5);
    uint64_t source = GPIO_V2_LINE_FLAG_OUTPUT | GPIO_V2_LINE_FLAG_OPEN_SOURCE | GPIO_V2_LINE_FLAG_BIAS_PULL_DOWN;
    CHECK(configure(fd, source) == 0 && get(fd, 7) == 0 && set(fd, 3, 7) == 0 && get(fd, 7) == 3);
    CHECK(flags_of(C) == (source | GPIO_V2_LINE_FLAG_USED));
    CHECK(close(fd) == 0);
}

/* Pulls a line that is watched: its level changes as often as the pull does. */
static int pull(int fd, int up) {
    uint64_t edges = GPIO_V2_LINE_FLAG_EDGE_RISING | GPIO_V2_LINE_FLAG_EDGE_FALLING;
    uint64_t bias = up ? GPIO_V2_LINE_FLAG_BIAS_PULL_UP : GPIO_V2_LINE_FLAG_BIAS_PULL_DOWN;
    return configure(fd, GPIO_V2_LINE_FLAG_INPUT | edges | bias);
}

static int watched(unsigned line, uint64_t more) {
    uint64_t edges = GPIO_V2_LINE_FLAG_EDGE_RISING | GPIO_V2_LINE_FLAG_EDGE_FALLING;
    return line_of(line, GPIO_V2_LINE_FLAG_INPUT | edges | GPIO_V2_LINE_FLAG_BIAS_PULL_DOWN | more);
}

static void on_alarm(int number) {
    (void)number;
}

static void *pull_later(void *fd) {
    usleep(20000);
    return (void *)(intptr_t)pull((int)(intptr_t)fd, 1);
}

static void events(void) {
    int fd = watched(A, 0);
    struct gpio_v2_line_event event[4];
    CHECK(fd > 2 && !readable(fd, 0));
    FAILS(read(fd, event, sizeof event[0] - 1), EINVAL);
    uint64_t before = now_ns(CLOCK_MONOTONIC);
    CHECK(pull(fd, 1) == 0 && readable(fd, 0));
    FAILS(read(fd, event, sizeof event[0] - 1), EINVAL);
    CHECK(read(fd, event, sizeof event[0]) == sizeof event[0]);
    CHECK(event[0].id == GPIO_V2_LINE_EVENT_RISING_EDGE && event[0].offset == A);
    CHECK(event[0].seqno == 1 && event[0].line_seqno == 1);
    CHECK(event[0].timestamp_ns >= before && event[0].timestamp_ns <= now_ns(CLOCK_MONOTONIC));
    /* As many as fit, by read and by readv. */
    CHECK(pull(fd, 0) == 0 && pull(fd, 1) == 0 && pull(fd, 0) == 0);
    CHECK(read(fd, event, sizeof event[0] * 2 + 47) == sizeof event[0] * 2);
    CHECK(event[0].id == GPIO_V2_LINE_EVENT_FALLING_EDGE && event[1].id == GPIO_V2_LINE_EVENT_RISING_EDGE);
    CHECK(event[0].timestamp_ns <= event[1].timestamp_ns && event[1].seqno == 3);
    struct iovec pieces[1] = {{event, sizeof event}};
    CHECK(readv(fd, pieces, 1) == sizeof event[0] && event[0].seqno == 4 && !readable(fd, 0));
    /* select and epoll know of them, and a read around the library has the structure. */
    fd_set set_of;
    struct timeval none = {0, 0};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event wanted = {.events = EPOLLIN, .data = {.fd = fd}}, found;
    CHECK(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &wanted) == 0 && epoll_wait(epoll, &found, 1, 0) == 0);
    CHECK(pull(fd, 1) == 0 && epoll_wait(epoll, &found, 1, 0) == 1 && found.data.fd == fd);
    FD_ZERO(&set_of);
    FD_SET(fd, &set_of);
    CHECK(select(fd + 1, &set_of, NULL, NULL, &none) == 1 && FD_ISSET(fd, &set_of));
    CHECK(syscall(SYS_read, fd, event, sizeof event) == sizeof event[0] && event[0].seqno == 5);
    close(epoll);
    /* Nothing there: not blocking, blocking with a signal, blocking until it comes. */
    CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && fcntl(fd, F_GETFL) & O_NONBLOCK);
    FAILS(read(fd, event, sizeof event), EAGAIN);
    CHECK(fcntl(fd, F_SETFL, 0) == 0 && !(fcntl(fd, F_GETFL) & O_NONBLOCK));
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    /* Again and again: the first may come before the read. */
    ualarm(20000, 20000);
    FAILS(read(fd, event, sizeof event), EINTR);
    ualarm(0, 0);
    CHECK(pull(fd, 0) == 0 && read(fd, event, sizeof event) == sizeof event[0]);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, pull_later, (void *)(intptr_t)fd) == 0);
    CHECK(read(fd, event, sizeof event) == sizeof event[0] && event[0].seqno == 7);
    pthread_join(thread, NULL);
    CHECK(pull(fd, 0) == 0);
    FAILS(read(fd, BAD, sizeof event), EFAULT);
    FAILS(write(fd, "x", 1), EBADF);
    CHECK(close(fd) == 0);
    /* Only one edge, active low, by the other clock. */
    fd = line_of(A, GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING | GPIO_V2_LINE_FLAG_ACTIVE_LOW |
                        GPIO_V2_LINE_FLAG_BIAS_PULL_UP | GPIO_V2_LINE_FLAG_EVENT_CLOCK_REALTIME);
    uint64_t same = GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING | GPIO_V2_LINE_FLAG_ACTIVE_LOW |
                    GPIO_V2_LINE_FLAG_EVENT_CLOCK_REALTIME;
    before = now_ns(CLOCK_REALTIME);
    CHECK(configure(fd, same | GPIO_V2_LINE_FLAG_BIAS_PULL_DOWN) == 0);
    CHECK(configure(fd, same | GPIO_V2_LINE_FLAG_BIAS_PULL_UP) == 0);
    CHECK(read(fd, event, sizeof event) == sizeof event[0] && event[0].id == GPIO_V2_LINE_EVENT_RISING_EDGE);
    CHECK(event[0].timestamp_ns >= before && event[0].timestamp_ns <= now_ns(CLOCK_REALTIME));
    CHECK(close(fd) == 0);
    /* Far more than the file keeps: what is lost leaves a gap in the numbers, and the last are there. */
    fd = watched(B, 0);
    for (int round = 1; round <= 1000; round++)
        if (pull(fd, round & 1) != 0)
            break;
    unsigned last = 0, ordered = 1, count = 0;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (int wait = 0; wait < 20000 && last < 1000; wait++) {
        for (; read(fd, event, sizeof event[0]) == sizeof event[0]; last = event[0].seqno, count++)
            ordered &= event[0].seqno > last;
        usleep(1000);
    }
    CHECK(ordered && last == 1000 && count >= 16 && count < 1000);
    CHECK(close(fd) == 0);
    /* Debounced: a level that does not stay is none. */
    struct gpio_v2_line_request request =
        of(A, GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING | GPIO_V2_LINE_FLAG_BIAS_PULL_DOWN);
    attribute(&request.config, GPIO_V2_LINE_ATTR_ID_DEBOUNCE, 30000, 1);
    fd = get_line(&request);
    struct gpio_v2_line_info info;
    memset(&info, 0, sizeof info);
    info.offset = A;
    CHECK(ioctl(chip, GPIO_V2_GET_LINEINFO_IOCTL, &info) == 0 && info.num_attrs == 1);
    CHECK(info.attrs[0].id == GPIO_V2_LINE_ATTR_ID_DEBOUNCE && info.attrs[0].debounce_period_us == 30000);
    request.config.flags ^= GPIO_V2_LINE_FLAG_BIAS_PULL_DOWN | GPIO_V2_LINE_FLAG_BIAS_PULL_UP;
    before = now_ns(CLOCK_MONOTONIC);
    CHECK(ioctl(fd, GPIO_V2_LINE_SET_CONFIG_IOCTL, &request.config) == 0);
    int unmoved = get(fd, 1) == 0 && !readable(fd, 0);
    CHECK(unmoved || now_ns(CLOCK_MONOTONIC) - before >= 30000000);
    CHECK(readable(fd, 30000) && get(fd, 1) == 1 && now_ns(CLOCK_MONOTONIC) - before >= 30000000);
    CHECK(read(fd, event, sizeof event) == sizeof event[0] && event[0].timestamp_ns >= before + 30000000);
    CHECK(close(fd) == 0);
}

static int spi(const uint8_t *bytes, unsigned length) {
    int fd = open(node, O_RDWR);
    struct spi_ioc_transfer one;
    memset(&one, 0, sizeof one);
    one.tx_buf = (uintptr_t)bytes;
    one.len = length;
    one.speed_hz = 10000000;
    int result = ioctl(fd, SPI_IOC_MESSAGE(1), &one);
    return close(fd) == 0 && result == (int)length;
}

/* Writes up to four bytes of the controller's registers, the lowest address first. */
static int registers(unsigned address, const uint8_t *bytes, unsigned length) {
    uint8_t message[16] = {0x20 | address >> 8, address & 0xff};
    memcpy(message + 2, bytes, length);
    return spi(message, length + 2);
}

#define REGISTERS(address, ...) registers(address, (uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}))

/* The interrupt of a chip: by what the program says to it, and by what the chip does later. */
static void interrupt(void) {
    int fd = watched(INT, 0);
    struct gpio_v2_line_event event;
    CHECK(fd > 2 && get(fd, 1) == 1 && !readable(fd, 0));
    /* FIFO 1 transmits. It interrupts while it is not full, but not yet: TXIE is clear. */
    CHECK(REGISTERS(0x05c, 0x81) && !readable(fd, 20));
    /* MODIE, and then internal loopback: the change of mode is an interrupt. */
    CHECK(REGISTERS(0x01e, 0x08) && REGISTERS(0x003, 0x02) && readable(fd, 30000) && get(fd, 1) == 0);
    CHECK(read(fd, &event, sizeof event) == sizeof event && event.id == GPIO_V2_LINE_EVENT_FALLING_EDGE);
    CHECK(REGISTERS(0x01c, 0x00) && readable(fd, 0) && get(fd, 1) == 1);
    CHECK(read(fd, &event, sizeof event) == sizeof event && event.id == GPIO_V2_LINE_EVENT_RISING_EDGE);
    CHECK(event.seqno == 2 && !readable(fd, 0));
    /* TXIE: there is room for one frame. */
    CHECK(REGISTERS(0x01e, 0x01) && readable(fd, 0));
    CHECK(read(fd, &event, sizeof event) == sizeof event && event.id == GPIO_V2_LINE_EVENT_FALLING_EDGE);
    uint8_t frame[18] = {0x24, 0x00, 0x55, 0x05, 0, 0, 0x08};
    CHECK(spi(frame, sizeof frame) && !readable(fd, 0));
    /* UINC and TXREQ: full until the frame has gone, 0.2 ms later, which no message tells. */
    CHECK(REGISTERS(0x05d, 0x03) && readable(fd, 0));
    CHECK(read(fd, &event, sizeof event) == sizeof event && event.id == GPIO_V2_LINE_EVENT_RISING_EDGE);
    uint64_t full = event.timestamp_ns;
    CHECK(readable(fd, 30000) && read(fd, &event, sizeof event) == sizeof event);
    CHECK(event.id == GPIO_V2_LINE_EVENT_FALLING_EDGE && event.seqno == 5);
    CHECK(event.timestamp_ns >= full);
    CHECK(close(fd) == 0);
}

static void watching(void) {
    struct gpio_v2_line_info info;
    struct gpio_v2_line_info_changed changed[4];
    struct gpioline_info old;
    memset(&info, 0, sizeof info);
    memset(&old, 0, sizeof old);
    info.offset = A;
    CHECK(ioctl(chip, GPIO_V2_GET_LINEINFO_WATCH_IOCTL, &info) == 0 && info.flags & GPIO_V2_LINE_FLAG_INPUT);
    FAILS(ioctl(chip, GPIO_V2_GET_LINEINFO_WATCH_IOCTL, &info), EBUSY);
    FAILS(ioctl(chip, GPIO_GET_LINEINFO_WATCH_IOCTL, &old), EPERM);
    int fd = line_of(A, GPIO_V2_LINE_FLAG_OUTPUT), other = line_of(B, GPIO_V2_LINE_FLAG_OUTPUT);
    CHECK(configure(fd, GPIO_V2_LINE_FLAG_INPUT) == 0 && close(fd) == 0 && close(other) == 0);
    CHECK(readable(chip, 30000) && read(chip, changed, sizeof changed[0] * 2) == sizeof changed[0] * 2);
    CHECK(changed[0].event_type == GPIO_V2_LINE_CHANGED_REQUESTED && changed[0].info.offset == A);
    CHECK(changed[1].event_type == GPIO_V2_LINE_CHANGED_CONFIG && changed[1].info.flags & GPIO_V2_LINE_FLAG_INPUT);
    CHECK(readable(chip, 30000));
    FAILS(read(chip, changed, sizeof changed[0] - 1), EINVAL);
    CHECK(read(chip, changed, sizeof changed) == sizeof changed[0]);
    CHECK(changed[0].event_type == GPIO_V2_LINE_CHANGED_RELEASED && !(changed[0].info.flags & GPIO_V2_LINE_FLAG_USED));
    CHECK(changed[0].timestamp_ns <= now_ns(CLOCK_MONOTONIC));
    uint32_t line = A;
    CHECK(ioctl(chip, GPIO_GET_LINEINFO_UNWATCH_IOCTL, &line) == 0);
    FAILS(ioctl(chip, GPIO_GET_LINEINFO_UNWATCH_IOCTL, &line), EBUSY);
    CHECK(close(line_of(A, GPIO_V2_LINE_FLAG_INPUT)) == 0 && !readable(chip, 20));
    /* Version 1, by a file that does not block. */
    int again = open(chip_path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    struct gpioline_info_changed old_changed;
    old.line_offset = A;
    FAILS(read(again, &old_changed, sizeof old_changed), EAGAIN);
    CHECK(ioctl(again, GPIO_GET_LINEINFO_WATCH_IOCTL, &old) == 0);
    CHECK(close(line_of(A, GPIO_V2_LINE_FLAG_INPUT)) == 0 && readable(again, 30000));
    CHECK(read(again, &old_changed, sizeof old_changed) == sizeof old_changed);
    CHECK(old_changed.event_type == GPIOLINE_CHANGED_REQUESTED && old_changed.info.line_offset == A);
    CHECK(close(again) == 0);
}

static void version_1(void) {
    struct gpiohandle_request request;
    struct gpiohandle_data data;
    struct gpiohandle_config config;
    memset(&request, 0, sizeof request);
    memset(&config, 0, sizeof config);
    request.lineoffsets[0] = A;
    request.lineoffsets[1] = C;
    request.lines = 2;
    request.flags = GPIOHANDLE_REQUEST_OUTPUT;
    request.default_values[1] = 7;
    strcpy(request.consumer_label, "old");
    CHECK(ioctl(chip, GPIO_GET_LINEHANDLE_IOCTL, &request) == 0 && request.fd > 2);
    int fd = request.fd;
    memset(&data, 0xff, sizeof data);
    CHECK(ioctl(fd, GPIOHANDLE_GET_LINE_VALUES_IOCTL, &data) == 0);
    CHECK(data.values[0] == 0 && data.values[1] == 1 && data.values[2] == 0 && data.values[63] == 0);
    data.values[0] = 9;
    data.values[1] = 0;
    CHECK(ioctl(fd, GPIOHANDLE_SET_LINE_VALUES_IOCTL, &data) == 0);
    CHECK(ioctl(fd, GPIOHANDLE_GET_LINE_VALUES_IOCTL, &data) == 0 && data.values[0] == 1 && data.values[1] == 0);
    FAILS(ioctl(chip, GPIO_GET_LINEHANDLE_IOCTL, &request), EBUSY);
    FAILS(read(fd, &data, sizeof data), EINVAL);
    FAILS(ioctl(fd, GPIO_V2_LINE_GET_VALUES_IOCTL, &data), EINVAL);
    config.flags = GPIOHANDLE_REQUEST_INPUT | GPIOHANDLE_REQUEST_BIAS_PULL_UP;
    CHECK(ioctl(fd, GPIOHANDLE_SET_CONFIG_IOCTL, &config) == 0);
    CHECK(ioctl(fd, GPIOHANDLE_GET_LINE_VALUES_IOCTL, &data) == 0 && data.values[0] == 1 && data.values[1] == 1);
    FAILS(ioctl(fd, GPIOHANDLE_SET_LINE_VALUES_IOCTL, &data), EPERM);
    config.flags = GPIOHANDLE_REQUEST_INPUT | GPIOHANDLE_REQUEST_OUTPUT;
    FAILS(ioctl(fd, GPIOHANDLE_SET_CONFIG_IOCTL, &config), EINVAL);
    CHECK(close(fd) == 0);
    static const unsigned wrong[] = {3, 1 << 3 | 1, 1 << 3 | 1 << 4 | 2, 1 << 5, 1 << 5 | 1 << 6 | 1, 1 << 8};
    for (size_t index = 0; index < sizeof wrong / sizeof wrong[0]; index++) {
        request.flags = wrong[index];
        FAILS(ioctl(chip, GPIO_GET_LINEHANDLE_IOCTL, &request), EINVAL);
    }
    request.flags = 1;
    request.lines = 0;
    FAILS(ioctl(chip, GPIO_GET_LINEHANDLE_IOCTL, &request), EINVAL);
    request.lines = 65;
    FAILS(ioctl(chip, GPIO_GET_LINEHANDLE_IOCTL, &request), EINVAL);
    struct gpioevent_request event_request;
    memset(&event_request, 0, sizeof event_request);
    event_request.lineoffset = INT;
    event_request.handleflags = GPIOHANDLE_REQUEST_OUTPUT;
    event_request.eventflags = GPIOEVENT_REQUEST_BOTH_EDGES;
    FAILS(ioctl(chip, GPIO_GET_LINEEVENT_IOCTL, &event_request), EINVAL);
    event_request.handleflags = GPIOHANDLE_REQUEST_INPUT;
    event_request.eventflags = 4;
    FAILS(ioctl(chip, GPIO_GET_LINEEVENT_IOCTL, &event_request), EINVAL);
    event_request.eventflags = GPIOEVENT_REQUEST_BOTH_EDGES;
    CHECK(ioctl(chip, GPIO_GET_LINEEVENT_IOCTL, &event_request) == 0 && event_request.fd > 2);
    fd = event_request.fd;
    struct gpioevent_data event;
    /* TXIE off and on again: INT was low, and is. */
    CHECK(ioctl(fd, GPIOHANDLE_GET_LINE_VALUES_IOCTL, &data) == 0 && data.values[0] == 0);
    uint64_t before = now_ns(CLOCK_MONOTONIC);
    CHECK(REGISTERS(0x01e, 0x00) && readable(fd, 0));
    FAILS(read(fd, &event, sizeof event - 1), EINVAL);
    CHECK(read(fd, &event, sizeof event) == sizeof event && event.id == GPIOEVENT_EVENT_RISING_EDGE);
    CHECK(event.timestamp >= before && event.timestamp <= now_ns(CLOCK_MONOTONIC));
    CHECK(REGISTERS(0x01e, 0x01) && readable(fd, 0));
    CHECK(syscall(SYS_read, fd, &event, sizeof event) == 16 && event.id == GPIOEVENT_EVENT_FALLING_EDGE);
    FAILS(ioctl(fd, GPIOHANDLE_SET_LINE_VALUES_IOCTL, &data), EINVAL);
    CHECK(close(fd) == 0);
}

static int again_and_again(int fd) {
    for (int round = 0; round < 200; round++)
        if (set(fd, round & 1, 1) != 0 || get(fd, 1) != (round & 1))
            return 1;
    return 0;
}

static void *in_thread(void *line) {
    int fd = line_of((unsigned)(intptr_t)line, GPIO_V2_LINE_FLAG_OUTPUT);
    intptr_t wrong = fd < 0 || again_and_again(fd);
    return (void *)(wrong | (close(fd) != 0));
}

static void descriptors(void) {
    /* The lines are held until the last copy is closed. */
    int fd = line_of(A, GPIO_V2_LINE_FLAG_OUTPUT), copy = dup(fd);
    CHECK((fcntl(copy, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == O_RDONLY);
    CHECK(copy > 2 && close(fd) == 0 && set(copy, 1, 1) == 0 && get(copy, 1) == 1);
    FAILS(line_of(A, GPIO_V2_LINE_FLAG_OUTPUT), EBUSY);
    CHECK(close(copy) == 0 && (fd = line_of(A, GPIO_V2_LINE_FLAG_OUTPUT)) > 2);
    pid_t child = fork();
    if (child == 0) {
        close(chip);
        _exit(set(fd, 1, 1) != 0 || get(fd, 1) != 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0 && get(fd, 1) == 1);
    CHECK(close(fd) == 0);
    /* A killed child releases its lines. */
    int ready[2];
    char byte;
    CHECK(pipe(ready) == 0);
    if ((child = fork()) == 0) {
        fd = line_of(A, GPIO_V2_LINE_FLAG_OUTPUT);
        if (write(ready[1], "x", 1) == 1)
            for (;;)
                again_and_again(fd);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    FAILS(line_of(A, GPIO_V2_LINE_FLAG_OUTPUT), EBUSY);
    kill(child, SIGKILL);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK((fd = line_of(A, GPIO_V2_LINE_FLAG_OUTPUT)) > 2 && close(fd) == 0);
    close(ready[0]);
    close(ready[1]);
    /* Four threads, each with a line of its own. */
    pthread_t threads[4];
    for (int index = 0; index < 4; index++)
        pthread_create(&threads[index], NULL, in_thread, (void *)(intptr_t)(A + index));
    for (int index = 0; index < 4; index++) {
        void *wrong;
        CHECK(pthread_join(threads[index], &wrong) == 0 && wrong == NULL);
    }
    /* All lines can be requested again: none was left. */
    for (unsigned line = A; line <= D; line++)
        CHECK((fd = line_of(line, GPIO_V2_LINE_FLAG_INPUT)) > 2 && close(fd) == 0);
}

/* A read that never returns is a failure too. */
static void *hanging(void *nothing) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    sleep(60);
    printf("it hangs after %d checks, %d failed\n", checks, failures);
    fflush(stdout);
    _exit(3);
    return nothing;
}

int main(int count, char **arguments) {
    pthread_t thread;
    if (count < 3)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    pthread_create(&thread, NULL, hanging, NULL);
    chip_path = arguments[1];
    node = arguments[2];
    chip = open(chip_path, O_RDWR);
    if (chip < 0) {
        perror(chip_path);
        return 1;
    }
    the_chip();
    line_info();
    requests();
    values();
    events();
    interrupt();
    watching();
    version_1();
    descriptors();
    printf("%d checks, %d failed\n", checks, failures);
    return failures != 0;
}
