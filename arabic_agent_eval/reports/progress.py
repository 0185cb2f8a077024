"""The progress of a run on stderr: one line that changes on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arabic_agent_eval.runner import Progress

_APART = 10.0  # seconds between two plain lines


def progress_line(progress: Progress) -> str:
    """What is done, what is under way, what waits and why, how fast it goes and how long it may take."""
    parts = [f"{progress.done:,} of {progress.total:,} items"]
    if progress.in_flight:
        parts.append(f"{progress.in_flight:,} in flight")
    if waiting := {why: count for why, count in progress.waiting.items() if count}:
        named = ", ".join(f"{why} {count:,}" for why, count in waiting.items())
        until = f", next in {progress.seconds:.0f} s" if progress.seconds >= 1 else ""
        parts.append(f"{sum(waiting.values()):,} waiting ({named}{until})")
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    if progress.cost:
        parts.append(f"{progress.cost:.4f} USD")
    if progress.done and progress.elapsed > 0:
        rate = progress.done / progress.elapsed
        parts.append(f"{rate:.1f}/s")
        if progress.done < progress.total:
            parts.append(f"about {_duration((progress.total - progress.done) / rate)} left")
    return " · ".join(parts)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


@contextmanager
def changing_line() -> Iterator[Callable[[str], None]]:
    """Something that writes a line on stderr over the one before it, on a terminal; at the end the line is gone."""
    shown = False

    def write(text: str) -> None:
        nonlocal shown
        shown = True
        sys.stderr.write(f"\r{text} \x1b[K")
        sys.stderr.flush()

    try:
        yield write
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def telling() -> Iterator[Callable[[Progress], None]]:
    """Something to call with the progress."""
    terminal, last = sys.stderr.isatty(), 0.0

    with changing_line() as write:

        def tell(progress: Progress) -> None:
            nonlocal last
            if terminal:
                write(progress_line(progress))
            elif progress.elapsed - last >= _APART:
                last = progress.elapsed
                sys.stderr.write(f"aae: {progress_line(progress)}\n")
                sys.stderr.flush()

        yield tell
