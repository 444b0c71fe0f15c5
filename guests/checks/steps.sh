# Operations of the kernel, over and over: guests/steps.c writes down what runs, xtask counts the steps of them.
# (Instructions alone: nothing takes time on the wire.)

# op NAME COMMAND…: see guests/spisteps.c.
op() {
	if spisteps "$@" >/tmp/out 2>/tmp/err; then pass "steps-$1"
	else fail "steps-$1" "exit $?: $(errors /tmp/err)"; fi
}

awaited /dev/mtd0
echo 0 >/proc/sys/kernel/kptr_restrict
insmod /m/steps_spi.ko || fail steps-module "insmod failed"
op null null
op call call
op sleep sleep 1
# Long enough for the tick to be stopped meanwhile.
op sleep-long sleep 20
op spin spin
op hand-over hand-over
[ "$(nproc)" = 1 ] || op hand-over-other hand-over 1
op mtd read /dev/mtd0 512
use_spidev
node=${SPIDEV#spidev:}
op spidev-1 spidev "$node" 1
op spidev-11 spidev "$node" 11
# The driver's own limit: below it a transfer is polled.
limit=$(ls /sys/module/spi_*/parameters/polling_limit_us)
was=$(cat "$limit")
echo 0 >"$limit"
op spidev-interrupt spidev "$node" 1
echo "$was" >"$limit"
echo "$device" >/sys/bus/spi/drivers/spidev/unbind
echo steps_spi >"/sys/bus/spi/devices/$device/driver_override"
echo "$device" >/sys/bus/spi/drivers/steps_spi/bind
exchange=/sys/bus/spi/devices/$device/exchange
op sync-1 write "$exchange" "sync 1"
op sync-11 write "$exchange" "sync 11"
op async-1 write "$exchange" "async 1"
op async-11 write "$exchange" "async 11"
