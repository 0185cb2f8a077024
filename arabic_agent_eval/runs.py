"""The run folder: what was asked, of whom and how, and every answer as it came.

    manifest.json   written once, whole: item set, model, settings, versions; no secret
    items.jsonl     the items that are asked, and tools.json their tools: a run can be graded wherever it lies
    categories.json their categories, where any were declared
    replies.jsonl   append-only, one durable line for each finished item: the raw answers and every attempt
    turns.jsonl     append-only, one durable line for each answer that did not finish its item yet

Grades are derived and never stored. A line that was cut off by a crash is dropped; nothing else is ever removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec

from arabic_agent_eval._version import __version__
from arabic_agent_eval.asking import SYSTEM_PROMPT, ToolLanguage
from arabic_agent_eval.bundled import CATEGORIES_FILE
from arabic_agent_eval.errors import DataError, OutputError, UsageError
from arabic_agent_eval.files import read_json, read_json_line, reason_of, validation_error, write_whole
from arabic_agent_eval.formats import Reply, read_calls, read_reply, words_of
from arabic_agent_eval.items import Category, ItemSet
from arabic_agent_eval.journal import LOCK, REPLIES, TURNS, held, line_number, open_growing, whole_lines
from arabic_agent_eval.markup import read_text
from arabic_agent_eval.models.model import Tokens
from arabic_agent_eval.strictjson import MalformedJSON, decode_clipped, replace_surrogates
from arabic_agent_eval.tools import Call, Toolbox

MANIFEST, ITEMS, TOOLS = "manifest.json", "items.jsonl", "tools.json"
DEFAULTS: Final[Mapping[str, Any]] = {
    "system": SYSTEM_PROMPT, "tool_language": "both", "written": False, "temperature": None, "seed": None,
    "max_tokens": None, "parameters": {}, "epochs": 1, "max_turns": 10,
}  # fmt: skip
"""How a model is asked when nothing else is said."""

_T = TypeVar("_T")
Pair = tuple[str, int]
"""An item's id and the epoch in which it is asked."""


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run is: asking the same of the same in the same way; two runs with equal ``asked`` are one run.

    Attributes:
        asked: everything that an answer depends on: items and their fingerprint, tools, model, address and settings.
        created: when, in UTC.
        versions: of this package, Python and the system.
    """

    asked: Asked
    created: str
    versions: dict[str, str]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that an answer depends on.

    Attributes:
        items: the set's name; fingerprint: of the items that are asked; count: how many they are.
        tools: the fingerprint of the tool registry.
        model: ``provider/name``; address: the base URL, "" where nothing leaves the machine.
        system: the system prompt; tool_language, written: how the tools are offered.
        temperature, seed, max_tokens, parameters: as they are sent.
        epochs: how often each item is asked; max_turns: answers in one conversation at most.
    """

    items: str
    fingerprint: str
    count: int
    tools: str
    model: str
    address: str
    system: str
    tool_language: ToolLanguage
    written: bool
    temperature: float | None
    seed: int | None
    max_tokens: int | None
    parameters: dict[str, Any]
    epochs: int
    max_turns: int

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that are not the defaults, by name."""
        return {name: value for name, usual in DEFAULTS.items() if (value := getattr(self, name)) != usual}

    def differences(self, other: Asked) -> list[str]:
        """Where the two differ, one line each; long texts are not shown in full."""
        found = []
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                found.append(f"{name.replace('_', ' ')}: {_shown(mine)} in the run, {_shown(theirs)} now")
        return found


def _shown(value: Any) -> str:
    text = msgspec.json.encode(replace_surrogates(value)).decode()
    return text if len(text) <= 60 else text[:59] + "…"  # noqa: PLR2004


class AttemptRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One attempt, as it is kept.

    Attributes:
        turn: of the conversation, from 0.
        at: when it was sent, in UTC.
        latency: seconds.
        status: of HTTP, None where no answer came.
        kind, message, excerpt: what went wrong; absent where an answer came.
    """

    turn: int
    at: str
    latency: float
    status: int | None = None
    kind: str | None = None
    message: str | None = None
    excerpt: str = ""


class TurnRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer of a conversation.

    Attributes:
        request: what was sent, byte for byte; response: what came back, but for line breaks between its tokens.
        tokens, cost: as the provider counted, None where it did not.
        results: what the simulated tools answered to its calls.
        latency: of the attempt that brought it, in seconds; None for an answer from the cache.
    """

    request: msgspec.Raw
    response: msgspec.Raw
    tokens: Tokens | None = None
    cost: float | None = None
    results: list[str] = []
    latency: float | None = None


class ReplyRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A finished item: one line of ``replies.jsonl``.

    Attributes:
        id, epoch: which item and which asking of it.
        status: ``answered``, or ``failed`` where no answer came; a failed one is asked again on resuming.
        turns: the answers in their order; attempts: all attempts of this session to get them.
        error: why it failed, one sentence.
        end: ``stopped`` when the model had finished, ``max_turns`` when it was not let go on.
        cut: whether an answer was cut off by a limit on its length.
    """

    id: str
    epoch: int
    status: Literal["answered", "failed"]
    turns: list[TurnRecord]
    attempts: list[AttemptRecord]
    error: str | None = None
    end: Literal["stopped", "max_turns"] | None = None
    cut: bool = False

    @property
    def tokens(self) -> Tokens | None:
        """Of all turns; None where a turn was not counted."""
        counts = [turn.tokens for turn in self.turns]
        known = [count for count in counts if count is not None]
        return sum(known, Tokens()) if len(known) == len(counts) else None

    @property
    def latency(self) -> float:
        """Seconds that the provider took to answer, failed attempts and waiting aside."""
        return sum(turn.latency or 0.0 for turn in self.turns)


class KeptTurn(msgspec.Struct, frozen=True):
    """An answer that did not finish its item: one line of ``turns.jsonl``."""

    id: str
    epoch: int
    turn: TurnRecord


class _Head(msgspec.Struct):
    """As much of a line as tells whose it is."""

    id: str
    epoch: int
    status: str = ""


_encode = msgspec.json.Encoder().encode
_decode_reply = msgspec.json.Decoder(ReplyRecord).decode
_decode_turn = msgspec.json.Decoder(KeptTurn).decode
_decode_head = msgspec.json.Decoder(_Head).decode


def fingerprint_of(data: bytes) -> str:
    """Twelve hexadecimal digits of a SHA-256."""
    return hashlib.sha256(data).hexdigest()[:12]


def one_line(body: bytes) -> msgspec.Raw:
    """A JSON text without line breaks, which can only stand between its tokens."""
    return msgspec.Raw(body.translate(_NO_BREAKS) if b"\n" in body or b"\r" in body else body)


_NO_BREAKS = bytes.maketrans(b"\r\n", b"  ")


class Run:
    """A run folder.

    Attributes:
        folder: where it lies.
        manifest: what it asks.
        items: the items that it asks.
        tools: their tools.
    """

    def __init__(self, folder: Path, manifest: Manifest, items: ItemSet, tools: Toolbox) -> None:
        self.folder = folder
        self.manifest = manifest
        self.items = items
        self.tools = tools

    @classmethod
    def create(
        cls,
        folder: Path,
        asked: Asked,
        items: ItemSet,
        tools: bytes,
        *,
        created: str,
        categories: Mapping[str, Category] = {},
    ) -> Run:
        """Make the folder of a new run.

        Args:
            folder: must not exist, or be empty but for what a process left that ended while it made this run.
            asked: what it asks.
            items: those items.
            tools: the tool registry, as JSON.
            created: when, in UTC.
            categories: declared categories, which the run keeps for its reports.

        Raises:
            UsageError: there is something in the folder.
            OutputError: it cannot be written.
        """
        content = {ITEMS: b"".join(items.lines()), TOOLS: tools}
        if categories:
            entries = {name: {"weight": one.weight, "name_ar": one.name_ar} for name, one in categories.items()}
            content[CATEGORIES_FILE] = msgspec.json.format(_encode(entries), indent=2) + b"\n"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _check_free(folder, content)  # before a lock is left in a folder that is somebody else's
            with held(folder):
                _check_free(folder, content)  # another process may have been faster
                return cls._make(folder, asked, content, created)
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(f"{folder}: the run cannot be kept there: {reason_of(error)}.") from None

    @classmethod
    def _make(cls, folder: Path, asked: Asked, content: dict[str, bytes], created: str) -> Run:
        versions = {"arabic-agent-eval": __version__, "python": platform.python_version(), "system": sys.platform}
        manifest = replace_surrogates(msgspec.to_builtins(Manifest(asked, created, versions)))
        # The manifest comes last, since a folder with one is a run.
        content[MANIFEST] = msgspec.json.format(_encode(manifest), indent=2) + b"\n"
        try:
            for name, data in content.items():
                write_whole(folder / name, data)
            return cls.read(folder)
        except BaseException:
            _remove(folder, content)
            raise

    @classmethod
    def read(cls, folder: Path) -> Run:
        """Open a run folder for reading.

        Raises:
            DataError: it is no run folder, or a file in it is damaged.
        """
        path = folder / MANIFEST
        if not path.is_file():
            what = "this is not a run folder: it has no manifest.json."
            raise DataError(what, path=str(folder), remedy="'aae run' makes one.")
        try:
            manifest = msgspec.convert(read_json(path), Manifest)
        except msgspec.ValidationError as error:
            raise validation_error(error, str(path)) from None
        items = ItemSet.read(folder / ITEMS, name=manifest.asked.items)
        if items.fingerprint != manifest.asked.fingerprint:
            what = "the items are not those that the run asked: their fingerprint has changed."
            raise DataError(what, path=str(folder / ITEMS), remedy="Restore the file, or start a new run.")
        tools = Toolbox.read(folder / TOOLS)
        if fingerprint_of((folder / TOOLS).read_bytes()) != manifest.asked.tools:
            what = "the tools are not those that the run offered: their fingerprint has changed."
            raise DataError(what, path=str(folder / TOOLS), remedy="Restore the file, or start a new run.")
        return cls(folder, manifest, items, tools)

    def due(self) -> Iterator[Pair]:
        """What is to be asked: every item once an epoch, the first epoch of all items first."""
        return ((item_id, epoch) for epoch in range(self.manifest.asked.epochs) for item_id in self.items)

    def places(self) -> dict[Pair, tuple[int, bool]]:
        """Where the line that counts for every finished item begins, and whether it was answered.

        An answer counts before a failure, and a later line before an earlier one.

        Raises:
            DataError: a line is damaged; the last one may be cut off.
        """
        found: dict[Pair, tuple[int, bool]] = {}
        for start, line in whole_lines(self.folder / REPLIES):
            head = _read(_decode_head, line, self.folder / REPLIES, start)
            answered = head.status == "answered"
            if answered or not found.get((head.id, head.epoch), (0, False))[1]:
                found[head.id, head.epoch] = start, answered
        return found

    def records(self) -> Iterator[ReplyRecord]:
        """The line that counts for every finished item, in the order of asking, whatever order the answers came in."""
        places = self.places()
        if not places:
            return
        path = self.folder / REPLIES
        with open_growing(path) as stream:
            for pair in self.due():
                if pair in places:
                    start = places[pair][0]
                    stream.seek(start)
                    yield _read(_decode_reply, stream.readline(), path, start)

    def kept_turns(self, wanted: Iterable[Pair]) -> dict[Pair, list[TurnRecord]]:
        """Answers to items that were not finished: they are paid for, and need not be asked again."""
        found: dict[Pair, list[TurnRecord]] = {pair: [] for pair in wanted}
        for start, line in whole_lines(self.folder / TURNS):
            kept = _read(_decode_turn, line, self.folder / TURNS, start)
            if (kept.id, kept.epoch) in found:
                found[kept.id, kept.epoch].append(kept.turn)
        return {pair: turns for pair, turns in found.items() if turns}

    def reply(self, record: ReplyRecord) -> tuple[Reply, str]:
        """A record as the grader takes it, with the calls of all turns as one list; and what was said in words."""
        if record.status == "failed":
            return Reply(record.id, "failure", None, record.epoch, record.error or "The request failed."), ""
        calls: list[Call] = []
        said = []
        offered = self.items[record.id].offered if self.manifest.asked.written else frozenset()
        for turn in record.turns:
            row = {"id": record.id, "response": self._decoded(record, turn)}
            answer = read_reply(row)
            if answer.failure is not None:
                return Reply(record.id, "failure", None, record.epoch, answer.failure), ""
            words = words_of(row)
            said.append(words)
            calls += read_text(words, offered) if self.manifest.asked.written else read_calls(answer, offered)
        return Reply(record.id, "calls", calls, record.epoch), "\n".join(filter(None, said))

    def _decoded(self, record: ReplyRecord, turn: TurnRecord) -> Any:
        try:
            return decode_clipped(bytes(turn.response))
        except MalformedJSON as error:
            what = f"an answer to {record.id!r} cannot be read: {error}."
            raise DataError(what, path=str(self.folder / REPLIES)) from None


def _remove(folder: Path, names: Iterable[str]) -> None:
    """Take back a run that could not be made, so that its name is free again."""
    with contextlib.suppress(OSError):
        for name in (*names, LOCK):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _check_free(folder: Path, content: Mapping[str, bytes]) -> None:
    if not all(_is_left_over(path, content) for path in folder.iterdir()):
        raise UsageError(
            f"{folder} is not empty; name a new folder with --run, or go on with a run by --resume {folder}."
        )


def _is_left_over(path: Path, content: Mapping[str, bytes]) -> bool:
    """Whether a process that was killed while it made the same run has left this: to write it again loses nothing."""
    if path.name == LOCK:
        return True
    if path.name in content:
        return path.is_file() and path.read_bytes() == content[path.name]
    return path.suffix == ".part" and path.name.startswith(
        tuple(f".{name}." for name in (ITEMS, TOOLS, CATEGORIES_FILE, MANIFEST))
    )


def record_line(record: ReplyRecord | KeptTurn) -> bytes:
    """A record as one line."""
    try:
        return _encode(record) + b"\n"
    except UnicodeEncodeError:  # a lone surrogate in the text of a result or an error
        return _encode(replace_surrogates(msgspec.to_builtins(record, builtin_types=(msgspec.Raw,)))) + b"\n"


def _read(decode: Callable[[bytes], _T], line: bytes, path: Path, start: int) -> _T:
    try:
        return decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return _read_slowly(decode, line, path, start)


def _read_slowly(decode: Callable[[bytes], _T], line: bytes, path: Path, start: int) -> _T:
    """Read what the fast decoder refuses and a model may answer: nesting without end, half a surrogate pair."""
    number = line_number(path, start)
    value = read_json_line(line, str(path), number)
    try:
        return decode(_encode(value))
    except msgspec.ValidationError as error:
        raise validation_error(error, str(path), number) from None
