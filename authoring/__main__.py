"""``python -m authoring check|build``."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from arabic_agent_eval.checks import check_items
from arabic_agent_eval.errors import DataError
from arabic_agent_eval.items import Item, item_from_row
from arabic_agent_eval.tools import Toolbox
from authoring import card
from authoring.assembly import core, english, tracks
from authoring.sources import DATA, HERE, TRACKS, Fault, Rows, read, tools

SETS = {"core": core, "core-en": english, "core-tracks": tracks}


def main() -> int:
    """Run one of the two commands; the exit code is 1 when something is to be mended."""
    parser = argparse.ArgumentParser(prog="python -m authoring", description=__doc__)
    parser.add_argument("command", choices=["check", "build"])
    parser.add_argument("file", nargs="?", type=Path, help="check this file of intents only, before there are lines")
    options = parser.parse_args()
    try:
        if options.file is not None:
            return _check_intents(read(options.file.resolve()))
        made = {name: make() for name, make in SETS.items()}
        return _check(made) or (_write(made) if options.command == "build" else 0)
    except Fault as fault:
        sys.stderr.write(f"{fault}\n")
        return 1


def _items(rows: Rows) -> list[Item]:
    found = []
    for row in rows:
        try:
            found.append(item_from_row(row))
        except DataError as error:
            raise Fault(f"{row.get('id', row.get('intent'))}: {error}") from None
    return found


def _check(made: dict[str, Rows]) -> int:
    registry, wrong = Toolbox.from_schemas(tools()), 0
    for name, rows in made.items():
        for finding in check_items(_items(rows), registry):
            if finding.rule == "unknown_category":
                continue
            wrong += 1
            sys.stdout.write(f"{name}: {finding.item_id}: {finding.rule}: {finding.field}: {finding.message}\n")
        counts = Counter((row["category"], row["dialect"]) for row in rows)
        sys.stdout.write(f"{name}: {len(rows)} items in {len(counts)} cells\n")
    return int(wrong > 0)


def _check_intents(rows: Rows) -> int:
    """What can be seen before any line is written: the meaning stands for the instruction."""
    registry, wrong = Toolbox.from_schemas(tools()), 0
    made = []
    for intent in rows:
        kept = {name: value for name, value in intent.items() if name in Item.__struct_fields__}
        made.append(kept | {"id": intent["intent"], "dialect": "msa", "instruction": intent["meaning"]})
    for finding in check_items(_items(made), registry):
        if finding.rule != "unknown_category":
            wrong += 1
            sys.stdout.write(f"{finding.item_id}: {finding.rule}: {finding.field}: {finding.message}\n")
    sys.stdout.write(f"{len(made)} intents, {wrong} findings\n")
    return int(wrong > 0)


def _write(made: dict[str, Rows]) -> int:
    registry = (DATA / "core" / "tools.json").read_bytes()
    for name, rows in made.items():
        folder = DATA / name
        folder.mkdir(exist_ok=True)
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / "items.jsonl").write_text(text, encoding="utf-8")
        if name != "core":
            (folder / "tools.json").write_bytes(registry)
    declared = {name: {"weight": 0} | read(HERE / "tracks.json")[name] for name in TRACKS}
    text = json.dumps(declared, ensure_ascii=False, indent=2) + "\n"
    (DATA / "core-tracks" / "categories.json").write_text(text, encoding="utf-8")
    card.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
