#!/bin/sh
# Prints a good version, and then never connects to its socket. Its process number is left beside
# the flash file.
if [ "$1" = --version ]; then
    echo "QEMU emulator version 7.2.0"
    exit 0
fi
for argument in "$@"; do
    case $argument in
        *file=*) echo $$ > "${argument##*file=}.pid" ;;
    esac
done
echo "waiting for nobody" >&2
exec sleep 600
