/* A child of fork, and one of the system call, of which no library hears: what the parent opened fails there and does not
 * hang, and the child may open its own. */
#define _GNU_SOURCE
#include "expect.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static uint8_t tx[4] = {0x9f}, rx[4];
static bw_transfer transfer = {.tx = tx, .rx = rx, .len = 4};

static bw_device *open_device(bw_bus **bus)
{
    bw_settings settings = {.size = sizeof settings, .speed_hz = 20000000};
    bw_device *device;

    EXPECT(bw_bus_open("sim:imx8mp", NULL, NULL, bus), BW_OK);
    EXPECT(bw_device_open(*bus, &settings, &device), BW_OK);
    return device;
}

static void use(bw_bus *bus, bw_device *device)
{
    bw_message *message;

    EXPECT(bw_message_new(device, &transfer, 1, NULL, NULL, &message), BW_OK);
    EXPECT(bw_submit(message), BW_OK);
    EXPECT(bw_wait(message, NULL), BW_OK);
    EXPECT(bw_message_free(message), BW_OK);
    EXPECT(bw_device_close(device), BW_OK);
    EXPECT(bw_bus_close(bus), BW_OK);
}

int main(void)
{
    bw_bus *bus;
    bw_device *device = open_device(&bus);
    bw_prepared *prepared;
    bw_message *message;
    int status = 0, way;
    pid_t child;

    EXPECT(bw_prepare(device, &transfer, 1, &prepared), BW_OK);
    EXPECT(bw_message_new(device, &transfer, 1, NULL, NULL, &message), BW_OK);
    /* With a worker thread, and with the bus locked. */
    EXPECT(bw_submit(message), BW_OK);
    EXPECT(bw_wait(message, NULL), BW_OK);
    EXPECT(bw_lock(bus), BW_OK);
    for (way = 0; way < 2; way++) {
        child = way ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
        if (child != 0) {
            if (waitpid(child, &status, 0) != child || status != 0) {
                fprintf(stderr, "the child ended with %#x\n", status);
                return 1;
            }
            continue;
        }
        bw_bus *own;
        bw_device *own_device;

        alarm(20);
        EXPECT(bw_exchange(device, tx, rx, 4), BW_ERROR_FORKED);
        EXPECT(bw_prepared_run(prepared, NULL), BW_ERROR_FORKED);
        EXPECT(bw_submit(message), BW_ERROR_FORKED);
        EXPECT(bw_wait(message, NULL), BW_ERROR_FORKED);
        EXPECT(bw_unlock(bus), BW_ERROR_FORKED);
        EXPECT(bw_message_free(message), BW_ERROR_FORKED);
        EXPECT(bw_device_close(device), BW_ERROR_FORKED);
        EXPECT(bw_bus_close(bus), BW_ERROR_FORKED);
        own_device = open_device(&own);
        use(own, own_device);
        _exit(0);
    }
    EXPECT(bw_prepared_run(prepared, NULL), BW_OK);
    EXPECT(bw_unlock(bus), BW_OK);
    EXPECT(bw_prepared_free(prepared), BW_OK);
    EXPECT(bw_message_free(message), BW_OK);
    use(bus, device);
    puts("ok");
    return 0;
}
