// SPDX-License-Identifier: GPL-2.0 OR MIT
/* spiregmap.c with its one line changed. */
#include "barewire_spi.h"
#define devm_regmap_init_spi(spi, config) devm_regmap_init_barewire(spi, config)
#include "spiregmap.c"
