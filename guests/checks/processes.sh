# Two processes on one controller and one chip, by the lock between them.

bound && unbind
SHARED=$(mem "$BANK" shared)
LENGTH=$PROCESS_LENGTH


check shared-id barewire flash id --bus "$SHARED"

# One reads while the other identifies the chip over and over: if the end of one changed the chip's
# address mode, the other would read elsewhere.
identify_on "$SHARED"
read_and_compare shared-read-beside-id "$SHARED" "$LENGTH"
# The same while one writes: the host sees whether anything was programmed elsewhere.
if [ "$SIZE" -gt 16777216 ]; then AT=20971520; else AT=1310720; fi
write_and_verify shared-beside-id "$SHARED" $AT 65536
identify_no_more

# One that says `shared` and one that says nothing share the bus all the same.
FORGOTTEN=$(mem "$BANK")
identify_on "$FORGOTTEN"
wrong=0
part 0 16384 /ref
for read in 1 2 3 4 5; do
	rm -f /tmp/read
	barewire flash read /tmp/read --quiet --length 16384 --bus "$SHARED" >/dev/null 2>/tmp/err
	cmp -s /tmp/read /tmp/part || wrong=$((wrong + 1))
done
if [ $wrong = 0 ]; then pass forgotten-reads; else fail forgotten-reads "$wrong of 5: $(errors /tmp/err)"; fi
identify_no_more
identify_on "$SHARED"
write_and_verify forgotten "$FORGOTTEN" $((AT + 65536)) 16384
identify_no_more

# A process that has the bus alone, and one that does not, keep each other out, with number and name. Stopped, they
# are there for as long as the others look.
EXCLUSIVE=$(mem "$BANK" exclusive)
# reader BUS: reads in the background, and is stopped within.
reader() {
	barewire flash read /tmp/stopped --quiet --bus "$1" >/dev/null 2>/tmp/err2 &
	owner=$!
	stopped_with_registers $owner || fail exclusive-reader "it ended: $(errors /tmp/err2)"
}
gone() { kill -CONT $owner; kill -9 $owner; wait $owner 2>/dev/null; }
reader "$EXCLUSIVE"
for word in shared exclusive; do
	refused "exclusive-refuses-$word" "process $owner (barewire)" barewire flash id --bus "$(mem "$BANK" $word)"
done
gone
check exclusive-killed barewire flash id --bus "$FORGOTTEN"
reader "$SHARED"
refused exclusive-refused "process $owner (barewire)" barewire flash id --bus "$EXCLUSIVE"
gone
check exclusive-afterwards barewire flash id --bus "$EXCLUSIVE"

# A program without a lock has the registers.
spibench $HAND >/dev/null 2>&1 &
owner=$!
if stopped_with_registers $owner; then
	for word in shared exclusive; do
		refused "stranger-refused-$word" "process $owner (spibench)" barewire flash id --bus "$(mem "$BANK" $word)"
	done
else
	fail stranger-refused "spibench ended before it was stopped"
fi
gone
check stranger-afterwards barewire flash id --bus "$FORGOTTEN"

# Two readers.
barewire flash read /tmp/other --quiet --length 524288 --bus "$SHARED" >/dev/null 2>/tmp/err2 &
other=$!
read_and_compare shared-two-readers "$SHARED" 524288
waited $other 90
status=$?
if [ $status = 0 ]; then part 0 524288 /ref; same shared-two-readers-other /tmp/other /tmp/part
else fail shared-two-readers-other "exit $status: $(errors /tmp/err2)"; fi

# A process that is killed at any moment leaves a bus that others can use.
wrong=0
for tenths in 1 2 3 4 5; do
	barewire flash read /tmp/killed --quiet --bus "$SHARED" >/dev/null 2>&1 &
	victim=$!
	sleep "0.$tenths"
	kill -9 $victim; wait $victim 2>/dev/null
	barewire flash read /tmp/read --quiet --length 65536 --bus "$SHARED" >/dev/null 2>/tmp/err || wrong=$((wrong + 1))
	part 0 65536 /ref
	cmp -s /tmp/read /tmp/part || wrong=$((wrong + 1))
done
if [ $wrong = 0 ]; then pass shared-kill-9; else fail shared-kill-9 "$wrong of 5: $(errors /tmp/err)"; fi

# The owner of the lock is stopped: another process waits, says so, and SIGINT ends it at once. A reader
# holds the lock during its messages and not between them. So it is stopped again and again until another
# process has to wait; one reader may end before that, and the next one takes its place.
waits() { errors /tmp/err | grep -q -i -w 'wait\|waits\|waiting\|lock'; }
owner= holding= tries=0
while [ -z "$holding" ] && [ $tries -lt 40 ]; do
	tries=$((tries + 1))
	if [ -z "$owner" ] || ended $owner; then
		barewire flash read /tmp/stopped --quiet --length $((LENGTH / 2)) --bus "$SHARED" >/dev/null 2>/tmp/err2 &
		owner=$!
		sleep 0.2
	fi
	sleep "0.0$((tries % 7 + 1))"
	kill -STOP $owner
	# What an earlier process said is not what this one says.
	: >/tmp/err
	barewire flash id --bus "$SHARED" >/tmp/out 2>/tmp/err &
	waiter=$!
	# One that waits says so; one that does not ends.
	tenths=0
	until ended $waiter || waits || [ $tenths -ge 600 ]; do sleep 0.1; tenths=$((tenths + 1)); done
	if ended $waiter; then wait $waiter; kill -CONT $owner; else holding=1; fi
done
if [ -z "$holding" ]; then
	fail shared-stopped-owner "in $tries tries the stopped process never had the lock"
	skip shared-sigint-while-waiting "the same"
else
	# The first SIGINT, and no second one.
	kill -INT $waiter
	waited $waiter 30
	status=$?
	if [ $status = 130 ]; then pass shared-sigint-while-waiting
	else fail shared-sigint-while-waiting "exit $status within 30 s of the first SIGINT (124: none): $(head -n 2 /tmp/out) $(errors /tmp/err)"; fi
	if waits; then pass shared-waiting-is-told
	else fail shared-waiting-is-told "stderr has: $(errors /tmp/err)"; fi
	kill -CONT $owner
	waited $owner 90
	status=$?
	if [ $status = 0 ]; then part 0 $((LENGTH / 2)) /ref; same shared-stopped-owner /tmp/stopped /tmp/part
	else fail shared-stopped-owner "exit $status: $(errors /tmp/err2)"; fi
fi

# Boot ROMs need 3-byte addresses: the last user leaves the chip so.
barewire xfer --json --bus "$SHARED" 03000000 0000000000000000 >/tmp/out 2>/tmp/err
first=$(dd if=/ref bs=8 count=1 2>/dev/null | hexdump -v -e '/1 "%02x"')
if grep -q "$first" /tmp/out; then pass shared-left-in-3-byte-mode
else fail shared-left-in-3-byte-mode "$first is not in $(cut -c1-200 /tmp/out) $(errors /tmp/err)"; fi
