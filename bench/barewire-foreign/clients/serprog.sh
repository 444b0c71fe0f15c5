#!/bin/sh
# flashrom writes, reads and verifies by serprog: no library is loaded into it.
# usage: serprog.sh BAREWIRE FLASH_FILE IMAGE
set -eu
barewire=$1 flash=$2 image=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$barewire" serve --quiet --serprog 127.0.0.1:0 --once --bus "sim:rpi3,flash=$flash" --json \
  >"$dir/out" 2>"$dir/told" &
server=$!
while ! grep -qs serprog "$dir/told"; do
  kill -0 "$server"
  sleep 0.1
done
programmer=$(sed -n 's/.*flashrom -p //p' "$dir/told")
# It reports on stderr each chip that it knows and an old PC could not map.
if ! flashrom -p "$programmer" -w "$image" >"$dir/log" 2>&1; then
  cat "$dir/log"
  exit 1
fi
wait "$server"
cmp "$flash" "$image"
cat "$dir/out"
