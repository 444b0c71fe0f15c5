# This project's module in place of the kernel's driver, and back. Clients are the kernel's.
. /module-lib.sh

# The cases of spidev's interface that fail, by a program that was written for the kernel's.
cases() {
	spidev_abi "$NODE" | sed 's/ (errno .*//; s/^\([0-9]* checks, [0-9]* failed\)/total: \1/'
}

# What the host's file has, read by the kernel's own driver of the controller.
bound && awaited /dev/mtd0
mtd_reads linux-mtd
# 6.1's own driver of PL022 does not survive them (an Oops in pl022_transfer_one_message), and they are not of sabrelite's chip.
[ "$DRIVER" != ssp-pl022 ] && [ "$SIZE" = 33554432 ] && CASES=1
if [ -n "$CASES" ]; then
	use_spidev
	NODE=${SPIDEV#spidev:}
	cases >/tmp/linux-cases
	use_mtd
fi

# The module takes no controller by itself.
check load insmod /m/barewire.ko
if [ -L "/sys/bus/$DRIVER_BUS/devices/$DEVICE/driver" ] && [ "$(driver)" = "$DRIVER" ]; then pass takes-nothing-unasked
else fail takes-nothing-unasked "bound to $(driver)"; fi
# And none that another driver has.
refused busy-refused 'nvalid\|busy\|No such' sh -c "echo $DEVICE >/sys/bus/$DRIVER_BUS/drivers/barewire/bind"

to_barewire bind
awaited /dev/mtd0
mtd_reads mtd
mtd_writes mtd-write $((SIZE / 2)) 65536
mtd_reads mtd-after-write

# Linux's own tests of mtd, on a part of the flash that is written as the host expects it afterwards. The chip of 2 MiB is written
# in words of two bytes, which takes them minutes.
if [ "$SIZE" = 33554432 ] && [ -e /m/mtd_readtest.ko ]; then
	check mtd-part mtdpart /dev/mtd0 25165824 262144
	awaited /dev/mtd1
	# Each has the functions of mtd_test.c, which only one of them may export.
	for test in read speed stress; do
		[ $test = stress ] && count=count=300 || count=
		check mtd-${test}test insmod /m/mtd_${test}test.ko dev=1 $count
		dmesg | grep "mtd_${test}test: finished" | grep -qv 'with errors' || fail "mtd-${test}test" "$(dmesg | grep "mtd_${test}test" | tail -n 2)"
		rmmod "mtd_${test}test"
	done
	head -c 262144 /new >/tmp/write
	check mtd-part-write dd if=/tmp/write of=/dev/mtdblock1 bs=4096 conv=fsync,notrunc && say "WROTE 25165824 262144"
fi

# spidev, judged by programs that know the kernel's drivers alone.
use_spidev
NODE=${SPIDEV#spidev:}
spidev_reads spidev-read
# Long transfers sleep for the interrupt: at 1 MHz on every block.
interrupts() { sed -n "s/^ *[0-9]*: *\(.*\)$DEVICE.*/\1/p" /proc/interrupts | awk '{ for (i = 1; i <= NF && $i ~ /^[0-9]+$/; i++) all += $i } END { print all + 0 }'; }
before=$(interrupts)
spidev_reads interrupts-read 1000000
after=$(interrupts)
if [ "$after" -gt "$before" ]; then pass interrupts; else fail interrupts "$before before, $after after: $(grep 'spi\|ssp' /proc/interrupts)"; fi
check spidev-two-readers spimessage read "$NODE" /tmp/part 2
check spidev-faults spichecks faults "$NODE"
# In mode 3 PL022 sends two bytes in a frame of 16 bits, of which QEMU's flash takes one.
if [ "$DRIVER" = ssp-pl022 ]; then skip spidev-settings "QEMU's flash does not take this block's frames of mode 3"
else check spidev-settings spichecks settings "$NODE"; fi
# Of the cases of spidev's interface, all that go well with the kernel's own driver, and maybe more.
if [ -n "$CASES" ]; then
	cases >/tmp/cases
	# One differs: spidev hides SPI_CS_HIGH of a GPIO that the SPI core itself got (docs/kernel.md).
	grep -vxF -f /tmp/linux-cases /tmp/cases | grep -v '^total\|SPI_IOC_RD_MODE.* == SPI_MODE_3$' >/tmp/worse
	if [ -s /tmp/worse ]; then fail spidev-cases "$(head -n 3 /tmp/worse)"; else pass spidev-cases; fi
	say "$(tail -n 1 /tmp/linux-cases) with $DRIVER, $(tail -n 1 /tmp/cases) with barewire"
else
	skip spidev-cases "there is nothing to compare with on this board"
fi

# Power: after its delay the block sleeps with its clock off, and the next message is right.
enabled() { sed -n "s/^ *$CLOCK  *\([0-9]*\) .*/\1/p" /sys/kernel/debug/clk/clk_summary; }
echo 50 >$POWER/autosuspend_delay_ms
if asleep; then pass autosuspend; else fail autosuspend "$(status)"; fi
if [ -n "$CLOCK" ]; then
	if [ "$(enabled)" = 0 ]; then pass clock-off; else fail clock-off "$CLOCK is enabled $(enabled) times"; fi
fi
echo 5000 >$POWER/autosuspend_delay_ms
check read-after-suspend spimessage read "$NODE" /tmp/part
if [ "$(status)" = active ]; then pass active; else fail active "$(status)"; fi
if [ -n "$CLOCK" ]; then
	if [ "$(enabled)" -gt 0 ]; then pass clock-on; else fail clock-on "$CLOCK is not enabled"; fi
fi
# Awake whenever it is used, with sleeps between.
echo 50 >$POWER/autosuspend_delay_ms
for _ in 1 2 3 4 5; do asleep; spimessage read "$NODE" /tmp/part >/dev/null 2>/tmp/err || break; done
if [ -s /tmp/err ]; then fail sleeps-and-reads "$(errors /tmp/err)"; else pass sleeps-and-reads; fi

# Unbound, bound anew, and removed, each under load: a reader that gets an error once its chip is gone.
under_load() {
	spimessage forever "$NODE" >/dev/null 2>&1 &
	load=$!
	sleep 0.05
	"$@"
	ended_within $load 20 || return 1
}
again() {
	n=$1; shift; done=0
	while [ $done -lt $n ]; do
		"$@" || break
		done=$((done + 1))
	done
}
rebound() {
	under_load sh -c "echo $DEVICE >/sys/bus/$DRIVER_BUS/drivers/barewire/unbind" || return 1
	echo "$DEVICE" >/sys/bus/$DRIVER_BUS/drivers/barewire/bind || return 1
	use_spidev; awaited "$NODE"
}
reloaded() {
	under_load rmmod barewire || return 1
	# The controller is still the module's by its driver_override.
	insmod /m/barewire.ko || return 1
	awaited "/sys/bus/$DRIVER_BUS/drivers/barewire/$DEVICE" || return 1
	use_spidev; awaited "$NODE"
}
again 20 rebound
if [ $done = 20 ]; then pass rebind-under-load; else fail rebind-under-load "after $done"; fi
again ${RELOADS:-100} reloaded
if [ $done = ${RELOADS:-100} ]; then pass rmmod-under-load; else fail rmmod-under-load "after $done"; fi
spidev_reads read-after-reloads

# Prepared accesses, by this project's client.
. /module-api.sh

# With the flash's driver again, and back to the kernel's own.
use_mtd
awaited /dev/mtd0
mtd_reads mtd-after-reloads
to_linux unbind
awaited /dev/mtd0
mtd_reads linux-mtd-after

# Its registers for programs.
. /module-door.sh
check unload rmmod barewire
no_complaints

# The commands of docs/kernel.md, with the module where DKMS puts it.
if [ -s /steps ]; then
	mkdir -p "/lib/modules/$(uname -r)/updates/dkms"
	cp /m/barewire.ko "/lib/modules/$(uname -r)/updates/dkms"
	depmod
	follow page /steps
fi

# A panic of the Rust half while a chip is selected, in a module built to panic at one message. The chip is deselected; the
# task is ended; everybody else gets an error at once, until the driver is bound anew.
insmod /m/barewire-provoked.ko
to_barewire bind-provoked
# The levels of all its chip selects.
level() { sed -n "s/.*|$DEVICE *) out \([hilo]*\) .*/\1/p" /sys/kernel/debug/gpio; }
idle=$(level)
chip=$(ls /sys/bus/spi/devices | grep '\.0$' | head -n 1)
panicked() {
	tries=0
	until [ "$(dmesg | grep -c 'barewire: panic at ')" -ge "$1" ] || [ $tries -ge 100 ]; do sleep 0.1; tries=$((tries + 1)); done
	sleep 1
}
taken_by() {
	[ -L "/sys/bus/spi/devices/$chip/driver" ] && echo "$chip" >"/sys/bus/spi/devices/$chip/driver/unbind"
	echo "$1" >"/sys/bus/spi/devices/$chip/driver_override"
	echo "$chip" >"/sys/bus/spi/drivers/$1/bind"
}
insmod /m/spicount.ko provoke=1
taken_by spicount
panicked 1
if dmesg | grep -q 'barewire: panic at .*linux.rs' && dmesg | grep -q 'kernel BUG at .*panic.c'; then pass panic-is-a-bug
else fail panic-is-a-bug "$(dmesg | tail -n 3)"; fi
if [ "$(level)" = "$idle" ] && [ -n "$idle" ]; then pass panic-deselects; else fail panic-deselects "$idle before, $(level) after"; fi
taken_by spi-nor 2>/dev/null
if [ ! -e /dev/mtd0 ] && dmesg | tail -n 20 | grep -q 'error -5\|failed.*-5\|: -5'; then pass panic-then-eio
else fail panic-then-eio "$(dmesg | tail -n 2)"; fi
check panic-unbind sh -c "echo $DEVICE >/sys/bus/$DRIVER_BUS/drivers/barewire/unbind"
check panic-bind sh -c "echo $DEVICE >/sys/bus/$DRIVER_BUS/drivers/barewire/bind"
awaited /dev/mtd0
mtd_reads panic-bound-anew

# The same of a prepared access, which holds no lock of the SPI core's.
insmod /m/spiapi.ko provoke=1
taken_by spiapi
panicked 2
if dmesg | grep -q 'barewire: panic at .*prepared.rs' && ! dmesg | grep -q 'spiapi: provoking returned'; then pass run-panic-is-a-bug
else fail run-panic-is-a-bug "$(dmesg | tail -n 3)"; fi
if [ "$(level)" = "$idle" ]; then pass run-panic-deselects; else fail run-panic-deselects "$idle before, $(level) after"; fi
answer=$(cat /sys/module/spiapi/parameters/run)
if [ "${answer%% *}" = -5 ]; then pass run-panic-then-eio; else fail run-panic-then-eio "$answer"; fi
answer=$(cat /sys/module/spiapi/parameters/try_run)
if [ "${answer%% *}" = -5 ]; then pass try-run-panic-then-eio; else fail try-run-panic-then-eio "$answer"; fi
check run-panic-unbind sh -c "echo $DEVICE >/sys/bus/$DRIVER_BUS/drivers/barewire/unbind"
rmmod spiapi
check run-panic-bind sh -c "echo $DEVICE >/sys/bus/$DRIVER_BUS/drivers/barewire/bind"
taken_by spi-nor
awaited /dev/mtd0
mtd_reads run-panic-bound-anew
