# Calxeda Highbank: PL022, a W25Q256 behind pin 0 of the first PL061.
DEVICE=fff39000.ssp DRIVER=ssp-pl022 DRIVER_BUS=amba
ADDRESS=fff39000 LATER_ADDRESS=fff39004 SIZE=33554432 PROCESS_LENGTH=524288
OPTIONS=controller=pl022,reference-hz=150M
BANK=gpio@0xfff30000.0 LINE=gpio@0xfff30000:0
HAND="pl022 0xfff39000 0xfff30000 0"
LOOPBACK=1
FIXED_CLOCK=150000000
WRONG="interrupts:fff11000 timer:fff34000 disabled-sdhci:ffe0e000 hole:fff38000 memory:8000000"
DISABLED_BANK=fff31000
# Its guest is slow, and this is done 100 times elsewhere.
RELOADS=20
