/* Submits messages and goes on: the bus's worker runs them and calls back. One is submitted again by its callback. */
#include <barewire.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES 8
#define AGAIN 100

struct job {
    uint8_t tx[4];
    uint8_t rx[4];
    bw_message *message;
    atomic_int ran;
    atomic_int wrong;
    atomic_int more;
};

static void must(bw_error error, const char *doing)
{
    if (error != BW_OK) {
        fprintf(stderr, "%s: %s: %s\n", doing, bw_error_name(error), bw_last_error());
        exit(1);
    }
}

/* Called by the thread that ran the message. The buffers are ours until it returns. */
static int ran(void *user, bw_message *message, bw_error result, size_t length)
{
    static const uint8_t id[3] = {0xef, 0x40, 0x19};
    struct job *job = user;

    (void)message;
    if (result != BW_OK || length != 4 || memcmp(job->rx + 1, id, 3) != 0)
        atomic_fetch_add(&job->wrong, 1);
    atomic_fetch_add(&job->ran, 1);
    return atomic_fetch_sub(&job->more, 1) > 0 ? BW_AGAIN : BW_DONE;
}

int main(void)
{
    static struct job jobs[MESSAGES];
    bw_settings settings = {.size = sizeof settings, .speed_hz = 20000000};
    bw_bus *bus;
    bw_device *device;
    int i, sum = 0, wrong = 0;

    must(bw_bus_open("sim:imx8mp", NULL, NULL, &bus), "open the bus");
    must(bw_device_open(bus, &settings, &device), "open the device");
    for (i = 0; i < MESSAGES; i++) {
        struct job *job = &jobs[i];
        bw_transfer transfer = {.tx = job->tx, .rx = job->rx, .len = 4};

        job->tx[0] = 0x9f;
        job->more = i == 0 ? AGAIN : 0;
        must(bw_message_new(device, &transfer, 1, ran, job, &job->message), "make a message");
    }
    for (i = 0; i < MESSAGES; i++)
        must(bw_submit(jobs[i].message), "submit");
    for (i = 0; i < MESSAGES; i++) {
        must(bw_wait(jobs[i].message, NULL), "wait");
        must(bw_message_free(jobs[i].message), "free");
        sum += jobs[i].ran;
        wrong += jobs[i].wrong;
    }
    printf("%d messages ran, %d were wrong\n", sum, wrong);
    must(bw_device_close(device), "close the device");
    must(bw_bus_close(bus), "close the bus");
    return sum == MESSAGES + AGAIN && wrong == 0 ? 0 : 1;
}
