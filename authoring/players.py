"""What models without any skill get on ``core``: ``python -m authoring.players FOLDER`` writes their replies there.

``silent`` never calls; ``first`` always calls the first offered tool, with the first member of each enum, 1 for each
number and the instruction for each text. ``aae run --model replay/FILE`` scores them as it scores any model.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from arabic_agent_eval.bundled import find_items, find_tools
from arabic_agent_eval.items import Item, ItemSet
from arabic_agent_eval.tools import Toolbox


def silent(_: Item, __: Toolbox) -> list[dict[str, Any]]:
    """No call."""
    return []


def first(item: Item, tools: Toolbox) -> list[dict[str, Any]]:
    """One call of the first tool, whatever is asked."""
    tool = tools[item.available_functions[0]]
    properties: dict[str, Any] = tool.parameters["properties"]
    arguments = {name: _anything(properties[name], item) for name in tool.parameters.get("required", ())}
    return [{"function": tool.name, "arguments": arguments}]


def _anything(schema: dict[str, Any], item: Item) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "array":
        return [_anything(schema["items"], item)]
    if schema.get("type") == "object":
        return {name: _anything(member, item) for name, member in schema["properties"].items()}
    return {"integer": 1, "number": 1, "boolean": True}.get(schema.get("type", ""), item.instruction)


PLAYERS = {"silent": silent, "first": first}


def main(folder: Path) -> None:
    """Write one file of replies for each player and set."""
    path = find_tools("core", None)
    assert path is not None  # noqa: S101 - it is bundled
    tools = Toolbox.from_schemas(json.loads(path.read_text(encoding="utf-8")))
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("core", "core-en", "core-tracks"):
        for player, play in PLAYERS.items():
            with (folder / f"{name}-{player}.jsonl").open("w", encoding="utf-8") as stream:
                for item in ItemSet.read(find_items(name)).values():
                    row = {"id": item.id, "calls": play(item, tools)}
                    stream.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
