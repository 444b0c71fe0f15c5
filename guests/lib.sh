# What checks of guests use. Each check prints one line: see xtask/src/guests/protocol.rs.

# A line on the console that begins there, whatever a command left open.
say() { printf '\n%s\n' "$*"; }
pass() { say "CHECK $1 passed"; }
fail() { name=$1; shift; say "CHECK $name failed $(printf '%s ' "$@" | tr '\n\t' '  ' | cut -c1-300)"; }
skip() { name=$1; shift; say "CHECK $name skipped $*"; }

# errors FILE: the last of what a command said on stderr, without its warnings.
errors() { grep -v ' warning: ' "$1" | tail -n 3; }

# check NAME COMMAND…: passes if the command succeeds.
check() {
	name=$1; shift
	"$@" >/tmp/out 2>/tmp/err
	status=$?
	if [ $status = 0 ]; then pass "$name"; return 0; fi
	fail "$name" "exit $status: $(errors /tmp/err)"
	return 1
}

# refused NAME WORD COMMAND…: passes if the command fails by itself, and its message has the word
# (several by \|).
refused() {
	name=$1; word=$2; shift 2
	"$@" >/tmp/out 2>/tmp/err
	status=$?
	if [ $status = 0 ]; then fail "$name" "exit 0: not refused"
	elif [ $status -ge 128 ]; then fail "$name" "exit $status: killed by signal $((status - 128)): $(errors /tmp/err)"
	elif ! grep -q -e "$word" /tmp/err; then fail "$name" "the message lacks '$word': $(errors /tmp/err)"
	else pass "$name"; fi
}

# same NAME FILE OTHER: passes if both files are equal; else tells how many bytes differ.
same() {
	if cmp -s "$2" "$3"; then pass "$1"; return 0; fi
	fail "$1" "$(cmp -l "$2" "$3" 2>/dev/null | wc -l) bytes differ; $(wc -c <"$2") bytes of $(wc -c <"$3")"
	return 1
}

# part OFFSET LENGTH FILE: that part of a file, in /tmp/part.
part() { dd if="$3" of=/tmp/part bs=4096 skip=$(($1 / 4096)) count=$(($2 / 4096)) 2>/dev/null; }

# read_and_compare NAME BUS LENGTH [option…]: reads the begin of the chip.
read_and_compare() {
	name=$1; bus=$2; length=$3; shift 3
	rm -f /tmp/read
	barewire flash read /tmp/read --quiet --length "$length" --bus "$bus" "$@" >/tmp/out 2>/tmp/err
	status=$?
	if [ $status = 0 ]; then
		part 0 "$length" /ref
		same "$name" /tmp/read /tmp/part
	else
		fail "$name" "exit $status: $(errors /tmp/err)"
	fi
}

# write_and_verify NAME BUS OFFSET LENGTH: writes the begin of /new; the host looks at the flash. What the write
# counted is in /tmp/written.
write_and_verify() {
	dd if=/new of=/tmp/write bs=4096 count=$(($4 / 4096)) 2>/dev/null
	check "$1-write" barewire flash write /tmp/write --quiet --json --stats --offset "$3" --bus "$2" && say "WROTE $3 $4"
	mv /tmp/out /tmp/written
	check "$1-verify" barewire flash verify /tmp/write --quiet --offset "$3" --bus "$2"
}

# awaited PATH: waits until it exists. A driver's probe may come a while after its module, on a busy machine.
awaited() {
	tries=0
	until [ -e "$1" ] || [ $tries -ge 300 ]; do sleep 0.1; tries=$((tries + 1)); done
	[ -e "$1" ]
}
# The kernel's driver of the controller, and of the chip.
bound() { awaited "/sys/bus/$DRIVER_BUS/drivers/$DRIVER/$DEVICE"; }
unbind() { echo "$DEVICE" >"/sys/bus/$DRIVER_BUS/drivers/$DRIVER/unbind"; }
bind() { echo "$DEVICE" >"/sys/bus/$DRIVER_BUS/drivers/$DRIVER/bind"; }
# Gives chip select 0 to spidev.
use_spidev() {
	device=$(ls /sys/bus/spi/devices | grep '\.0$' | head -n 1)
	[ -L "/sys/bus/spi/devices/$device/driver" ] && echo "$device" >"/sys/bus/spi/devices/$device/driver/unbind"
	echo spidev >"/sys/bus/spi/devices/$device/driver_override"
	echo "$device" >/sys/bus/spi/drivers/spidev/bind
	SPIDEV=spidev:/dev/${device/spi/spidev}
}
# And back to the kernel's flash driver.
use_mtd() {
	echo "$device" >/sys/bus/spi/drivers/spidev/unbind
	echo >"/sys/bus/spi/devices/$device/driver_override"
	echo "$device" >/sys/bus/spi/drivers/spi-nor/bind
}

# identify_on BUS: asks for the chip's id over and over beside what follows, until identify_no_more.
identify_on() {
	rm -f /tmp/enough
	(until [ -e /tmp/enough ]; do barewire flash id --bus "$1" >/dev/null 2>&1; sleep 0.05; done) &
	ids=$!
}
identify_no_more() { touch /tmp/enough; wait $ids; }

# ended PID: whether a child has ended, waited for or not.
ended() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }

# ended_within PID SECONDS: whether a child ends in that time.
ended_within() {
	tenths=$(($2 * 10))
	while [ $tenths -gt 0 ]; do
		if ended "$1"; then return 0; fi
		sleep 0.1
		tenths=$((tenths - 1))
	done
	return 1
}

# has_registers PID…: whether one of those processes has the controller mapped.
has_registers() {
	for process in "$@"; do grep -q "$ADDRESS .*/dev/mem" "/proc/$process/maps" 2>/dev/null && return 0; done
	return 1
}

# stopped_with_registers PID: stops that process once it has the controller mapped.
stopped_with_registers() {
	tries=0
	until has_registers "$1" || ended "$1" || [ $tries -ge 1000 ]; do tries=$((tries + 1)); done
	kill -STOP "$1"
	has_registers "$1"
}

# waited PID SECONDS: the exit status of a child; 124 if it did not end and was killed.
waited() {
	if ended_within "$1" "$2"; then
		wait "$1"
		return
	fi
	kill -CONT "$1" 2>/dev/null; kill -9 "$1" 2>/dev/null; wait "$1" 2>/dev/null
	return 124
}

# Bus texts of the board: mem BANK-OR-LINE [option…]. The clock is left out of account, since QEMU
# models no gates; the checks of the clock itself write their own.
mem() { select=$1; shift; echo "mem:0x$ADDRESS,$OPTIONS,cs=$select,ignore-clock$(printf ',%s' "$@" | sed 's/^,$//')"; }

# follow NAME FILE: runs each line that begins with `$ `, and looks for each other line in that
# command's output, ignoring blanks at both ends. Variables hold from command to command.
follow() {
	number=0
	while IFS= read -r line <&4; do
		case "$line" in
		'$ '*)
			number=$((number + 1))
			say "$line"
			# On a board there is time between two commands.
			eval "${line#??}" >/tmp/printed 2>&1 </dev/null 4<&-
			status=$?
			cat /tmp/printed
			if [ $status = 0 ]; then pass "$1-$number"; else fail "$1-$number" "exit $status: $line: $(tail -n 2 /tmp/printed)"; fi
			sed 's/^ *//; s/ *$//' /tmp/printed >/tmp/trimmed ;;
		*)
			line=$(echo "$line" | sed 's/^ *//; s/ *$//')
			grep -qxF -e "$line" /tmp/trimmed || fail "$1-$number-prints" "not printed: $line" ;;
		esac
	done 4<"$2"
	[ $number -gt 0 ] || fail "$1" "no page has commands for this boot"
}
