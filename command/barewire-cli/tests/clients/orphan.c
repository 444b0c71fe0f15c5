/* Uses a node, kills its parent, and uses the node again. */
#include <errno.h>
#include <fcntl.h>
#include <linux/spi/spidev.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int fd;

static void message(const char *when) {
    uint8_t bytes[4] = {0x9f};
    struct spi_ioc_transfer one;
    memset(&one, 0, sizeof one);
    one.tx_buf = one.rx_buf = (uintptr_t)bytes;
    one.len = 4;
    int result = ioctl(fd, SPI_IOC_MESSAGE(1), &one);
    printf("%s: %d%s%s\n", when, result, result < 0 ? ", " : "", result < 0 ? strerror(errno) : "");
}

int main(int count, char **arguments) {
    (void)count;
    setvbuf(stdout, NULL, _IONBF, 0);
    fd = open(arguments[1], O_RDWR);
    message("before");
    pid_t server = getppid();
    kill(server, SIGKILL);
    while (getppid() == server)
        usleep(1000);
    message("after");
    message("again");
    int other = open(arguments[1], O_RDWR);
    printf("open: %d, %s\n", other, strerror(errno));
    return 0;
}
