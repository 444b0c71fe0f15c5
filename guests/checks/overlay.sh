# The shipped overlay on a kernel whose simple-pm-bus keeps clocks. Then doctor is followed literally,
# by root and by a user who may open two nodes.

insmod /m/uio_pdrv_genirq.ko of_id=generic-uio
count() { cat "/sys/kernel/debug/clk/$1/clk_enable_count"; }
uio_at() { grep -il "0x0*$1" /sys/class/uio/uio*/maps/map0/addr | cut -d / -f 5; }
# on_while_open NAME DEVICE CLOCK: the clock has a user while the device is open, and no other.
on_while_open() {
	before=$(count "$3")
	exec 3<>"/dev/$2"
	open=$(count "$3")
	exec 3<&-
	if [ "$before" = 0 ] && [ "$open" = 1 ]; then pass "$1"
	else fail "$1" "enabled $before before, $open while open"; fi
}
if ! awaited /dev/uio0; then
	fail overlay-device "no /dev/uio0"
else
	check overlay-address grep -q "0x0*$OVERLAY_ADDRESS" /sys/class/uio/uio0/maps/map0/addr
	# A clock that is never off is not counted.
	[ -z "$OVERLAY_CLOCK" ] || on_while_open overlay-clock-while-open uio0 "$OVERLAY_CLOCK"
	# What doctor proposes is pasted: the bus, and the question to the chip.
	check overlay-doctor barewire doctor
	cat /tmp/out
	bus=$(sed -n 's/^Ready now: *--bus //p' /tmp/out | head -n 1)
	check overlay-doctor-bus barewire doctor "$bus"
	check overlay-id barewire flash id --bus "$bus"
	read_and_compare overlay-read-1m "$bus" 1048576
	read_and_compare overlay-interrupt-read "$bus,poll-limit-us=0" 65536
	check overlay-interrupts-counted test "$(cat /sys/class/uio/uio0/event)" -gt 0
	# Times are QEMU's, and it says so.
	check overlay-measure barewire measure --board "$bus" --flash --quick -o /tmp/measured
	cat /tmp/out
	check overlay-measure-emulated grep -q '"origin": "emulated"' /tmp/measured/measured.json
	check overlay-measure-interrupt grep -q '"irq-wake"' /tmp/measured/measured.json
	# The examples' rate is not every board's: one that is wrong is refused with both.
	wrong=$(echo "$bus" | sed 's/reference-hz=[0-9]*M/reference-hz=24M/')
	refused overlay-rate-refused 24000000 barewire flash id --bus "$wrong"
	refused overlay-doctor-rate "not ready" barewire doctor "$wrong"
	# The page for people, to the letter.
	follow page /steps
	refused overlay-doctor-as-user "not ready" su user -c "barewire doctor $bus"
	chown user /dev/uio0 /dev/gpiochip*
	# The lock has the rights that the node had when root opened it, until root opens it again.
	refused overlay-lock-as-user "may not be opened or made" su user -c "barewire flash id --bus $bus"
	check overlay-id-again barewire flash id --bus "$bus"
	check overlay-as-user su user -c "barewire flash id --bus $bus"
	# Each of two controllers has its own clock. A device that keeps the other's clock on is refused as a bus.
	if [ -n "$BESIDE_ADDRESS" ]; then
		beside=$(uio_at "$BESIDE_ADDRESS") unclocked=$(uio_at "$UNCLOCKED_ADDRESS")
		on_while_open overlay-beside-clock "$beside" "$BESIDE_CLOCK"
		check overlay-beside-ready barewire doctor "uio:$beside,reference-hz=80M,cs=native0"
		wrong="uio:$unclocked,reference-hz=80M,cs=native0"
		refused overlay-unclocked-doctor "not ready" barewire doctor "$wrong"
		if barewire doctor | grep "^Ready now.*uio:$unclocked,"; then fail overlay-unclocked-not-offered "doctor writes its bus"
		else pass overlay-unclocked-not-offered; fi
		chown user "/dev/$unclocked"
		refused overlay-unclocked-as-user "keeps other clocks" su user -c "barewire xfer --bus $wrong 9f"
	fi
fi
