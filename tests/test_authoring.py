"""Mistakes of authors: each is told in one sentence with file, intent, field and remedy, and nothing is built."""

from __future__ import annotations

import json
import shutil

import pytest

from arabic_agent_eval.items import ItemSet
from authoring import card
from authoring.__main__ import main
from authoring.sources import DATA, DIALECTS, HERE, PREFIXES, Files

INTENTS, LINES, SINGLES = "authoring/core/intents", "authoring/core/lines", "authoring/core/singles"


def chosen(category):
    """One intent of a category: the first with a day to work out where there is one, so that days can be wrong."""
    rows = json.loads((HERE / "intents" / f"{category}.json").read_text(encoding="utf-8"))
    dated = [row for row in rows if "2027-" in json.dumps([call["arguments"] for call in row["expected_calls"]])]
    return (dated or rows)[0]


SOME = {category: chosen(category) for category in PREFIXES}
NAMES = {category: row["intent"] for category, row in SOME.items()}
PE, MS, ER, TS, DH = (NAMES[f] for f in (
    "parameter_extraction", "multi_step", "error_recovery", "tool_selection", "dialect_handling"
))  # fmt: skip


def dumped(value):
    """A value as the sources hold it."""
    return json.dumps(value, ensure_ascii=False, indent=1)


def small():
    """The sources, cut down to one intent of a category and one single item of a dialect: path → text."""
    found = {f"intents/{category}.json": dumped([row]) for category, row in SOME.items()}
    for dialect in DIALECTS:
        for category, name in NAMES.items():
            lines = json.loads((HERE / "lines" / dialect / f"{category}.json").read_text(encoding="utf-8"))
            found[f"lines/{dialect}/{category}.json"] = dumped({name: lines[name]})
        singles = json.loads((HERE / "singles" / f"{dialect}.json").read_text(encoding="utf-8"))
        found[f"singles/{dialect}.json"] = dumped(singles[:1])
    return found | {"tracks.json": (HERE / "tracks.json").read_text(encoding="utf-8")}


SMALL = small()


class Copy:
    """A copy of the small sources, the tools and the card."""

    def __init__(self, root):
        self.files = Files(root / "authoring" / "core", root / "arabic_agent_eval" / "data")
        for name, text in SMALL.items():
            self.write(name, text)
        (self.files.data / "core").mkdir(parents=True)
        for name in ("tools.json", "README.md"):
            shutil.copy(DATA / "core" / name, self.files.data / "core" / name)

    def path(self, name):
        """Where a file of the copy stands."""
        return self.files.here / name

    def write(self, name, text):
        """Put a text or bytes into a file."""
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        data = text if isinstance(text, bytes) else text.encode()
        self.path(name).write_bytes(data)

    def change(self, name, change):
        """Change what a JSON file holds; a change that gives a value puts it in its place."""
        value = json.loads(self.path(name).read_text(encoding="utf-8"))
        new = change(value)
        self.write(name, dumped(value if new is None else new))

    def built(self):
        """The sets that were written."""
        return sorted(path.name for path in self.files.data.rglob("*") if path.name == "items.jsonl")

    def run(self, *arguments):
        """Run the command on the copy."""
        return main(list(arguments), self.files)


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path)


def of(category):
    """The file of a category's intents."""
    return f"intents/{category}.json"


def intent(kind, /, **changes):
    """A mistake: fields of the intent of a category are put; None takes them away."""

    def make(copy):
        def change(rows):
            for name, value in changes.items():
                rows[0].pop(name, None)
                if value is not None:
                    rows[0][name] = value

        copy.change(of(kind), change)

    return make


def inside(name, *steps, put):
    """A mistake: a value inside a file is put."""

    def make(copy):
        def change(value):
            for step in steps[:-1]:
                value = value[step]
            value[steps[-1]] = put

        copy.change(name, change)

    return make


def without(name, *steps):
    """A mistake: a value inside a file is taken away."""

    def make(copy):
        def change(value):
            for step in steps[:-1]:
                value = value[step]
            del value[steps[-1]]

        copy.change(name, change)

    return make


def raw(name, text):
    """A mistake: a file holds this."""
    return lambda copy: copy.write(name, text)


def edited(name, old, new):
    """A mistake: the text of a file is another."""

    def make(copy):
        text = copy.path(name).read_text(encoding="utf-8")
        assert old in text
        copy.write(name, text.replace(old, new, 1))

    return make


def gone(name):
    """A mistake: a file is not there."""
    return lambda copy: copy.path(name).unlink()


def same_name_twice(copy):
    copy.write(of("multi_step"), dumped([SOME["multi_step"], SOME["multi_step"]]))


def same_name_elsewhere(copy):
    copy.write(of("tool_selection"), dumped([SOME["tool_selection"], SOME["multi_step"]]))


def moved_line(copy):
    name = "lines/gulf/multi_step.json"
    line = json.loads(SMALL[name])
    copy.write(name, "{}")
    copy.change("lines/gulf/tool_selection.json", lambda lines: lines.update(line))


def doubled_line(copy):
    line = json.loads(SMALL["lines/gulf/multi_step.json"])
    copy.change("lines/gulf/tool_selection.json", lambda lines: lines.update(line))


def equal_lines(copy):
    said = json.loads(SMALL["lines/msa/multi_step.json"])[MS]
    copy.change("lines/gulf/multi_step.json", lambda _: {MS: said})


def two_singles(copy):
    rows = json.loads((HERE / "singles" / "gulf.json").read_text(encoding="utf-8"))
    copy.write("singles/gulf.json", dumped(rows[:2]))


def no_mark(copy):
    path = copy.files.data / "core" / "README.md"
    path.write_text(path.read_text(encoding="utf-8").replace("<!-- tools -->", ""), encoding="utf-8")


def bad_tools(copy):
    (copy.files.data / "core" / "tools.json").write_text("[{}]", encoding="utf-8")


GULF_PE, MSA_MS = "lines/gulf/parameter_extraction.json", "lines/msa/multi_step.json"
DATED = "parameter_extraction"
PLACE, KEY = next(
    (place, key)
    for place, call in enumerate(SOME[DATED]["expected_calls"])
    for key, value in call["arguments"].items()
    if str(value).startswith("2027-")
)
SURE = SOME["parameter_extraction"]["expected_calls"][0]["arguments"]

MISTAKES = {
    # files
    "no list": (raw(of("multi_step"), "{}"),
        f"{INTENTS}/multi_step.json: it must be a list of objects and is an object"),
    "null": (raw(of("multi_step"), "null"), f"{INTENTS}/multi_step.json: it is null"),
    "empty list": (raw(of("multi_step"), "[]"), f"{INTENTS}/multi_step.json: the list is empty"),
    "empty file": (raw(of("multi_step"), ""), f"{INTENTS}/multi_step.json: it is not JSON at line 1, column 1"),
    "comma too much": (raw(of("multi_step"), "[{},]"), "it is not JSON at line 1, column"),
    "no object": (raw(of("multi_step"), '["x"]'),
        f"{INTENTS}/multi_step.json: entry 1: it must be an object and is text"),
    "not UTF-8": (raw(GULF_PE, '{"a": "غ"}'.encode("cp1256")),
        f"{LINES}/gulf/parameter_extraction.json: byte 8 is not UTF-8"),
    "UTF-16": (raw(GULF_PE, "{}".encode("utf-16")), "byte 1 is not UTF-8: save the file as UTF-8."),
    "NaN": (raw(of("multi_step"), "[NaN]"), "it is not JSON (NaN is no number there)"),
    "too large": (raw(of("multi_step"), "[1e999]"), "the number is too large"),
    "half a pair": (raw(GULF_PE, '{"a": "\\ud800"}'), "half of a surrogate pair"),
    "very deep": (raw(of("multi_step"), "[" * 50_000), "it nests deeper than 64 levels"),
    "deep": (raw(of("multi_step"), "[" * 100 + "]" * 100), "it nests deeper than 64 levels"),
    "key twice": (edited(of("multi_step"), '"difficulty"', '"difficulty": "easy", "difficulty"'),
        f"{INTENTS}/multi_step.json: {MS}: the key 'difficulty' stands twice"),
    "line twice": (raw(GULF_PE, f'{{"{PE}": "a", "{PE}": "b"}}'), f"the key '{PE}' stands twice"),
    "no intents": (gone(of("multi_step")), f"{INTENTS}/multi_step.json: the file is not there"),
    "no tracks": (gone("tracks.json"), "authoring/core/tracks.json: the file is not there"),
    "a track too few": (raw("tracks.json", "{}"), "authoring/core/tracks.json: it must be an object with 'no_call'"),
    "bad tools": (bad_tools, "arabic_agent_eval/data/core/tools.json: "),
    "a file too many": (raw(of("multistep"), "[]"),
        f"{INTENTS}/multistep.json: nothing reads this: rename it or remove it. Did you mean 'multi_step.json'?"),
    "a folder too many": (raw("lines/Gulf-old/x.json", "{}"), f"{LINES}/Gulf-old: nothing reads this"),
    # intents
    "no name": (intent("multi_step", intent=None), "entry 1: intent: it must be a name"),
    "name a number": (intent("multi_step", intent=7), "entry 1: intent: it must be a name"),
    "wrong prefix": (intent("multi_step", intent="pe_x"), "pe_x: intent: the name must be 'ms_'"),
    "name with a space": (intent("multi_step", intent="ms_a b"), "ms_a b: intent: the name must be 'ms_'"),
    "wrong category": (intent("multi_step", category="multistep"), f"{MS}: category: it must be 'multi_step'"),
    "no meaning": (intent("multi_step", meaning=None), f"{MS}: meaning: it is missing: write text."),
    "empty meaning": (intent("multi_step", meaning=" "), f"{MS}: meaning: it is empty: write text."),
    "bad difficulty": (intent("multi_step", difficulty="Hard"),
        f"{MS}: difficulty: it must be 'easy', 'medium' or 'hard'"),
    "unknown field": (intent("multi_step", for_writer="x"), f"{MS}: for_writer: no reader knows this field"),
    "did you mean": (intent("multi_step", for_writer="x"), "Did you mean 'for_writers'?"),
    "misplaced field": (intent("multi_step", instruction="x"), f"{MS}: instruction: it does not belong here"),
    "name twice": (same_name_twice, f"{MS}: intent: the name stands twice in the file"),
    "name in two files": (
        same_name_elsewhere, f"{MS}: intent: the name stands in {INTENTS}/multi_step.json as well: give"),
    "no calls": (intent("multi_step", expected_calls=None),
        f"{MS}: expected_calls: it is missing: write a list of calls"),
    "calls an object": (intent("multi_step", expected_calls={}), f"{MS}: expected_calls: it must be a list of calls"),
    "call a text": (intent("multi_step", expected_calls=["x"]), f"{MS}: expected_calls[0]: it must be an object"),
    "no function": (without(of("multi_step"), 0, "expected_calls", 0, "function"),
        "expected_calls[0].function: it is missing"),
    "no arguments": (without(of("multi_step"), 0, "expected_calls", 0, "arguments"),
        "expected_calls[0].arguments: it is missing"),
    "unknown in call": (inside(of("multi_step"), 0, "expected_calls", 0, "results", put={}),
        "so it has no effect: rename it or remove it. Did you mean 'result'?"),
    "accept no list": (
        inside(of("parameter_extraction"), 0, "expected_calls", 0, "accept", put={next(iter(SURE)): "x"}),
        f"{INTENTS}/parameter_extraction.json: {PE}: expected_calls[0].accept"),
    "accept null": (inside(of("multi_step"), 0, "expected_calls", 0, "accept", put=None),
        "accept: it must be an object"),
    "tags a text": (intent("multi_step", tags="x"),
        f"{INTENTS}/multi_step.json: {MS}: tags: expected a list, found text"),
    "context a text": (intent("multi_step", context="x"), f"{MS}: context: expected an object"),
    "no tools": (intent("multi_step", available_functions=[]),
        f"{MS}: available_functions: it must be a list of names"),
    "hints of nobody": (intent("multi_step", dialect_hints={"golf": "x"}),
        "dialect_hints.golf: no reader knows this field"),
    # English
    "no en": (intent("multi_step", en=None), f"{MS}: en: it is missing: write an object"),
    "en a text": (intent("multi_step", en="x"),
        f"{MS}: en: it must be an object with instruction and values, and is 'x'"),
    "en empty": (inside(of("multi_step"), 0, "en", "instruction", put=""), f"{MS}: en.instruction: it is empty"),
    "no values": (without(of("multi_step"), 0, "en", "values"), f"{MS}: en.values: it is missing"),
    "value a list": (inside(of("multi_step"), 0, "en", "values", put={"أ": ["a"]}),
        f"{MS}: en.values.أ: it must be text"),
    "unknown in en": (inside(of("multi_step"), 0, "en", "value", put={}), "en.value: no reader knows this field"),
    "en of a track": (intent("no_call", en={"instruction": "x", "values": {}}), "en: the track no_call has no English"),
    "value of nothing": (inside(of("multi_step"), 0, "en", "values", put={"لا شيء": "nothing"}),
        f"{MS}: en.values.لا شيء: no argument, accepted value or result is this"),
    # lines
    "lines a list": (raw(GULF_PE, "[]"),
        f"{LINES}/gulf/parameter_extraction.json: it must be an object, intent → line"),
    "no lines": (gone(GULF_PE),
        f"{LINES}/gulf/parameter_extraction.json: the file is not there: write it, intent"),
    "no line": (raw(GULF_PE, "{}"),
        f"{LINES}/gulf/parameter_extraction.json: {PE}: there is no line in gulf: write one."),
    "line a number": (raw(GULF_PE, f'{{"{PE}": 1}}'), f"{PE}: the line must be text, or an object"),
    "line empty": (raw(GULF_PE, f'{{"{PE}": ""}}'), f"{PE}: instruction: it is empty"),
    "line of nothing": (inside(GULF_PE, PE, put={"language": "afb"}), f"{PE}: instruction: it is missing"),
    "unknown in line": (inside(GULF_PE, PE, put={"instruction": "x", "langage": "ars"}),
        f"{LINES}/gulf/parameter_extraction.json: {PE}: langage: no reader knows this field"),
    "language": (inside(GULF_PE, PE, put={"instruction": "x", "language": "arz"}),
        f"{PE}: language: a line in gulf is written in 'afb' (Gulf) or 'ars' (Najdi)"),
    "language a list": (inside(GULF_PE, PE, put={"instruction": "x", "language": []}),
        f"{PE}: language: a line in gulf"),
    "bad turn": (inside(GULF_PE, PE, put={"instruction": "x", "messages": [{"role": "me"}]}),
        f"{PE}: messages[0]: a turn is"),
    "orphan": (inside(GULF_PE, f"{PE}s", put="x"),
        f"{PE}s: no intent has this name: rename it or remove it. Did you mean"),
    "wrong file": (
        moved_line,
        f"{LINES}/gulf/tool_selection.json: {MS}: the intent is one of multi_step: move the line to {LINES}"),
    "two files": (
        doubled_line,
        f"{MS}: the line stands in {LINES}/gulf/tool_selection.json as well: keep it in {LINES}/gulf/multi"),
    "equal lines": (
        equal_lines,
        f"{LINES}/gulf/multi_step.json: {MS}: the line is the same as that of {MS} in {LINES}/msa"),
    # singles
    "no singles": (gone("singles/gulf.json"), f"{SINGLES}/gulf.json: the file is not there"),
    "more singles": (two_singles, f"{SINGLES}/msa.json: single items here: 1, in another dialect: 2; write 1 more."),
    "single of nothing": (raw("singles/gulf.json", "[{}]"), f"{SINGLES}/gulf.json: entry 1: id: it must be a name"),
    "single's end": (inside("singles/gulf.json", 0, "id", put="sg_x.msa"),
        "sg_x.msa: id: it must be a-z, 0-9 and _, and end in '.glf'"),
    "single's category": (inside("singles/gulf.json", 0, "category", put="no_call"),
        "category: it must be one of simple"),
    "single's field": (inside("singles/gulf.json", 0, "intent", put="x"), "intent: no reader knows this field"),
    "single's dialect": (inside("singles/gulf.json", 0, "dialect", put="msa"), "dialect: it must be 'gulf'"),
    # what the calls must be
    "one step": (intent("multi_step", expected_calls=SOME["multi_step"]["expected_calls"][:1]),
        f"{MS}: expected_calls: multi_step has 2 to 5 calls and here are 1"),
    "few tools": (intent("tool_selection", available_functions=SOME["tool_selection"]["available_functions"][:7]),
        f"{TS}: available_functions: tool_selection offers 8 to 15 tools and here are 7"),
    "tool twice": (intent("multi_step", available_functions=SOME["multi_step"]["available_functions"] * 2),
        "stands twice"),
    "no result": (without(of("multi_step"), 0, "expected_calls", 1, "result"),
        f"{MS}: expected_calls[1].result: a call of several"),
    "no failure": (inside(of("error_recovery"), 0, "expected_calls", 0, "result", put={}),
        "the first call fails in error_recovery"),
    "another error": (intent("error_recovery", error_response={"error": "x"}),
        f"{ER}: error_response: it must be the result"),
    "call in no_call": (intent("no_call", expected_calls=SOME["multi_step"]["expected_calls"][:1]),
        "no call is right in no_call"),
    "no call in dh": (intent("dialect_handling", expected_calls=[]),
        f"{DH}: expected_calls: a call is right in dialect_handling"),
    "no such day": (inside(of(DATED), 0, "expected_calls", PLACE, "arguments", KEY, put="2027-02-30"),
        f"expected_calls[{PLACE}].arguments.{KEY}: the day 2027-02-30 does not exist"),
    "no now": (intent(DATED, context=None), f"expected_calls[{PLACE}].arguments.{KEY}: the day 2027-"),
    "now without offset": (intent("multi_step", context={"now": "2027-03-09T10:15:00"}),
        f"{MS}: context.now: it must be a day"),
    "now never": (intent("multi_step", context={"now": "2027-02-30T10:15:00+02:00"}),
        f"{MS}: context.now: it must be a day"),
    # what `aae data check` finds, told where it was written
    "unknown tool": (intent("multi_step", available_functions=["search_hotel"]),
        f"{INTENTS}/multi_step.json: {MS}: unknown_tool: available_functions[0]: "),
    "said nowhere": (raw("lines/egyptian/multi_step.json", f'{{"{MS}": "عايز أحجز دلوقتي"}}'),
        f"{LINES}/egyptian/multi_step.json: {MS}: the line does not say '"),
    "another dialect": (raw("lines/egyptian/dialect_handling.json", f'{{"{DH}": "أبغى أعرف وش الحين"}}'),
        f"{LINES}/egyptian/dialect_handling.json: {DH}: foreign_marker: instruction: "),
    "card": (no_mark, "arabic_agent_eval/data/core/README.md: the part '<!-- tools -->…<!-- end -->' is not there"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_in_a_sentence(copy, capsys, make, sentence):
    """Every mistake ends with exit code 1 and a sentence that names the place, and nothing is built."""
    make(copy)

    assert copy.run("build") == 1

    said = capsys.readouterr()
    assert [line for line in said.out.splitlines() if sentence in line], said.out
    assert all(line.startswith(("authoring/core/", "arabic_agent_eval/data/")) for line in said.out.splitlines())
    assert said.err.endswith("to mend; nothing was built.\n")
    assert copy.built() == []


def test_a_code_that_nothing_says(copy, capsys):
    """A number of an account, a phone or a train must be said; in every dialect it is a fault of the key."""
    inside(of("multi_step"), 0, "expected_calls", 0, "arguments", "account_number", put="90817263")(copy)

    assert copy.run("check") == 1

    shown = f"{MS}: unsaid_number: expected_calls[0].arguments.account_number: Nothing given says the number 90817263"
    assert shown in capsys.readouterr().out


def test_a_single_item_with_the_id_of_an_intent(copy, capsys):
    """It would make a set with the same id twice, so nothing is built."""
    inside("singles/gulf.json", 0, "id", put=f"{PE}.glf")(copy)

    assert copy.run("build") == 1

    said = capsys.readouterr().out
    assert f"singles/gulf.json: {PE}.glf: id: " in said
    assert copy.built() == []


def test_tools_stand_in_an_order_that_says_nothing():
    """The right first tool stands first as often as chance has it, and all dialects of an intent have one order."""
    first, expected, orders = 0, 0.0, {}
    for name in ("core", "core-en", "core-tracks"):
        for item in ItemSet.read(DATA / name / "items.jsonl").values():
            key = item.intent or item.id
            orders.setdefault(key, set()).add(tuple(item.available_functions))
            if name != "core-en" and len(orders[key]) == 1 and item.expected_calls and item.dialect == "msa":
                first += item.available_functions[0] == item.expected_calls[0].function
                expected += 1 / len(item.available_functions)

    assert all(len(several) == 1 for several in orders.values())
    assert abs(first - expected) < 3 * expected**0.5


def test_all_faults_at_once(copy, capsys):
    """Missing lines of several dialects and faults of several files are told together, each once."""
    for dialect in DIALECTS:
        copy.write(f"lines/{dialect}/multi_step.json", "{}")
    intent("tool_selection", difficulty="no")(copy)

    assert copy.run("check") == 1

    said = capsys.readouterr().out.splitlines()
    missing = [f"{LINES}/{name}/multi_step.json: {MS}: there is no line in {name}: write one." for name in DIALECTS]
    assert [line for line in said if "there is no line" in line] == missing
    assert len(said) == len(DIALECTS) + 1


def test_a_fault_of_all_dialects_is_told_once(copy, capsys):
    """What is wrong with the key is no fault of any line: it is told once, with the file of the intent."""
    inside(of("parameter_extraction"), 0, "expected_calls", 0, "arguments", "nonsense", put=1)(copy)

    assert copy.run("check") == 1

    [line] = capsys.readouterr().out.splitlines()
    place = "unknown_argument: expected_calls[0].arguments.nonsense: "
    assert line.startswith(f"{INTENTS}/parameter_extraction.json: {PE}: {place}")
    assert line.endswith(" (all dialects)")


def test_a_byte_order_mark_is_no_fault(copy, capsys):
    """A file that an editor saved with a byte order mark is read as any other."""
    copy.write(GULF_PE, b"\xef\xbb\xbf" + SMALL[GULF_PE].encode())

    assert copy.run("check") == 0, capsys.readouterr().out


def test_one_file_alone(copy, capsys):
    """The intents of a file are checked without lines, as strictly as with them."""
    shutil.rmtree(copy.path("lines"))
    path = copy.path(of("multi_step"))

    assert copy.run("check", str(path)) == 0
    assert capsys.readouterr().out == "1 intents, nothing found\n"

    for mistake in ("wrong prefix", "no result", "unknown tool", "value of nothing", "key twice", "NaN"):
        make, sentence = MISTAKES[mistake]
        make(copy)
        assert copy.run("check", str(path)) == 1, mistake
        assert sentence in capsys.readouterr().out
        copy.write(of("multi_step"), SMALL[of("multi_step")])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["check", "lines/gulf/multi_step.json"], "only the files of authoring/core/intents are checked alone"),
        (["check", "intents/nothing.json"], "only the files of authoring/core/intents are checked alone"),
        (["build", "intents/multi_step.json"], "build takes no file"),
    ],
)
def test_files_that_are_not_checked_alone(copy, capsys, arguments, sentence):
    """Only files of intents are checked alone, and none is built alone."""
    assert copy.run(arguments[0], str(copy.path(arguments[1]))) == 1
    assert sentence in capsys.readouterr().out
    assert copy.built() == []


def test_a_build_says_what_it_wrote(copy, capsys):
    """Three sets are written with their fingerprints, and the card counts them and says what in it is old."""
    assert copy.run("build") == 0

    said = capsys.readouterr().out
    text = (copy.files.data / "core" / "README.md").read_text(encoding="utf-8")
    assert len(copy.built()) == 3
    assert "wrote arabic_agent_eval/data/core/items.jsonl: 35 items, core@" in said
    assert "note: arabic_agent_eval/data/core/README.md holds figures of core@" in said
    assert "<!-- parallel -->6<!-- end --> intents exist" in text
    assert "<!-- singles -->5<!-- end --> items, <!-- singles each -->1<!-- end --> in each dialect" in text
    assert "`no_call` (<!-- no_call -->1<!-- end --> intents" in text
    assert card.filled(text, copy.files) == text


def test_the_figures_of_the_card_are_those_of_the_sets():
    """What was computed once, for players and power, was computed for the sets as they are."""
    assert card.stale(Files()) == []
