/* The cases of spidev's interface, as Linux 6.1 has them, asked by a program that knows nothing of barewire.
 *
 * Argument: a node behind which a W25Q32JV answers, or the chip with JEDEC_ID. Prints a line for each case that fails, and the number of
 * checks at the end; the exit code is 1 if one failed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/spi/spidev.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
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

static const char *node;
#ifndef JEDEC_ID
#define JEDEC_ID 0xef, 0x40, 0x16
#endif
static const uint8_t JEDEC[3] = {JEDEC_ID};
/* What an erased chip, or none, answers. */
#ifndef IS_ERASED
#define IS_ERASED(byte) ((byte) == 0xff)
#endif

static uint8_t reversed(uint8_t byte) {
    uint8_t other = 0;
    for (int bit = 0; bit < 8; bit++)
        other |= (byte >> bit & 1) << (7 - bit);
    return other;
}

static struct spi_ioc_transfer of(const void *tx, void *rx, unsigned len) {
    struct spi_ioc_transfer transfer;
    memset(&transfer, 0, sizeof transfer);
    transfer.tx_buf = (uintptr_t)tx;
    transfer.rx_buf = (uintptr_t)rx;
    transfer.len = len;
    return transfer;
}

static int reads_id(int fd) {
    uint8_t tx[4] = {0x9f}, rx[4] = {0};
    struct spi_ioc_transfer one = of(tx, rx, 4);
    return ioctl(fd, SPI_IOC_MESSAGE(1), &one) == 4 && memcmp(rx + 1, JEDEC, 3) == 0;
}

static void settings(int fd) {
    uint8_t byte;
    uint32_t word;
    /* 1 */
    word = SPI_MODE_3;
    CHECK(ioctl(fd, SPI_IOC_WR_MODE32, &word) == 0);
    CHECK(ioctl(fd, SPI_IOC_RD_MODE, &byte) == 0 && byte == SPI_MODE_3);
    CHECK(ioctl(fd, SPI_IOC_RD_MODE32, &word) == 0 && word == SPI_MODE_3);
    word = SPI_MODE_3 | SPI_TX_DUAL | SPI_RX_QUAD;
    CHECK(ioctl(fd, SPI_IOC_WR_MODE32, &word) == 0);
    byte = SPI_MODE_0;
    CHECK(ioctl(fd, SPI_IOC_WR_MODE, &byte) == 0);
    CHECK(ioctl(fd, SPI_IOC_RD_MODE32, &word) == 0 && word == SPI_MODE_0);
    byte = SPI_MODE_3 | SPI_CS_HIGH;
    CHECK(ioctl(fd, SPI_IOC_WR_MODE, &byte) == 0);
    CHECK(ioctl(fd, SPI_IOC_RD_MODE, &byte) == 0 && byte == SPI_MODE_3);
    /* 2 */
    word = 1u << 20;
    FAILS(ioctl(fd, SPI_IOC_WR_MODE32, &word), EINVAL);
    word = SPI_3WIRE;
    FAILS(ioctl(fd, SPI_IOC_WR_MODE32, &word), EINVAL);
    CHECK(ioctl(fd, SPI_IOC_RD_MODE32, &word) == 0 && word == SPI_MODE_3);
    byte = SPI_MODE_0;
    CHECK(ioctl(fd, SPI_IOC_WR_MODE, &byte) == 0);
    /* 3 */
    CHECK(ioctl(fd, SPI_IOC_RD_MAX_SPEED_HZ, &word) == 0 && word == 1000000);
    word = 0;
    FAILS(ioctl(fd, SPI_IOC_WR_MAX_SPEED_HZ, &word), EINVAL);
    word = 8000000;
    CHECK(ioctl(fd, SPI_IOC_WR_MAX_SPEED_HZ, &word) == 0);
    CHECK(ioctl(fd, SPI_IOC_RD_MAX_SPEED_HZ, &word) == 0 && word == 8000000);
    word = 2000000000;
    CHECK(ioctl(fd, SPI_IOC_WR_MAX_SPEED_HZ, &word) == 0);
    CHECK(ioctl(fd, SPI_IOC_RD_MAX_SPEED_HZ, &word) == 0 && word == 2000000000);
    word = 8000000;
    CHECK(ioctl(fd, SPI_IOC_WR_MAX_SPEED_HZ, &word) == 0);
    /* 5 */
    byte = 0;
    CHECK(ioctl(fd, SPI_IOC_WR_BITS_PER_WORD, &byte) == 0);
    CHECK(ioctl(fd, SPI_IOC_RD_BITS_PER_WORD, &byte) == 0 && byte == 8);
    byte = 33;
    FAILS(ioctl(fd, SPI_IOC_WR_BITS_PER_WORD, &byte), EINVAL);
    CHECK(ioctl(fd, SPI_IOC_RD_BITS_PER_WORD, &byte) == 0 && byte == 8);
    byte = 8;
    CHECK(ioctl(fd, SPI_IOC_WR_LSB_FIRST, &byte) == 0);
    CHECK(ioctl(fd, SPI_IOC_RD_LSB_FIRST, &byte) == 0 && byte == 1);
    CHECK(ioctl(fd, SPI_IOC_RD_MODE, &byte) == 0 && byte == SPI_LSB_FIRST);
    uint8_t tx[4] = {0xf9}, rx[4];
    struct spi_ioc_transfer one = of(tx, rx, 4);
    CHECK(ioctl(fd, SPI_IOC_MESSAGE(1), &one) == 4 && rx[1] == reversed(JEDEC[0]) &&
          rx[2] == reversed(JEDEC[1]) && rx[3] == reversed(JEDEC[2]));
    byte = 0;
    CHECK(ioctl(fd, SPI_IOC_WR_LSB_FIRST, &byte) == 0);
    CHECK(ioctl(fd, SPI_IOC_RD_LSB_FIRST, &byte) == 0 && byte == 0);
    FAILS(ioctl(fd, SPI_IOC_RD_MODE, NULL), EFAULT);
    FAILS(ioctl(fd, SPI_IOC_WR_MODE, NULL), EFAULT);
}

static void numbers(int fd) {
    struct spi_ioc_transfer one = of(NULL, NULL, 0);
    uint32_t word;
    /* 6 */
    CHECK(ioctl(fd, SPI_IOC_MESSAGE(0), NULL) == 0);
    FAILS(ioctl(fd, _IOC(_IOC_WRITE, 'k', 0, 33), &one), EINVAL);
    /* 7 */
    FAILS(ioctl(fd, _IOC(_IOC_WRITE, 'j', 0, 32), &one), ENOTTY);
    FAILS(ioctl(fd, _IOC(_IOC_WRITE, 'k', 6, 32), &one), ENOTTY);
    FAILS(ioctl(fd, _IOC(_IOC_READ, 'k', 0, 32), &one), ENOTTY);
    FAILS(ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'k', 1, 1), &word), ENOTTY);
    FAILS(ioctl(fd, _IOC(_IOC_READ, 'k', 1, 4), &word), ENOTTY);
    FAILS(ioctl(fd, 0x5401, &word), ENOTTY);
    CHECK(isatty(fd) == 0 && errno == ENOTTY);
}

static void messages(int fd) {
    static uint8_t big[8192], in[8192];
    struct spi_ioc_transfer some[9];
    /* 8: 4096 is bufsiz; each way alone, each segment rounded up. */
    some[0] = of(big, NULL, 4096);
    some[1] = of(NULL, in, 4096);
    big[0] = 0x9f;
    CHECK(ioctl(fd, SPI_IOC_MESSAGE(2), some) == 8192 && memcmp(in, JEDEC, 1) != -1);
    some[0] = of(big, NULL, 4097);
    FAILS(ioctl(fd, SPI_IOC_MESSAGE(1), some), EMSGSIZE);
    some[0] = of(NULL, in, 4097);
    FAILS(ioctl(fd, SPI_IOC_MESSAGE(1), some), EMSGSIZE);
    some[0] = of(big, in, 4096);
    some[1] = of(big, NULL, 1);
    FAILS(ioctl(fd, SPI_IOC_MESSAGE(2), some), EMSGSIZE);
    some[0] = of(big, NULL, 4095);
    some[1] = of(big, NULL, 1);
    FAILS(ioctl(fd, SPI_IOC_MESSAGE(2), some), EMSGSIZE);
    some[0] = of(big, NULL, 0xffffffff);
    FAILS(ioctl(fd, SPI_IOC_MESSAGE(1), some), EMSGSIZE);
    /* 9 */
    uint8_t command[4] = {0x03, 0, 0, 0}, first[5], second[7];
    some[0] = of(command, NULL, 4);
    some[1] = of(NULL, first, 5);
    some[2] = of(NULL, second, 7);
    CHECK(ioctl(fd, SPI_IOC_MESSAGE(3), some) == 16);
    CHECK(IS_ERASED(first[0]) && IS_ERASED(second[6]));
    /* 10 */
    memset(in, 0, sizeof in);
    FAILS(read(fd, in, 4097), EMSGSIZE);
    FAILS(write(fd, big, 4097), EMSGSIZE);
    CHECK(read(fd, in, 4096) == 4096 && IS_ERASED(in[4095]));
    CHECK(write(fd, "\x06", 1) == 1);
    uint8_t status[2] = {0x05}, was[2];
    some[0] = of(status, was, 2);
    CHECK(ioctl(fd, SPI_IOC_MESSAGE(1), some) == 2 && was[1] == 2);
    CHECK(write(fd, "\x04", 1) == 1);
    CHECK(ioctl(fd, SPI_IOC_MESSAGE(1), some) == 2 && was[1] == 0);
    CHECK(read(fd, in, 0) == 0 && write(fd, in, 0) == 0);
    struct iovec pieces[2] = {{in, 3}, {in + 3, 4}};
    CHECK(readv(fd, pieces, 2) == 7);
    FAILS(lseek(fd, 0, SEEK_SET), ESPIPE);
    FAILS(pread(fd, in, 1, 0), ESPIPE);
    /* 11 */
    uint8_t id[4] = {0x9f}, got[4];
    some[0] = of(id, got, 4);
    some[0].speed_hz = 4000000000u;
    some[0].bits_per_word = 8;
    CHECK(ioctl(fd, SPI_IOC_MESSAGE(1), some) == 4 && memcmp(got + 1, JEDEC, 3) == 0);
    some[0].speed_hz = 1;
    FAILS(ioctl(fd, SPI_IOC_MESSAGE(1), some), EINVAL);
    /* 12: an odd length of 16-bit words, before whether the controller has them. */
    some[0] = of(id, got, 3);
    some[0].bits_per_word = 16;
    FAILS(ioctl(fd, SPI_IOC_MESSAGE(1), some), EINVAL);
    some[0] = of(id, got, 2);
    some[0].bits_per_word = 32;
    FAILS(ioctl(fd, SPI_IOC_MESSAGE(1), some), EINVAL);
    /* 13 */
    some[0] = of(id, got, 4);
    some[0].tx_nbits = 2;
    FAILS(ioctl(fd, SPI_IOC_MESSAGE(1), some), EINVAL);
    some[0] = of(id, got, 4);
    some[0].rx_nbits = 4;
    FAILS(ioctl(fd, SPI_IOC_MESSAGE(1), some), EINVAL);
    some[0].rx_nbits = some[0].tx_nbits = 1;
    CHECK(ioctl(fd, SPI_IOC_MESSAGE(1), some) == 4);
    /* 14: between the command and its answer, so that a clock too many would be seen. */
    some[0] = of(id, NULL, 1);
    some[1] = of(NULL, NULL, 100);
    some[2] = of(NULL, got, 3);
    CHECK(ioctl(fd, SPI_IOC_MESSAGE(3), some) == 104 && memcmp(got, JEDEC, 3) == 0);
    /* 15 */
    some[0] = of(id, NULL, 1);
    some[1] = of(NULL, got, 3);
    some[0].cs_change = 1;
    CHECK(ioctl(fd, SPI_IOC_MESSAGE(2), some) == 4 && memcmp(got, JEDEC, 3) != 0);
    CHECK(ioctl(fd, SPI_IOC_MESSAGE(1), some) == 1);
    CHECK(read(fd, got, 3) == 3 && memcmp(got, JEDEC, 3) == 0);
    CHECK(read(fd, got, 3) == 3 && memcmp(got, JEDEC, 3) != 0);
    CHECK(reads_id(fd));
    /* 16 */
    void *bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t enable[1] = {0x06};
    some[0] = of(enable, NULL, 1);
    some[1] = of(bad, NULL, 1);
    FAILS(ioctl(fd, SPI_IOC_MESSAGE(2), some), EFAULT);
    some[0] = of(status, was, 2);
    CHECK(ioctl(fd, SPI_IOC_MESSAGE(1), some) == 2 && was[1] == 0);
    some[0] = of(enable, bad, 1);
    FAILS(ioctl(fd, SPI_IOC_MESSAGE(1), some), EFAULT);
    some[0] = of(status, was, 2);
    CHECK(ioctl(fd, SPI_IOC_MESSAGE(1), some) == 2 && was[1] == 2);
    CHECK(write(fd, "\x04", 1) == 1);
    FAILS(ioctl(fd, SPI_IOC_MESSAGE(1), bad), EFAULT);
    FAILS(ioctl(fd, SPI_IOC_MESSAGE(1), NULL), EFAULT);
    FAILS(read(fd, bad, 1), EFAULT);
    FAILS(write(fd, bad, 1), EFAULT);
    /* A length of zero, delays. */
    some[0] = of(id, NULL, 1);
    some[0].delay_usecs = 100;
    some[1] = of(id, got, 0);
    some[2] = of(NULL, got, 3);
    some[2].word_delay_usecs = 10;
    CHECK(ioctl(fd, SPI_IOC_MESSAGE(3), some) == 4 && memcmp(got, JEDEC, 3) == 0);
}

static void shared_state(int fd) {
    uint8_t byte = SPI_MODE_3;
    uint32_t word;
    /* 17 */
    int other = open(node, O_RDWR);
    CHECK(other >= 0 && other != fd);
    CHECK(ioctl(other, SPI_IOC_WR_MODE, &byte) == 0);
    CHECK(ioctl(fd, SPI_IOC_RD_MODE, &byte) == 0 && byte == SPI_MODE_3);
    word = 123456;
    CHECK(ioctl(other, SPI_IOC_WR_MAX_SPEED_HZ, &word) == 0);
    CHECK(close(other) == 0);
    CHECK(ioctl(fd, SPI_IOC_RD_MAX_SPEED_HZ, &word) == 0 && word == 123456);
    FAILS(ioctl(other, SPI_IOC_RD_MODE, &byte), EBADF);
    /* 4, with a copy that keeps it open. */
    int copy = dup(fd);
    CHECK(close(fd) == 0);
    other = open(node, O_RDWR);
    CHECK(ioctl(other, SPI_IOC_RD_MAX_SPEED_HZ, &word) == 0 && word == 123456);
    CHECK(close(other) == 0 && close(copy) == 0);
    other = open(node, O_RDWR);
    CHECK(ioctl(other, SPI_IOC_RD_MAX_SPEED_HZ, &word) == 0 && word == 1000000);
    CHECK(ioctl(other, SPI_IOC_RD_MODE, &byte) == 0 && byte == SPI_MODE_3);
    byte = 0;
    CHECK(ioctl(other, SPI_IOC_WR_MODE, &byte) == 0);
    close(other);
}

static int is_spidev3(const struct dirent *entry) {
    return strncmp(entry->d_name, "spidev3", 7) == 0;
}

static void descriptors(const char *self) {
    uint8_t byte;
    int fd = open(node, O_RDONLY);
    CHECK(fd >= 0 && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0);
    CHECK(ioctl(fd, SPI_IOC_RD_MODE, &byte) == 0 && ioctl(fd, SPI_IOC_WR_MODE, &byte) == 0);
    CHECK(reads_id(fd));
    FAILS(write(fd, "\x06", 1), EBADF);
    CHECK(read(fd, &byte, 1) == 1);
    close(fd);
    fd = open(node, O_WRONLY | O_CLOEXEC);
    CHECK((fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY && fcntl(fd, F_GETFD) == FD_CLOEXEC);
    FAILS(read(fd, &byte, 1), EBADF);
    close(fd);
    FAILS(open(node, O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
    FAILS(open(node, O_RDWR | O_DIRECTORY), ENOTDIR);
    FAILS(open("/dev/spidev99.9", O_RDWR), ENOENT);
    fd = open(node, O_RDWR | O_NONBLOCK);
    CHECK(reads_id(fd));
    int copy = fcntl(fd, F_DUPFD, 100);
    CHECK(copy >= 100 && reads_id(copy));
    CHECK(dup2(fd, 200) == 200 && reads_id(200));
    CHECK(dup3(fd, 201, O_CLOEXEC) == 201 && reads_id(201));
    int null = open("/dev/null", O_RDWR);
    CHECK(dup2(null, 200) == 200);
    FAILS(ioctl(200, SPI_IOC_RD_MODE, &byte), ENOTTY);
    CHECK(close(copy) == 0 && close(200) == 0 && close(201) == 0 && close(null) == 0);
    struct stat found;
    CHECK(fstat(fd, &found) == 0 && S_ISCHR(found.st_mode) && major(found.st_rdev) == 153);
    CHECK(stat(node, &found) == 0 && S_ISCHR(found.st_mode) && major(found.st_rdev) == 153);
    CHECK(access(node, R_OK | W_OK) == 0 && access("/dev/spidev99.9", F_OK) == -1);
    char link[64], text[256] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    CHECK(readlink(link, text, sizeof text) == (ssize_t)strlen(node) && strcmp(text, node) == 0);
    char *whole = realpath(node, NULL);
    CHECK(whole && strcmp(whole, node) == 0);
    free(whole);
    /* A link somewhere else, as udev makes them; a relative path; a descriptor of /dev. */
    char dir[] = "/tmp/spidev-link-XXXXXX";
    CHECK(mkdtemp(dir) != NULL);
    char path[64];
    snprintf(path, sizeof path, "%s/adc", dir);
    CHECK(symlink(node, path) == 0);
    copy = open(path, O_RDWR);
    CHECK(copy >= 0 && reads_id(copy));
    close(copy);
    unlink(path);
    rmdir(dir);
    int dev = open("/dev", O_RDONLY | O_DIRECTORY);
    copy = openat(dev, node + strlen("/dev/"), O_RDWR);
    CHECK(copy >= 0 && reads_id(copy));
    close(copy);
    close(dev);
    /* A child has it too, made either way. */
    pid_t child = fork();
    if (child == 0)
        _exit(reads_id(fd) ? 0 : 1);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    child = vfork();
    if (child == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", fd);
        execl(self, self, node, "inherited", number, (char *)NULL);
        _exit(3);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    /* What a child of vfork closes stays open here. */
    child = vfork();
    if (child == 0) {
        close(fd);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && reads_id(fd));
    FILE *stream = fopen("/sys/module/spidev/parameters/bufsiz", "r");
    CHECK(stream && fscanf(stream, "%d", &status) == 1 && status == 4096);
    if (stream)
        fclose(stream);
    glob_t globbed;
    CHECK(glob("/dev/spidev3*", 0, NULL, &globbed) == 0 && globbed.gl_pathc == 1);
    CHECK(globbed.gl_pathc == 1 && strcmp(globbed.gl_pathv[0], node) == 0);
    globfree(&globbed);
    struct dirent **entries = NULL;
    int count = scandir("/dev", &entries, is_spidev3, alphasort);
    CHECK(count == 1 && strcmp(entries[0]->d_name, node + 5) == 0 && entries[0]->d_type == DT_CHR);
    for (int index = 0; index < count; index++)
        free(entries[index]);
    free(entries);
    /* Streams on the node: by name, and on a descriptor. */
    stream = fopen(node, "r+");
    CHECK(stream && reads_id(fileno(stream)));
    CHECK(stream && fwrite("\x06", 1, 1, stream) == 1 && fflush(stream) == 0);
    uint8_t tx[2] = {0x05}, rx[2] = {0};
    struct spi_ioc_transfer one = of(tx, rx, 2);
    CHECK(ioctl(fd, SPI_IOC_MESSAGE(1), &one) == 2 && rx[1] == 2);
    CHECK(stream && fclose(stream) == 0);
    copy = dup(fd);
    stream = fdopen(copy, "r");
    setvbuf(stream, NULL, _IONBF, 0);
    CHECK(stream && IS_ERASED(fgetc(stream)) && fileno(stream) == copy);
    CHECK(fclose(stream) == 0 && close(copy) == -1);
    CHECK(write(fd, "\x04", 1) == 1);
    CHECK(close(fd) == 0);
    FAILS(close(fd), EBADF);
}

static void *many(void *argument) {
    int fd = *(int *)argument;
    intptr_t wrong = 0;
    for (int round = 0; round < 50; round++)
        wrong += !reads_id(fd);
    return (void *)wrong;
}

static volatile sig_atomic_t alarms;
static int alarm_fd;
static void on_alarm(int signal) {
    (void)signal;
    alarms += reads_id(alarm_fd);
}

static void together(void) {
    int fd = open(node, O_RDWR), again = open(node, O_RDWR);
    pthread_t threads[4];
    for (int index = 0; index < 4; index++)
        CHECK(pthread_create(&threads[index], NULL, many, index % 2 ? &fd : &again) == 0);
    for (int index = 0; index < 4; index++) {
        void *wrong = NULL;
        CHECK(pthread_join(threads[index], &wrong) == 0 && wrong == NULL);
    }
    pid_t children[4];
    for (int index = 0; index < 4; index++)
        if ((children[index] = fork()) == 0)
            _exit(many(&fd) != NULL);
    for (int index = 0; index < 4; index++) {
        int status = -1;
        CHECK(waitpid(children[index], &status, 0) == children[index] && status == 0);
    }
    /* Each opens the node anew for each message, and all at once. */
    for (int index = 0; index < 4; index++)
        if ((children[index] = fork()) == 0) {
            int wrong = 0;
            for (int round = 0; round < 200; round++) {
                int own = open(node, O_RDWR);
                wrong += !reads_id(own) + (close(own) != 0);
            }
            _exit(wrong != 0);
        }
    for (int index = 0; index < 4; index++) {
        int status = -1;
        CHECK(waitpid(children[index], &status, 0) == children[index] && status == 0);
    }
    /* A signal in the middle whose handler uses the node too, with and without SA_RESTART. */
    alarm_fd = fd;
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    ualarm(500, 500);
    intptr_t wrong = 0;
    for (int round = 0; round < 300; round++)
        wrong += !reads_id(fd);
    ualarm(0, 0);
    CHECK(wrong == 0 && alarms > 0);
    /* A process that is killed in the middle leaves nothing behind. */
    for (int round = 0; round < 5; round++) {
        pid_t child = fork();
        if (child == 0)
            for (;;)
                reads_id(fd);
        usleep(3000);
        kill(child, SIGKILL);
        CHECK(waitpid(child, NULL, 0) == child && reads_id(fd));
    }
    close(fd);
    close(again);
}

int main(int count, char **arguments) {
    node = arguments[1];
    if (count == 4)
        return reads_id(atoi(arguments[3])) ? 0 : 2;
    int fd = open(node, O_RDWR);
    if (fd < 0) {
        perror(node);
        return 1;
    }
    CHECK(reads_id(fd));
    settings(fd);
    numbers(fd);
    messages(fd);
    shared_state(fd);
    descriptors(arguments[0]);
    together();
    printf("%d checks, %d failed\n", checks, failures);
    return failures != 0;
}
