# Instructions of clients in the kernel, with the kernel's driver of the controller and with this project's module, in one
# boot: under -icount shift=0 one is a nanosecond of the guest.
. /module-lib.sh

# told WHO PATH: the number on stdin. WHO is linux or ours.
case $(uname -r) in 6.12.*) KERNEL=-6.12 ;; *) KERNEL= ;; esac
told() { while read -r count; do say "COUNT $1-$2$KERNEL $count"; done; }
per_op() { sed -n "s/^END $1 .*per_op_ns=\([0-9.]*\).*/\1/p" /tmp/out; }
# by_driver NAME: what the last counting client of the kernel said of that kind of message, in the kernel's log.
by_driver() { dmesg | sed -n "s/.*spicount: $1 \([0-9]*\) .*/\1/p" | tail -n 1; }

# client MODULE [PARAMETER…]: counts in its probe.
client() {
	client=$1; shift
	echo "$client" >"/sys/bus/spi/devices/$device/driver_override"
	check "$who-$client" insmod "/m/$client.ko" "$@"
	rmmod "$client"
}

counted() {
	who=$1
	awaited /dev/mtd0
	check "$who-mtd" spibench mtd /dev/mtd0
	per_op mtd-pread1024 | told "$who" mtd-1024
	use_spidev
	NODE=${SPIDEV#spidev:}
	check "$who-spidev" spibench spidev "$NODE"
	per_op spidev-jedec4 | told "$who" spidev-4
	per_op spidev-read1024 | told "$who" spidev-1024
	# The clients in the kernel count in their probe.
	echo "$device" >/sys/bus/spi/drivers/spidev/unbind
	client spicount
	for name in sync-4 write-read-1+3 optimized-4; do by_driver "$name" | told "$who" "$name"; done
	if [ "$who" = ours ]; then
		client spiapi counts=1
		for name in run-4 try-run-4 shared-sync-4; do by_driver "$name" | told "$who" "$name"; done
		client spiregmap_barewire
	else
		client spiregmap
	fi
	by_driver regmap-read-1+3 | told "$who" regmap-read-1+3
	# None of them may be one that failed, or read another chip.
	if dmesg | grep 'spicount: [a-z]*-' | grep -qv "$ID"; then fail "$who-id" "$(dmesg | grep spicount: | tail -n 3)"; else pass "$who-id"; fi
	echo >"/sys/bus/spi/devices/$device/driver_override"
	[ -L "/sys/bus/spi/devices/$device/driver" ] || echo "$device" >/sys/bus/spi/drivers/spi-nor/bind
}

[ "$SIZE" = 2097152 ] && ID=bf2541 || ID=ef4019
bound
counted linux
insmod /m/barewire.ko
to_barewire bind
counted ours
echo "$DEVICE" >/sys/bus/$DRIVER_BUS/drivers/barewire/unbind
rmmod barewire
# Where nothing waits by interrupt: above 30 us on the wire, this is one processor's time against interrupts.
insmod /m/barewire.ko poll_limit_us=1000000
awaited /dev/mtd0
check polled-mtd spibench mtd /dev/mtd0
per_op mtd-pread1024 | told ours mtd-1024-polled
