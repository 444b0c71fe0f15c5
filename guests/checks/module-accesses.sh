# Accesses to the controller's and the bank's registers of one operation, with the kernel's driver and with this project's
# module: guests/wire.c counts them between the marks of spibench and of the client in the kernel.
. /module-lib.sh

# marked WHO: a line for each pair of marks that spibench set, in their order.
marked() {
	sed -n 's/^END \([^ ]*\) n=\([0-9]*\) .*/\1 \2/p' /tmp/out | while read -r name calls; do
		case $name in
			spidev-jedec4) path=$1-spidev-4 ;;
			spidev-read1024) path=$1-spidev-1024 ;;
			mtd-pread1024) path=$1-mtd-1024 ;;
			*) path=- ;;
		esac
		say "ACCESSES $path $calls"
	done
}
counted() {
	who=$1
	awaited /dev/mtd0
	check "$who-accesses-mtd" spibench mtd /dev/mtd0
	marked "$who"
	use_spidev
	NODE=${SPIDEV#spidev:}
	check "$who-accesses-spidev" spibench spidev "$NODE"
	marked "$who"
	use_mtd
}

bound && awaited /dev/mtd0
# Counting begins at the first marks, whose counts are not whole.
spibench mtd /dev/mtd0 2>/dev/null | sed -n 's/^END [^ ]* n=\([0-9]*\) .*/\1/p' | while read -r calls; do say "ACCESSES - $calls"; done
counted linux
insmod /m/barewire.ko
to_barewire bind
counted ours
