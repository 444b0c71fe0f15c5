/* Reads a flash chip's JEDEC id.
 *
 *   cc $(pkg-config --cflags --libs barewire) examples/jedec.c -o jedec
 *   ./jedec                      the simulated board sim:imx8mp
 *   ./jedec spidev:/dev/spidev0.0
 */
#include <barewire.h>
#include <stdio.h>

static int failed(const char *doing, bw_error error)
{
    fprintf(stderr, "%s: %s: %s\n", doing, bw_error_name(error), bw_last_error());
    return 1;
}

static void note(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "note: %s\n", text);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "sim:imx8mp";
    const uint8_t tx[4] = {0x9f};
    uint8_t rx[4] = {0};
    bw_settings settings = {.size = sizeof settings, .speed_hz = 10000000};
    bw_bus *bus = NULL;
    bw_device *device = NULL;
    int status = 1;
    bw_error error = bw_bus_open(name, note, NULL, &bus);

    if (error != BW_OK)
        return failed("open the bus", error);
    if ((error = bw_device_open(bus, &settings, &device)) != BW_OK) {
        failed("open the device", error);
    } else if ((error = bw_exchange(device, tx, rx, sizeof rx)) != BW_OK) {
        failed("read the id", error);
    } else {
        printf("%02x %02x %02x\n", rx[1], rx[2], rx[3]);
        status = 0;
    }
    if (device)
        bw_device_close(device);
    if ((error = bw_bus_close(bus)) != BW_OK)
        status = failed("close the bus", error);
    return status;
}
