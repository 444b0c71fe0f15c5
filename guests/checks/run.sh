# Programs that were written for spidev, in the program itself: by their own mapping of the registers, under
# the lock between processes, which another C library's command shares.

bound && unbind
SHARED=$(mem "$BANK")
NODE=/dev/spidev3.0
run() { barewire run --quiet --map "$NODE=$SHARED" "$@"; }
# client: the program that asks for ever, once it had an answer. One that was killed may still be a zombie.
client() {
	tries=0
	while [ $tries -lt 600 ]; do
		for pid in $(pidof spimessage); do
			if ! ended "$pid" && grep -q RUNS /tmp/forever; then echo "$pid"; return; fi
		done
		sleep 0.1; tries=$((tries + 1))
	done
}
# in_time SECONDS NAME COMMAND…: a check of a command that must end by itself.
in_time() {
	seconds=$1; name=$2; shift 2
	"$@" >/tmp/out 2>/tmp/err &
	waited $! "$seconds"
	status=$?
	if [ $status = 0 ]; then pass "$name"; else fail "$name" "exit $status: $(errors /tmp/err) $(tail -n 2 /tmp/out)"; cat /tmp/err; fi
}
# says NAME WORD COMMAND…: fails by itself, with that word.
says() {
	name=$1; word=$2; shift 2
	"$@" >/tmp/out 2>/tmp/err &
	waited $! 60
	status=$?
	if [ $status = 0 ] || [ $status -ge 124 ] || ! grep -q -e "$word" /tmp/err; then fail "$name" "exit $status: $(errors /tmp/err)"
	else pass "$name"; fi
}

read_and_compare run-shared-first "$SHARED" 65536
in_time 180 run-without-system-calls run -- /bin/spimessage syscalls $NODE
grep -qx 'PER_OP 0.00' /tmp/out || fail run-system-calls "$(cat /tmp/out)"
for what in faults signals threads settings descriptors; do in_time 180 "run-$what" run -- /bin/spichecks $what $NODE; done
# The chip of the client's cases is not every board's.
if [ "$SIZE" = 33554432 ]; then in_time 180 run-spidev-abi run -- /bin/spidev_abi $NODE; cat /tmp/out; fi

# Reads as flashrom does, alone, by two processes, and beside the command.
part 0 1048576 /ref
cp /tmp/part /tmp/expected
in_time 180 run-read run -- /bin/spimessage read $NODE /tmp/expected
in_time 180 run-two-readers run -- /bin/spimessage read $NODE /tmp/expected 2
identify_on "$SHARED"
in_time 180 run-read-beside-id run -- /bin/spimessage read $NODE /tmp/expected
identify_no_more
barewire run --quiet --map "$NODE=$SHARED" -- /bin/spimessage forever $NODE >/tmp/forever 2>/tmp/err2 &
program=$!
read_and_compare run-command-beside "$SHARED" 262144
if ended $program; then fail run-forever "it ended: $(errors /tmp/err2)"; else pass run-forever; fi

# A program that is killed at any moment leaves a bus that others can use.
kill -9 "$(client)"
ended_within $program 60 || fail run-ended "the server outlives its program"
for moment in 1 2 3; do
	run -- /bin/spimessage forever $NODE >/tmp/forever 2>&1 &
	program=$!
	victim=$(client)
	sleep "0.$moment"
	kill -9 "$victim"
	ended_within $program 60 || fail "run-ended-$moment" "the server outlives its program"
	in_time 60 "run-killed-$moment" barewire flash id --bus "$SHARED"
done

# What is counted goes by the server.
part 0 65536 /ref
barewire run --stats --map "$NODE=$SHARED" -- /bin/spimessage read $NODE /tmp/part >/tmp/out 2>/tmp/err
if grep -q '^ *messages  *16$' /tmp/err; then pass run-stats; else fail run-stats "$(grep messages /tmp/err)"; fi

# The server is killed: the next message fails.
barewire run --quiet --map "$NODE=$SHARED" -- /bin/spimessage forever $NODE >/tmp/forever 2>/tmp/err2 &
server=$!
orphan=$(client)
kill -9 $server
if ended_within "$orphan" 60 && grep -q -i 'shutdown' /tmp/err2; then pass run-dead-server
else fail run-dead-server "$(cat /tmp/err2)"; fi

# The kernel's driver comes back: the program's messages fail, and it is told why.
barewire run --quiet --map "$NODE=$SHARED" -- /bin/spimessage forever $NODE >/tmp/forever 2>/tmp/err &
program=$!
client >/dev/null
bind
if ended_within $program 60 && grep -q "$DRIVER" /tmp/err; then pass run-taken-back
else fail run-taken-back "$(errors /tmp/err)"; kill -9 $program; fi
