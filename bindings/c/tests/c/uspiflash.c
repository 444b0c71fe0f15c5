/* Another project's driver, unmodified, on a simulated board: uspiflash (PyPI, Apache-2.0) generates usf.h, which
 * identifies flash chips by two hooks, a transfer and a delay. */
#include <barewire.h>
#include <stdio.h>
#include <string.h>

static bw_bus *bus;
static bw_device *device;
static unsigned transfers, delays;

static void delay_us(unsigned us)
{
    delays++;
    bw_delay_ns(bus, (uint64_t)us * 1000);
}

#define USF_DELAY_US(us) delay_us(us)
#define USF_IMPLEMENTATION
#include "usf.h"

static void transfer(void *context, const uint8_t *tx, uint8_t txlen, uint8_t *rx, uint8_t rxlen)
{
    transfers++;
    if (bw_write_then_read(context, tx, txlen, rx, rxlen) != BW_OK)
        fprintf(stderr, "%s\n", bw_last_error());
}

static char text[256];
static size_t used;

static void put(void *context, char ch)
{
    (void)context;
    if (used + 1 < sizeof text)
        text[used++] = ch;
}

int main(void)
{
    bw_settings settings = {.size = sizeof settings, .speed_hz = 10000000};
    bw_simulated simulated = {.size = sizeof simulated};
    usf_probe_result found;
    usf_bus chip;

    if (bw_bus_open("sim:imx8mp", NULL, NULL, &bus) || bw_device_open(bus, &settings, &device))
        return 2;
    chip.xfer = transfer;
    chip.ctx = device;
    if (usf_probe(&chip, &found) == 0)
        return 3;
    usf_name(&found.chip[0], 0, put, NULL);
    if (bw_get_simulated(bus, &simulated))
        return 2;
    printf("%s, %lu bytes, %u transfers, %u delays, %llu violations\n", text,
           (unsigned long)usf_size(&found.chip[0]), transfers, delays, (unsigned long long)simulated.violations);
    bw_device_close(device);
    bw_bus_close(bus);
    return usf_size(&found.chip[0]) == 32ul << 20 && delays > 0 && simulated.violations == 0 ? 0 : 4;
}
