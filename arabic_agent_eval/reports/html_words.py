"""Every word of the HTML report, in English and in Arabic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from arabic_agent_eval import causes
from arabic_agent_eval.items import CATEGORIES, Category
from arabic_agent_eval.summary import NO_DIALECT, NOT_ASKED
from arabic_agent_eval.tables import NO_REPLY

Language = Literal["en", "ar"]

WORDS: Final[dict[str, tuple[str, str]]] = {
    # the page
    "kind": ("Arabic tool calling: evaluation report", "تقرير تقييم استدعاء الأدوات بالعربية"),
    "page_title": ("Evaluation report", "تقرير التقييم"),
    "language": ("Language", "اللغة"),
    "contents": ("Contents", "المحتويات"),
    "skip": ("Skip to the score", "انتقل إلى الدرجة"),
    "made_by": ("Made by arabic-agent-eval {version}.", "أعدّته حزمة arabic-agent-eval، الإصدار {version}."),
    "how_many_of": ("{some} of {all}", "{some} من {all}"),
    "range": ("{low} to {high}", "من {low} إلى {high}"),
    "nothing": ("nothing", "لا شيء"),
    "and_more": ("and {n} more", "وغيرها: {n}"),
    "times": ("×{n}", "×{n}"),
    "comma": (", ", "، "),
    # the score
    "score": ("Score", "الدرجة"),
    "grade": ("Grade", "التقدير"),
    "nothing_scored": ("Nothing was scored.", "لم تُقيَّم أي إجابة."),
    "no_weight": (
        "No overall score: every category has a weight of 0.",
        "لا توجد نتيجة إجمالية: وزن كل فئة هنا صفر.",
    ),
    "interval": ("95 % interval", "فترة الثقة 95%"),
    "judged": ("Answers judged", "الإجابات المقيَّمة"),
    "worst_case": ("Score if every failure counted as wrong", "الدرجة لو حُسب كل تعطل خطأً"),
    "not_judged": ("Answers not judged", "الإجابات التي لم تُقيَّم"),
    "right_function": ("Answers with the right function", "الإجابات التي اختارت الدالة الصحيحة"),
    "exact_match": ("Share of items right in every respect", "نسبة البنود الصحيحة من كل وجه"),
    "model": ("Model", "النموذج"),
    "tokens": ("Tokens read, written", "الرموز (tokens) المقروءة والمكتوبة"),
    "tokens_value": ("{read} · {written}", "{read} · {written}"),
    "cost": ("Cost in US dollars", "التكلفة بالدولار الأمريكي"),
    "latency": ("Seconds an item: median, 95th percentile", "الثواني لكل بند: الوسيط، والمئين 95"),
    "latency_value": ("{median} · {p95}", "{median} · {p95}"),
    "cut": ("Answers cut off by a limit on their length", "إجابات قطعها حدّ الطول"),
    "unfinished": ("Conversations that were not let go on", "محادثات أُوقفت قبل أن تكتمل"),
    "rules": ("Rules", "القواعد"),
    "signature": ("Signature", "التوقيع"),
    "not_arabic": (
        (
            "Items that expect nothing Arabic: {n}. Their calls count 1 under Arabic preservation, "
            "missing and extra calls 0."
        ),
        (
            "البنود التي لا يُتوقع فيها أي نص عربي: {n}. تنال استدعاءاتها 1 في الحفاظ على العربية، "
            "وينال الاستدعاء الناقص أو الزائد 0."
        ),
    ),
    "baseline_note": (
        "The baseline is a set of rules, written with starter and sample in view; its score there proves little.",
        "خط الأساس مجموعة قواعد، وُضعت مع الاطلاع على المجموعتين starter وsample، فدرجته فيهما لا تكاد تدل على شيء.",
    ),
    # groups
    "groups": ("Intervals", "فترات الثقة"),
    "groups_caption": (
        "Score of each group with its 95 % interval: the dot is the score, the line is the interval.",
        "درجة كل مجموعة مع فترة الثقة 95%: النقطة هي الدرجة، والخط هو الفترة.",
    ),
    "groups_note": (
        "The interval says how far chance alone could move a score, had other items of the same kind been asked.",
        "تبين الفترة إلى أي حدّ يمكن أن تتغير الدرجة بالمصادفة وحدها لو طُرحت بنود أخرى من النوع نفسه.",
    ),
    "groups_clusters": (
        "Items that share an intent are one observation.",
        "والبنود التي تشترك في المقصد تُعدّ مشاهدة واحدة.",
    ),
    "overall": ("Overall", "الإجمالي"),
    "axes": ("Axes", "المحاور"),
    "categories": ("Categories", "الفئات"),
    "dialects": ("Dialects", "اللهجات"),
    "group": ("Group", "المجموعة"),
    "items": ("Items", "البنود"),
    "weight": ("weight {weight}", "الوزن {weight}"),
    "chart": ("0 to 1", "من 0 إلى 1"),
    "repeated": ("Asked several times", "عند تكرار السؤال"),
    "repeated_caption": (
        "Probability that an item is answered right in every respect when it is asked k times, with its 95 % interval.",
        "احتمال أن يُجاب عن البند إجابة صحيحة من كل وجه إذا طُرح k مرة، مع فترة الثقة 95%.",
    ),
    "at_least_once": ("At least once (pass@k)", "مرة على الأقل (pass@k)"),
    "every_time": ("Every time (pass^k)", "كل مرة (pass^k)"),
    # heat
    "heat": ("Dialects and categories", "اللهجات والفئات"),
    "heat_caption": (
        (
            "Mean score by dialect and category, with the number of items. The stronger the colour, the lower the "
            "score; it is strongest below 0.5."
        ),
        "متوسط الدرجة لكل لهجة وفئة، مع عدد البنود. كلما اشتد اللون انخفضت الدرجة، وأشده ما دون 0.5.",
    ),
    "all": ("All", "الكل"),
    "dialect": ("Dialect", "اللهجة"),
    "category": ("Category", "الفئة"),
    "n": ("n = {n}", "العدد {n}"),
    "no_items": ("no items", "لا بنود"),
    "no_dialect": ("no dialect", "بلا لهجة"),
    # losses
    "losses": ("Where the points went", "أين ضاعت النقاط"),
    "losses_caption": (
        "Points of the score by cause and axis. All causes together make 1 − score.",
        "النقاط الضائعة من الدرجة بحسب السبب والمحور، ومجموع الأسباب كلها يساوي 1 ناقص الدرجة.",
    ),
    "cause": ("Cause", "السبب"),
    "points": ("Points", "النقاط"),
    "sum": ("Sum", "المجموع"),
    "by_axis": ("By axis", "بحسب المحور"),
    "arguments": ("Arguments", "المعاملات"),
    "no_losses": ("No points were lost.", "لم تضع أي نقطة."),
    "no_causes": (
        "These answers were graded without causes, so it is not known where the points went.",
        "قُيّمت هذه الإجابات من غير بيان الأسباب، فلا يُعرف أين ضاعت النقاط.",
    ),
    # tools
    "confusion": ("Tools: expected and called", "الأدوات: المتوقع والمستدعى"),
    "confusion_caption": (
        "What was called where each tool was expected, call by call; the tools most often missed come first.",
        "ما استُدعي فعلاً حين كانت كل أداة هي المتوقعة، استدعاءً استدعاءً، والأدوات الأكثر خطأً أولاً.",
    ),
    "tool": ("Tool", "الأداة"),
    "expected_times": ("Expected", "المتوقع"),
    "called_right": ("Called", "استُدعيت"),
    "called_instead": ("Called in its place", "ما استُدعي مكانها"),
    "nothing_expected": ("nothing expected", "لا شيء متوقع"),
    "nothing_called": ("no call", "لا استدعاء"),
    "unreadable": ("unreadable call", "استدعاء لا يُقرأ"),
    "any_tool": ("any tool", "أي أداة"),
    "more_tools": ("Tools that are not shown: {n}.", "أدوات لم تُعرض: {n}."),
    # the leaderboard
    "leaderboard_kind": ("Arabic tool calling: leaderboard", "لوحة الترتيب في استدعاء الأدوات بالعربية"),
    "leaderboard_title": ("Leaderboard", "لوحة الترتيب"),
    "skip_to_ranks": ("Skip to the ranks", "انتقل إلى الترتيب"),
    "ranks": ("Ranks", "الترتيب"),
    "ranks_caption": (
        "Models by rank, with the 95 % interval of each score: the dot is the score, the line is the interval.",
        "النماذج بحسب المرتبة، مع فترة الثقة 95% لكل درجة: النقطة هي الدرجة، والخط هو الفترة.",
    ),
    "rank": ("Rank", "المرتبة"),
    "rank_means": (
        (
            "The rank of a model is 1 plus the number of models that are better with certainty: all pairs are compared "
            "item by item, and adjusted together (Holm). Two models of different ranks need not differ."
        ),
        (
            "مرتبة النموذج هي 1 مضافاً إليه عدد النماذج التي ثبت أنها أفضل منه: تُقارَن النماذج مثنى مثنى وبنداً بنداً، "
            "وتُعدَّل النتائج معاً (Holm). ولا يعني اختلاف المرتبتين أن الفرق بين النموذجين مؤكَّد."
        ),
    ),
    "incomplete": (
        "Some answers were not judged; each pair was compared on the items that both were judged on.",
        "بعض الإجابات لم تُقيَّم، فقورن كل نموذجين في البنود التي قُيّمت لدى كليهما.",
    ),
    "judged_items": ("Items judged", "البنود المقيَّمة"),
    "tokens_read": ("Tokens read", "الرموز المقروءة"),
    "tokens_written": ("Tokens written", "الرموز المكتوبة"),
    "median": ("Seconds an item, median", "الثواني لكل بند (الوسيط)"),
    "by_category_caption": (
        "Score of each model by category. The stronger the colour, the lower the score; it is strongest below 0.5.",
        "درجة كل نموذج في كل فئة. كلما اشتد اللون انخفضت الدرجة، وأشده ما دون 0.5.",
    ),
    "by_dialect_caption": (
        (
            "Score of each model by dialect, over all items of it. The last columns compare the worst dialect with MSA "
            "over the requests that stand in both."
        ),
        (
            "درجة كل نموذج في كل لهجة على بنودها كلها. وتقارن الأعمدة الأخيرة أضعف اللهجات بالفصحى في الطلبات الواردة "
            "فيهما معاً."
        ),
    ),
    "worst_dialect": ("Worst dialect", "أضعف اللهجات"),
    "against_msa": ("Against MSA", "الفرق عن الفصحى"),
    "intents": ("Requests in both", "الطلبات المشتركة"),
    "sources": ("Where the numbers come from", "مصدر الأرقام"),
    "sources_caption": ("What each score was computed from.", "ما حُسبت منه كل درجة."),
    "run": ("Run", "الجولة"),
    "made": ("Made", "تاريخ الجولة"),
    # failures
    "failures": ("Failures", "الإخفاقات"),
    "failures_intro": (
        "Answers that lost points: {n}. In each, the points add up to 1 − its score.",
        "الإجابات التي ضاعت فيها نقاط: {n}. ومجموع النقاط في كل إجابة يساوي 1 ناقص درجتها.",
    ),
    "failures_cut": (
        "Those that lost most are shown ({shown}), in their order; not shown: {hidden}.",
        "يُعرض منها هنا {shown} هي الأكثر خسارة، بترتيب ورودها، ويبقى {hidden}.",
    ),
    "no_failures": ("Every judged answer is right in every respect.", "كل إجابة قُيّمت صحيحة من كل وجه."),
    "filter": ("Filter the failures", "تصفية الإخفاقات"),
    "any": ("all", "الكل"),
    "reset": ("Show all", "اعرض الكل"),
    "shown": ("Shown: {shown} of {all}", "المعروض: {shown} من {all}"),
    "epoch": ("epoch {n}", "التكرار {n}"),
    "said": ("The model said", "قال النموذج"),
    "not_applicable": ("not applicable", "لا ينطبق"),
    "call": ("Call {n}", "الاستدعاء {n}"),
    "expected": ("Expected", "المتوقع"),
    "actual": ("Actual", "الفعلي"),
    "differs": ("Differs", "الفرق"),
    "sent": ("Sent as arguments", "ما أُرسل في المعاملات"),
    "kind_right": ("right", "صحيح"),
    "kind_accepted": ("counts as right", "يُحسب صحيحاً"),
    "kind_wrong": ("differs", "مختلف"),
    "kind_missing": ("missing", "غائب"),
    "kind_ignored": ("not expected, ignored", "غير متوقع، لا يُحسب"),
    "kind_surplus": ("of a surplus call", "في استدعاء زائد"),
    "any_value": ("any value", "أي قيمة"),
    "more_arguments": ("Arguments that are not shown: {n}.", "معاملات لم تُعرض: {n}."),
    "more_calls": ("Calls that are not shown: {n}.", "استدعاءات لم تُعرض: {n}."),
    "other_losses": ("Other points lost", "نقاط ضائعة أخرى"),
    "conversation": ("The conversation", "المحادثة"),
    "user_said": ("The user", "المستخدم"),
    "model_called": ("The model called", "استدعى النموذج"),
    "tool_answered": ("The tool answered", "أجابت الأداة"),
    "no_answer": ("No answer is kept.", "لا جواب محفوظ."),
}
"""Key → what the page says; names in braces are filled in."""

AXES: Final[dict[str, tuple[str, str]]] = {
    "function_selection": ("Function selection", "اختيار الدالة"),
    "argument_accuracy": ("Argument accuracy", "دقة المعاملات"),
    "arabic_preservation": ("Arabic preservation", "الحفاظ على العربية"),
    "dialect_understanding": ("Dialect understanding", "فهم اللهجة"),
    "error_handling": ("Error handling", "معالجة الأخطاء"),
}
DIALECTS: Final[dict[str, tuple[str, str]]] = {
    "msa": ("MSA", "الفصحى"),
    "gulf": ("Gulf", "الخليجية"),
    "egyptian": ("Egyptian", "المصرية"),
    "levantine": ("Levantine", "الشامية"),
    "maghrebi": ("Maghrebi", "المغاربية"),
    NO_DIALECT: WORDS["no_dialect"],
}
CATEGORY_WORDS: Final[dict[str, tuple[str, str]]] = {
    name: (name.replace("_", " ").capitalize(), one.name_ar) for name, one in CATEGORIES.items()
}
REASONS: Final[dict[str, tuple[str, str]]] = {
    NO_REPLY: (NO_REPLY, "لا رد في الملف"),
    NOT_ASKED: (NOT_ASKED, "لم يُطرح السؤال بعد"),
}
NAMES: Final[dict[Language, str]] = {"en": "English", "ar": "العربية"}


class Wording:
    """The words of one language; declared categories bring their own Arabic names."""

    def __init__(self, language: Language, categories: Mapping[str, Category] | None = None) -> None:
        self.language: Language = language
        self.direction = "rtl" if language == "ar" else "ltr"
        self._place = 1 if language == "ar" else 0
        declared = {name: (name, one.name_ar or name) for name, one in (categories or {}).items()}
        self._categories = declared | CATEGORY_WORDS

    def __call__(self, key: str, **values: object) -> str:
        """A word or sentence, filled in.

        Raises:
            KeyError: there is no such word, or something to fill in is missing.
        """
        return WORDS[key][self._place].format(**values)

    def axis(self, name: str) -> str:
        """The name of an axis."""
        return self._find(AXES, name)

    def dialect(self, name: str) -> str:
        """The name of a dialect; one that is not known stays as it is."""
        return self._find(DIALECTS, name)

    def category(self, name: str) -> str:
        """The name of a category; one that is not known stays as it is."""
        return self._find(self._categories, name)

    def reason(self, text: str) -> str:
        """Why an answer was not judged; most reasons are a provider's words and stay as they are."""
        return self._find(REASONS, text)

    def cause(self, name: str) -> str:
        """A cause in one sentence."""
        return causes.words(name, self.language)

    def _find(self, table: dict[str, tuple[str, str]], name: str) -> str:
        return table[name][self._place] if name in table else name
