"""What a run is to ask: a new one from its options, an old one from its manifest; checked before anything is made."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from arabic_agent_eval.cli import steps
from arabic_agent_eval.errors import DataError, UsageError

if TYPE_CHECKING:
    from arabic_agent_eval.costs import Price
    from arabic_agent_eval.items import Category, Item, ItemSet
    from arabic_agent_eval.runs import Asked, Run
    from arabic_agent_eval.tools import Toolbox

DEFAULT_SET, DEFAULT_MODEL = "core", "baseline"
_LOOKED_AT = 300  # items; more would take seconds before anything is asked


class Plan(NamedTuple):
    """What a run asks, something that gives it, and what is to be said of its items before anything is asked."""

    asked: Asked
    make: Callable[[], Run]
    warning: str = ""


class _Material(NamedTuple):
    """The items of a file, those of them that are asked, their tools, and the same as the JSON of a registry.

    ``categories`` are those of the whole file, in their order.
    """

    whole: ItemSet
    items: ItemSet
    tools: Toolbox
    registry: bytes
    categories: list[str]

    @property
    def asked(self) -> dict[str, Any]:
        """What a manifest says of it."""
        from arabic_agent_eval.runs import fingerprint_of

        lines = b"".join(self.items.lines())
        return {
            "fingerprint": fingerprint_of(lines), "count": len(self.items), "tools": fingerprint_of(self.registry)
        }  # fmt: skip


def plan_new(
    folder: Path | None,
    given: dict[str, Any],
    items: str | None,
    tools: str | None,
    limit: int | None,
    system: str,
    declared: Mapping[str, Category],
) -> Plan:
    """A new run, whose folder is made when it is opened.

    Raises:
        UnknownCategory: an item's category has no weight.
    """
    from arabic_agent_eval.models.catalogue import base_address, ignored_settings
    from arabic_agent_eval.runs import DEFAULTS, Asked, Run
    from arabic_agent_eval.strictjson import replace_surrogates

    name = given["model"] or DEFAULT_MODEL
    if replace_surrogates(name) != name:
        raise UsageError(f"the name of the model, {name[:60]!r}, is not UTF-8 text.")
    address = base_address(name, given["base_url"])
    material = _material(items or DEFAULT_SET, tools, limit)
    for setting in sorted(ignored_settings(name)):
        if given.get(setting) not in (None, {}):
            option = "parameter" if setting == "parameters" else setting.replace("_", "-")
            steps.say(f"{name.partition('/')[0]} has no setting --{option}; it has no effect.")
    asked = Asked(
        items=material.items.name,
        **material.asked,
        model=name,
        address=address,
        system=system if given["system"] is None else given["system"],
        tool_language=_language(given["tool_language"] or DEFAULTS["tool_language"]),
        written=bool(given["written"]),
        temperature=given["temperature"],
        seed=given["seed"],
        max_tokens=given["max_tokens"],
        parameters=given["parameters"] or {},
        epochs=given["epochs"] or DEFAULTS["epochs"],
        max_turns=given["max_turns"] or DEFAULTS["max_turns"],
    )
    now = datetime.now(UTC)

    def make() -> Run:
        where = folder or _free_folder(now, name)
        created = now.isoformat(timespec="seconds")
        return Run.create(where, asked, material.items, material.registry, created=created, categories=declared)

    return Plan(asked, make, _look_over(material, items or DEFAULT_SET, declared))


def plan_resumed(folder: Path, given: dict[str, Any], items: str | None, tools: str | None, limit: int | None) -> Plan:
    """An old run; whatever is given must be what it asked, but for the port of a server that was started again."""
    from arabic_agent_eval.runs import Run

    opened = Run.read(folder)
    asked = opened.manifest.asked
    now: dict[str, Any] = {name: value for name, value in given.items() if value is not None and name != "base_url"}
    if given["base_url"] is not None and _without_port(given["base_url"]) != _without_port(asked.address):
        now["address"] = given["base_url"]
    if items is not None or tools is not None or limit is not None:
        source = items if items is not None else str(folder / "items.jsonl")
        beside = tools if tools is not None or items is not None else str(folder / "tools.json")
        now |= _material(source, beside, limit).asked
    if "tool_language" in now:
        _language(now["tool_language"])
    differences = asked.differences(msgspec.structs.replace(asked, **now))
    if differences:
        raise UsageError(
            f"{folder} asked something else, and answers to different questions are not one run: "
            f"{'; '.join(differences)}. Leave the option out, or start a new run."
        )
    return Plan(asked, lambda: opened)


def _without_port(address: str) -> tuple[str, ...]:
    try:
        parts = urlsplit(address)
    except ValueError:  # no address at all, which whoever opens it will say
        return (address,)
    return parts.scheme, parts.username or "", parts.hostname or "", parts.path.rstrip("/"), parts.query


def opening(run: Run, address: str) -> str:
    """What is about to be asked, in a sentence."""
    due = len(run.items) * run.manifest.asked.epochs
    answered = sum(is_answer for _, is_answer in run.places().values())
    if answered == due:
        return f"every item of {run.folder} has its answer; nothing is asked."
    named = "1 item" if due == 1 else f"{due:,} items"
    where = f" at {address}," if address else ""
    many = f"{due - answered:,} of {named}" if answered else named
    return f"asking {run.manifest.asked.model}{where} {many}; the run is kept in {run.folder}."


def _look_over(material: _Material, name: str, declared: Mapping[str, Category]) -> str:
    """What would make answers worthless, as a sentence; "" where nothing was found in the first few hundred items.

    Raises:
        UnknownCategory: an item's category has no weight.
    """
    from arabic_agent_eval.checks import check_items
    from arabic_agent_eval.summary import weight_of

    for category in material.categories:
        weight_of(category, declared)
    looked_at = material.whole.first(_LOOKED_AT).values()
    findings = [one for one in check_items(looked_at, material.tools) if one.rule != "unknown_category"]
    if not findings:
        return ""
    count = "1 finding makes" if len(findings) == 1 else f"{len(findings):,} findings make"
    return f"{count} items unfair or unanswerable; 'aae data check {name}' names them."


def check_options(named: Mapping[str, str | None], out: Path | None, folder: Path | None, resume: Path | None) -> None:
    """Refuse what can be seen to be wrong before anything is asked.

    Raises:
        UsageError: an option is empty, as a variable of the shell that is not set leaves it; there is no place for
            the rows; or two runs are named.
    """
    if resume is not None and folder is not None:
        raise UsageError("--run names a new folder and --resume an old one; give one of them.")
    check_given(named)
    if out is not None and not out.parent.is_dir() and out.parent != folder:  # that of the run is still to be made
        raise UsageError(f"--out {out}: there is no folder {out.parent}.")


def check_given(named: Mapping[str, str | None]) -> None:
    """Refuse an option that is empty, as a variable of the shell that is not set leaves it.

    Raises:
        UsageError: one is.
    """
    for name, value in named.items():
        if value == "":
            raise UsageError(f"{name} is empty; give a value, or leave the option out.")


def price_for(prices: Path | None, model: str) -> Price | None:
    """The price of a model; None where no file of prices is given.

    Raises:
        DataError: the file cannot be read.
        UsageError: it has no price for the model.
    """
    from arabic_agent_eval.costs import price_of, read_prices

    if prices is None:
        return None
    price = price_of(read_prices(prices), model)
    if price is None:
        raise UsageError(f"{prices} has no price for {model!r}.")
    return price


def _check_tools(item: Item) -> None:
    """Refuse an item whose own tools are none, before anything is paid for."""
    try:
        _ = item.own_tools
    except DataError as error:
        raise UsageError(f"item {item.id!r} cannot be asked: {error}") from None


def resuming(folder: Path, options: Mapping[str, object] = {}) -> str:
    """The command that goes on with a run, with the options of the asking, which no manifest holds."""
    given = [f"--{name} {shlex.quote(str(value))}" for name, value in options.items() if value is not None]
    return " ".join([f"aae run --resume {shlex.quote(str(folder))}", *given])


def _material(items: str, tools: str | None, limit: int | None) -> _Material:
    from arabic_agent_eval.bundled import find_tools

    whole = steps.items(items)
    item_set = whole if limit is None else whole.first(limit)
    toolbox, path = steps.registry(items, tools), find_tools(items, tools)
    categories: dict[str, None] = {}
    named: set[str] = set()
    for place, item in enumerate(whole.values()):  # once: to read an item is most of what there is to do
        categories[item.category] = None
        if item.tools is not None:
            _check_tools(item)
        elif limit is None or place < limit:
            named.update(item.available_functions)
    unknown = named - set(toolbox)
    if unknown:
        shown = ", ".join(sorted(unknown)[:5])
        raise UsageError(
            f"{items}: {len(unknown)} of the tools that items name are in no registry ({shown}); name it with --tools."
        )
    return _Material(whole, item_set, toolbox, b"[]\n" if path is None else path.read_bytes(), [*categories])


def _free_folder(now: datetime, model: str) -> Path:
    import re

    base = Path("runs") / f"{now:%Y%m%d-%H%M%S}-{re.sub(r'[^A-Za-z0-9._-]+', '-', model)[:60]}"
    found, number = base, 1
    while found.exists():
        number += 1
        found = base.with_name(f"{base.name}-{number}")
    return found


def _language(name: str) -> Any:
    from arabic_agent_eval.asking import TOOL_LANGUAGES

    if name not in TOOL_LANGUAGES:
        raise UsageError(f"--tool-language is {name!r}; choose one of {', '.join(TOOL_LANGUAGES)}.")
    return name


def text_of(path: Path) -> str:
    """A file of text.

    Raises:
        DataError: it cannot be read.
        UsageError: it is not UTF-8.
    """
    from arabic_agent_eval.files import open_lines

    with open_lines(path) as stream:
        data = stream.read()
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text.") from None


def parameters_of(given: list[str] | None) -> dict[str, Any] | None:
    """``NAME=JSON`` as an object; what is not JSON is text."""
    from arabic_agent_eval.strictjson import MalformedJSON, decode, replace_surrogates

    if not given:
        return None
    found: dict[str, Any] = {}
    for entry in given:
        name, mark, text = entry.partition("=")
        if not name or not mark:
            raise UsageError(f"--parameter {entry[:60]!r}: write NAME=JSON.")
        try:
            found[name] = decode(text)
        except MalformedJSON:
            found[name] = text
    cleaned: dict[str, Any] = replace_surrogates(found)
    return cleaned
