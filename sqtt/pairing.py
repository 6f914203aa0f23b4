"""When instructions were executed: packets of execution paired with issues, first in first out for each pipe.

Source:  FORMAT.md of the trace goldens, section 3.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from stuntgpu.sqtt.decode import Stream
from stuntgpu.sqtt.rules import ALU_SOURCES, MEMORY_SOURCES, Rules

#: An issue: index of its packet, its pipe, and what identifies it.
Issued = tuple[int, str, tuple[int, int]]
_SOURCES: Mapping[str, Mapping[int, tuple[str, ...]]] = {"ALUEXEC": ALU_SOURCES, "VMEMEXEC": MEMORY_SOURCES}


def executions(
    stream: Stream, issued: Sequence[Issued], rules: Rules,
) -> tuple[dict[tuple[int, int], int], dict[str, tuple[int, int]]]:
    """(time of execution by identity, what is left over by pipe: executions without issue, issues without)."""
    if "ALUEXEC" not in stream.layout:
        return {}, {}
    where = stream.where(*_SOURCES)
    waiting: dict[str, deque[tuple[int, int]]] = {}
    times: dict[tuple[int, int], int] = {}
    loose: dict[str, int] = {}
    at = 0
    for i, time, packet in zip(where.tolist(), stream.times[where].tolist(), stream.packets(where), strict=True):
        while at < len(issued) and issued[at][0] < i:
            waiting.setdefault(issued[at][1], deque()).append(issued[at][2])
            at += 1
        for pipe in _SOURCES[packet.NAME][packet.src]:
            queue = waiting.get(pipe)
            if queue:
                times[queue.popleft()] = time
            else:
                loose[pipe] = loose.get(pipe, 0) + 1
    for _, pipe, identity in issued[at:]:
        waiting.setdefault(pipe, deque()).append(identity)
    pipes = {p for sources in _SOURCES.values() for pipes in sources.values() for p in pipes}
    left = {p: (loose.get(p, 0), len(waiting.get(p, ()))) for p in sorted(pipes)}
    return times, {p: n for p, n in left.items() if n != (0, 0)}
