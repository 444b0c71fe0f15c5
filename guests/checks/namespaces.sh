# Processes of two PID namespaces (containers) on one controller: the lock's thread ids are of one namespace, so the
# second is refused, and nothing stays wedged.

bound && unbind
BUS=$(mem "$BANK")
EXCLUSIVE=$(mem "$BANK" exclusive)
contained() { unshare --pid --fork --mount-proc "$@"; }
# at_once NAME COMMAND…: a check of a command that must not wait for ever.
at_once() {
	name=$1; shift
	"$@" >/tmp/out 2>/tmp/err &
	waited $! 60
	status=$?
	if [ $status = 0 ]; then pass "$name"; else fail "$name" "exit $status (124: it waits): $(errors /tmp/err)"; fi
}
# not_at_once NAME WORD COMMAND…: refused by itself with that word, and not waiting for ever.
not_at_once() {
	name=$1; word=$2; shift 2
	"$@" >/tmp/out 2>/tmp/err &
	waited $! 60
	status=$?
	if [ $status = 1 ] && grep -q -e "$word" /tmp/err; then pass "$name"
	else fail "$name" "exit $status, without '$word': $(errors /tmp/err)"; fi
}
# reader COMMAND…: reads in the background, with that before the command, and is stopped once it has the registers.
reader() {
	rm -f /tmp/long
	"$@" barewire flash read /tmp/long --quiet --length "$PROCESS_LENGTH" --bus "$BUS" >/dev/null 2>/tmp/err2 &
	owner=$!
	tries=0
	until has_registers $(pidof barewire) || ended $owner || [ $tries -ge 1000 ]; do tries=$((tries + 1)); done
	stopped=$(pidof barewire)
	kill -STOP $stopped || fail namespace-reader "it ended: $(errors /tmp/err2)"
}
# whole NAME: the reader goes on, and ends by itself with the right bytes.
whole() {
	kill -CONT $stopped
	waited $owner 200
	status=$?
	part 0 "$PROCESS_LENGTH" /ref
	if [ $status = 0 ]; then same "$1" /tmp/long /tmp/part; else fail "$1" "exit $status: $(errors /tmp/err2)"; fi
}

if ! contained true 2>/tmp/err; then
	fail namespaces "no PID namespace: $(errors /tmp/err)"
else
	at_once namespace-first barewire flash id --bus "$BUS"
	at_once namespace-after-the-first contained barewire flash id --bus "$BUS"
	at_once namespace-first-again barewire flash id --bus "$BUS"

	# While one side reads, the other is refused, and the read goes on.
	reader env
	not_at_once namespace-refused 'PID namespace' contained barewire flash id --bus "$BUS"
	not_at_once namespace-alone-refused 'exclusive' contained barewire flash id --bus "$EXCLUSIVE"
	whole namespace-first-goes-on
	reader contained
	not_at_once namespace-refused-outside 'PID namespace' barewire flash id --bus "$BUS"
	whole namespace-second-goes-on

	# Both sides over and over: whoever finds the other is refused, and nothing waits for ever.
	contained sh -c 'n=0; while [ $n -lt 10 ]; do barewire flash read /tmp/theirs --quiet --length 4096 --bus "$1"; n=$((n + 1)); done' sh "$BUS" >/dev/null 2>/tmp/err2 &
	other=$!
	waits=0 wrong=0
	part 0 4096 /ref
	for turn in 1 2 3 4 5; do
		rm -f /tmp/read
		barewire flash read /tmp/read --quiet --length 4096 --bus "$BUS" >/dev/null 2>/tmp/err &
		waited $! 60
		case $? in
		0) cmp -s /tmp/read /tmp/part || wrong=$((wrong + 1)) ;;
		124) waits=$((waits + 1)) ;;
		*) grep -q 'PID namespace' /tmp/err || wrong=$((wrong + 1)) ;;
		esac
	done
	waited $other 120 || wrong=$((wrong + 1))
	if [ $waits = 0 ] && [ $wrong = 0 ]; then pass namespace-in-turns
	else fail namespace-in-turns "$waits of 5 wait for ever, $wrong are wrong: $(errors /tmp/err)"; fi

	# A container that ends within its messages, all at once.
	reader contained
	kill -9 $stopped
	wait $owner 2>/dev/null
	at_once namespace-killed barewire flash id --bus "$BUS"
	# What an emptied container left in the file: waiters, and thread 1 of its own.
	at_once namespace-last contained barewire flash id --bus "$BUS"
	read_and_compare namespace-read "$BUS" 262144

	# Without /proc nothing is known of the namespace.
	mkdir -p /tmp/bare/bin /tmp/bare/dev /tmp/bare/run/lock /tmp/bare/sys
	cp /bin/barewire /tmp/bare/bin/ && mount -t devtmpfs dev /tmp/bare/dev && mount -t sysfs sys /tmp/bare/sys
	not_at_once namespace-unknown 'mount /proc' chroot /tmp/bare /bin/barewire flash id --bus "$BUS"
fi
