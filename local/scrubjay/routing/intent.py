"""What a question is after: an answer, the place where something was said, what there is, or what happened in a time.

Rules, each a pattern with a reason that can be shown. They are weighed by intent, not added up: that a question sounds
twice like one intent makes it no more of it. English only; a question in another language asks for an answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from scrubjay.api.route import Intent


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An intent, how far it is ahead of the next one (0.5 to 1), and why: the words that told it."""

    intent: Intent
    confidence: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern that tells of an intent, with what it weighs, and how it is explained."""

    intent: Intent
    weight: float
    reason: str
    pattern: re.Pattern[str]


_WHO = (
    r"(?:we|i|you|they|he|she|it|us|someone|somebody|anyone|anybody|the \w+|my \w+|our \w+|[A-Z]\w+(?: and [A-Z]\w+)?)"
)
_SPEECH = (
    r"(?:sa(?:y|id|ying)|talk(?:ed|ing)?|discuss(?:ed|ing)?|mention(?:ed|ing|s)?|bring up|brought up|bring .{1,30} up|"
    r"brought .{1,30} up|spoke|speak(?:ing)?|chat(?:ted|ting)?|agree(?:d)?|decid(?:e|ed|ing)|settle[d]?|tell|told|"
    r"asked|ask|wrote|written|write down|record(?:ed)?|note[d]?|go over|went over|come up|came up|comes up|raise[d]?|"
    r"conclude[d]?|argue[d]?|debate[d]?|cover(?:ed)?|announce[d]?|reveal(?:ed)?|describe[d]?|explain(?:ed)?|"
    r"report(?:ed)?|complain(?:ed)?|suggest(?:ed)?|propose[d]?|admit(?:ted)?|promise[d]?|recommend(?:ed)?)"
)
_TALK = r"(?:session|conversation|chat|discussion|exchange|thread|talk|transcript|dialogue|meeting|call)s?"
_PLACE = (
    r"(?:session|conversation|chat|discussion|exchange|thread|talk|transcript|dialogue|message|turn|place|part|passage|"
    r"moment|spot|bit|section|day|date|point)"
)
_ARTEFACT = (
    r"(?:file|function|class|method|script|config(?:uration)?|tests?|setting|definition|endpoint|branch|module|package|"
    r"folder|directory|table|column|route|handler|code|snippet|command|flag|variable|constant|schema|migration|"
    r"document|docs?|readme|log)s?"
)
_MANY = r"(?:topics?|themes?|subjects?|threads?|areas?|patterns?|trends?|highlights?|milestones?|strands?)"


def _rule(intent: Intent, weight: float, reason: str, pattern: str) -> Rule:
    return Rule(intent, weight, reason, re.compile(pattern, re.IGNORECASE))


RULES: tuple[Rule, ...] = (
    # The place in the history. "When did she move?" asks for a fact; "when did she mention it?" for a place.
    _rule(
        Intent.LOCATE,
        3.0,
        "asks where or when it was said",
        rf"\b(?:where|when|(?:on |in |at )?(?:which|what) (?:\w+ )?{_PLACE})\b(?: exactly| first| last)?"
        rf" (?:did|do|have|had|has|was|were|is)\b.{{0,80}}?\b{_SPEECH}\b",
    ),
    _rule(
        Intent.LOCATE,
        3.0,
        "asks for a conversation",
        rf"\b(?:which|what) (?:of (?:our|my|the) )?(?:\w+ )?{_TALK}\b(?! (?:style|format|file|id)\b)",
    ),
    _rule(
        Intent.LOCATE,
        3.0,
        "asks to be shown the place",
        r"\b(?:find|show|locate|pull up|point|take|bring up|dig up|dig out|search|jump|go back|get me|give me|look up|"
        rf"open)\b.{{0,60}}?\b(?:(?:the|that|a|any|our|my|every|all|to) (?:\w+ )?{_PLACE}s?|where|when)\b",
    ),
    _rule(
        Intent.LOCATE,
        3.0,
        "asks for the first or the last time it was said",
        rf"\b(?:first|last|latest|earliest) (?:time|mention|occasion)\b|\b{_WHO} (?:first|last) {_SPEECH}\b",
    ),
    _rule(
        Intent.LOCATE,
        3.0,
        "asks whether it was ever said",
        rf"\b(?:did|have|has|had) {_WHO} (?:ever|already|previously|once|before) {_SPEECH}\b",
    ),
    _rule(
        Intent.LOCATE,
        3.0,
        "asks who said it",
        r"\bwho (?:was it (?:that|who) |first )?(?:said|mentioned|told|asked|brought up|suggested|proposed|wrote|"
        r"raised)\b",
    ),
    _rule(
        Intent.LOCATE,
        3.0,
        "asks for the exact words",
        r"\b(?:exact(?:ly)? (?:what|words?|wording|quote|phrase|text|message)|verbatim|word for word|quote\b|"
        r"original (?:message|words?|wording))",
    ),
    _rule(
        Intent.LOCATE,
        2.2,
        "speaks of an occasion",
        rf"\bthe {_PLACE} (?:when|where|in which|about|that|with)\b",
    ),
    _rule(
        Intent.LOCATE,
        2.2,
        "asks where a thing is",
        rf"\bwhere (?:is|are|was|were|do|does|did|can|could|should)\b.{{0,50}}?\b{_ARTEFACT}\b",
    ),
    # What there is.
    _rule(
        Intent.EXPLORE,
        2.0,
        "asks for an overview",
        r"\b(?:overview|summar(?:y|ies|i[sz]e|i[sz]ing)|recap|sum up|rundown|run-down|digest|big picture|outline|gist|"
        r"high[- ]level|bird'?s[- ]eye|walk me through|take stock|in broad strokes)\b",
    ),
    _rule(
        Intent.EXPLORE,
        2.0,
        "asks what was going on",
        rf"\bwhat(?:'s| is| has| have|'ve| had| were| was| are| did| do| does)? (?:all )?{_WHO}(?:'ve)? ?"
        r"(?:been |mostly |usually |generally |mainly |often |all )*"
        r"(?:talk(?:ing|ed)? about|discuss(?:ing|ed)?|work(?:ing|ed)? on|doing|up to|chat(?:ting|ted)? about|"
        r"dealing with|busy with|focus(?:ing|ed)? on|interested in|struggl(?:ing|ed) with)\b",
    ),
    _rule(Intent.EXPLORE, 2.0, "asks for topics", rf"\b{_MANY}\b"),
    _rule(
        Intent.EXPLORE,
        2.0,
        "asks for the state of things",
        r"\b(?:catch me up|up to speed|fill me in|what'?s new|what is new|what'?s going on|what is going on|"
        r"what'?s (?:been )?happening|left off|leave off|where (?:do|are) (?:we|things) (?:stand|at)|"
        r"state of (?:the|our)|status of|how are things)\b",
    ),
    _rule(
        Intent.EXPLORE,
        2.0,
        "asks for all there is",
        r"\b(?:tell me (?:more |something |a bit )?about|everything (?:about|on|we|you|i|that|to do)|all about|"
        r"all the (?:\w+ )?(?:\w+) (?:we|that|i|you|they)|what (?:do|did) (?:we|you|i) know about|what is known about|"
        r"what'?s known about|background (?:on|to|of)|history of|story of|what else|list (?:all|every|the|some)|"
        r"what (?:kinds?|sorts?|types?) of things|explore|browse|look around|"
        r"anything (?:about|on|related|interesting))\b",
    ),
    _rule(
        Intent.EXPLORE,
        2.0,
        "asks how something went on",
        r"\bhow (?:has|have|had|did|does|is|was)\b.{1,80}?\b(?:evolv\w*|develop(?:ed|ing)?|chang(?:e|ed|ing)|"
        r"progress\w*|unfold\w*|grow|grown|grew|shift\w*|come along|coming along|turn(?:ed)? out|go(?:ing)? over)\b|"
        r"\bover (?:time|the (?:months|weeks|years|course))\b|"
        r"\b(?:journey|progression|timeline|evolution) (?:of|with|in|to)\b|"
        r"\bso far\b",
    ),
    # A plain question.
    _rule(
        Intent.ANSWER,
        1.0,
        "asks a question",
        r"\b(?:what|why|how|who|whose|whom|which|when|where|is|are|was|were|do|does|did|can|could|may|might|should|will|"
        r"would|has|have|had)\b",
    ),
)

TIME_WEIGHT = 2.6
"""Of a time in the question: above asking for what there is, below asking for a place."""

READ_CHARS = 1_000
"""How much of a question is read: what it is after stands in a sentence or two."""

FLOOR = 0.5
"""An answer is what most questions are after: its weight where no rule speaks."""


def classify(question: str, *, times: tuple[str, ...] = ()) -> Reading:
    """Return what a question is after. `times` are the words in it that name a time that has begun."""
    best: dict[Intent, tuple[float, list[str]]] = {Intent.ANSWER: (FLOOR, [])}
    read = question[:READ_CHARS]
    for rule in RULES:
        if rule.pattern.search(read):
            weight, reasons = best.get(rule.intent, (0.0, []))
            best[rule.intent] = (max(weight, rule.weight), [*reasons, rule.reason])
    if times:
        best[Intent.TIME_BOXED] = (TIME_WEIGHT, [f"names a time: {', '.join(times)}"])
    ranked = sorted(best.items(), key=lambda entry: -entry[1][0])
    (intent, (weight, reasons)), *others = ranked
    second = others[0][1][0] if others else 0.0
    confidence = round(0.5 + 0.5 * (weight - second) / weight, 3)
    return Reading(
        intent=intent, confidence=confidence, reasons=tuple(reasons) or ("no rule speaks for anything else",)
    )
