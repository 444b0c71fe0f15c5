# Checks of prepared accesses (barewire_spi.h), for module.sh: the controller is the module's, and its chip spidev's.
[ "$SIZE" = 2097152 ] && ID=bf2541 || ID=ef4019
API=/sys/module/spiapi/parameters
# told NAME ACCESS WANTED: what one access by `run` or `try_run` says.
told() {
	answer=$(cat "$API/$2")
	if [ "$answer" = "$3" ]; then pass "$1"; else fail "$1" "$answer, expected $3"; fi
}
api_takes() {
	FLASH=$(ls /sys/bus/spi/devices | grep '\.0$' | head -n 1)
	[ -L "/sys/bus/spi/devices/$FLASH/driver" ] && echo "$FLASH" >"/sys/bus/spi/devices/$FLASH/driver/unbind"
	echo "$1" >"/sys/bus/spi/devices/$FLASH/driver_override"
}
api_takes spiapi

# On two processors and in a hard interrupt at once. Statistics are those of the client.
echo Y >/sys/module/barewire/parameters/statistics
STATISTICS=/sys/bus/$DRIVER_BUS/devices/$DEVICE/barewire
check mixed insmod /m/spiapi.ko mixed_ms=${MIXED_MS:-3000}
mixed=$(dmesg | sed -n 's/.*spiapi: mixed \(.*\)/\1/p' | tail -n 1)
seen() { echo " $mixed" | sed -n "s/.* $1=\([0-9]*\).*/\1/p"; }
for wrong in wrong order intruded failed; do
	if [ "$(seen $wrong)" = 0 ]; then pass "mixed-$wrong"; else fail "mixed-$wrong" "$mixed"; fi
done
for path in sync async locked run try; do
	if [ "$(seen $path)" -gt 0 ]; then pass "mixed-$path"; else fail "mixed-$path" "$mixed"; fi
done
say "mixed: $mixed; $(cd $STATISTICS && echo runs $(cat runs) bytes $(cat run_bytes) waits $(cat run_waits) refusals $(cat run_refusals))"
if [ "$(cat $STATISTICS/runs)" -ge "$(($(seen try) + 1))" ] && [ "$(cat $STATISTICS/run_refusals)" -ge "$(seen busy)" ]; then pass statistics
else fail statistics "$(grep . $STATISTICS/*)"; fi
echo N >/sys/module/barewire/parameters/statistics
before=$(cat $STATISTICS/runs)
told run run "0 $ID"
told try-run try_run "0 $ID"
if [ "$(cat $STATISTICS/runs)" = "$before" ]; then pass statistics-off; else fail statistics-off "$before before"; fi

# A handle keeps the block awake; without one it sleeps, and the next wakes it.
echo 50 >$POWER/autosuspend_delay_ms
sleep 1
if [ "$(status)" = active ]; then pass prepared-stays-awake; else fail prepared-stays-awake "$(status)"; fi
told prepared-awake-run try_run "0 $ID"
# The client's module cannot lose the one that it calls.
if rmmod barewire 2>/dev/null; then fail symbols-in-use "barewire was removed"; else pass symbols-in-use; fi
rmmod spiapi
if asleep; then pass released-sleeps; else fail released-sleeps "$(status)"; fi
# From here on the handle outlives its driver's binding, which no good client does.
check prepare-wakes insmod /m/spiapi.ko keep=1
if [ "$(status)" = active ]; then pass prepared-is-awake; else fail prepared-is-awake "$(status)"; fi
told prepared-after-sleep try_run "0 $ID"
# Asleep with the system it refuses; afterwards it is right at once. The kernel's test of device suspend takes 5 seconds.
if [ -z "$NO_SYSTEM_SLEEP" ] && [ -e /sys/power/pm_test ] && grep -q freeze /sys/power/state; then
	echo devices >/sys/power/pm_test
	echo freeze >/sys/power/state &
	sleep 2
	wait
	told run-after-system-sleep try_run "0 $ID"
	echo none >/sys/power/pm_test
	echo 5000 >$POWER/autosuspend_delay_ms
fi
echo "$DEVICE" >/sys/bus/$DRIVER_BUS/drivers/barewire/unbind
told unbound-run run "-108 000000"
told unbound-try-run try_run "-108 000000"
echo "$DEVICE" >/sys/bus/$DRIVER_BUS/drivers/barewire/bind
# Of the controller that was.
told rebound-run run "-108 000000"
rmmod spiapi
echo 2000 >$POWER/autosuspend_delay_ms

# A driver with regmap changes one line.
api_takes spiregmap_barewire
check regmap insmod /m/spiregmap_barewire.ko
if dmesg | grep "spicount: regmap-read-1+3 [0-9]* $ID" >/dev/null; then pass regmap-id; else fail regmap-id "$(dmesg | grep spicount: | tail -n 1)"; fi
rmmod spiregmap_barewire
api_takes spidev
use_spidev
