# What one operation counts between marks (guests/priced.c), by the kernel's drivers, by this project's module in their
# place, and by the registers mapped into a program: in one boot.
. /module-lib.sh
BYTES="4 64 1024"

# kernels PREFIX: the paths of the kernel, with whichever driver the controller has.
kernels() {
	awaited /dev/mtd0
	check "$1mtd" spipriced mtd /dev/mtd0 "$1mtd" $BYTES
	use_spidev
	check "$1spidev" spipriced spidev "${SPIDEV#spidev:}" 20000000 "$1spidev" $BYTES
	# These lengths and rates are those of published figures.
	[ -n "$1" ] || check spidev-lengths spipriced spidev "${SPIDEV#spidev:}" 20000000 spidev 1 2 3
	echo "$device" >/sys/bus/spi/drivers/spidev/unbind
	client spipriced_sync "name=$1spi_sync"
	[ -z "$1" ] || client spipriced_run
	echo >"/sys/bus/spi/devices/$device/driver_override"
	[ -L "/sys/bus/spi/devices/$device/driver" ] || echo "$device" >/sys/bus/spi/drivers/spi-nor/bind
}
# client MODULE [PARAMETER…]: prices in its probe.
client() {
	client=$1; shift
	echo "$client" >"/sys/bus/spi/devices/$device/driver_override"
	check "$client" spipriced on0 insmod "/m/$client.ko" "$@"
	[ -L "/sys/bus/spi/devices/$device/driver" ] || fail "$client-bound" "$(dmesg | tail -n 2)"
	rmmod "$client"
}

bound
# What the kernel takes the block's clock for: it decides what is polled.
say "clock: $(cat "/sys/kernel/debug/clk/$CLOCK/clk_rate" 2>/dev/null)"
kernels ""
insmod /m/barewire.ko
to_barewire bind
kernels module-
echo "$DEVICE" >/sys/bus/$DRIVER_BUS/drivers/barewire/unbind
echo >"/sys/bus/$DRIVER_BUS/devices/$DEVICE/driver_override"
rmmod barewire
check mapped spipriced on0 priced "$(mem "$BANK" exclusive)" mapped
check mapped-locked spipriced on0 priced "$(mem "$BANK")" locked
