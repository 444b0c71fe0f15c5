#include "w25q.h"

#include <string.h>

#define PAGE 256u
#define HEAD 4u

static int command(struct w25q *flash, uint8_t opcode)
{
    return flash->transfer(flash->context, &opcode, NULL, 1) ? W25Q_BUS : W25Q_OK;
}

static int wait_idle(struct w25q *flash, uint32_t timeout_us)
{
    uint32_t waited;

    for (waited = 0; waited <= timeout_us; waited += 50) {
        const uint8_t tx[2] = {0x05, 0};
        uint8_t rx[2];

        if (flash->transfer(flash->context, tx, rx, 2))
            return W25Q_BUS;
        if (!(rx[1] & 1))
            return W25Q_OK;
        flash->delay_us(flash->context, 50);
    }
    return W25Q_TIMEOUT;
}

static void head(uint8_t *buffer, uint8_t opcode, uint32_t address)
{
    buffer[0] = opcode;
    buffer[1] = (uint8_t)(address >> 16);
    buffer[2] = (uint8_t)(address >> 8);
    buffer[3] = (uint8_t)address;
}

int w25q_init(struct w25q *flash)
{
    const uint8_t tx[4] = {0x9f};
    uint8_t rx[4];

    if (flash->transfer(flash->context, tx, rx, 4))
        return W25Q_BUS;
    if (rx[1] != 0xef || rx[3] < 0x10 || rx[3] > 0x1f)
        return W25Q_NO_CHIP;
    flash->capacity = 1u << rx[3];
    return W25Q_OK;
}

int w25q_read(struct w25q *flash, uint32_t address, uint8_t *data, size_t len)
{
    uint8_t tx[HEAD + PAGE] = {0}, rx[HEAD + PAGE];

    while (len > 0) {
        size_t part = len < PAGE ? len : PAGE;

        head(tx, 0x03, address);
        if (flash->transfer(flash->context, tx, rx, HEAD + part))
            return W25Q_BUS;
        memcpy(data, rx + HEAD, part);
        address += (uint32_t)part;
        data += part;
        len -= part;
    }
    return W25Q_OK;
}

int w25q_erase_sector(struct w25q *flash, uint32_t address)
{
    uint8_t tx[HEAD];
    int status = command(flash, 0x06);

    if (status)
        return status;
    head(tx, 0x20, address);
    if (flash->transfer(flash->context, tx, NULL, HEAD))
        return W25Q_BUS;
    return wait_idle(flash, 400000);
}

int w25q_program(struct w25q *flash, uint32_t address, const uint8_t *data, size_t len)
{
    uint8_t tx[HEAD + PAGE];

    while (len > 0) {
        size_t room = PAGE - address % PAGE;
        size_t part = len < room ? len : room;
        int status = command(flash, 0x06);

        if (status)
            return status;
        head(tx, 0x02, address);
        memcpy(tx + HEAD, data, part);
        if (flash->transfer(flash->context, tx, NULL, HEAD + part))
            return W25Q_BUS;
        status = wait_idle(flash, 3000);
        if (status)
            return status;
        address += (uint32_t)part;
        data += part;
        len -= part;
    }
    return W25Q_OK;
}
