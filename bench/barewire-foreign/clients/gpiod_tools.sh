# gpiod's tools. The INT of an MCP2518FD is line 12; its node is /dev/spidev0.2.
set -eu
gpiodetect
gpioinfo gpiochip0 | grep 'line *12:.*GPIO5_IO12.*unused.*input'
gpioinfo gpiochip0 | grep 'line *9:.*"spi0 CS0".*output.*used'
test "$(gpiofind GPIO5_IO12)" = "gpiochip0 12"
# The pin is pulled up: the recorded wire has 1, 0, 1, 0.
gpioset gpiochip0 20=0 21=1
gpioset gpiochip0 20=1 21=0
gpioset --active-low gpiochip0 20=1
test "$(gpioget --bias=pull-up gpiochip0 22)" = 1
test "$(gpioget --bias=pull-down gpiochip0 22)" = 0
if gpioset gpiochip0 9=1; then exit 1; fi
gpioset --mode=signal gpiochip0 23=1 &
holder=$!
while ! gpioinfo gpiochip0 | grep -q 'line *23:.*gpioset'; do :; done
if gpioget gpiochip0 23; then exit 1; fi
kill $holder
wait $holder || true
# The change into loopback interrupts; clearing the flag ends it.
gpiomon --num-events=2 --format='%e %o' gpiochip0 12 > edges &
monitor=$!
while ! gpioinfo gpiochip0 | grep -q 'line *12:.*gpiomon'; do :; done
write() { printf "$1" | spi-pipe -d /dev/spidev0.2 -b 3 -n 1 > answer; }
write '\040\036\010'
write '\040\003\002'
write '\040\034\000'
wait $monitor
printf '0 12\n1 12\n' | cmp - edges
