"""gpiozero by lgpio: an output, and an input that is pulled up and watched for edges."""

from gpiozero import Button, LED
from gpiozero.pins.lgpio import LGPIOFactory

led = LED(24)
assert isinstance(led.pin.factory, LGPIOFactory), led.pin.factory
for value in (1, 0, 1):
    led.value = value
    assert led.value == value
button = Button(23, pull_up=True)
assert not button.is_pressed
# Only the line's pull moves it here.
button.when_pressed = lambda: print("pressed")
button.close()
led.close()
print("gpiozero by lgpio")
