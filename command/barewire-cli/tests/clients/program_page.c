/* Programs sixteen bytes of a W25Q32JV at 0x1000, and waits for the chip as a user of spidev does. */
#include <fcntl.h>
#include <linux/spi/spidev.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main(int count, char **arguments) {
    (void)count;
    int fd = open(arguments[1], O_RDWR);
    uint8_t page[20] = {0x02, 0x00, 0x10, 0x00}, status[2] = {0x05}, was[2] = {0, 1};
    struct spi_ioc_transfer one;
    memcpy(page + 4, "sixteen bytes of", 16);
    if (write(fd, "\x06", 1) != 1 || write(fd, page, sizeof page) != sizeof page) {
        perror(arguments[1]);
        return 1;
    }
    memset(&one, 0, sizeof one);
    one.tx_buf = (uintptr_t)status;
    one.rx_buf = (uintptr_t)was;
    one.len = 2;
    for (int polls = 0; was[1] & 1; polls++) {
        if (polls > 1000 || ioctl(fd, SPI_IOC_MESSAGE(1), &one) != 2)
            return 2;
        usleep(100);
    }
    return 0;
}
