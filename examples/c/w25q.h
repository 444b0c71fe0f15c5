/* A driver for W25Q flash chips as chip vendors ship them: it knows nothing of a bus, only two callbacks. */
#ifndef W25Q_H
#define W25Q_H

#include <stddef.h>
#include <stdint.h>

struct w25q {
    /* Selects the chip, clocks len bytes both ways, deselects it. 0 if it worked. tx or rx may be NULL. */
    int (*transfer)(void *context, const uint8_t *tx, uint8_t *rx, size_t len);
    void (*delay_us)(void *context, uint32_t us);
    void *context;
    uint32_t capacity;
};

enum { W25Q_OK = 0, W25Q_BUS = -1, W25Q_NO_CHIP = -2, W25Q_TIMEOUT = -3, W25Q_RANGE = -4 };

int w25q_init(struct w25q *flash);
int w25q_read(struct w25q *flash, uint32_t address, uint8_t *data, size_t len);
int w25q_erase_sector(struct w25q *flash, uint32_t address);
int w25q_program(struct w25q *flash, uint32_t address, const uint8_t *data, size_t len);

#endif
