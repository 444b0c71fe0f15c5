# Doctor on a stock kernel, followed literally: only what it prints is pasted.

# What doctor must not change: drivers, overrides, pins. (The kernel's driver switches its clock by
# itself.)
state() {
	ls -l /sys/bus/spi/devices/*/driver "/sys/bus/$DRIVER_BUS/devices/$DEVICE/driver" 2>&1
	cat /sys/bus/spi/devices/*/driver_override
	cat /sys/kernel/debug/gpio /sys/kernel/debug/pinctrl/*/pinmux-pins
}
commands() { sed -n 's/^ *\$ //p' "$1"; }
undo() { sed -n 's/^ *undo: //p' "$1"; }
driver_of() { basename "$(readlink "/sys/bus/spi/devices/$1/driver")" 2>/dev/null; }

awaited /dev/mtd0
state >/tmp/before
check doctor barewire doctor
cp /tmp/out /tmp/doctor
cat /tmp/doctor
check doctor-json sh -c 'barewire doctor --json | grep -q "\"controllers\":\[{"'
state >/tmp/after
same doctor-touches-nothing /tmp/before /tmp/after
# Clock registers are never written by advice.
if commands /tmp/doctor | grep -i -e devmem -e 0x3038 -e clk; then fail doctor-no-clock-writes "see the log"
else pass doctor-no-clock-writes; fi
# While a driver has a chip on the bus, nothing tells to take the bus away.
if commands /tmp/doctor | grep "$DEVICE.*unbind"; then fail doctor-no-unbind "$(commands /tmp/doctor | grep unbind)"
else pass doctor-no-unbind; fi
check doctor-says-no-uio grep -q 'no uio_pdrv_genirq' /tmp/doctor

# The flash is lent to spidev.
bus=$(sed -n 's/^After its steps: *--bus \(spidev:\)/\1/p' /tmp/doctor | head -n 1)
refused doctor-bus-not-ready "not ready" barewire doctor "$bus"
barewire doctor "$bus" >/tmp/steps 2>/dev/null
commands /tmp/steps >/tmp/paste
cat /tmp/paste
check doctor-steps sh -e /tmp/paste
check doctor-bus-ready barewire doctor "$bus"
try=$(sed -n 's/^ *try: //p' /tmp/out | head -n 1)
check doctor-try $try
read_and_compare doctor-read-64k "$bus" 65536
check doctor-probe barewire doctor "$bus" --probe
# Each step's undo, then the same by restore.
undo /tmp/steps >/tmp/paste
check doctor-undo sh -e /tmp/paste
[ "$(driver_of spi0.0)" = spi-nor ] && pass doctor-undone || fail doctor-undone "spi0.0 has $(driver_of spi0.0)"
commands /tmp/steps >/tmp/paste
check doctor-steps-again sh -e /tmp/paste
check restore-dry-run barewire restore --dry-run
[ "$(driver_of spi0.0)" = spidev ] && pass restore-dry-run-does-nothing || fail restore-dry-run-does-nothing "spi0.0 has $(driver_of spi0.0)"
check restore barewire restore
[ "$(driver_of spi0.0)" = spi-nor ] && pass restored || fail restored "spi0.0 has $(driver_of spi0.0)"
state >/tmp/after
same restored-all /tmp/before /tmp/after

# The kernel's own flash driver finds the chip as it left it.
dd if=/dev/mtd0 of=/tmp/mtd bs=4096 count=16 2>&1 | grep -v records
part 0 65536 /ref
same doctor-mtd-reads /tmp/mtd /tmp/part

# Once spidev has every chip, a program can use the registers if nothing stops their clock.
sh -e /tmp/paste
barewire doctor >/tmp/doctor
bus=$(sed -n 's/^After its steps: *--bus \(mem:\)/\1/p' /tmp/doctor | head -n 1)
if [ -n "$CLOCK" ]; then
	# Taken all the same: doctor sees what is off, and the way back. The kernel's own count may be 1 while
	# its driver is idle, and is 0 once the driver has gone.
	unbind
	barewire doctor >/tmp/unbound
	cat /tmp/unbound
	check doctor-unbound-clock grep -q '^! clock.*off' /tmp/unbound
	check doctor-unbound-driver grep -q '^- driver.*none has it' /tmp/unbound
	if [ -z "$bus" ]; then pass doctor-no-mem-without-clock; else fail doctor-no-mem-without-clock "$bus"; fi
else
	barewire doctor "$bus" >/tmp/steps 2>/dev/null
	# There is no tool for pins here, and no pins in the model.
	commands /tmp/steps | grep -v pinctrl >/tmp/paste
	cat /tmp/paste
	check doctor-mem-steps sh -e /tmp/paste
	check doctor-mem-id barewire flash id --bus "$bus"
	read_and_compare doctor-mem-read "$bus" 65536
	# The kernel's GPIO driver has claimed its bank; the refusal says which bus can be mapped.
	bank=$(echo "$bus" | sed 's/,cs=.*/,cs=gpio@0x3f200000.8/')
	refused doctor-bank-claimed 'cs=gpio@0x3f200000:8' barewire flash id --bus "$bank"
	# The manual's address is not the processor's.
	refused doctor-bus-address "$ADDRESS" barewire flash id --bus "$(echo "$bus" | sed 's/0x3f/0x7e/')"
fi
check restore-controller barewire restore
[ "$(driver_of spi0.0)" = spi-nor ] && pass restored-controller || fail restored-controller "spi0.0 has $(driver_of spi0.0)"
dd if=/dev/mtd0 of=/tmp/mtd bs=4096 count=16 2>&1 | grep -v records
same restored-mtd-reads /tmp/mtd /tmp/part

# The page for people, to the letter.
follow page /steps
