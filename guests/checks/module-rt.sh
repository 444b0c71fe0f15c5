# This project's module on a kernel with PREEMPT_RT, where interrupt handlers are threads and most locks sleep: a prepared access in a
# hard interrupt may take none of those. Short, since the boot `module` does the same at length on a kernel without.
. /module-lib.sh

if [ "$(cat /sys/kernel/realtime)" = 1 ]; then pass real-time; else fail real-time "$(uname -v)"; fi
bound && awaited /dev/mtd0
check load insmod /m/barewire.ko
to_barewire bind
awaited /dev/mtd0
mtd_writes mtd-write $((SIZE / 2)) 65536
# Long messages, which sleep, of two readers at once.
read_part() { dd if=/dev/mtd0 of="$1" bs=4096 count=32 2>/dev/null; }
read_part /tmp/one & read_part /tmp/other; wait
part 0 131072 /ref
same mtd /tmp/one /tmp/part
same mtd-other /tmp/other /tmp/part
MIXED_MS=1000
NO_SYSTEM_SLEEP=1
. /module-api.sh
to_linux unbind
check unload rmmod barewire
no_complaints
