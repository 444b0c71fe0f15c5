/* Runs an operation of 4 bytes on the null bus as often as asked, for callgrind: count OPERATION TIMES. The difference of
 * two runs, divided by the difference of their times, is what one operation costs. */
#include <barewire.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    uint8_t tx[4] = {0x9f}, rx[4];
    bw_settings settings = {.size = sizeof settings, .speed_hz = 1000000};
    bw_transfer transfer = {.tx = tx, .rx = rx, .len = 4};
    bw_bus *bus;
    bw_device *device;
    bw_prepared *prepared;
    long times = argc > 2 ? atol(argv[2]) : 0;
    int wrong = 0;

    if (argc < 3 || bw_bus_open("null:", NULL, NULL, &bus) || bw_device_open(bus, &settings, &device) ||
        bw_prepare(device, &transfer, 1, &prepared))
        return 2;
    if (strcmp(argv[1], "prepared") == 0)
        while (times-- > 0)
            wrong |= bw_prepared_run(prepared, NULL);
    else if (strcmp(argv[1], "sync") == 0)
        while (times-- > 0)
            wrong |= bw_sync(device, &transfer, 1, NULL);
    else if (strcmp(argv[1], "exchange") == 0)
        while (times-- > 0)
            wrong |= bw_exchange(device, tx, rx, 4);
    else
        wrong = 2;
    bw_prepared_free(prepared);
    bw_device_close(device);
    bw_bus_close(bus);
    return wrong;
}
