/* Threads that share a bus: one closes it under the others, one unlocks what another locked, one ends with a lock. */
#include "expect.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define THREADS 3

static bw_bus *bus;
static bw_device *device;
static atomic_int ran, closed, called;

static void open_all(const char *name)
{
    bw_settings settings = {.size = sizeof settings, .speed_hz = 20000000};

    EXPECT(bw_bus_open(name, NULL, NULL, &bus), BW_OK);
    EXPECT(bw_device_open(bus, &settings, &device), BW_OK);
}

static void *use_it(void *kind)
{
    uint8_t tx[4] = {0x9f}, rx[4];
    bw_transfer transfer = {.tx = tx, .rx = rx, .len = 4};
    bw_prepared *prepared = NULL;
    bw_error error;

    if (kind && bw_prepare(device, &transfer, 1, &prepared) == BW_ERROR_CLOSED)
        goto end;
    do {
        error = kind ? bw_prepared_run(prepared, NULL) : bw_sync(device, &transfer, 1, NULL);
        atomic_fetch_add(&ran, 1);
    } while (error == BW_OK);
    EXPECT(error, BW_ERROR_CLOSED);
    if (kind)
        EXPECT(bw_prepared_free(prepared), BW_OK);
end:
    atomic_fetch_add(&closed, 1);
    return NULL;
}

static int on_ran(void *user, bw_message *message, bw_error result, size_t length)
{
    (void)user;
    (void)message;
    (void)length;
    if (result != BW_OK && result != BW_ERROR_CLOSED)
        abort();
    atomic_fetch_add(&called, 1);
    return BW_AGAIN;
}

static void *submit_it(void *unused)
{
    static uint8_t tx[THREADS][4], rx[THREADS][4];
    static atomic_int next;
    int mine = atomic_fetch_add(&next, 1) % THREADS;
    bw_transfer transfer = {.tx = tx[mine], .rx = rx[mine], .len = 4};
    bw_message *message;

    (void)unused;
    if (bw_message_new(device, &transfer, 1, on_ran, NULL, &message) != BW_OK)
        return NULL;
    if (bw_submit(message) == BW_OK) {
        /* It is queued again and again, until the bus is closed: in its last run, or before it. */
        bw_error error = bw_wait(message, NULL);

        if (error != BW_OK)
            EXPECT(error, BW_ERROR_CLOSED);
        atomic_fetch_add(&closed, 1);
    }
    EXPECT(bw_message_free(message), BW_OK);
    return NULL;
}

static void close_under(const char *name, void *(*use)(void *), atomic_int *progress)
{
    pthread_t threads[THREADS];
    int i;

    open_all(name);
    atomic_store(progress, 0);
    atomic_store(&closed, 0);
    for (i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, use, i % 2 ? &bus : NULL);
    while (atomic_load(progress) < 100)
        ;
    EXPECT(bw_bus_close(bus), BW_OK);
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    EXPECT(bw_bus_close(bus), BW_ERROR_CLOSED);
    EXPECT(bw_device_close(device), BW_OK);
    EXPECT(bw_device_close(device), BW_ERROR_CLOSED);
}

static void *unlock_anothers(void *unused)
{
    EXPECT(bw_unlock(bus), BW_ERROR_NOT_LOCKED);
    EXPECT(bw_try_lock(bus), BW_ERROR_BUSY);
    return unused;
}

static void *end_with_a_lock(void *unused)
{
    EXPECT(bw_lock(bus), BW_OK);
    EXPECT(bw_lock(bus), BW_ERROR_WOULD_DEADLOCK);
    return unused;
}

static void in_thread(void *(*body)(void *))
{
    pthread_t thread;

    pthread_create(&thread, NULL, body, NULL);
    pthread_join(thread, NULL);
}

int main(void)
{
    uint8_t byte = 0;
    int i;

    for (i = 0; i < 5; i++) {
        close_under("null:", use_it, &ran);
        close_under("sim:imx8mp", use_it, &ran);
        close_under("null:", submit_it, &called);
        close_under("sim:imx8mp", submit_it, &called);
    }
    open_all("null:");
    EXPECT(bw_lock(bus), BW_OK);
    in_thread(unlock_anothers);
    EXPECT(bw_exchange(device, &byte, NULL, 1), BW_OK);
    EXPECT(bw_unlock(bus), BW_OK);
    EXPECT(bw_unlock(bus), BW_ERROR_NOT_LOCKED);
    in_thread(end_with_a_lock);
    EXPECT(bw_exchange(device, &byte, NULL, 1), BW_OK);
    EXPECT(bw_lock(bus), BW_OK);
    EXPECT(bw_bus_close(bus), BW_OK);
    EXPECT(bw_unlock(bus), BW_ERROR_CLOSED);
    EXPECT(bw_device_close(device), BW_OK);
    puts("ok");
    return 0;
}
