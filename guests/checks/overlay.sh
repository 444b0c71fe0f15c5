# The README's overlay on a kernel whose simple-pm-bus keeps clocks: the clock runs while the node is
# open and not before, and `uio:` needs no ignore-clock.

insmod /m/uio_pdrv_genirq.ko of_id=generic-uio
sleep 0.2
clock() { cat /sys/kernel/debug/clk/ecspi1_root_clk/clk_enable_count; }
if [ ! -e /dev/uio0 ]; then
	fail overlay-device "no /dev/uio0"
else
	check overlay-address grep -q 0x0*30820000 /sys/class/uio/uio0/maps/map0/addr
	before=$(clock)
	exec 3<>/dev/uio0
	open=$(clock)
	exec 3<&-
	if [ "$before" = 0 ] && [ "$open" = 1 ]; then pass overlay-clock-while-open
	else fail overlay-clock-while-open "enabled $before before, $open while open"; fi
	rate=$(cat /sys/kernel/debug/clk/ecspi1_root_clk/clk_rate)
	if [ "$rate" = 80000000 ]; then pass overlay-clock-rate; else fail overlay-clock-rate "$rate Hz"; fi
	UIO="uio:uio0,$OPTIONS,cs=$LINE"
	check overlay-id barewire flash id --bus "$UIO"
	read_and_compare overlay-read-1m "$UIO" 1048576
	# The examples' rate is not every board's: one that is wrong is refused with both.
	refused overlay-rate-refused 80 barewire flash id --bus "$(echo "$UIO" | sed 's/reference-hz=80M/reference-hz=24M/')"
	chown user /dev/uio0 /dev/gpiochip*
	check overlay-as-user su user -c "barewire flash id --bus $UIO"
fi
