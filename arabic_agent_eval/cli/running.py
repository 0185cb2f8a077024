"""``aae run``, ``aae regrade`` and ``aae models``."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from arabic_agent_eval.cli import steps
from arabic_agent_eval.cli.guard import INTERRUPTED, UNSCORED, guarded
from arabic_agent_eval.cli.options import CategoriesOption, FailUnder, JsonOption, Layout, RuleName, RulesOption
from arabic_agent_eval.errors import OutputError, UsageError

if TYPE_CHECKING:
    from arabic_agent_eval.runner import Ending
    from arabic_agent_eval.runs import Asked, Run

_DEFAULT_SET, _DEFAULT_MODEL = "starter", "baseline"
_CONCURRENCY = 8

OutOption = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write graded rows (JSONL).")]


@guarded
def run(
    *,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="PROVIDER/NAME",
            help="Who is asked; the built-in baseline by default. 'aae models' lists providers.",
        ),
    ] = None,
    items: Annotated[
        str | None,
        typer.Option(
            "--items", metavar="FILE|SET", help="The items: a JSONL file, or a bundled set; 'starter' by default."
        ),
    ] = None,
    tools: Annotated[
        str | None,
        typer.Option("--tools", metavar="FILE", help="The tool registry (JSON); beside the items by default."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--run", metavar="DIR", help="The run folder; by default one in runs/, named by time and model."),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="DIR", help="Go on with a run: ask what is missing or failed.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="Another address for the provider's interface.")
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option("--api-key-env", metavar="NAME", help="The environment variable that holds the key.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Ask the first items only.")] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="Ask each item so often; 1 by default.")] = None,
    temperature: Annotated[
        float | None, typer.Option("--temperature", min=0.0, help="As the provider knows it.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="As the provider knows it.")] = None,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", min=1, help="Of one answer.")] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", metavar="NAME=JSON", help="Anything else for the request; may be repeated."),
    ] = None,
    system_prompt: Annotated[
        Path | None, typer.Option("--system-prompt", metavar="FILE", help="Instead of the Arabic one that is built in.")
    ] = None,
    tool_language: Annotated[
        str | None,
        typer.Option(
            "--tool-language", metavar="ar|en|both", help="In which language tools are described; both by default."
        ),
    ] = None,
    prompt_tools: Annotated[
        bool | None,
        typer.Option("--prompt-tools", help="Write the tools into the system prompt and read calls from the text."),
    ] = None,
    max_turns: Annotated[
        int | None, typer.Option("--max-turns", min=1, help="Answers in one conversation at most; 10 by default.")
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, help="Requests at once; fewer after a rate limit.")
    ] = _CONCURRENCY,
    rpm: Annotated[int | None, typer.Option("--rpm", min=1, help="Requests in a minute at most.")] = None,
    tpm: Annotated[int | None, typer.Option("--tpm", min=1, help="Tokens in a minute at most.")] = None,
    attempts: Annotated[int, typer.Option("--attempts", min=1, help="How often a request is sent at most.")] = 6,
    timeout: Annotated[float, typer.Option("--timeout", min=0.001, help="Seconds for one attempt.")] = 120.0,
    deadline: Annotated[
        float | None,
        typer.Option("--deadline", min=0.001, help="Seconds for the whole run; then it stops and can be resumed."),
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            "--prices",
            metavar="FILE",
            help='US dollars for a million tokens (JSON): {"MODEL": {"input": 1, "output": 4}}.',
        ),
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", metavar="USD", min=0.0, help="Stop before more is spent.")
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            "--cache", metavar="DIR", help="Keep answers here, and take them from here when the same is asked again."
        ),
    ] = None,
    rules: RulesOption = RuleName.CANONICAL,
    categories: CategoriesOption = None,
    as_json: JsonOption = False,
    out: OutOption = None,
    fail_under: FailUnder = None,
) -> None:
    """Evaluate a model; without options the built-in baseline on a bundled set."""
    from arabic_agent_eval.asking import SYSTEM_PROMPT
    from arabic_agent_eval.costs import Cache, price_of, read_prices
    from arabic_agent_eval.journal import Journal
    from arabic_agent_eval.models.catalogue import open_model
    from arabic_agent_eval.models.model import Settings
    from arabic_agent_eval.pacing import Pace
    from arabic_agent_eval.reports.progress import telling
    from arabic_agent_eval.runner import Limits, Runner

    steps.declared(categories)  # before anything is asked
    given = {
        "model": model, "base_url": base_url, "epochs": epochs, "temperature": temperature, "seed": seed,
        "max_tokens": max_tokens, "parameters": _parameters(parameter), "tool_language": tool_language,
        "system": None if system_prompt is None else _text_of(system_prompt), "written": prompt_tools,
        "max_turns": max_turns,
    }  # fmt: skip
    if resume is not None and folder is not None:
        raise UsageError("--run names a new folder and --resume an old one; give one of them.")
    steps.keep_apart(out, items, tools, system_prompt, prices, categories)
    if resume is not None:
        asked, opened = _resumed(resume, given, items, tools, limit)
    else:
        asked, opened = _planned(folder, given, items, tools, limit, SYSTEM_PROMPT)
    settings = Settings(
        asked.model.partition("/")[2], asked.temperature, asked.seed, asked.max_tokens, asked.parameters
    )
    price = price_of(read_prices(prices), asked.model) if prices is not None else None
    if prices is not None and price is None:
        raise UsageError(f"{prices} has no price for {asked.model!r}.")
    asking = open_model(
        asked.model,
        settings,
        base_url=base_url if resume is None else asked.address or None,
        key_variable=api_key_env,
        timeout=timeout,
        connections=concurrency,
    )
    pace, limits = Pace(concurrency, rpm=rpm, tpm=tpm), Limits(attempts, deadline, max_cost)
    made = opened()  # last, when nothing that was given can be wrong any more
    go_on = _resuming(made.folder, api_key_env)
    with _resumable(go_on):
        steps.say(f"asking {asked.model} {_how_many(made)}; the run is kept in {made.folder}.")
        with Journal(made.folder) as journal, telling() as tell:
            steps.keep_apart(out, *made.folder.iterdir())
            store = None if cache is None else Cache(cache)
            runner = Runner(made, journal, asking, pace, limits=limits, price=price, cache=store, tell=tell)
            ending = runner.ask(concurrency)
        report_on(
            made.folder,
            rules,
            categories,
            Layout.TERMINAL,
            as_json=as_json,
            fail_under=fail_under,
            out=out,
            ending=ending,
            go_on=go_on,
        )


@guarded
def regrade(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    *,
    rules: RulesOption = RuleName.CANONICAL,
    categories: CategoriesOption = None,
    no_causes: Annotated[bool, typer.Option("--no-causes", help="Do not explain lost points.")] = False,
    as_json: JsonOption = False,
    out: OutOption = None,
    fail_under: FailUnder = None,
) -> None:
    """Grade the answers of a run anew, with other rules or a newer version."""
    report_on(
        folder, rules, categories, Layout.TERMINAL, as_json=as_json, fail_under=fail_under, out=out,
        causes=not no_causes,
    )  # fmt: skip


@guarded
def models(
    *,
    check: Annotated[
        str | None,
        typer.Option("--check", metavar="PROVIDER/NAME", help="Ask this model one thing and say what is wrong."),
    ] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", metavar="URL", help="Another address.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option("--api-key-env", metavar="NAME", help="The variable with the key.")
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", min=0.001, help="Seconds for the answer.")] = 30.0,
    as_json: JsonOption = False,
) -> None:
    """List the providers and what each needs, or check one model."""
    from arabic_agent_eval.reports.providers import check_line, provider_lines

    if check is None:
        for line in provider_lines(as_json=as_json):
            steps.write(line)
        return
    from arabic_agent_eval.models.catalogue import open_model, split_name
    from arabic_agent_eval.models.model import Settings
    from arabic_agent_eval.probe import probe

    settings = Settings(split_name(check)[1])
    found = probe(open_model(check, settings, base_url=base_url, key_variable=api_key_env, timeout=timeout))
    steps.write(msgspec.json.encode(found) + b"\n" if as_json else check_line(found))
    if not found.works:
        raise typer.Exit(UNSCORED)


# --- a run, new or old ---------------------------------------------------------------------------------------


def _planned(
    folder: Path | None, given: dict[str, Any], items: str | None, tools: str | None, limit: int | None, system: str
) -> tuple[Asked, Callable[[], Run]]:
    """What a new run asks, and something that makes its folder."""
    from arabic_agent_eval.models.catalogue import base_address, ignored_settings
    from arabic_agent_eval.runs import Asked, Run, fingerprint_of
    from arabic_agent_eval.strictjson import replace_surrogates

    name = given["model"] or _DEFAULT_MODEL
    if replace_surrogates(name) != name:
        raise UsageError(f"the name of the model, {name[:60]!r}, is not UTF-8 text.")
    address = base_address(name, given["base_url"])
    item_set, registry, fingerprint = _material(items or _DEFAULT_SET, tools, limit)
    for setting in sorted(ignored_settings(name)):
        if given.get(setting):
            option = "parameter" if setting == "parameters" else setting.replace("_", "-")
            steps.say(f"{name.partition('/')[0]} has no setting --{option}; it has no effect.")
    asked = Asked(
        items=item_set.name,
        fingerprint=fingerprint,
        count=len(item_set),
        tools=fingerprint_of(registry),
        model=name,
        address=address,
        system=system if given["system"] is None else given["system"],
        tool_language=_language(given["tool_language"] or "both"),
        written=bool(given["written"]),
        temperature=given["temperature"],
        seed=given["seed"],
        max_tokens=given["max_tokens"],
        parameters=given["parameters"] or {},
        epochs=given["epochs"] or 1,
        max_turns=given["max_turns"] or 10,
    )
    now = datetime.now(UTC)

    def make() -> Run:
        where = folder or _free_folder(now, name)
        return Run.create(where, asked, item_set, registry, created=now.isoformat(timespec="seconds"))

    return asked, make


def _resumed(
    folder: Path, given: dict[str, Any], items: str | None, tools: str | None, limit: int | None
) -> tuple[Asked, Callable[[], Run]]:
    """What an old run asks, and something that gives it; whatever is given must be what it asked."""
    from arabic_agent_eval.runs import Run, fingerprint_of

    opened = Run.read(folder)
    asked = opened.manifest.asked
    now: dict[str, Any] = {name: value for name, value in given.items() if value is not None and name != "base_url"}
    if given["base_url"] is not None:
        now["address"] = given["base_url"]
    if items is not None or tools is not None or limit is not None:
        source = items if items is not None else str(folder / "items.jsonl")
        beside = tools if tools is not None or items is not None else str(folder / "tools.json")
        item_set, registry, fingerprint = _material(source, beside, limit)
        now |= {"fingerprint": fingerprint, "count": len(item_set), "tools": fingerprint_of(registry)}
    if "tool_language" in now:
        _language(now["tool_language"])
    differences = asked.differences(msgspec.structs.replace(asked, **now))
    if differences:
        raise UsageError(
            f"{folder} asked something else, and answers to different questions are not one run: "
            f"{'; '.join(differences)}. Leave the option out, or start a new run."
        )
    return asked, lambda: opened


def _how_many(run: Run) -> str:
    """How many items there are to ask."""
    due = len(run.items) * run.manifest.asked.epochs
    answered = sum(is_answer for _, is_answer in run.places().values())
    named = "1 item" if due == 1 else f"{due:,} items"
    return f"{due - answered:,} of {named}" if answered else named


def _resuming(folder: Path, key_variable: str | None = None) -> str:
    """The command that goes on with a run; the manifest does not say which variable holds the key."""
    named = "" if key_variable is None else f" --api-key-env {shlex.quote(key_variable)}"
    return f"aae run --resume {shlex.quote(str(folder))}{named}"


@contextmanager
def _resumable(go_on: str) -> Iterator[None]:
    """Whatever ends the command, it says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        steps.say(f"Interrupted. Everything that was answered is kept. Go on with: {go_on}")
        raise typer.Exit(INTERRUPTED) from None
    except OutputError as error:
        raise OutputError(f"{error} When that is mended, go on with: {go_on}") from None


def _material(items: str, tools: str | None, limit: int | None) -> tuple[Any, bytes, str]:
    """The items, their registry as JSON, and the fingerprint of the items."""
    from arabic_agent_eval.bundled import find_tools
    from arabic_agent_eval.runs import fingerprint_of

    item_set = steps.items(items)
    if limit is not None:
        item_set = item_set.first(limit)
    steps.registry(items, tools)  # which refuses what is no registry
    path = find_tools(items, tools)
    registry = b"[]\n" if path is None else path.read_bytes()
    named = {name for item in item_set.values() if item.tools is None for name in item.available_functions}
    unknown = named - set(steps.registry(items, tools))
    if unknown:
        shown = ", ".join(sorted(unknown)[:5])
        raise UsageError(
            f"{items}: {len(unknown)} of the tools that items name are in no registry ({shown}); name it with --tools."
        )
    return item_set, registry, fingerprint_of(b"".join(item_set.lines()))


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


def _text_of(path: Path) -> str:
    from arabic_agent_eval.files import open_lines

    with open_lines(path) as stream:
        data = stream.read()
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text.") from None


def _parameters(given: list[str] | None) -> dict[str, Any] | None:
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


# --- the result ----------------------------------------------------------------------------------------------


def report_on(
    folder: Path,
    rules: RuleName,
    categories: Path | None,
    layout: Layout,
    *,
    as_json: bool,
    fail_under: float | None,
    out: Path | None = None,
    causes: bool = True,
    title: str = "",
    ending: Ending | None = None,
    go_on: str = "",
) -> None:
    """Grade what a run holds, print it, say what is missing, and end with the right code."""
    from arabic_agent_eval.regrading import grade_run
    from arabic_agent_eval.reports.figures import print_figures
    from arabic_agent_eval.rules import RULES
    from arabic_agent_eval.runs import Run
    from arabic_agent_eval.strictjson import replace_surrogates
    from arabic_agent_eval.summary import summarize, summary_json

    run, declared = Run.read(folder), steps.declared(categories)
    steps.keep_apart(out, *(path for path in folder.iterdir()))
    batch, figures = grade_run(run, rules=RULES[rules], causes=causes, out=out, categories=declared)
    summary = summarize(
        batch.tally,
        due=len(run.items),
        signature=batch.signature,
        rules=rules,
        categories=declared,
        causes=causes,
        epochs=run.manifest.asked.epochs,
    )
    if as_json:
        steps.write(summary_json(summary, replace_surrogates(msgspec.to_builtins(figures))) + b"\n")
    else:
        steps.show(summary, layout, as_json=False, title=title or figures.model)
        if layout is Layout.TERMINAL:
            print_figures(figures, steps.console())
    _say_what_is_missing(batch.written, summary.coverage.unscored, ending, go_on or _resuming(folder))
    if ending is not None and ending.why == "interrupted":
        raise typer.Exit(INTERRUPTED)
    steps.finish(summary, fail_under)


def _say_what_is_missing(written: int, unscored: int, ending: Ending | None, go_on: str) -> None:
    if written:
        steps.say(
            f"{written:,} answers without a call hold one written as text, which does not count. If the model writes "
            "its calls as text, run it with --prompt-tools."
        )
    if ending is not None and ending.message:
        steps.say(f"{ending.message} Everything that was answered is kept. Go on with: {go_on}")
    elif unscored:
        steps.say(f"{unscored:,} answers are missing. Ask for them again with: {go_on}")
