/* What callbacks do: a message frees itself, calls that would wait for the callback are refused, and the callbacks of two
 * buses free each other's messages. */
#include "expect.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

static bw_bus *bus;
static bw_device *device;
static bw_message *messages[3];
static sem_t submitted, ended;
static pthread_t submitter;

static int on_ran(void *user, bw_message *message, bw_error result, size_t length)
{
    uint8_t byte = 0;

    /* The bus's thread may be here before bw_submit has returned, and until then that call uses the message. */
    if (!pthread_equal(pthread_self(), submitter))
        sem_wait(&submitted);
    EXPECT(result, BW_OK);
    if (length != 4 || message != *(bw_message **)user)
        exit(1);
    EXPECT(bw_exchange(device, &byte, NULL, 1), BW_ERROR_WOULD_DEADLOCK);
    EXPECT(bw_lock(bus), BW_ERROR_WOULD_DEADLOCK);
    EXPECT(bw_wait(message, NULL), BW_ERROR_WOULD_DEADLOCK);
    EXPECT(bw_cancel(message, NULL), BW_ERROR_WOULD_DEADLOCK);
    EXPECT(bw_submit(message), BW_ERROR_BUSY);
    EXPECT(bw_poll(message, NULL), BW_ERROR_PENDING);
    EXPECT(bw_message_free(message), BW_OK);
    EXPECT(bw_message_free(message), BW_ERROR_CLOSED);
    sem_post(&ended);
    return BW_DONE;
}

/* The callbacks of two buses, each in its bus's thread: both run when each frees the other's message. */
static bw_message *crossed[2];
static pthread_barrier_t both;

static int on_crossed(void *user, bw_message *message, bw_error result, size_t length)
{
    bw_message **other = user;

    (void)message;
    (void)length;
    EXPECT(result, BW_OK);
    pthread_barrier_wait(&both);
    EXPECT(bw_message_free(*other), BW_OK);
    sem_post(&ended);
    return BW_DONE;
}

static void crosswise(void)
{
    static uint8_t tx[4] = {0x9f}, rx[2][4];
    bw_settings settings = {.size = sizeof settings, .speed_hz = 20000000};
    bw_bus *buses[2];
    bw_device *devices[2];
    int i;

    pthread_barrier_init(&both, NULL, 2);
    for (i = 0; i < 2; i++) {
        bw_transfer transfer = {.tx = tx, .rx = rx[i], .len = 4};

        EXPECT(bw_bus_open("sim:imx8mp", NULL, NULL, &buses[i]), BW_OK);
        EXPECT(bw_device_open(buses[i], &settings, &devices[i]), BW_OK);
        EXPECT(bw_message_new(devices[i], &transfer, 1, on_crossed, &crossed[1 - i], &crossed[i]), BW_OK);
    }
    for (i = 0; i < 2; i++)
        EXPECT(bw_submit(crossed[i]), BW_OK);
    for (i = 0; i < 2; i++)
        sem_wait(&ended);
    for (i = 0; i < 2; i++) {
        EXPECT(bw_bus_close(buses[i]), BW_OK);
        EXPECT(bw_device_close(devices[i]), BW_OK);
    }
}

int main(void)
{
    static uint8_t tx[4] = {0x9f}, rx[3][4];
    bw_settings settings = {.size = sizeof settings, .speed_hz = 20000000};
    int i;

    submitter = pthread_self();
    sem_init(&submitted, 0, 0);
    sem_init(&ended, 0, 0);
    EXPECT(bw_bus_open("sim:imx8mp", NULL, NULL, &bus), BW_OK);
    EXPECT(bw_device_open(bus, &settings, &device), BW_OK);
    for (i = 0; i < 3; i++) {
        bw_transfer transfer = {.tx = tx, .rx = rx[i], .len = 4};

        EXPECT(bw_message_new(device, &transfer, 1, on_ran, &messages[i], &messages[i]), BW_OK);
        EXPECT(bw_submit(messages[i]), BW_OK);
        sem_post(&submitted);
        sem_wait(&ended);
        /* A callback within bw_submit has not waited for it. */
        sem_trywait(&submitted);
    }
    EXPECT(bw_bus_close(bus), BW_OK);
    EXPECT(bw_device_close(device), BW_OK);
    crosswise();
    puts("ok");
    return 0;
}
