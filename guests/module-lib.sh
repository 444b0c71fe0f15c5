# What checks of the module share.
driver() { readlink "/sys/bus/$DRIVER_BUS/devices/$DEVICE/driver" | sed 's|.*/||'; }

# mtd_reads NAME: the flash's begin by the kernel's flash driver, in small pieces.
mtd_reads() {
	rm -f /tmp/mtd
	dd if=/dev/mtd0 of=/tmp/mtd bs=4096 count=256 2>&1 | grep -v records
	part 0 1048576 /ref
	same "$1" /tmp/mtd /tmp/part
}

# mtd_writes NAME OFFSET LENGTH: the begin of /new, by mtdblock, which erases; the host looks at the flash.
mtd_writes() {
	dd if=/new of=/tmp/write bs=4096 count=$(($3 / 4096)) 2>/dev/null
	check "$1" dd if=/tmp/write of=/dev/mtdblock0 bs=4096 seek=$(($2 / 4096)) conv=fsync,notrunc && say "WROTE $2 $3"
	dd if=/dev/mtd0 of=/tmp/back bs=4096 skip=$(($2 / 4096)) count=$(($3 / 4096)) 2>/dev/null
	same "$1-reads" /tmp/back /tmp/write
}

# to_barewire NAME, to_linux NAME: the controller's driver.
to_barewire() {
	unbind
	echo barewire >"/sys/bus/$DRIVER_BUS/devices/$DEVICE/driver_override"
	check "$1" sh -c "echo $DEVICE >/sys/bus/$DRIVER_BUS/drivers/barewire/bind"
	[ "$(driver)" = barewire ] || fail "$1" "bound to $(driver)"
}
to_linux() {
	echo "$DEVICE" >/sys/bus/$DRIVER_BUS/drivers/barewire/unbind
	echo >"/sys/bus/$DRIVER_BUS/devices/$DEVICE/driver_override"
	check "$1" sh -c "echo $DEVICE >/sys/bus/$DRIVER_BUS/drivers/$DRIVER/bind"
}

# spidev_reads NAME [HZ]: the flash's begin by spidev. spibench's first message ends the chip's mode of 4-byte addresses.
spidev_reads() {
	rm -f /tmp/spidev1m.bin
	spibench spidev "$NODE" $2 >/dev/null 2>&1
	head -c 1024000 /ref >/tmp/part-of-ref
	same "$1" /tmp/spidev1m.bin /tmp/part-of-ref
	part 0 1048576 /ref
}

# Runtime power management of the controller.
POWER=/sys/bus/$DRIVER_BUS/devices/$DEVICE/power
status() { cat $POWER/runtime_status; }
asleep() { tries=0; until [ "$(status)" = suspended ] || [ $tries -ge 100 ]; do sleep 0.1; tries=$((tries + 1)); done; [ "$(status)" = suspended ]; }

# The kernel has nothing to complain about: not in this project's code, nor in the SPI core's.
no_complaints() {
	dmesg | grep -A40 'BUG:\|WARNING:\|Oops\|INFO: ' | grep -v 'Modules linked' | grep 'bw_\|spi_\|spidev\|mutex\|BUG:\|Oops' >/tmp/complaints
	if [ -s /tmp/complaints ]; then fail kernel-log "$(head -n 3 /tmp/complaints)"; else pass kernel-log; fi
}
