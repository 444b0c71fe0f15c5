# Beside the kernel's driver, with a distribution's kernel arguments.

bound
check list barewire list
grep -q "$ADDRESS" /tmp/out || grep -q "$DEVICE" /tmp/out || fail list-names-controller "no $DEVICE in: $(head -n 5 /tmp/out)"

# While the kernel's driver is bound, mapped registers are refused, and the message says what to do.
refused mem-refused-while-bound 'unbind' barewire flash id --bus "$(mem "$BANK")"

use_spidev
check spidev-id barewire flash id --bus "$SPIDEV"
read_and_compare spidev-read-1m "$SPIDEV" 1048576
# bufsiz is 4,096 unless told otherwise: a message is cut below it, and above it too.
[ "$(cat /sys/module/spidev/parameters/bufsiz)" = 4096 ] || fail spidev-bufsiz "not 4096"
for length in 4096 8192 65536; do read_and_compare "spidev-read-$length" "$SPIDEV" $length; done
# A link to stdout, or to a file that does not exist yet, is written through, never replaced: not by root either.
[ -e /dev/stdout ] || ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /tmp/stderr; ln -s made /tmp/dangling
part 0 65536 /ref
barewire flash read /dev/stdout --length 65536 --bus "$SPIDEV" 2>/tmp/err | cat >/tmp/piped
same stdout-by-name /tmp/piped /tmp/part
if [ -L /dev/stdout ]; then pass stdout-is-still-a-link; else fail stdout-is-still-a-link "$(ls -l /dev/stdout)"; fi
barewire xfer --vcd /tmp/stderr --bus sim:imx8mp 9f000000 2>&1 >/dev/null | cat >/tmp/piped
if [ -L /tmp/stderr ] && grep -q enddefinitions /tmp/piped; then pass stderr-by-name; else fail stderr-by-name "$(errors /tmp/piped)"; fi
check dangling-link barewire flash read /tmp/dangling --length 65536 --bus "$SPIDEV"
if [ -L /tmp/dangling ]; then same dangling-link-followed /tmp/made /tmp/part; else fail dangling-link-followed "it was replaced"; fi
# With the option that cuts a message anywhere, a read is right too: on PL022 the driver drops CS
# between messages, whatever is asked.
refused spidev-split-refused "no option" barewire flash id --bus "$SPIDEV,split-with-cs-held"

# The kernel's own trace of such messages is read whole, beside the scheduler's and the interrupts' events: as many
# messages as have ended in it, which are at least those of the command.
tracing=/sys/kernel/tracing
trace_on() {
	for events in spi sched/sched_switch sched/sched_waking irq/irq_handler_entry; do
		echo "$1" >$tracing/events/$events/enable
	done
}
mount -t tracefs tracefs $tracing 2>/dev/null
if [ -e $tracing/events/spi/enable ]; then
	echo mono >$tracing/trace_clock
	echo 2048 >$tracing/buffer_size_kb
	trace_on 1
	check traced-transfers barewire xfer --bus "$SPIDEV" 9f 000000
	check traced-read barewire flash read /tmp/read --quiet --length 65536 --bus "$SPIDEV"
	trace_on 0
	cat $tracing/trace >/tmp/trace.txt
	echo 4 >$tracing/buffer_size_kb
	check trace-scope barewire scope /tmp/trace.txt --json
	ended=$(grep -c spi_message_done /tmp/trace.txt)
	told=$(sed -n 's/.*"skipped_lines":0,.*"incomplete":0,"lost":0,.*"notes":\[\],"messages":\([0-9]*\),.*/\1/p' /tmp/out)
	echo "trace: $(wc -l </tmp/trace.txt) lines, $(grep -c sched_switch /tmp/trace.txt) switches, $ended messages"
	if [ "$ended" -gt 16 ] && [ "$told" = "$ended" ]; then pass trace-whole
	else fail trace-whole "$ended messages ended, told are '$told': $(cut -c1-200 /tmp/out)"; fi
	rm -f /tmp/trace.txt
else
	fail trace-whole "the kernel has no events/spi"
fi

# One message above bufsiz is refused with the remedy, and nothing of it is sent.
refused spidev-above-bufsiz "bufsiz" barewire xfer --bus "$SPIDEV" "$(printf %010000d 0)"
write_and_verify spidev "$SPIDEV" $((SIZE / 2)) 65536

# No driver's divider reaches 1 Hz, and none says so: the message is over too soon.
refused spidev-speed-hz-1-refused 'Hz' barewire flash id --speed-hz 1 --bus "$SPIDEV"

# One ioctl takes 511 transfers; a message of more is refused, and a shorter one runs. Each transfer
# takes 128 bytes of bufsiz.
transfers() { n=$1; set --; while [ $n -gt 0 ]; do set -- "$@" 9f; n=$((n - 1)); done; barewire xfer --bus "$SPIDEV" "$@"; }
check spidev-20-transfers transfers 20
refused spidev-512-transfers 'transfers\|bufsiz\|split' transfers 512
refused spidev-700-transfers 'transfers\|bufsiz\|split' transfers 700

# The same pieces with two readers: nobody holds CS over a gap that another one uses.
barewire flash read /tmp/other --quiet --length 262144 --bus "$SPIDEV" >/dev/null 2>/tmp/err2 &
other=$!
read_and_compare spidev-two-readers "$SPIDEV" 262144
waited $other 60
status=$?
if [ $status = 0 ]; then part 0 262144 /ref; same spidev-two-readers-other /tmp/other /tmp/part
else fail spidev-two-readers-other "exit $status: $(errors /tmp/err2)"; fi

# And with a process that identifies the chip over and over beside a reader: neither leaves the
# other in a mode that it does not expect.
identify_on "$SPIDEV"
read_and_compare spidev-read-beside-id "$SPIDEV" 1048576
identify_no_more

# A reader that goes away early is no panic.
barewire list --json 2>/tmp/err | true
if grep -q panicked /tmp/err; then fail list-json-head "$(grep panicked -A1 /tmp/err)"; else pass list-json-head; fi

# The kernel's own flash driver finds the chip as it left it.
kernel_reads() {
	use_mtd
	if awaited /dev/mtd0; then
		# Small pieces: the kernel's drivers give up a long transfer that a busy emulator is slow at.
		dd if=/dev/mtd0 of=/tmp/mtd bs=4096 count=256 2>&1 | grep -v records
		part 0 1048576 /ref
		same "$1" /tmp/mtd /tmp/part
	else
		fail "$1" "the kernel's driver does not find the chip"
	fi
}
kernel_reads mtd-after-spidev

# What the suite needs, loopback, is modelled on PL022 only. It must not leave the controller in it.
if [ -n "$LOOPBACK" ]; then
	use_spidev
	# Its own report names the cases, in the log. Without delays: this kernel's driver sleeps for them in a
	# tasklet ("scheduling while atomic"), and now and then the kernel does not survive that.
	if barewire selftest --no-delays --bus "$SPIDEV" 2>/tmp/err; then pass spidev-selftest
	else fail spidev-selftest "$(errors /tmp/err)"; fi
	kernel_reads mtd-after-selftest
else
	skip spidev-selftest "QEMU's model has no loopback"
fi

# What doctor's steps leave behind, however many were taken, restore gives back.
chip=$(ls /sys/bus/spi/devices | grep '\.0$' | head -n 1)
barewire doctor "spidev:/dev/${chip/spi/spidev}" 2>/dev/null | sed -n 's/^ *\$ //p' >/tmp/steps
restored() {
	if check "$1" barewire restore; then
		awaited /dev/mtd0 || fail "$1" "no mtd: $(cat /tmp/out)"
	fi
}
check doctor-has-steps grep -q unbind /tmp/steps
steps=$(wc -l </tmp/steps)
while [ "$steps" -gt 0 ]; do
	head -n "$steps" /tmp/steps >/tmp/paste
	sh -e /tmp/paste
	restored "restore-after-$steps"
	steps=$((steps - 1))
done
check restore-nothing sh -c 'barewire restore | grep "^Nothing to restore"'
# What no driver takes is an error with the remedy.
echo "$chip" >"/sys/bus/spi/devices/$chip/driver/unbind"
echo nobody >"/sys/bus/spi/devices/$chip/driver_override"
refused restore-not-taken "only nobody may.*driver_override" barewire restore
echo >"/sys/bus/spi/devices/$chip/driver_override"
restored restore-once-allowed

# Frames both ways between simulated CAN buses over a vcan of this kernel.
if ip link add dev vcan0 type vcan 2>/tmp/err && ip link set vcan0 up; then
	barewire can bridge --json --bus sim:imx8mp --iface vcan0 --duration-ms 12000 >/tmp/a 2>/tmp/a.err &
	a=$! tries=0
	# It listens when the kernel has its socket in the list of the interface's receivers.
	until grep -qs 'vcan0 .*raw' /proc/net/can/rcvlist_all || [ $tries -ge 100 ]; do sleep 0.1; tries=$((tries + 1)); done
	barewire can bridge --json --bus sim:imx8mp --iface vcan0 --duration-ms 8000 -g 50 -n 20 >/tmp/b 2>/tmp/b.err
	b=$?
	waited $a 30; echo "bridge: $(cat /tmp/a) $(cat /tmp/b)"
	sent=$(sed -n 's/.*"frames_to_socket":\([0-9]*\).*/\1/p' /tmp/b)
	got=$(sed -n 's/.*"frames_to_bus":\([0-9]*\).*/\1/p' /tmp/a)
	if [ $b = 0 ] && [ "$sent" = 20 ] && [ "$got" = 20 ]; then pass can-bridge
	else fail can-bridge "exit $b, $sent frames to the interface, $got to the other bus: $(errors /tmp/a.err) $(errors /tmp/b.err)"; fi
else
	fail can-bridge "no vcan: $(cat /tmp/err)"
fi
