/* Loads the library, submits a message that is queued again for ever, and unloads the library under its worker. */
#include <barewire.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int called;

static int on_ran(void *user, bw_message *message, bw_error result, size_t length)
{
    (void)user;
    (void)message;
    (void)result;
    (void)length;
    atomic_fetch_add(&called, 1);
    return BW_AGAIN;
}

#define FUNCTION(name) __typeof__(&name) name##_ = (__typeof__(&name))dlsym(library, #name)

int main(int argc, char **argv)
{
    static uint8_t tx[4] = {0x9f}, rx[4];
    bw_transfer transfer = {.tx = tx, .rx = rx, .len = 4};
    bw_settings settings = {.size = sizeof settings, .speed_hz = 20000000};
    void *library = dlopen(argc > 1 ? argv[1] : "libbarewire.so.0", RTLD_NOW);
    bw_bus *bus;
    bw_device *device;
    bw_message *message;
    int before;

    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    FUNCTION(bw_bus_open);
    FUNCTION(bw_device_open);
    FUNCTION(bw_message_new);
    FUNCTION(bw_submit);
    if (bw_bus_open_("sim:imx8mp", NULL, NULL, &bus) || bw_device_open_(bus, &settings, &device) ||
        bw_message_new_(device, &transfer, 1, on_ran, NULL, &message) || bw_submit_(message))
        return 1;
    while (atomic_load(&called) < 10)
        usleep(100);
    if (dlclose(library) != 0)
        return 1;
    before = atomic_load(&called);
    while (atomic_load(&called) < before + 10)
        usleep(100);
    puts("ok");
    return 0;
}
