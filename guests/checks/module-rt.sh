# This project's module on a kernel with PREEMPT_RT, where interrupt handlers are threads and most locks sleep: a prepared access in a
# hard interrupt may take none of those.
. /module-lib.sh

[ -e /sys/kernel/realtime ] && [ "$(cat /sys/kernel/realtime)" = 1 ] && pass real-time || fail real-time "$(uname -v)"
bound && awaited /dev/mtd0
check load insmod /m/barewire.ko
to_barewire bind
awaited /dev/mtd0
mtd_reads mtd
mtd_writes mtd-write $((SIZE / 2)) 65536
use_spidev
NODE=${SPIDEV#spidev:}
spidev_reads spidev-read
# Long transfers, which sleep.
spidev_reads interrupts-read 1000000
check spidev-two-readers spimessage read "$NODE" /tmp/part 2
. /module-api.sh
to_linux unbind
check unload rmmod barewire
no_complaints
