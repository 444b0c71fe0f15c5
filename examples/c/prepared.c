/* Samples an MCP3008 with a prepared message: it is validated once and run a thousand times, over buffers that stay. */
#include <barewire.h>
#include <stdio.h>
#include <stdlib.h>

#define SAMPLES 1000

static void must(bw_error error, const char *doing)
{
    if (error != BW_OK) {
        fprintf(stderr, "%s: %s: %s\n", doing, bw_error_name(error), bw_last_error());
        exit(1);
    }
}

int main(void)
{
    /* Start bit; single-ended, channel 0; the ten bits come in the last two bytes. */
    uint8_t tx[3] = {0x01, 0x80, 0x00};
    uint8_t rx[3] = {0};
    /* The chip wants 270 ns between two conversions, which the board's models check. */
    bw_settings settings = {.size = sizeof settings, .speed_hz = 1000000, .cs_inactive_ns = 270};
    bw_transfer transfer = {.tx = tx, .rx = rx, .len = sizeof tx};
    bw_statistics counted = {.size = sizeof counted};
    bw_simulated simulated = {.size = sizeof simulated};
    bw_bus *bus;
    bw_device *device;
    bw_prepared *sample;
    unsigned least = 1023, most = 0;
    int i;

    must(bw_bus_open("sim:rpi3", NULL, NULL, &bus), "open the bus");
    must(bw_device_open(bus, &settings, &device), "open the device");
    must(bw_prepare(device, &transfer, 1, &sample), "prepare the message");
    must(bw_set_counting(bus, 1), "count");
    for (i = 0; i < SAMPLES; i++) {
        unsigned value;

        must(bw_prepared_run(sample, NULL), "sample");
        value = (rx[1] & 3u) << 8 | rx[2];
        if (value < least)
            least = value;
        if (value > most)
            most = value;
        /* The next channel: the bytes to send are read at each run. */
        tx[1] = (uint8_t)(0x80 | ((i + 1) % 8) << 4);
    }
    must(bw_get_statistics(bus, &counted), "read the statistics");
    must(bw_get_simulated(bus, &simulated), "read the board's figures");
    printf("%llu messages, values %u to %u, %llu us of the board's time, %llu violations\n",
           (unsigned long long)counted.messages, least, most,
           (unsigned long long)(simulated.virtual_ns / 1000),
           (unsigned long long)simulated.violations);
    must(bw_prepared_free(sample), "free the message");
    must(bw_device_close(device), "close the device");
    must(bw_bus_close(bus), "close the bus");
    return counted.messages == SAMPLES && simulated.violations == 0 ? 0 : 1;
}
