/* Children that share the memory, of vfork and of clone: each call is refused there, and the parent's objects are as they
 * were, also while parent and child make calls at once. */
#define _GNU_SOURCE
#include "expect.h"
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#define ROUNDS 50

static uint8_t tx[4] = {0x9f}, rx[4];
static bw_transfer transfer = {.tx = tx, .rx = rx, .len = 4};
static bw_bus *bus;
static bw_device *device;
static bw_prepared *prepared;
static bw_message *message;

/* Runs in the child. Returns, so that it is not the caller's frame that ends. */
static int refused(void *unused)
{
    bw_settings settings = {.size = sizeof settings, .speed_hz = 20000000};
    bw_bus *own_bus;
    bw_device *own_device;
    int round;

    (void)unused;
    for (round = 0; round < 100; round++) {
        EXPECT(bw_exchange(device, tx, rx, 4), BW_ERROR_FORKED);
        EXPECT(bw_prepared_run(prepared, NULL), BW_ERROR_FORKED);
        EXPECT(bw_submit(message), BW_ERROR_FORKED);
        EXPECT(bw_wait(message, NULL), BW_ERROR_FORKED);
        EXPECT(bw_lock(bus), BW_ERROR_FORKED);
        EXPECT(bw_unlock(bus), BW_ERROR_FORKED);
        EXPECT(bw_device_open(bus, &settings, &own_device), BW_ERROR_FORKED);
        EXPECT(bw_bus_open("sim:imx8mp", NULL, NULL, &own_bus), BW_ERROR_FORKED);
        EXPECT(bw_message_free(message), BW_ERROR_FORKED);
        EXPECT(bw_prepared_free(prepared), BW_ERROR_FORKED);
        EXPECT(bw_device_close(device), BW_ERROR_FORKED);
        EXPECT(bw_bus_close(bus), BW_ERROR_FORKED);
    }
    return 0;
}

static void parents(void)
{
    EXPECT(bw_exchange(device, tx, rx, 4), BW_OK);
    EXPECT(bw_prepared_run(prepared, NULL), BW_OK);
}

static int ended(pid_t child, int options)
{
    int status = 0;
    pid_t pid = waitpid(child, &status, options);

    if (pid == 0)
        return 0;
    if (pid != child || status != 0) {
        fprintf(stderr, "the child ended with %#x\n", status);
        _exit(1);
    }
    return 1;
}

int main(void)
{
    static char stack[1 << 16] __attribute__((aligned(16)));
    bw_settings settings = {.size = sizeof settings, .speed_hz = 20000000};
    int round;
    pid_t child;

    alarm(50);
    EXPECT(bw_bus_open("sim:imx8mp", NULL, NULL, &bus), BW_OK);
    EXPECT(bw_device_open(bus, &settings, &device), BW_OK);
    EXPECT(bw_prepare(device, &transfer, 1, &prepared), BW_OK);
    EXPECT(bw_message_new(device, &transfer, 1, NULL, NULL, &message), BW_OK);
    for (round = 0; round < ROUNDS; round++) {
        parents();
        child = vfork();
        if (child == 0)
            _exit(refused(NULL));
        ended(child, 0);
        parents();
        child = clone(refused, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
        while (!ended(child, WNOHANG))
            parents();
    }
    /* Neither queued nor freed by the children. */
    EXPECT(bw_submit(message), BW_OK);
    EXPECT(bw_wait(message, NULL), BW_OK);
    EXPECT(bw_message_free(message), BW_OK);
    EXPECT(bw_prepared_free(prepared), BW_OK);
    EXPECT(bw_device_close(device), BW_OK);
    EXPECT(bw_bus_close(bus), BW_OK);
    puts("ok");
    return 0;
}
