/* Runs a vendor's driver, unmodified, on a simulated board: w25q.c asks for two callbacks, and each is one call of
 * barewire's. */
#include <barewire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "w25q.h"

struct port {
    bw_bus *bus;
    bw_device *device;
};

static int transfer(void *context, const uint8_t *tx, uint8_t *rx, size_t len)
{
    struct port *port = context;

    return bw_exchange(port->device, tx, rx, len) == BW_OK ? 0 : -1;
}

static void delay_us(void *context, uint32_t us)
{
    struct port *port = context;

    bw_delay_ns(port->bus, (uint64_t)us * 1000);
}

static void must(bw_error error, const char *doing)
{
    if (error != BW_OK) {
        fprintf(stderr, "%s: %s: %s\n", doing, bw_error_name(error), bw_last_error());
        exit(1);
    }
}

int main(void)
{
    bw_settings settings = {.size = sizeof settings, .speed_hz = 20000000};
    bw_simulated simulated = {.size = sizeof simulated};
    struct port port;
    struct w25q flash = {.transfer = transfer, .delay_us = delay_us, .context = &port};
    uint8_t written[1000], read[sizeof written];
    size_t i;
    int status;

    must(bw_bus_open("sim:imx8mp", NULL, NULL, &port.bus), "open the bus");
    must(bw_device_open(port.bus, &settings, &port.device), "open the device");
    for (i = 0; i < sizeof written; i++)
        written[i] = (uint8_t)(i * 7 + i / 256);
    if ((status = w25q_init(&flash)) || (status = w25q_erase_sector(&flash, 0x10000)) ||
        (status = w25q_program(&flash, 0x10003, written, sizeof written)) ||
        (status = w25q_read(&flash, 0x10003, read, sizeof read))) {
        fprintf(stderr, "the driver: %d: %s\n", status, bw_last_error());
        return 1;
    }
    must(bw_get_simulated(port.bus, &simulated), "read the board's figures");
    printf("%u MiB, %zu bytes %s, %llu us of the board's time, %llu violations\n",
           flash.capacity >> 20, sizeof written,
           memcmp(written, read, sizeof read) == 0 ? "verified" : "WRONG",
           (unsigned long long)(simulated.virtual_ns / 1000),
           (unsigned long long)simulated.violations);
    must(bw_device_close(port.device), "close the device");
    must(bw_bus_close(port.bus), "close the bus");
    return memcmp(written, read, sizeof read) == 0 && simulated.violations == 0 ? 0 : 1;
}
