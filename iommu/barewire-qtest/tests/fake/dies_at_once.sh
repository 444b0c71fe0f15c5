#!/bin/sh
# Prints a good version, and ends at once with a complaint.
if [ "$1" = --version ]; then
    echo "QEMU emulator version 7.2.0"
    exit 0
fi
echo "first line" >&2
echo "no machine today" >&2
exit 3
