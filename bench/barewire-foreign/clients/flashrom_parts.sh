#!/bin/sh
# flashrom, which has its own table of chips, writes two images one after the other to each part, and verifies each.
# usage: flashrom_parts.sh IMAGE; the parts are behind the nodes below, their images are left as NUMBER.image
set -eu
noise=$1

# write NUMBER SIZE_KIB CHIP
write() {
  for round in 0 1; do
    head -c "$2K" /dev/zero | tr '\0' '\377' >"$1.image"
    # First, across the first 64 KiB, in the middle, last: where erase blocks differ in size. Of the second round
    # every other KiB is the first one's, so what is erased beside it must be written again.
    for at in 0 52 $(($2 / 2 - 8)) $(($2 - 24)); do
      for kib in 0 2 4 6 8 10 12 14 16 18 20 22; do
        dd if="$noise" of="$1.image" bs=1K count=1 conv=notrunc status=none skip=$kib seek=$((at + kib))
        dd if="$noise" of="$1.image" bs=1K count=1 conv=notrunc status=none skip=$((64 * round + kib + 1)) seek=$((at + kib + 1))
      done
    done
    flashrom -p "linux_spi:dev=/dev/spidev$1.0,spispeed=20000" -c "$3" -w "$1.image"
  done
}

write 0 8192 "SST26VF064B(A)"
write 1 4096 "MX25L3233F/MX25L3273E"
write 2 16384 "B.25Q128AS"
write 3 32768 "W25Q256FV"
