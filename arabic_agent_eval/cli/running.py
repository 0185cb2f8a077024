"""``aae run``, ``aae regrade`` and ``aae models``."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from arabic_agent_eval.cli import planning, steps
from arabic_agent_eval.cli.guard import INTERRUPTED, UNSCORED, guarded
from arabic_agent_eval.cli.options import CategoriesOption, FailUnder, JsonOption, Layout, RuleName, RulesOption
from arabic_agent_eval.errors import OutputError

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
            "--items", metavar="FILE|SET", help="The items: a JSONL file, or a bundled set; 'core' by default."
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
    epochs: Annotated[
        int | None, typer.Option("--epochs", min=1, max=10_000, help="How often each item is asked; 1 by default.")
    ] = None,
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
    attempts: Annotated[
        int, typer.Option("--attempts", min=1, help="How often a request may fail; a rate limit five times as often.")
    ] = 6,
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
    from arabic_agent_eval.costs import Cache
    from arabic_agent_eval.journal import Journal
    from arabic_agent_eval.models.catalogue import open_model
    from arabic_agent_eval.models.model import Settings
    from arabic_agent_eval.pacing import Pace
    from arabic_agent_eval.regrading import Ahead
    from arabic_agent_eval.reports.progress import telling
    from arabic_agent_eval.results import results_of_run
    from arabic_agent_eval.rules import RULES
    from arabic_agent_eval.runner import Limits, Runner

    planning.check_options({"--model": model, "--items": items, "--base-url": base_url}, out, folder, resume)
    given = {
        "model": model, "base_url": base_url, "epochs": epochs, "temperature": temperature, "seed": seed,
        "max_tokens": max_tokens, "parameters": planning.parameters_of(parameter), "tool_language": tool_language,
        "system": None if system_prompt is None else planning.text_of(system_prompt), "written": prompt_tools,
        "max_turns": max_turns,
    }  # fmt: skip
    steps.keep_apart(out, items, tools, system_prompt, prices, categories)
    declared = steps.declared(categories, items=None if resume else items, runs=[resume] if resume else [])
    if resume is not None:
        plan = planning.plan_resumed(resume, given, items, tools, limit)
    else:
        plan = planning.plan_new(folder, given, items, tools, limit, SYSTEM_PROMPT, declared)
    asked = plan.asked
    settings = Settings(
        asked.model.partition("/")[2], asked.temperature, asked.seed, asked.max_tokens, asked.parameters
    )
    price = planning.price_for(prices, asked.model)
    asking = open_model(
        asked.model,
        settings,
        base_url=base_url or asked.address or None,
        key_variable=api_key_env,
        timeout=timeout,
        connections=concurrency,
    )
    pace, limits = Pace(concurrency, rpm=rpm, tpm=tpm), Limits(attempts, deadline, max_cost)
    made = plan.make()  # last, when nothing that was given can be wrong any more
    fewer = None if concurrency == _CONCURRENCY else concurrency
    elsewhere = None if asking.address == asked.address else base_url
    go_on = planning.resuming(
        made.folder, {"base-url": elsewhere, "api-key-env": api_key_env, "concurrency": fewer, "rpm": rpm, "tpm": tpm,
                      "prices": prices, "max-cost": max_cost, "cache": cache},
    )  # fmt: skip
    with _resumable(go_on):
        steps.say(planning.opening(made, asking.address))
        if plan.warning:
            steps.say(plan.warning)
        with Journal(made.folder) as journal, telling() as tell:
            steps.keep_apart(out, *made.folder.iterdir())
            store, ahead = Cache(cache) if cache else None, Ahead(made, RULES[rules])
            runner = Runner(made, journal, asking, pace, limits=limits, price=price, cache=store, tell=tell,
                            finished=ahead.add)  # fmt: skip
            _load_what_reports_need(asking.address)
            ending = runner.ask(concurrency)
        results = results_of_run(made, rules=RULES[rules], categories=categories, out=out, ahead=ahead)
        steps.show_results(results, Layout.TERMINAL, as_json=as_json)
        steps.finish_results(results, fail_under, ending=ending, go_on=go_on)


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
    from arabic_agent_eval.results import results_of_run
    from arabic_agent_eval.rules import RULES
    from arabic_agent_eval.runs import Run

    run = Run.read(folder)
    steps.keep_apart(out, *folder.iterdir())
    results = results_of_run(run, rules=RULES[rules], categories=categories, causes=not no_causes, out=out)
    steps.show_results(results, Layout.TERMINAL, as_json=as_json)
    steps.finish_results(results, fail_under)


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
    from arabic_agent_eval.cli import planning
    from arabic_agent_eval.models.catalogue import open_model, split_name
    from arabic_agent_eval.models.model import Settings
    from arabic_agent_eval.probe import probe

    planning.check_given({"--check": check, "--base-url": base_url})
    settings = Settings(split_name(check)[1])
    found = probe(open_model(check, settings, base_url=base_url, key_variable=api_key_env, timeout=timeout))
    steps.write(msgspec.json.encode(found) + b"\n" if as_json else check_line(found))
    if not found.works:
        raise typer.Exit(UNSCORED)


def _load_what_reports_need(address: str) -> None:
    """Load it while answers are waited for, if they are."""

    def load() -> None:
        # Python 3.11 cannot parse in two threads; whoever needs what did not load loads it then, and is told.
        with suppress(Exception):
            import arabic_agent_eval.differences
            import arabic_agent_eval.uncertainty  # noqa: F401

    if address:
        threading.Thread(target=load, daemon=True).start()


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
