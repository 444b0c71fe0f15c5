/* What callbacks do: a message frees itself, and calls that would wait for the callback are refused. */
#include <barewire.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static bw_bus *bus;
static bw_device *device;
static bw_message *messages[3];
static sem_t submitted, ended;
static pthread_t submitter;

#define EXPECT(call, code)                                                                                             \
    do {                                                                                                               \
        bw_error got_ = (call);                                                                                        \
        if (got_ != (code)) {                                                                                          \
            fprintf(stderr, "%d: %s: %s, not %s: %s\n", __LINE__, #call, bw_error_name(got_), #code, bw_last_error()); \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

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
    puts("ok");
    return 0;
}
