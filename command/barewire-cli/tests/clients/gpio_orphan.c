/* Waits for an edge of a GPIO line while its parent is killed, and goes on. */
#include <errno.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void said(const char *what, int result) {
    printf("%s: %d%s%s\n", what, result, result < 0 ? ", " : "", result < 0 ? strerror(errno) : "");
}

int main(int count, char **arguments) {
    (void)count;
    setvbuf(stdout, NULL, _IONBF, 0);
    int chip = open(arguments[1], O_RDWR);
    struct gpio_v2_line_request request;
    struct gpio_v2_line_values values = {0, 1};
    struct gpio_v2_line_event event;
    memset(&request, 0, sizeof request);
    request.offsets[0] = 20;
    request.num_lines = 1;
    request.config.flags = GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING;
    said("before", ioctl(chip, GPIO_V2_GET_LINE_IOCTL, &request));
    int line = request.fd;
    pid_t server = getppid();
    if (fork() == 0) {
        usleep(50000);
        kill(server, SIGKILL);
        _exit(0);
    }
    struct pollfd one = {line, POLLIN, 0};
    said("polled", poll(&one, 1, 30000));
    said("read", (int)read(line, &event, sizeof event));
    said("values", ioctl(line, GPIO_V2_LINE_GET_VALUES_IOCTL, &values));
    request.offsets[0] = 21;
    said("lines", ioctl(chip, GPIO_V2_GET_LINE_IOCTL, &request));
    said("open", open(arguments[1], O_RDWR));
    return 0;
}
