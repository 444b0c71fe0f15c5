# Threads and processes of all priorities on one controller and chip, on a kernel with PREEMPT_RT
# that is kept busy. Times are QEMU's, of a machine that does other things as well: they are
# printed, and judge nothing.

if [ "$(cat /sys/kernel/realtime 2>/dev/null)" = 1 ] && uname -v | grep -q PREEMPT_RT; then pass load-kernel-is-real-time
else fail load-kernel-is-real-time "$(uname -v)"; fi

bound && unbind
export BUS=$(mem "$BANK")
dd if=/ref of=/tmp/known bs=16384 count=1 2>/dev/null

# What runs beside the judge while /tmp/load is there, also in shells of other priorities.
cat >/tmp/load.sh <<'END'
. /lib.sh
again() { while [ -e /tmp/load ]; do "$@"; done >/dev/null 2>&1; }
# Some tens of milliseconds of a processor.
busy() { turn=0; while [ $turn -lt 200 ]; do turn=$((turn + 1)); done; }
# In turns with a pause: one of SCHED_FIFO that never sleeps leaves nothing to the others.
hog() { busy; sleep 0.1; }
copy() { dd if=/dev/zero of=/tmp/memory bs=1M count=16; }
timers() { sleep 0.02; }
# Another process on the chip, which reads what is known. reader NAME: a line for each read.
reader() {
	rm -f "/tmp/read-$1"
	if ! barewire flash read "/tmp/read-$1" --quiet --length 16384 --bus "$BUS" >/dev/null 2>"/tmp/err-$1"; then errors "/tmp/err-$1"
	elif cmp -s "/tmp/read-$1" /tmp/known; then echo right
	else echo "other bytes"; fi >>"/tmp/reads-$1"
	sleep 0.2
}
END
children=
# beside PRIORITY COMMAND…: again and again in the background, with that priority of SCHED_FIFO, or 0.
beside() {
	priority=$1 run='. /tmp/load.sh; again "$@"'; shift
	if [ "$priority" = 0 ]; then sh -c "$run" sh "$@" &
	else under_load fifo "$priority" sh -c "$run" sh "$@" & fi
	children="$children $!"
}
# It prints its checks, and times of QEMU's.
under_load "$BUS" /ref 10 /tmp/load 2>/tmp/err &
judge=$!
awaited /tmp/load || fail load-begins "the judge did not open the bus"
beside 0 busy
beside 0 copy
beside 0 timers
beside 45 timers
beside 5 hog
beside 40 hog
beside 0 reader other
beside 15 reader fifo
waited $judge 240
status=$?
for child in $children; do ended "$child" && fail load-children "one ended before the judge did"; done
rm -f /tmp/load
[ $status = 0 ] || fail load-judge "exit $status: $(errors /tmp/err)"

for child in $children; do waited "$child" 60 || fail load-children "exit $? of one"; done
for name in other fifo; do
	right=$(grep -c '^right$' "/tmp/reads-$name") wrong=$(grep -v '^right$' "/tmp/reads-$name" | tail -n 2)
	say "load: $right reads of the process $name"
	if [ "$right" -gt 0 ] && [ -z "$wrong" ]; then pass "load-reader-$name"
	else fail "load-reader-$name" "$right right, and: $wrong"; fi
done
read_and_compare load-read-afterwards "$BUS" 65536
