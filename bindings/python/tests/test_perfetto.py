"""The command's traces for Perfetto, read by Perfetto's own definition of a trace."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_scope import EXAMPLE, command, told

pb: Any = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="pip install perfetto protobuf"
)
unknown: Any = pytest.importorskip("google.protobuf.unknown_fields")


class Read:
    """Slices and counters of a trace, by the names of their tracks."""

    def __init__(self, path: Path) -> None:
        trace = pb.Trace()
        trace.ParseFromString(path.read_bytes())
        self.first: Any = trace.packet[0]
        self.slices: list[tuple[str, int, str, int, int, dict[str, str]]] = []
        self.counters: dict[str, list[tuple[int, int]]] = {}
        names: dict[int, str] = {}
        last: dict[str, int] = {}
        begun: dict[str, list[tuple[str, int, dict[str, str]]]] = {}
        for packet in trace.packet:
            assert packet.trusted_packet_sequence_id == 1
            parts = (packet, packet.track_event, packet.track_descriptor)
            assert not any(len(unknown.UnknownFieldSet(part)) for part in parts)
            if packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                names[track.uuid] = track.name
                assert track.HasField("counter") == (track.uuid >= 1000) and track.parent_uuid in {0, *names}
                continue
            event, at = packet.track_event, packet.timestamp
            name = names[event.track_uuid]
            assert at >= last.get(name, 0), "times of a track go backwards"
            last[name] = at
            if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
                notes = {note.name: note.string_value for note in event.debug_annotations}
                begun.setdefault(name, []).append((event.name, at, notes))
            elif event.type == pb.TrackEvent.TYPE_SLICE_END:
                what, begin, notes = begun[name].pop()
                self.slices.append((name, len(begun[name]), what, begin, at, notes))
            else:
                self.counters.setdefault(name, []).append((at, event.counter_value))
        assert not any(begun.values())


def test_a_trace_has_what_the_command_says_of_each_message(tmp_path: Path) -> None:
    path = tmp_path / "wire.pftrace"
    options = ("--chip", "mcp3008")
    subprocess.run([command(), "scope", str(EXAMPLE), *options, "-o", str(path)], check=True, capture_output=True)
    read = Read(path)
    messages = told(EXAMPLE, *options)[:-1]
    assert read.first.sequence_flags == 1 and len(read.slices) == 4 * len(messages) > 0
    for nth, message in enumerate(messages):
        # A slice ends after those within it.
        *parts, whole = read.slices[4 * nth : 4 * nth + 4]
        start, end = message["start_ns"], message["end_ns"]
        first, last = start + message["lead_ns"], end - message["lag_ns"]
        expected = [("lead", start, first), ("clocked", first, last), ("lag", last, end)]
        for (_, depth, what, begin, stop, _), (name, since, until) in zip(parts, expected, strict=True):
            assert (depth, what) == (1, name) and abs(begin - since) <= 1 and abs(stop - until) <= 1
        track, _, what, begin, _, notes = whole
        assert (track, what) == ("cs0 messages", f"{message['kind']} {message['detail']}")
        assert abs(begin - start) <= 1 and notes["mosi"].replace(" ", "") == message["mosi"]
    # Each change of SCK: the level at the beginning, and 48 edges a message.
    sck = [level for _, level in read.counters["sck"]]
    assert sck == [nth % 2 for nth in range(1 + 48 * len(messages))]
    assert len(read.counters["cs0"]) == 1 + 2 * len(messages)


def test_a_drawing_is_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "wire.pftrace"
    ran = subprocess.run(
        [command(), "scope", str(EXAMPLE), "--draw", "0", "-o", str(path)], capture_output=True, text=True
    )
    assert ran.returncode == 2 and "it has more than one message" in ran.stderr
