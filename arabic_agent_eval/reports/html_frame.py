"""The frame of every page: one HTML file that opens offline and can be read without a script, in one language or more.

Every text from a model or a file is escaped by the template engine, and before that everything invisible in it is named
(:func:`_harmless`), whatever the template does with it.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from arabic_agent_eval._version import __version__
from arabic_agent_eval.reports.html_cards import pieces
from arabic_agent_eval.reports.html_charts import printed, shade, two_decimals
from arabic_agent_eval.reports.html_words import NAMES, Language, Wording
from arabic_agent_eval.rules import AXES
from arabic_agent_eval.tables import number, signed
from arabic_agent_eval.text import has_arabic, name_invisible
from arabic_agent_eval.tool_choices import Absent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from arabic_agent_eval.items import Category

BOTH: Final[tuple[Language, ...]] = ("en", "ar")
_INSTEAD = 8  # names in one cell of the table of tools
_LONGEST_NAME = 80  # characters of a tool's, an item's, a model's or a group's name

Ends = tuple[float, float]


def render(
    page: str,
    title: str,
    languages: Sequence[Language],
    categories: Mapping[str, Category] | None,
    *,
    script: str = "",
    **values: Any,
) -> str:
    """A whole HTML document.

    Args:
        page: the template of what it holds, written once for each language.
        title: what it is about.
        languages: one page for each, the first one is shown at the beginning.
        categories: declared categories, for their Arabic names.
        script: the file of its one script, if it has one.
        values: what the template shows.
    """
    environment = _environment()
    source = _script(environment, script) if script else Markup()
    return environment.get_template("report.html.j2").render(
        page=page,
        title=title,
        wordings=[Wording(language, categories) for language in languages],
        names=NAMES,
        version=__version__,
        script=source,
        script_hash=base64.b64encode(hashlib.sha256(source.encode()).digest()).decode(),
        **values,
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("arabic_agent_eval.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    environment.filters |= {
        "pieces": pieces,
        "number": number,
        "signed": signed,
        "points": printed,
        "two_decimals": two_decimals,
        "shade": shade,
        "language": lambda text: "ar" if has_arabic(text) else "en",
    }
    environment.globals |= {
        "AXES": AXES,
        "NOTHING": Absent.NOTHING,
        "UNREADABLE": Absent.UNREADABLE,
        "LONGEST_NAME": _LONGEST_NAME,
        "INSTEAD": _INSTEAD,
    }
    return environment


def _harmless(value: Any) -> Any:
    """What a template prints: text with everything invisible named; what the template itself made stays."""
    return name_invisible(value, spaces=True) if isinstance(value, str) and not isinstance(value, Markup) else value


def _script(environment: Environment, name: str) -> Markup:
    """A script, which holds nothing from elsewhere; line ends as the browser will hash them."""
    assert environment.loader is not None  # noqa: S101 - it was given one
    source, _, _ = environment.loader.get_source(environment, name)
    return Markup("\n".join(source.splitlines()))  # noqa: S704 - a file of this package
