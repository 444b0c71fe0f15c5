# Instructions of one operation: under -icount shift=0 one is a nanosecond of the guest.

# hand ARGUMENT…: the figures of the hand-written program, under the names of the table.
figures() { sed -n 's/^END \([^ ]*\) .*per_op_ns=\([0-9.]*\).*/\1 \2/p' /tmp/out; }
told() { say "COUNT $1 $2"; }
hand() {
	spibench "$@" >/tmp/out 2>/tmp/err
	status=$?
	[ $status = 0 ] || fail "count-$1" "exit $status: $(errors /tmp/err)"
	figures | while read -r name count; do
		case $name in
			spidev-jedec4) told spidev-4 "$count" ;;
			spidev-read1024) told spidev-1024 "$count" ;;
			mtd-pread1024) told mtd-1024 "$count" ;;
			mmio-gpio-jedec4) told hand-4 "$count" ;;
			mmio-gpio-read1024) told hand-1024 "$count" ;;
		esac
	done
}
# ours SELECT [PREFIX]: what the command counts, `{"path":"prepared","bytes":4,…,"ns_per_op":297.0,…}`: the paths
# without a lock of one that has the bus alone, and those under the lock of others.
ours() {
	counted "$(mem "$1" exclusive)" "$2"
	counted "$(mem "$1")" "$2" -locked
}
counted() {
	# Counted instructions do not vary, but for a tick of the clock in one round.
	barewire bench --board "$1" --rounds 3 --json >/tmp/out 2>/tmp/err
	status=$?
	if [ $status != 0 ]; then
		fail "${2}count-bench$3" "exit $status: $(errors /tmp/err)"
		return
	fi
	tr '{' '\n' </tmp/out | sed -n 's/.*"path":"\([^"]*\)","bytes":\([0-9]*\).*"ns_per_op":\([0-9.]*\).*/\1-\2 \3/p' |
		while read -r name count; do
			# Messages of several transfers say their lengths in their name.
			case $name in *+*) name=${name%-*} ;; esac
			case $name in spidev-* | mtd-* | process-lock-*) [ -n "$2" ] || told "$name" "$count" ;; *) told "$2$name" "$count" ;; esac
		done
	pass "${2}count-bench$3"
}

awaited /dev/mtd0
hand mtd /dev/mtd0
use_spidev
hand spidev "${SPIDEV#spidev:}"
if spimessage batch "${SPIDEV#spidev:}" >/tmp/out 2>/tmp/err; then told spidev-batch-4 "$(sed -n 's/^PER_OP //p' /tmp/out)"
else fail count-spidev-batch "$(errors /tmp/err)"; fi
unbind
# Thrice: a tick of the kernel's clock inside a loop of 1,000 adds ten instructions to each. The least is kept.
for _ in 1 2 3; do hand $HAND; done
ours "$BANK"
# The select through the kernel's character device, two system calls a message.
ours "$LINE" chardev-

# The rest takes a minute more.
[ -n "$PROGRAMS_ARE_COUNTED" ] || return 0

# A program of spidev's under `barewire run`: through the server.
# program NAME BUS WHAT: what `spimessage WHAT` counts.
program() {
	barewire run --quiet --map "/dev/spidev7.0=$2" -- /bin/spimessage "$3" /dev/spidev7.0 >/tmp/out 2>/tmp/err &
	waited $! 60
	status=$?
	if [ $status = 0 ]; then told "$1" "$(sed -n 's/^PER_OP //p' /tmp/out)"
	else fail "count-$1" "exit $status: $(errors /tmp/err)"; fi
}
program served-message-4 "$(mem "$BANK" exclusive)" count
program served-syscalls-4 "$(mem "$BANK" exclusive)" syscalls
# In the program itself, under the lock between processes; and in one that handles signals.
program run-message-4 "$(mem "$BANK")" count
program run-apart-4 "$(mem "$BANK")" apart
program run-handled-4 "$(mem "$BANK")" handled
program run-syscalls-4 "$(mem "$BANK")" syscalls
