# Registers mapped by /dev/mem, with iomem=relaxed: refusals, data, and what the kernel finds afterwards.

REGISTERS=$(mem "$BANK")

bound
# The kernel's driver has the block: the address, any address inside it, and a block elsewhere in it.
refused mem-refused-while-bound unbind barewire flash id --bus "$REGISTERS"
LATER=$(echo "$REGISTERS" | sed "s/$ADDRESS/$LATER_ADDRESS/")
refused mem-range-refused-while-bound "$DRIVER\|unbind" barewire flash id --bus "$LATER"

unbind
# Unbinding switched the clock off: silicon would hang. What cannot be known is refused as well, and
# the message names the option that goes on all the same.
if [ -n "$CLOCK_IS_ASKED" ]; then
	refused mem-clock-refused ignore-clock barewire flash id --bus "$(echo "$REGISTERS" | sed 's/,ignore-clock//')"
else
	skip mem-clock-refused "the block's clock has no gate that anybody closes"
fi
# A clock that the device tree fixes is known to run, and so is its rate.
if [ -n "$FIXED_CLOCK" ]; then
	fixed() { echo "$REGISTERS" | sed "s/,ignore-clock//; s/reference-hz=[^,]*/reference-hz=$1/"; }
	check mem-fixed-clock barewire flash id --bus "$(fixed "$FIXED_CLOCK")"
	refused mem-rate-refused "$FIXED_CLOCK" barewire flash id --bus "$(fixed 80M)"
fi

check mem-id barewire flash id --bus "$REGISTERS"
read_and_compare mem-read-1m "$REGISTERS" 1048576
# 16 sectors are erased and programmed as fast as the chip says it is ready. The model takes no time, so the first
# look finds it ready: some four messages for a page, two for a word.
write_and_verify mem "$REGISTERS" $((SIZE / 4)) 65536
counted() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" /tmp/written | grep . || echo 0; }
messages=$(counted messages) changes=$(($(counted programs) + $(counted erases)))
if [ $messages -gt 0 ] && [ $messages -le $((8 * changes)) ]; then pass mem-write-messages
else fail mem-write-messages "$messages messages for $changes programs and erases"; fi
# CS through the kernel's GPIO character device costs two system calls a message and no option.
read_and_compare mem-gpio-line-read "$(mem "$LINE")" 65536

# The divider ends far above 1 Hz.
refused mem-speed-hz-1-refused 'Hz\|clock\|speed' barewire flash id --speed-hz 1 --bus "$REGISTERS"

# A hole in the address map: a bus error that names the register, not a bare signal.
if [ -n "$HOLE" ]; then
	refused mem-hole-named "${HOLE#0x}\|register" barewire flash id --bus "$(echo "$REGISTERS" | sed "s/0x$ADDRESS/$HOLE/")"
fi

# What the device tree gives to another node, to a disabled one or to none is touched neither as a controller nor as a bank. The
# refusal names the node; another's name in the waiver does not help.
select=${BANK%%,*}
for it in $WRONG ${DISABLED_BANK:+disabled-bank:$DISABLED_BANK}; do
	address=0x${it#*:}
	spi=$(echo "$REGISTERS" | sed "s/0x$ADDRESS/$address/")
	bank=$(echo "$REGISTERS" | sed "s/$select/gpio@$address.0/")
	refused "mem-wrong-${it%:*}" "the device tree gives $address to" barewire flash id --bus "$spi"
	refused "mem-wrong-bank-${it%:*}" "the device tree gives $address to" barewire flash id --bus "$bank"
done
refused mem-wrong-waiver "the device tree gives $address to" barewire flash id --bus "$spi,node=cpus"
if [ -n "$DISABLED_BANK" ]; then
	bank=$(echo "$REGISTERS" | sed "s/$select/gpio@0x$DISABLED_BANK.0/")
	refused mem-disabled-bank-named "node=gpio@$DISABLED_BANK" barewire flash id --bus "$bank"
	# QEMU gates no clocks: the bank answers, the chip is not selected by it.
	refused mem-disabled-bank-waived chip barewire flash id --bus "$bank,node=gpio@$DISABLED_BANK"
fi

# The loopback suite, whole.
if [ -n "$LOOPBACK" ]; then
	barewire selftest --json --bus "$REGISTERS" >/tmp/out 2>/tmp/err
	status=$?
	if [ $status = 0 ] && grep -q 1801 /tmp/out; then pass selftest-1801
	else fail selftest-1801 "exit $status: $(cut -c1-200 /tmp/out) $(errors /tmp/err)"; fi
else
	skip selftest-1801 "QEMU's model has no loopback"
fi

# Bound again, the kernel's mtd reads what we wrote.
bind
if awaited /dev/mtd0; then
	dd if=/dev/mtd0 of=/tmp/mtd bs=4096 skip=$((SIZE / 4 / 4096)) count=16 2>/dev/null
	dd if=/new of=/tmp/part bs=65536 count=1 2>/dev/null
	same mtd-after-mem /tmp/mtd /tmp/part
else
	fail mtd-after-mem "the kernel's driver does not find the chip"
fi

# rebound NAME COMMAND…: the kernel's driver comes back while the command drives the registers: an error that names
# it, not wrong data with exit 0. The command must be at work when it does, and not be done: so it is a long one, and
# stopped meanwhile. How long it takes to open depends on the machine, so each try waits twice as long as the last.
rebound() {
	name=$1 tries=0 met=; shift
	for pause in 0.2 0.4 0.8 1.6 3 6; do
		[ -z "$met" ] || break
		[ -e "/sys/bus/$DRIVER_BUS/drivers/$DRIVER/$DEVICE" ] && unbind
		"$@" >/dev/null 2>/tmp/err3 &
		user=$!
		until grep -qs /dev/mem /proc/$user/maps || ended $user; do sleep 0.02; done
		sleep $pause
		kill -STOP $user
		ended $user || met=1
		bind
		kill -CONT $user
		# The bench looks at its end, if no message fails before.
		waited $user 400
		status=$?
		# It was still opening, and the kernel's driver took the line first; or only its last words were left to do.
		if [ $status = 0 ] || grep -q 'is in use: it belongs' /tmp/err3; then met=; fi
		tries=$((tries + 1))
	done
	if [ -z "$met" ]; then fail "$name" "in $tries tries it was not met at work: exit $status: $(errors /tmp/err3)"
	else names_driver "$name" $status; fi
}
# names_driver NAME STATUS: what said its reason in /tmp/err3 failed by itself, because of the kernel's driver.
names_driver() {
	if [ "$2" = 124 ]; then fail "$1" "it goes on and on"
	elif [ "$2" = 0 ]; then fail "$1" "exit 0"
	elif [ "$2" -ge 128 ]; then fail "$1" "killed by signal $(($2 - 128))"
	elif ! grep -q "$DRIVER" /tmp/err3; then fail "$1" "exit $2, the message lacks $DRIVER: $(errors /tmp/err3)"
	else pass "$1"; fi
}
rebound mem-rebind-noticed barewire flash read /tmp/rebound --quiet --bus "$REGISTERS"
rebound bench-rebind-noticed barewire bench --board "$REGISTERS" --rounds 400 --json

# A server ends, though no program is connected.
ip link set lo up
unbind
barewire serve --serprog 127.0.0.1:0 --bus "$REGISTERS" >/dev/null 2>/tmp/err3 &
server=$! tries=0
until grep -q 'serprog at' /tmp/err3 || [ $tries -ge 100 ]; do sleep 0.1; tries=$((tries + 1)); done
bind
waited $server 20
names_driver serve-rebind-noticed $?

# Measured, with the chip and the controller taken from the kernel's drivers and given back. Times are QEMU's, and the
# files say so.
JOURNAL=/run/barewire-measure.restore
drivers() {
	for it in /sys/bus/spi/devices/* "/sys/bus/$DRIVER_BUS/devices/$DEVICE"; do
		echo "${it##*/}: $(readlink "$it/driver" | sed 's/.*\///') $(cat "$it/driver_override")"
	done
}
# measuring NAME SIGNAL [option…]: measures until the controller is taken, and sends the signal.
measuring() {
	name=$1 signal=$2; shift 2
	rm -rf /tmp/measured-$name
	barewire measure --board "$REGISTERS" --flash -o /tmp/measured-$name "$@" >/tmp/out 2>/tmp/err &
	measurer=$!
	until grep -qs drivers_probe $JOURNAL && [ ! -e "/sys/bus/$DRIVER_BUS/devices/$DEVICE/driver" ] || ended $measurer; do sleep 0.05; done
	if ended $measurer; then fail "$name-met" "it ended before: $(errors /tmp/err)"; fi
	sleep 0.3
	kill -$signal $measurer
	waited $measurer 60
	status=$?
}
if [ -n "$MEASURED" ]; then
	bound; awaited /dev/mtd0
	drivers >/tmp/before
	begun=$(cut -d . -f 1 /proc/uptime)
	check measure barewire measure --board "$REGISTERS" --flash --quick -o /tmp/measured
	say "MEASURE took $(($(cut -d . -f 1 /proc/uptime) - begun)) s"
	cat /tmp/out
	drivers >/tmp/after
	same measure-gives-back /tmp/before /tmp/after
	for it in '"origin": "emulated"' '"complete": true' '"id": "register-read"' '"id": "gpio-write"' '"id": "spidev-4"' '"condition": "load"'; do
		check "measure-has-$(echo "$it" | sed 's/.*"\(.*\)".*/\1/; s/.*: //')" grep -q "$it" /tmp/measured/measured.json
	done
	check measure-page grep -q 'id="measured-idle-registers"' /tmp/measured/measured.html
	# What the simulator makes of it.
	check measure-costs-for-sim barewire flash id --bus "sim:$MEASURED,costs=/tmp/measured/measured.json"
	# As a file: a guest is too slow for `barewire lab gain`, which a host's tests give such files.
	cat /tmp/measured/measured.json

	measuring measure-interrupt INT
	if [ $status = 130 ]; then pass measure-interrupt; else fail measure-interrupt "exit $status: $(errors /tmp/err)"; fi
	drivers >/tmp/after
	same measure-interrupt-gives-back /tmp/before /tmp/after
	check measure-interrupt-says-so grep -q '"complete": false' /tmp/measured-measure-interrupt/measured.json
	if [ -e $JOURNAL ]; then fail measure-interrupt-forgets "$JOURNAL is there"; else pass measure-interrupt-forgets; fi

	# Killed, it leaves a file that says what to do, twice: by the command, and by the file itself.
	measuring measure-kill KILL
	refused measure-refused-after-kill 'barewire restore' barewire measure --board "$REGISTERS" --quick -o /tmp/no
	check measure-restore barewire restore
	drivers >/tmp/after
	same measure-restored /tmp/before /tmp/after
	if [ -e $JOURNAL ]; then fail measure-restore-forgets "$JOURNAL is there"; else pass measure-restore-forgets; fi
	measuring measure-kill-again KILL
	cat $JOURNAL
	check measure-journal sh -e $JOURNAL
	awaited /dev/mtd0
	drivers >/tmp/after
	same measure-journal-restores /tmp/before /tmp/after
	rm -f $JOURNAL
fi
