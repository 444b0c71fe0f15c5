# Checks of /dev/barewireN (docs/kernel.md), for module.sh: the module is loaded, and Linux's driver has the controller.
DOOR=/dev/barewire0
DOORS=/sys/bus/$DRIVER_BUS/drivers/barewire-user
to_door() {
	echo barewire-user >"/sys/bus/$DRIVER_BUS/devices/$DEVICE/driver_override"
	check "$1" sh -c "echo $DEVICE >$DOORS/bind"
	if [ "$(driver)" = barewire-user ] && [ -c $DOOR ]; then pass "$1-node"; else fail "$1-node" "bound to $(driver), $(ls /dev | grep barewire)"; fi
}
# The levels of its chip selects by GPIO.
selected() { sed -n "s/.*|$DEVICE *) out \([hilo]*\) .*/\1/p" /sys/kernel/debug/gpio | tr '\n' ' '; }
# quiet NAME: nobody has it: no chip is selected, it sleeps, and its clock has the users that it had.
quiet() {
	if [ "$(selected)" = "$deselected" ]; then pass "$1-deselected"; else fail "$1-deselected" "$(selected), before $deselected"; fi
	if [ "$(status)" = suspended ]; then pass "$1-sleeps"; else fail "$1-sleeps" "$(status)"; fi
	if [ -n "$CLOCK" ]; then
		if [ "$(enabled)" = 0 ]; then pass "$1-clock-off"; else fail "$1-clock-off" "$CLOCK is enabled $(enabled) times"; fi
	fi
}
# holding WHAT: a program has it; its process is $holder.
holding() {
	rm -f /tmp/held
	doorcheck "$1" $DOOR </tmp/words >/tmp/held 2>/tmp/held-errors &
	holder=$!
	tries=0
	until grep -q held /tmp/held || ended $holder || [ $tries -ge 100 ]; do sleep 0.1; tries=$((tries + 1)); done
	grep -q held /tmp/held || fail "holding-$1" "$(errors /tmp/held-errors)"
}
# reading BUS: the command reads the whole flash; its process is $reader.
reading() {
	barewire flash read /tmp/read-1 --quiet --bus "$1" 2>/tmp/err-1 &
	reader=$!
	tries=0
	until grep -q $DOOR /proc/$reader/maps || ended $reader || [ $tries -ge 1000 ]; do tries=$((tries + 1)); done
}
rm -f /tmp/words; mkfifo /tmp/words; exec 5<>/tmp/words

unbind
to_door door-bind
deselected=$(selected)
case $deselected in *hi*) ;; *) fail door-lines "no line is high: $deselected" ;; esac
# The lock of the command gets the node's rights.
chown user $DOOR
quiet door-unused
check door-abi doorcheck abi $DOOR
say "$(cat /tmp/out)"
quiet door-abi

# The command: block, clock and chip selects are the kernel's to say.
check door-id barewire flash id --bus barewire:0
read_and_compare door-read barewire:0 ${DOOR_LENGTH:-262144}
# Behind what mtd_reads compares, on the smallest chip too.
write_and_verify door barewire:0 $((SIZE / 8 * 5)) 65536
before=$(interrupts)
read_and_compare door-interrupt-read barewire:0,poll-limit-us=0 65536
after=$(interrupts)
if [ "$after" -gt "$before" ]; then pass door-interrupts; else fail door-interrupts "$before before, $after after"; fi
quiet door-used
check door-list sh -c 'barewire list | grep -e "--bus barewire:0 "'
check door-doctor barewire doctor barewire:0
check door-as-user su user -c "barewire flash id --bus barewire:0"
refused door-mem 'barewire:N' barewire flash id --bus "$(mem native0)"
refused door-nobody 'no such device' barewire flash id --bus barewire:9

# One program alone, or several that share it.
holding hold
if [ "$(selected)" != "$deselected" ]; then pass door-selects; else fail door-selects "$(selected)"; fi
if [ "$(status)" = active ]; then pass door-held-awake; else fail door-held-awake "$(status)"; fi
if [ -n "$CLOCK" ]; then
	if [ "$(enabled)" -gt 0 ]; then pass door-held-clock; else fail door-held-clock "$CLOCK is not enabled"; fi
fi
refused door-taken 'another program has it' barewire flash id --bus barewire:0
refused door-taken-shared 'another program has it' barewire flash id --bus barewire:0,shared
# The system does not sleep meanwhile: the kernel's test of device suspend ends at this device.
if [ -e /sys/power/pm_test ] && grep -q freeze /sys/power/state; then
	echo devices >/sys/power/pm_test
	refused door-no-sleep 'busy' sh -c 'echo freeze >/sys/power/state'
	echo none >/sys/power/pm_test
fi
# Killed with its chip selected and its interrupt unmasked.
kill -9 $holder; wait $holder 2>/dev/null
quiet door-killed
check door-after-kill barewire flash id --bus barewire:0
barewire flash read /tmp/read-1 --quiet --length 131072 --bus barewire:0,shared 2>/tmp/err-1 &
first=$!
read_and_compare door-shared barewire:0,shared 131072
wait $first
part 0 131072 /ref
same door-shared-other /tmp/read-1 /tmp/part || fail door-shared-other "$(errors /tmp/err-1)"
holding share
refused door-shared-exclusive 'another program has it\|in use' barewire flash id --bus barewire:0
kill -9 $holder; wait $holder 2>/dev/null
# The command, in the middle of its messages.
reading barewire:0,poll-limit-us=0
refused door-exclusive "$reader" barewire flash id --bus barewire:0
kill -9 $reader; wait $reader 2>/dev/null
quiet door-reader-killed
before=$(interrupts); sleep 0.2; after=$(interrupts)
if [ "$after" = "$before" ]; then pass door-masked; else fail door-masked "$before, $after"; fi
read_and_compare door-after-reader barewire:0 65536

# Its driver goes while a program has it, and comes again.
holding unbound
check door-unbind sh -c "echo $DEVICE >$DOORS/unbind"
echo >&5
if waited $holder 10; then pass door-unbound; else fail door-unbound "exit $?: $(errors /tmp/held-errors)"; fi
to_door door-rebind
check door-after-rebind barewire flash id --bus barewire:0
reading barewire:0
check door-unbind-reader sh -c "echo $DEVICE >$DOORS/unbind"
waited $reader 10
status=$?
if [ $status != 0 ] && [ $status != 124 ]; then pass door-reader-ends; else fail door-reader-ends "exit $status"; fi

# A page with another block's registers in it.
if [ -n "$CROWDED" ]; then
	echo "$CROWDED" >"/sys/bus/$DRIVER_BUS/drivers/$DRIVER/unbind"
	echo barewire-user >"/sys/bus/$DRIVER_BUS/devices/$CROWDED/driver_override"
	check door-crowded-bind sh -c "echo $CROWDED >$DOORS/bind"
	refused door-crowded "another block's registers" barewire flash id --bus barewire:0,cs=native0
	if dmesg | grep -q "$CROWDED: its page .* /soc.*neighbour@.* has registers in it"; then pass door-crowded-log; else fail door-crowded-log "$(dmesg | tail -n 2)"; fi
	echo "$CROWDED" >$DOORS/unbind
	echo >"/sys/bus/$DRIVER_BUS/devices/$CROWDED/driver_override"
fi

# Back to Linux's driver, which finds the flash as it left it, but for what was written.
exec 5>&-
echo >"/sys/bus/$DRIVER_BUS/devices/$DEVICE/driver_override"
check door-to-linux sh -c "echo $DEVICE >/sys/bus/$DRIVER_BUS/drivers/$DRIVER/bind"
awaited /dev/mtd0
mtd_reads door-linux-mtd
