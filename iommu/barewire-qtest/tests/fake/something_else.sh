#!/bin/sh
# No QEMU at all.
echo "GNU something, version 5"
