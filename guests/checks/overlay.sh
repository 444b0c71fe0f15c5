# The shipped overlay on a kernel whose simple-pm-bus keeps clocks. Then doctor is followed literally,
# by root and by a user who may open two nodes.

insmod /m/uio_pdrv_genirq.ko of_id=generic-uio
clock() { cat "/sys/kernel/debug/clk/$OVERLAY_CLOCK/clk_enable_count"; }
if ! awaited /dev/uio0; then
	fail overlay-device "no /dev/uio0"
else
	check overlay-address grep -q "0x0*$OVERLAY_ADDRESS" /sys/class/uio/uio0/maps/map0/addr
	# A clock that is never off is not counted.
	if [ -n "$OVERLAY_CLOCK" ]; then
		before=$(clock)
		exec 3<>/dev/uio0
		open=$(clock)
		exec 3<&-
		if [ "$before" = 0 ] && [ "$open" = 1 ]; then pass overlay-clock-while-open
		else fail overlay-clock-while-open "enabled $before before, $open while open"; fi
	fi
	# What doctor proposes is pasted: the bus, and the question to the chip.
	check overlay-doctor barewire doctor
	cat /tmp/out
	bus=$(sed -n 's/^Ready now: *--bus //p' /tmp/out | head -n 1)
	check overlay-doctor-bus barewire doctor "$bus"
	check overlay-id barewire flash id --bus "$bus"
	read_and_compare overlay-read-1m "$bus" 1048576
	read_and_compare overlay-interrupt-read "$bus,poll-limit-us=0" 65536
	check overlay-interrupts-counted test "$(cat /sys/class/uio/uio0/event)" -gt 0
	# The examples' rate is not every board's: one that is wrong is refused with both.
	wrong=$(echo "$bus" | sed 's/reference-hz=[0-9]*M/reference-hz=24M/')
	refused overlay-rate-refused 24000000 barewire flash id --bus "$wrong"
	refused overlay-doctor-rate "not ready" barewire doctor "$wrong"
	# The page for people, to the letter.
	follow page /steps
	refused overlay-doctor-as-user "not ready" su user -c "barewire doctor $bus"
	chown user /dev/uio0 /dev/gpiochip*
	check overlay-as-user su user -c "barewire flash id --bus $bus"
fi
