"""What an emulated GPU tells listeners (tracers, checkers, progress displays).

Events are told on the thread that launches, in order; a listener that raises fails the launch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stuntgpu.emu.launch import Launch, Stats


@dataclass(frozen=True, slots=True)
class KernelStart:
    """A launch is about to run."""

    launch: Launch


@dataclass(frozen=True, slots=True)
class KernelEnd:
    """A launch ended: `stats` when it finished, `error` when it did not."""

    launch: Launch
    stats: Stats | None
    error: Exception | None = None


Event = KernelStart | KernelEnd
Listener = Callable[[Event], None]


class Events:
    """Listeners of one GPU."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event from now on; the result unsubscribes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def emit(self, event: Event) -> None:
        """Tell everyone, in order of subscription."""
        for listener in tuple(self._listeners):
            listener(event)
