"""asyncio: `await device.aio.transfer(…)`."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import barewire
from barewire import Transfer

ID = b"\xff\xef\x40\x16"
SENT = b"\x9f\0\0\0"


def test_a_device_for_asyncio(flash: barewire.Device) -> None:
    async def main() -> None:
        device = flash.aio
        assert await device.transfer(SENT) == ID
        assert await device.transfer([Transfer.write(b"\x9f"), Transfer.read(3)]) == [None, ID[1:]]
        assert await flash.transfer_async(SENT) == ID
        await device.write(b"\x06")
        assert (await device.transfer([5, 0]))[1] == 2
        assert await device.read(2) == b"\xff\xff"

    asyncio.run(main())


def test_many_at_once_and_in_order(flash: barewire.Device) -> None:
    async def main() -> None:
        device, ended = flash.aio, []

        async def one(index: int) -> None:
            assert await device.transfer(SENT) == ID
            ended.append(index)

        await asyncio.gather(*(one(index) for index in range(100)))
        assert ended == list(range(100))

    asyncio.run(main())


def test_the_loop_runs_meanwhile(rpi3: barewire.Bus) -> None:
    async def main() -> int:
        device = rpi3.device(1, speed_hz=1_000_000).aio
        turns = 0
        message = asyncio.ensure_future(device.transfer(bytes(200_000)))
        while not message.done():
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert asyncio.run(main()) > 100


def test_a_cancelled_message_is_not_sent(rpi3: barewire.Bus) -> None:
    async def main() -> None:
        device = rpi3.device(1, speed_hz=1_000_000).aio
        first = asyncio.ensure_future(device.transfer(bytes(100_000)))
        second = asyncio.ensure_future(device.transfer(b"\x06"))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert len(await first) == 100_000
        assert (await device.transfer([5, 0]))[1] == 0, "no write enable came"
        # One on the wire ends; its result is dropped.
        third = asyncio.ensure_future(device.transfer(bytes(100_000)))
        await asyncio.sleep(0.02)
        third.cancel()
        assert (await device.transfer(SENT)) == ID

    asyncio.run(main())
    figures = rpi3.simulated()
    # On a busy machine the third may not have begun when it was cancelled.
    assert figures is not None and figures["bits"] in [8 * (100_000 + 2 + third + 4) for third in (0, 100_000)]


def test_timeouts_of_asyncio(rpi3: barewire.Bus) -> None:
    async def main() -> None:
        device = rpi3.device(1, speed_hz=100_000).aio
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(device.transfer(bytes(300_000)), 0.01)
        assert await device.transfer(SENT) == ID

    asyncio.run(main())


def test_errors_reach_the_coroutine(rpi3: barewire.Bus, flash: barewire.Device) -> None:
    async def main() -> None:
        device = flash.aio
        with pytest.raises(ValueError, match="value 0 is 300"):
            await device.transfer([300])
        with pytest.raises(barewire.SettingsError):
            await device.transfer([Transfer.exchange(SENT, bits_per_word=12)])
        with rpi3.lock(), pytest.raises(barewire.DeadlockError, match="would wait for it"):
            await device.transfer(SENT)
        rpi3.close()
        with pytest.raises(barewire.ClosedError):
            await device.transfer(SENT)

    asyncio.run(main())


def test_without_a_loop_it_is_refused(flash: barewire.Device) -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        flash.aio.transfer(SENT)
    assert flash.transfer(SENT) == ID


def test_a_loop_that_is_gone(rpi3: barewire.Bus) -> None:
    device = rpi3.device(1, speed_hz=1_000_000).aio

    async def main() -> None:
        device.transfer(bytes(100_000))

    asyncio.run(main())
    # Its result comes when there is no loop any more.
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        figures = rpi3.simulated()
        if figures is not None and figures["bits"] >= 8 * 100_000:
            break
        time.sleep(0.01)

    async def again() -> bytes:
        result: bytes = await device.transfer(SENT)
        return result

    assert asyncio.run(again()) == ID


def test_two_loops_and_a_thread_share_a_bus(rpi3: barewire.Bus) -> None:
    device = rpi3.device(1, speed_hz=20_000_000)
    wrong = []

    async def some() -> None:
        for _ in range(50):
            if await device.aio.transfer(SENT) != ID:
                wrong.append(1)

    def plainly() -> None:
        for _ in range(50):
            if device.transfer(SENT) != ID:
                wrong.append(1)

    threads = [threading.Thread(target=lambda: asyncio.run(some())) for _ in range(2)]
    threads.append(threading.Thread(target=plainly))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
