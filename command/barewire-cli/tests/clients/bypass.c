/* Opens a node and says what comes of it. With a second argument, it opens the node and becomes that program,
 * which finds the node as descriptor 3. Linked statically it goes around any preloaded library. */
#include <fcntl.h>
#include <linux/spi/spidev.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void said(const char *what, int result) {
    if (result < 0)
        perror(what);
    else
        printf("%s: %d\n", what, result);
}

int main(int count, char **arguments) {
    dup2(1, 2);
    setvbuf(stdout, NULL, _IONBF, 0);
    if (strcmp(arguments[1], "inherited") == 0) {
        uint8_t mode = 3;
        signal(SIGPIPE, SIG_IGN);
        said("ioctl", ioctl(3, SPI_IOC_WR_MODE, &mode));
        said("write", (int)write(3, "\x06\x06", 2));
        said("read", (int)read(3, &mode, 1));
        return 0;
    }
    int fd = open(arguments[1], O_RDWR);
    if (fd < 0) {
        perror("open");
        return 3;
    }
    if (count > 2) {
        dup2(fd, 3);
        execl(arguments[2], arguments[2], "inherited", (char *)NULL);
    }
    return 0;
}
