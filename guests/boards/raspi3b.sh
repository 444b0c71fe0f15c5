# Raspberry Pi 3B: BCM2835's SPI0, a W25Q256 behind GPIO 8.
DEVICE=3f204000.spi DRIVER=spi-bcm2835 DRIVER_BUS=platform
ADDRESS=3f204000 LATER_ADDRESS=3f204004 SIZE=33554432 PROCESS_LENGTH=1048576
OPTIONS=controller=bcm2835,reference-hz=400M
BANK=gpio@0x3f200000.8 LINE=gpio@0x3f200000:8
HAND="bcm 0x3f204000 0x3f200000 8"
OVERLAY_ADDRESS=3f204000
# Addresses that are no controller's and no bank's: name:address.
WRONG="pcm:3f203000 spi-slave:3f214000 spi-slave-on-its-bus:7e214000 aux-spi1:3f215080 gpu-memory:3d000000 memory:8000000 local-interrupts:40000040"
# Its guest is slow, and this is done 100 times elsewhere.
RELOADS=20
