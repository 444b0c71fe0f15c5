# i.MX 8M Plus EVK: ECSPI1, a W25Q256 behind GPIO5_9.
DEVICE=30820000.spi DRIVER=spi_imx DRIVER_BUS=platform
ADDRESS=30820000 LATER_ADDRESS=30820004 SIZE=33554432 PROCESS_LENGTH=4194304
OPTIONS=reference-hz=80M
BANK=gpio@0x30240000.9,unsafe-shared LINE=gpio@0x30240000:9
HOLE=0x30821000
CLOCK_IS_ASKED=1
CLOCK=ecspi1_root_clk
# What the shipped overlay gives to UIO.
OVERLAY_ADDRESS=30830000 OVERLAY_CLOCK=ecspi2_root_clk
# The controller beside it, and the one whose bus keeps the clock of the first.
BESIDE_ADDRESS=30840000 BESIDE_CLOCK=ecspi3_root_clk UNCLOCKED_ADDRESS=30820000
HAND="ecspi 0x30820000 0x30240000 9"
PROGRAMS_ARE_COUNTED=1
WRONG="disabled-ecspi3:30840000 interrupts:38800000 clocks:30380000 hole:30fe0000 memory:48000000"
# In whose page another block has registers, in imx8mp-evk-crowded.dtsi alone.
[ -e /sys/bus/platform/devices/30840000.spi ] && CROWDED=30840000.spi
# The simulated board beside which it is measured.
MEASURED=imx8mp
# 100 times on one kernel.
case $(uname -r) in 6.1.*) ;; *) RELOADS=20 ;; esac
