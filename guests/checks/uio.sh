# By a UIO device: polled, by interrupt, and by a user who is not root.

insmod /m/uio_pdrv_genirq.ko of_id=generic-uio
if ! awaited /dev/uio0; then
	fail uio-device "no /dev/uio0"
else
	pass uio-device
	# Nothing here keeps the clock, as a simple-pm-bus would: see overlay.sh.
	UIO="uio:uio0,$OPTIONS,ignore-clock,cs=$BANK"
	USER_UIO="uio:uio0,$OPTIONS,ignore-clock,cs=$LINE"
	# Rights on two device nodes, and no others, for later: the lock gets those of the node when it is made.
	chown user /dev/uio0 /dev/gpiochip*
	check uio-id barewire flash id --bus "$UIO"
	read_and_compare uio-read-1m "$UIO" 1048576
	write_and_verify uio "$UIO" $((SIZE / 8)) 65536
	# A transfer that takes any time on the wire sleeps for the interrupt.
	count() { sed -n 's/^ *[0-9]*: *\(.*\)/\1/p' /proc/interrupts | grep -i "uio\|spi\|ssp" | awk '{ n = 0; for (i = 1; i <= NF && $i ~ /^[0-9]+$/; i++) n += $i; all += n } END { print all + 0 }'; }
	before=$(count)
	read_and_compare uio-interrupt-read "$UIO,poll-limit-us=0" 65536
	after=$(count)
	if [ "$after" -gt "$before" ]; then pass uio-interrupts
	else fail uio-interrupts "$before before, $after after: $(grep -i 'uio\|spi\|ssp' /proc/interrupts | tr '\n' ';')"; fi
	# CS through the kernel's GPIO character device.
	as_user() { su user -c "barewire $*"; }
	check uio-as-user as_user flash id --bus "$USER_UIO"
	rm -f /tmp/as-user
	if as_user flash read /tmp/as-user --quiet --length 65536 --bus "$USER_UIO" >/tmp/out 2>/tmp/err; then
		part 0 65536 /ref
		same uio-as-user-read /tmp/as-user /tmp/part
	else
		fail uio-as-user-read "exit $?: $(errors /tmp/err)"
	fi
	refused mem-as-user 'ermission\|root\|CAP_SYS_RAWIO' as_user flash id --bus "$(mem "$LINE")"
fi
