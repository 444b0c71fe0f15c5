"""Buses, devices, messages, prepared exchanges, locks."""

from __future__ import annotations

import array
import gc
import threading
import time
import weakref

import numpy as np
import pytest
from conftest import beside_another_thread

import barewire
from barewire import Transfer

ID = b"\xff\xef\x40\x16"
SENT = b"\x9f\0\0\0"


def test_a_bus_has_no_default_name() -> None:
    with pytest.raises(TypeError, match="name"):
        barewire.Bus()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        barewire.Bus(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no bus is called"):
        barewire.Bus("")


def test_a_message_takes_bytes_of_any_kind(flash: barewire.Device) -> None:
    for sent in (
        SENT, bytearray(SENT), memoryview(SENT), list(SENT), tuple(SENT), array.array("B", SENT),
        np.frombuffer(SENT, np.uint8), (value for value in SENT),
    ):
        assert flash.transfer(sent) == ID
    assert flash.transfer(b"") == b""


@pytest.mark.parametrize(
    ("sent", "error", "said"),
    [
        ("text", TypeError, "bytes, a buffer or a sequence of integers"),
        (None, TypeError, "not NoneType"),
        (5, TypeError, "not int"),
        ([256], ValueError, "value 0 is 256"),
        ([0, -1], ValueError, "value 1 is -1"),
        ([1.5], TypeError, "."),
        ([1 << 80], ValueError, "a byte is 0 to 255"),
        (np.zeros(4, np.int64), TypeError, "dtype uint8"),
        (np.zeros(8, np.uint8)[::2], TypeError, "has gaps"),
        ([Transfer.read(1), b"x"], TypeError, "."),
        ([Transfer.read(1 << 40)], ValueError, "at most"),
    ],
)
def test_what_is_no_message_is_told(
    flash: barewire.Device, sent: object, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        flash.transfer(sent)  # type: ignore[call-overload]
    assert flash.transfer(SENT) == ID


def test_into_a_buffer(flash: barewire.Device) -> None:
    for into in (bytearray(4), np.zeros(4, np.uint8), array.array("B", bytes(4)), memoryview(bytearray(4))):
        assert flash.transfer(SENT, into=into) is into
        assert bytes(into) == ID
    assert flash.transfer([Transfer.write(SENT[:1]), Transfer.read(3)], into=(got := bytearray(3))) is got
    assert bytes(got) == ID[1:]
    for wrong, error in [(bytes(4), TypeError), (bytearray(3), ValueError), ("x", TypeError), (np.zeros(8, np.uint8)[::2], TypeError)]:
        with pytest.raises((error, BufferError)):
            flash.transfer(SENT, into=wrong)


def test_several_transfers(flash: barewire.Device, rpi3: barewire.Bus) -> None:
    received = flash.transfer([Transfer.write(b"\x9f"), Transfer.read(3, delay_ns=1_000)])
    assert received == [None, ID[1:]]
    twice = (Transfer.exchange(SENT, cs_change=True, cs_change_delay_ns=1_000), Transfer.exchange(SENT))
    assert flash.transfer(twice) == [ID, ID]
    assert flash.transfer(Transfer.exchange(SENT)) == [ID]
    with pytest.raises(barewire.SettingsError, match="use a GPIO as chip select"):
        flash.transfer(Transfer.exchange(SENT, speed_hz=1_000_000))
    counted = rpi3.statistics()
    assert counted is not None and counted["messages"] == 3
    flash.write(b"\x06")
    assert flash.read(2) == b"\xff\xff"
    with pytest.raises(TypeError, match="did you mean"):
        Transfer.write(b"", speed=1)  # type: ignore[call-arg]
    with pytest.raises(OverflowError):
        Transfer.write(b"", speed_hz=1 << 40)


def test_a_device_chooses_when_its_transfers_wait_by_interrupt(rpi3: barewire.Bus) -> None:
    for limit in (None, 0, 1_000, 2**32 - 1):
        assert rpi3.device(1, speed_hz=1_000_000, poll_limit_ns=limit).transfer(SENT) == ID
    with pytest.raises(OverflowError):
        rpi3.device(1, speed_hz=1_000_000, poll_limit_ns=-1)


def test_settings_have_the_fields_names(rpi3: barewire.Bus) -> None:
    device = rpi3.device(
        1, speed_hz=3_000_000, mode=barewire.MODE_3, bits_per_word=8, cs_setup_ns=100, cs_hold_ns=200,
        cs_inactive_ns=300, word_delay_ns=0, priority=3,
    )
    assert (device.chip_select, device.speed_hz, device.mode, device.bits_per_word) == (1, 3_000_000, 3, 8)
    assert 0 < device.effective_speed_hz <= 3_000_000
    effective = device.effective
    assert effective["speed_hz"] == device.effective_speed_hz
    assert effective["cs_setup_ns"] >= 100 and effective["cs_hold_ns"] >= 200 and effective["cs_inactive_ns"] >= 300
    assert device.transfer(SENT) == ID
    assert "chip_select=1" in repr(device)


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"speed_hz": 0}, barewire.SettingsError, "speed_hz is 0"),
        ({"speed_hz": 1}, barewire.SettingsError, "slowest clock"),
        ({"speed_hz": -1}, OverflowError, "."),
        ({"speed_hz": 1 << 40}, OverflowError, "."),
        ({"speed_hz": 1e6}, TypeError, "."),
        ({"speed_hz": 1_000_000, "mode": 0x100}, ValueError, "CS_HIGH"),
        ({"speed_hz": 1_000_000, "mode": 0x10}, ValueError, "0 to 3"),
        ({"speed_hz": 1_000_000, "bits_per_word": 12}, barewire.SettingsError, "12 bits"),
        ({"speed_hz": 1_000_000, "chip_select": 9}, barewire.SettingsError, "no chip select 9 .*has 0 and 1"),
        ({"speed_hz": 1_000_000, "mode": barewire.LSB_FIRST}, barewire.SettingsError, "."),
        ({}, TypeError, "speed_hz"),
    ],
)
def test_wrong_settings_are_refused(
    rpi3: barewire.Bus, settings: dict[str, int], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        rpi3.device(**settings)


@pytest.mark.parametrize("name", ["", "sim:rpi4", "null:x", "spidev:0.0", "rpi3", "/dev/spidev0.0", "mem:"])
def test_wrong_names_open_nothing(name: str) -> None:
    with pytest.raises(barewire.BusNameError) as caught:
        barewire.Bus(name)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, OSError)
    assert caught.value.errno == 22 and caught.value.strerror


def test_what_cannot_be_opened_is_told(tmp_path: object) -> None:
    with pytest.raises(barewire.OpenError, match="/dev/spidev99.9"):
        barewire.Bus("spidev:/dev/spidev99.9")
    with pytest.warns(UserWarning, match="did not exist"):
        bus = barewire.Bus(f"sim:rpi3,flash={tmp_path}/chip.bin")
    with pytest.raises(barewire.OpenError, match="in use by another process"):
        barewire.Bus(f"sim:rpi3,flash={tmp_path}/chip.bin")
    bus.close()
    barewire.Bus(f"sim:rpi3,flash={tmp_path}/chip.bin").close()


def test_words_of_16_bits() -> None:
    with barewire.Bus("sim:imx8mp") as bus:
        device = bus.device(0, speed_hz=1_000_000, bits_per_word=16)
        words = np.array([0x9F00, 0x0000], np.uint16)
        received = np.frombuffer(device.transfer(words), np.uint16)
        assert received.tolist() == [0xFFEF, 0x4019]
        with pytest.raises(barewire.SettingsError, match="whole number of 16-bit words"):
            device.transfer(b"\x9f\0\0")


def test_a_prepared_exchange_reuses_its_buffers(flash: barewire.Device) -> None:
    run = flash.prepare(SENT)
    received = run()
    assert received == ID and isinstance(received, bytearray)
    assert run() is received and run.run() is received and run.rx is received
    run.tx[0] = 0x05
    assert run()[1] == 0
    with pytest.raises(BufferError):
        run.tx.append(0)
    with pytest.raises(BufferError):
        received.clear()
    long = flash.prepare(b"\x9f" + bytes(99))
    assert long()[:4] == ID
    assert flash.prepare(b"")() == b""


@pytest.mark.parametrize("length", range(1, 20))
def test_prepared_exchanges_of_each_length(rpi3: barewire.Bus, flash: barewire.Device, length: int) -> None:
    # Sent, received and lengths: the id again and again, behind the opcode.
    run = flash.prepare(b"\x9f" + bytes(length - 1))
    plain = flash.transfer(b"\x9f" + bytes(length - 1))
    assert run() == plain
    figures = rpi3.simulated()
    assert figures is not None and figures["bits"] == 16 * length


def test_a_prepared_exchange_keeps_its_bus() -> None:
    run = barewire.Bus("sim:rpi3").device(1, speed_hz=1_000_000).prepare(SENT)
    gc.collect()
    assert run() == ID


def test_a_prepared_exchange_is_for_one_thread_at_a_time(rpi3: barewire.Bus) -> None:
    run = rpi3.device(1, speed_hz=1_000_000).prepare(bytes(100_000))
    refused = []

    def work() -> None:
        for _ in range(5):
            try:
                run()
            except RuntimeError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused and all("one at a time" in text for text in refused)
    assert len(run()) == 100_000


def test_statistics(flash: barewire.Device, rpi3: barewire.Bus) -> None:
    flash.transfer(SENT)
    flash.transfer([Transfer.write(b"\x9f"), Transfer.read(3)])
    statistics = rpi3.statistics()
    assert statistics is not None
    assert (statistics["messages"], statistics["transfers"], statistics["bytes"]) == (2, 3, 8)
    assert (statistics["bytes_tx"], statistics["bytes_rx"], statistics["errors"]) == (5, 7, 0)
    assert statistics["transfer_bytes_histo"]["4-7"] == 1
    rpi3.counting = False
    flash.transfer(SENT)
    assert rpi3.statistics() is None, "no count is not a count of nothing"
    rpi3.counting = True
    assert rpi3.statistics() == statistics
    with barewire.Bus("null:") as null:
        assert null.simulated() is None
        null.device(0, speed_hz=1_000_000).transfer(SENT)
        assert null.statistics() is None


def test_a_closed_bus_says_so(flash: barewire.Device, rpi3: barewire.Bus) -> None:
    run = flash.prepare(SENT)
    rpi3.close()
    rpi3.close()
    assert rpi3.closed and "closed" in repr(rpi3)
    for use in (lambda: flash.transfer(SENT), run, lambda: rpi3.device(1, speed_hz=1), lambda: barewire.Flash(rpi3)):
        with pytest.raises(barewire.ClosedError, match="is closed: open it again") as caught:
            use()
        assert caught.value.errno == 108
    with rpi3.lock():
        pass


def test_closing_in_use_ends_the_others() -> None:
    for name in ("sim:rpi3", "null:"):
        bus = barewire.Bus(name)
        ended: list[Exception] = []
        at_work = threading.Barrier(4)

        def work(
            bus: barewire.Bus = bus, ended: list[Exception] = ended, at_work: threading.Barrier = at_work
        ) -> None:
            run = bus.device(0, speed_hz=1_000_000).prepare(bytes(20))
            run()
            at_work.wait(60)
            try:
                while True:
                    run()
            except barewire.Error as error:
                ended.append(error)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        at_work.wait(60)
        bus.close()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert len(ended) == 3 and all(isinstance(error, barewire.ClosedError) for error in ended)


def test_a_lock_keeps_others_off(flash: barewire.Device, rpi3: barewire.Bus) -> None:
    order = []
    locked = threading.Event()

    def work() -> None:
        locked.wait()
        flash.transfer(SENT)
        order.append("other")

    thread = threading.Thread(target=work)
    thread.start()
    run, lock = flash.prepare(SENT), rpi3.lock()
    with lock:
        assert lock.held
        locked.set()
        for _ in range(10):
            assert flash.transfer(SENT) == ID and run() == ID
            time.sleep(0.01)
        assert flash.transfer([Transfer.write(b"\x9f"), Transfer.read(3)]) == [None, ID[1:]]
        order.append("holder")
    thread.join()
    assert order == ["holder", "other"] and not lock.held


def test_a_lock_and_what_would_wait_for_itself(flash: barewire.Device, rpi3: barewire.Bus) -> None:
    with rpi3.lock():
        with pytest.raises(barewire.DeadlockError, match="has the bus's lock already"):
            rpi3.lock().__enter__()
        with pytest.raises(barewire.DeadlockError, match="before the bus is locked"):
            rpi3.device(1, speed_hz=1_000_000)
        assert flash.prepare(SENT)() == ID
        assert flash.transfer(SENT) == ID
    with pytest.raises(RuntimeError, match="does not have"):
        rpi3.lock().__exit__(None, None, None)
    assert flash.transfer(SENT) == ID


def test_an_exception_releases_the_lock(flash: barewire.Device, rpi3: barewire.Bus) -> None:
    with pytest.raises(ZeroDivisionError), rpi3.lock():
        1 / 0
    done = []
    thread = threading.Thread(target=lambda: done.append(flash.transfer(SENT)))
    thread.start()
    thread.join(20)
    assert done == [ID]


def test_closing_under_ones_own_lock(flash: barewire.Device, rpi3: barewire.Bus) -> None:
    with rpi3.lock():
        rpi3.close()
    with pytest.raises(barewire.ClosedError):
        flash.transfer(SENT)


def test_locks_of_many_threads(rpi3: barewire.Bus) -> None:
    device = rpi3.device(1, speed_hz=20_000_000)
    wrong = []

    def work() -> None:
        for _ in range(20):
            with rpi3.lock():
                device.transfer(b"\x06")
                time.sleep(0)
                if device.transfer([5, 0])[1] & 2 == 0:
                    wrong.append(1)
                device.transfer(b"\x04")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, "another thread's message came between"


def test_other_threads_run_while_a_message_is_on_its_way(rpi3: barewire.Bus) -> None:
    device = rpi3.device(1, speed_hz=1_000_000)
    own_s, other_s = beside_another_thread(lambda: device.transfer(bytes(1_000_000)))
    assert own_s > 0.05 and other_s > own_s / 10, (own_s, other_s)


def test_nothing_is_left_behind() -> None:
    class Marker:
        pass

    marker = Marker()
    gone = weakref.ref(marker)
    with barewire.Bus("null:") as bus:
        device = bus.device(0, speed_hz=1_000_000)
        device.transfer([1, 2, 3])
    del marker
    assert gone() is None
    import sys

    values = [1000, 1001]
    before = [sys.getrefcount(value) for value in values]
    with barewire.Bus("null:") as bus:
        device = bus.device(0, speed_hz=1_000_000)
        for _ in range(100):
            with pytest.raises(ValueError):
                device.transfer(values)
    assert [sys.getrefcount(value) for value in values] == before
