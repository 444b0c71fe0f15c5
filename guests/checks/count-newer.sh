# Instructions of the kernel's own paths on Linux 6.12, counted as in count.sh. Nothing of ours runs here.

# kernels ARGUMENT…: what the hand-written program counts of spidev and mtd, under the names of the table.
kernels() {
	spibench "$@" >/tmp/out 2>/tmp/err
	status=$?
	[ $status = 0 ] || fail "count-newer-$1" "exit $status: $(errors /tmp/err)"
	sed -n 's/^END \([^ ]*\) .*per_op_ns=\([0-9.]*\).*/\1 \2/p' /tmp/out | while read -r name count; do
		case $name in
			spidev-jedec4) say "COUNT spidev-4-6.12 $count" ;;
			spidev-read1024) say "COUNT spidev-1024-6.12 $count" ;;
			mtd-pread1024) say "COUNT mtd-1024-6.12 $count" ;;
		esac
	done
	pass "count-newer-$1"
}

awaited /dev/mtd0
kernels mtd /dev/mtd0
use_spidev
kernels spidev "${SPIDEV#spidev:}"
