"""What a model is asked: an item → a :class:`Request`, the same for every model, and the words around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from arabic_agent_eval.errors import UsageError
from arabic_agent_eval.items import Item
from arabic_agent_eval.tools import Call, Tool

ToolLanguage = Literal["ar", "en", "both"]
TOOL_LANGUAGES: tuple[str, ...] = get_args(ToolLanguage)
"""The languages in which tools can be described."""

SYSTEM_PROMPT = (
    "أنت مساعد يخدم متحدثي العربية بكل لهجاتها، وتنفّذ طلباتهم بالأدوات المتاحة لك. "
    "إذا كان الطلب يحتاج إلى أداة فاستدعِ الأداة المناسبة، واكتب قيم المعاملات كما ذكرها المستخدم وبلغته: "
    "ما ورد بالعربية يبقى بالعربية. "
    "وإذا لم تناسب الطلبَ أيُّ أداة، أو نقصت معلومة لا بد منها، فأجب بجملة ولا تستدعِ أداة."
)
"""What the model is told by default: use the tools, keep Arabic Arabic, and decline where no tool fits."""

_WRITTEN_TOOLS = (
    "الأدوات المتاحة لك، كل سطر أداة بصيغة JSON:\n{tools}\n"
    "لاستدعاء أداة اكتب سطرًا بهذه الصيغة وحدها، ولكل استدعاء سطره:\n"
    '<tool_call>{{"name": "اسم الأداة", "arguments": {{"المعامل": "القيمة"}}}}</tool_call>'
)
_CONTEXT_NAMES = {
    "now": "الوقت الآن",
    "timezone": "المنطقة الزمنية",
    "locale": "الإعدادات المحلية",
    "user": "المستخدم",
}


class MadeCall(msgspec.Struct, frozen=True):
    """A call that a model made, with the id under which its provider wants the result; None where it gave no id."""

    id: str | None
    call: Call


class ToolResult(msgspec.Struct, frozen=True):
    """What the simulated tool answered to a call: JSON text, unescaped."""

    made: MadeCall
    content: str


class Exchange(msgspec.Struct, frozen=True):
    """One finished turn of a conversation: the provider's whole answer, decoded, and the results of its calls."""

    answer: dict[str, Any]
    results: tuple[ToolResult, ...]


class Request(msgspec.Struct, frozen=True):
    """One request, before any provider's wire format.

    Attributes:
        item_id, epoch: what is asked and which asking of it; they are not sent.
        system: the system prompt, context included.
        messages: earlier turns and at last the instruction, in OpenAI's shape.
        tools: the offered tools, described in the chosen language; empty when they are written in the system prompt.
        exchanges: the turns of this conversation so far.
        written: the tools are written in the system prompt and calls are read from the text.
    """

    item_id: str
    epoch: int
    system: str
    messages: tuple[dict[str, Any], ...]
    tools: tuple[Tool, ...]
    exchanges: tuple[Exchange, ...] = ()
    written: bool = False


class Offer:
    """The tools of a registry as models are offered them, each described once.

    Args:
        registry: the tools.
        language: in which language tools and parameters are described.

    Raises:
        UsageError: there is no such language.
    """

    def __init__(self, registry: Mapping[str, Tool], language: ToolLanguage = "both") -> None:
        if language not in TOOL_LANGUAGES:
            raise UsageError(f"a tool language is one of {', '.join(TOOL_LANGUAGES)}, not {str(language)[:40]!r}.")
        self.registry = registry
        self.language = language
        self._described: dict[str, Tool] = {}

    def tools(self, item: Item) -> tuple[Tool, ...]:
        """The offered tools of an item, described."""
        if item.tools is not None:
            return tuple(described(tool, self.language) for tool in item.own_tools.values())
        return tuple(self._of(name) for name in item.toolbox(self.registry))

    def _of(self, name: str) -> Tool:
        found = self._described.get(name)
        if found is None:
            found = self._described[name] = described(self.registry[name], self.language)
        return found


def request_for(
    item: Item,
    offer: Offer,
    *,
    epoch: int = 0,
    system: str = SYSTEM_PROMPT,
    written: bool = False,
) -> Request:
    """The first request of an item.

    Args:
        item: the item.
        offer: the tools that it may name.
        epoch: which asking of it.
        system: the system prompt; the item's context is added to it.
        written: whether to write the tools into the system prompt.
    """
    tools = offer.tools(item)
    parts = [system, _context(item.context or {})]
    if written and tools:
        schemas = "\n".join(_text({"name": t.name, "description": t.description, "parameters": t.parameters})
                            for t in tools)  # fmt: skip
        parts.append(_WRITTEN_TOOLS.format(tools=schemas))
    messages = (*(item.messages or ()), *([{"role": "user", "content": item.instruction}] if item.instruction else ()))
    prompt = "\n\n".join(part for part in parts if part)
    return Request(item.id, epoch, prompt, messages, () if written else tools, (), written)


def described(tool: Tool, language: ToolLanguage) -> Tool:
    """The tool described in one language or both, its parameters too; the plain text stands for missing Arabic."""
    description = _choose(tool.description, tool.description_ar, language)
    try:
        return Tool(tool.name, description, _described(tool.parameters, language))
    except RecursionError:  # a schema that nests without end is offered as it is
        return Tool(tool.name, description, tool.parameters)


def _described(schema: Any, language: ToolLanguage) -> Any:
    if isinstance(schema, list):
        return [_described(member, language) for member in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _described(value, language) for name, value in schema.items() if name != "description_ar"}
    plain, arabic = schema.get("description", ""), schema.get("description_ar")
    if isinstance(plain, str) and isinstance(arabic, str):
        found["description"] = _choose(plain, arabic, language)
    return found


def _choose(plain: str, arabic: str | None, language: ToolLanguage) -> str:
    if not arabic or language == "en":
        return plain
    return arabic if language == "ar" or not plain else f"{arabic} | {plain}"


def _context(context: Mapping[str, Any]) -> str:
    lines = [
        f"{_CONTEXT_NAMES.get(name, name)}: {value if isinstance(value, str) else _text(value)}"
        for name, value in context.items()
    ]
    return "\n".join(lines)


def written_results(results: Sequence[ToolResult]) -> str:
    """Results as a user's message, for models whose tools stand in the system prompt."""
    return "\n".join(f"<tool_response>{result.content}</tool_response>" for result in results)


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
