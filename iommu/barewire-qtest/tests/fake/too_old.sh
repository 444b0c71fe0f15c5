#!/bin/sh
# A QEMU of another time.
echo "QEMU emulator version 6.2.0 (Debian 1:6.2+dfsg-2)"
