#!/bin/sh
# flashrom, which has its own table of chips, writes two images one after the other to each part, and verifies each.
# usage: flashrom_parts.sh IMAGE [BAREWIRE]; with BAREWIRE by its serprog server, else by the nodes spidevNUMBER.0. Leaves
# the parts' images as NUMBER.image; the server keeps a part as NUMBER.bin
set -eu
noise=$1 barewire=${2:-}

# image FILE SIZE_KIB ROUND
image() {
  head -c "$2K" /dev/zero | tr '\0' '\377' >"$1"
  # First, across the first 64 KiB, in the middle, last: where erase blocks differ in size. In the second round every
  # other KiB is the first one's, so what is erased beside it must be written again.
  for at in 0 52 $(($2 / 2 - 8)) $(($2 - 24)); do
    for kib in 0 2 4 6 8 10 12 14 16 18 20 22; do
      dd if="$noise" of="$1" bs=1K count=1 conv=notrunc status=none skip=$kib seek=$((at + kib))
      dd if="$noise" of="$1" bs=1K count=1 conv=notrunc status=none skip=$((64 * $3 + kib + 1)) seek=$((at + kib + 1))
    done
  done
}

# write NUMBER SIZE_KIB PART CHIP
write() {
  for round in 0 1; do
    image "$1.image" "$2" "$round"
    if [ -z "$barewire" ]; then
      flashrom -p "linux_spi:dev=/dev/spidev$1.0,spispeed=20000" -c "$4" -w "$1.image"
      continue
    fi
    "$barewire" serve --quiet --serprog 127.0.0.1:0 --once --bus "sim:imx8mp,flash-part=$3,flash=$1.bin" 2>told &
    server=$!
    while ! grep -qs serprog told; do
      kill -0 "$server"
      sleep 0.1
    done
    # It reports on stderr each chip that it knows and an old PC could not map.
    flashrom -p "$(sed -n 's/.*flashrom -p //p' told)" -c "$4" -w "$1.image" 2>&1
    wait "$server"
    rm told
  done
}

write 0 8192 sst26vf064b "SST26VF064B(A)"
write 1 4096 mx25l3233f "MX25L3233F/MX25L3273E"
write 2 16384 bh25q128as "B.25Q128AS"
[ -n "$barewire" ] || write 3 32768 w25q256fv "W25Q256FV"
