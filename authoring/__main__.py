"""``python -m authoring check|build``."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from arabic_agent_eval.errors import DataError
from arabic_agent_eval.files import write_whole
from arabic_agent_eval.items import ItemSet
from authoring import card, findings, rules
from authoring.assembly import core, english, tracks
from authoring.shapes import read_intents, read_sources, read_tools
from authoring.sources import DATA, HERE, PREFIXES, TRACKS, Fault, Files, Report, Rows, Sources

SETS = {"core": core, "core-en": english, "core-tracks": tracks}


def main(arguments: Sequence[str] | None = None, files: Files | None = None) -> int:
    """Run one of the two commands; the exit code is 1 when something is to be mended."""
    parser = argparse.ArgumentParser(prog="python -m authoring", description=__doc__)
    parser.add_argument("command", choices=["check", "build"])
    parser.add_argument("file", nargs="?", type=Path, help="check this file of intents only, before there are lines")
    options = parser.parse_args(arguments)
    files = files or Files(HERE, DATA)
    try:
        if options.file is not None:
            return _one_file(options.command, options.file, files)
        sources = read_sources(files)
        made = _checked(sources, files)
        if options.command == "build":
            _write(made, sources, files)
    except Fault as fault:
        sys.stdout.write("".join(f"{sentence}\n" for sentence in fault.sentences))
        much = "one thing" if len(fault.sentences) == 1 else f"{len(fault.sentences):,} things"
        sys.stderr.write(f"{much} to mend" + ("; nothing was built.\n" if options.command == "build" else ".\n"))
        return 1
    return 0


def _checked(sources: Sources, files: Files) -> dict[str, Rows]:
    """The rows of each set, after every check that there is."""
    report = Report()
    rules.check_content(sources, files, report)
    made = {name: make(sources) for name, make in SETS.items()}
    findings.check_sets(made, sources.tools, files, report)
    card.check(files, report)
    if report:
        raise Fault(*report.sentences)
    for name, rows in made.items():
        cells = Counter((row["category"], row["dialect"]) for row in rows)
        sys.stdout.write(f"{name}: {len(rows)} items in {len(cells)} cells\n")
    return made


def _one_file(command: str, path: Path, files: Files) -> int:
    """Check the intents of one file before any line is written, as strictly as all are checked."""
    if command == "build":
        raise Fault("build takes no file, for all sets are made together: run python -m authoring build.")
    category = next((name for name in PREFIXES if files.intents(name).resolve() == path.resolve()), None)
    if category is None:
        raise Fault(
            f"{path}: only the files of authoring/core/intents are checked alone: name one of {', '.join(PREFIXES)} "
            "there, or run python -m authoring check for everything."
        )
    report = Report()
    shown = files.shown(files.intents(category))
    tools = read_tools(files, report)
    if report:
        raise Fault(*report.sentences)
    rows = read_intents(files, report)[category]
    wrong = [sentence for sentence in report.sentences if shown in sentence]
    if wrong or rows is None:
        raise Fault(*wrong)
    report = Report()
    rules.check_intents(rows, shown, tools, report)
    findings.check_intents(rows, tools, shown, report)
    if report:
        raise Fault(*report.sentences)
    sys.stdout.write(f"{len(rows)} intents, nothing found\n")
    return 0


def _write(made: dict[str, Rows], sources: Sources, files: Files) -> None:
    try:
        registry = (files.data / "core" / "tools.json").read_bytes()
        for name, rows in made.items():
            folder = files.data / name
            folder.mkdir(exist_ok=True)
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            write_whole(folder / "items.jsonl", text.encode())
            if name != "core":
                write_whole(folder / "tools.json", registry)
        declared = {name: {"weight": 0} | sources.tracks[name] for name in TRACKS}
        text = json.dumps(declared, ensure_ascii=False, indent=2) + "\n"
        write_whole(files.data / "core-tracks" / "categories.json", text.encode())
        card.write(files)
        for name, rows in made.items():
            path = files.data / name / "items.jsonl"
            fingerprint = ItemSet.read(path).fingerprint
            sys.stdout.write(f"wrote {files.shown(path)}: {len(rows)} items, {name}@{fingerprint}\n")
        sys.stdout.write("".join(f"note: {sentence}\n" for sentence in card.stale(files)))
    except (OSError, DataError) as error:
        raise Fault(f"the sets could not be written: {error} Mend that, then build again.") from None


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a console that has no Arabic is no reason to stop
    sys.exit(main())
