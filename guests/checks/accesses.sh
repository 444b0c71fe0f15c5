# Accesses to the controller's and the bank's registers of one operation, by others: guests/wire.c counts them between
# the marks of the hand-written program. Ours are counted on the host (command/barewire-cli/tests/instructions.rs).

# hand ARGUMENT…: a line for each pair of marks, in their order.
hand() {
	spibench "$@" >/tmp/out 2>/tmp/err
	status=$?
	if [ $status != 0 ]; then
		fail "accesses-$1" "exit $status: $(errors /tmp/err)"
		return
	fi
	sed -n 's/^END \([^ ]*\) n=\([0-9]*\) .*/\1 \2/p' /tmp/out | while read -r name calls; do
		case $name in
			spidev-jedec4) path=spidev-4 ;;
			spidev-read1024) path=spidev-1024 ;;
			mtd-pread1024) path=mtd-1024 ;;
			mmio-gpio-jedec4) path=hand-4 ;;
			mmio-gpio-read1024) path=hand-1024 ;;
			*) path=- ;;
		esac
		say "ACCESSES $path $calls"
	done
	pass "accesses-$1"
}

awaited /dev/mtd0
# Counting begins at the first marks, whose counts are not whole.
spibench mtd /dev/mtd0 2>/dev/null | sed -n 's/^END [^ ]* n=\([0-9]*\) .*/\1/p' |
	while read -r calls; do say "ACCESSES - $calls"; done
hand mtd /dev/mtd0
use_spidev
hand spidev "${SPIDEV#spidev:}"
unbind
hand $HAND
