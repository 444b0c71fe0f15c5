#!/bin/busybox sh
# The first process of a guest: mounts, modules, then the script of this boot.
/bin/busybox --install -s /bin 2>/dev/null
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t debugfs debug /sys/kernel/debug
chmod 1777 /tmp /run/lock
for module in $(cat /m/order); do
	insmod "/m/$module.ko" || echo "insmod $module failed"
done
sleep 0.3
. /lib.sh
. /board.sh
. /check.sh
sync
echo DONE
reboot -f
poweroff -f
