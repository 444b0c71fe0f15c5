/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Short accesses to a chip for drivers in the kernel: prepared once, then run at the cost of the wire. docs/kernel.md, "The API".
 *
 * A chip whose controller the module `barewire` drives. Nothing is allocated, queued, counted or woken by a run. Messages of
 * others (spi_sync, spi_async, spi_bus_lock) may share the bus in any mixture, and so may this driver's own.
 *
 * Ordering
 * 1. Messages and runs of one context happen in the order in which it gave them. A run behind a spi_async of the same thread
 *    waits for it, and a try_run is refused meanwhile.
 * 2. No run happens between two messages of a holder of spi_bus_lock, but for the holder's own barewire_spi_run_locked. A run
 *    that another processor began before may still end behind the return of spi_bus_lock.
 */
#ifndef BAREWIRE_SPI_H
#define BAREWIRE_SPI_H

#include <linux/regmap.h>
#include <linux/spi/spi.h>

/* A chip that is prepared. It keeps the controller awake (a reference of runtime power management). */
struct barewire_spi;

/*
 * Prepares accesses of up to `max_len` bytes at `speed_hz` (0: the chip's own). May sleep. Anything else is as spi_setup left
 * it; after another spi_setup of the chip its handles are to be prepared anew.
 *
 * Errors: -ENODEV if another driver has the controller; -EMSGSIZE if `max_len` is 0 or takes more than 1 ms on the wire;
 * -ESHUTDOWN if the controller is being removed or sleeps with the system; -EINVAL for settings that the block does not
 * support; -ENOMEM; those of waking the controller.
 */
struct barewire_spi *barewire_spi_prepare(struct spi_device *spi, size_t max_len, u32 speed_hz);

/* Gives a handle up. No run of it may be under way. May sleep; fine after the controller is gone. NULL and errors are ignored. */
void barewire_spi_release(struct barewire_spi *prepared);

/* barewire_spi_prepare until the chip's driver is unbound. */
struct barewire_spi *devm_barewire_spi_prepare(struct spi_device *spi, size_t max_len, u32 speed_hz);

/*
 * Exchanges `len` bytes, 1 to `max_len`, under one chip select. Shortest with both buffers, apart from each other; without `tx`
 * zeros are sent, without `rx` what is received is dropped. Waits for its turn: in threads only. It polls, with preemption off,
 * if the bus is free; else it is a spi_sync.
 *
 * Errors: -EMSGSIZE for `len`; -EINVAL without a buffer, and for buffers that overlap in part; -ETIMEDOUT for a block that does not answer; -EIO for a lost word or a controller that was given up;
 * -ESHUTDOWN once the controller was unbound, and while the system sleeps.
 */
int barewire_spi_run(struct barewire_spi *prepared, const void *tx, void *rx, size_t len);

/* The same for the holder of spi_bus_lock, as spi_sync_locked. */
int barewire_spi_run_locked(struct barewire_spi *prepared, const void *tx, void *rx, size_t len);

/*
 * The same if the bus is free now. From any context but an NMI: hard interrupts, timers, under spin locks.
 *
 * Errors, beside those of barewire_spi_run: -EBUSY, with nothing done, if the bus is in use, locked, or has messages queued, or a
 * message left another chip selected; -EOPNOTSUPP for a chip whose setup, hold, inactive or word delay is above 10 us, or whose
 * clock is below 400 kHz.
 */
int barewire_spi_try_run(struct barewire_spi *prepared, const void *tx, void *rx, size_t len);

struct regmap *__devm_regmap_init_barewire(struct spi_device *spi, const struct regmap_config *config,
					   struct lock_class_key *lock_key, const char *lock_name);

/*
 * devm_regmap_init_spi over prepared accesses: a driver changes this one line. Accesses of up to 64 bytes with the register's
 * address are runs; longer ones are messages. The regmap is not for interrupts, since it waits for the bus.
 *
 * Errors: as barewire_spi_prepare, and regmap's.
 */
#define devm_regmap_init_barewire(spi, config) \
	__regmap_lockdep_wrapper(__devm_regmap_init_barewire, #config, spi, config)

#endif
