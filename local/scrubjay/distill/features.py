"""What is measured of a sentence before the selector decides whether it is worth keeping. Plain numbers, no model.

Who said it, in what kind of turn, at which place, between what; its form; and which of some fifty groups of cue words
it has. No word of any project is among them: what tells knowledge from talk is mostly how and where it is said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scrubjay.distill.prose import LIST_MARK, Span

Matrix = NDArray[np.float32]

CUES = {
    "adopts": r"\bus(?:e|es|ed|ing)\b|\bvia\b|\bthrough\b",
    "again": r"\b(?:just|right now|currently|at the moment|today|again|for now|recently|earlier|already|"
    r"last step)\b",
    "allows": r"\b(?:may|might|could|maybe|perhaps|possibly|probably|likely|seems?)\b",
    "asks_to_show": r"\b(?:explain|tell me|show me|list|describe|give me|what do you|check|look at|can you|"
    r"could you)\b",
    "because": r"\b(?:because|so that|since|due to|otherwise|therefore|the reason|in order to|that's why)\b",
    "changes": r"\b(?:added|removed|changed|updated|created|moved|renamed|switched|refactored|implemented|replaced|"
    r"extracted|deleted|dropped)\b",
    "compares": r"\b(?:than|better|best|faster|slower|simpler|more|less|both|same|either)\b",
    "default": r"\bdefaults?\b",
    "demands": r"\b(?:must|has to|have to|needs? to|should(?:n't)?|shall|supposed to|ought|required?)\b",
    "done": r"\b(?:done|completed?|pass(?:ed|es|ing)?|success\w*|works?|working)\b",
    "durable": r"\b(?:by default|always|never|in general|from now on|whenever|for (?:all|every)|each|any|every|"
    r"as a rule|standard|consistent\w*|convention|policy|going forward|in the future)\b",
    "fails": r"\b(?:bug|issue|problem|errors?|exception|fail\w*|broken|broke|wrong|crash\w*|panic|leak|race|warning)\b",
    "fixes": r"\b(?:fix\w*|resolv\w*|solution|solv\w*)\b",
    "found_out": r"\b(?:found|turns out|discovered|confirmed|verified|actually|it seems)\b",
    "i_begin": r"^i\b",
    "i_report": r"\bi (?:get|got|see|am getting|still|cannot|can'?t|do not see|don'?t see|dont see|ran|tried|forgot|"
    r"noticed|saw)\b",
    "i_suppose": r"\bi (?:think|guess|believe|assume|suppose|feel|wonder|was thinking)\b",
    "i_want": r"\bi(?:'d| would| do| really| also| still)? (?:want|like|love|prefer|need|hate|don'?t want|dont want|"
    r"don'?t like|dont like|would like|rather)\b",
    "if": r"\b(?:if|when|whenever|unless)\b",
    "imperative": r"^(?:add|remove|make|use|keep|change|show|put|create|move|fix|do|don't|dont|set|rename|display|"
    r"allow|ensure|avoid|write|update|implement|include|run|commit)\b",
    "instead": r"\binstead\b|\brather than\b|\bno longer\b|\breplac\w*\b|\bin favou?r\b|\bnot .{1,40} but\b",
    "is": r"\b(?:is|are|was|were|has|have|means|contains|returns|requires|supports|lives|runs|uses)\b",
    "limits": r"\b(?:at least|at most|maximum|minimum|limit\w*|no more than|exactly|between)\b",
    "narrates": r"^(?:now )?(?:let me|i'll|i will|i'm going to|now i|i need to|i can see|looking at|next,? i|"
    r"let's (?:check|see|look))\b",
    "not": r"\b(?:not|no|never|none|without|don'?t|doesn'?t|do not|isn'?t|aren'?t|won'?t|cannot|can'?t|avoid|stop)\b",
    "not_working": r"\b(?:doesn'?t work|not? (?:\w+ )?work\w*|not (?:show\w*|updat\w*|visible|displayed|"
    r"reflect\w*|chang\w*)|nothing (?:happens|changes))\b",
    "now_not": r"\b(?:still|now|but|again|anymore)\b.*\b(?:not|no|don'?t|doesn'?t|isn'?t|cannot|can'?t|won'?t|"
    r"nothing)\b",
    "of_you": r"\b(?:you|your)\b",
    "okay": r"^(?:ok|okay|yes|yeah|yep|great|good|nice|perfect|thanks|cool|alright|sure|right|no|nope|well|hmm)\b",
    "only": r"\b(?:only|just)\b",
    "options": r"\b(?:options?|approach|alternativ\w+|recommend\w*|suggest\w*|propos\w*)\b",
    "our": r"\b(?:my|our)\b",
    "past": r"\b(?:was|were|had|did|\w+ed)\b",
    "plans": r"\b(?:plan|goal|next step|todo|later|future|eventually|phase)\b",
    "please": r"\b(?:please|pls|would you|can you|could you)\b",
    "points": r"\b(?:it|this|that|these|those|they|them)\b",
    "points_first": r"^(?:this|that|these|those|it)\b",
    "question_first": r"^(?:what|why|how|where|which|who|is|are|does|do|did|can|could|would|should|will|has|have)\b",
    "quantity": r"\b\d+(?:\.\d+)?\s?(?:%|ms|s|px|mb|gb|kb|x|k|days?|weeks?|hours?|minutes?|times|chars?|lines?|"
    r"tokens?)\b",
    "remember": r"\b(?:remember|note|important|keep in mind|rule|make sure|ensure)\b",
    "requires": r"\b(?:requires?|needs?|depends? on|expects?|supports?|allows?)\b",
    "root": r"\b(?:root cause|the (?:issue|problem|bug|reason|cause|culprit|fix|key|trick|catch) (?:is|was|lies))\b",
    "step": r"\b(?:roll ?back|revert|undo|print (?:it|this|that)|get rid of|this (?:part|line|section|one|step)|first|"
    r"step by step|one by one|next|continue|go ahead|start with|proceed|once more|take a (?:look|break))\b",
    "tests": r"\btests?\b|\bcoverage\b",
    "version": r"\bv?\d+\.\d+|\bversions?\b",
    "we": r"\b(?:we(?:'ll| will| should| need| want| can| don'?t| do not| use| have| are)?|let'?s|lets)\b",
    "where": r"\b(?:located|lives?|stored|saved|hosted|deployed|in the (?:folder|directory|file|repo))\b",
    "would": r"\bwould\b",
}
"""Groups of words, each a feature: 1 where one of them stands in the sentence. Matched in lower case."""

FORMS = {
    "code": re.compile(r"`[^`]{1,200}`"),
    "paths": re.compile(r"(?:[\w.-]{1,60}/)[\w./-]{1,200}|\b[\w-]{1,60}\.(?:[a-z]{1,4}|json|toml|yaml|html)\b"),
    "identifiers": re.compile(r"\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|\b\w+_\w+\b|\w+\(\)"),
    "names": re.compile(r"(?<=[a-z,] )[A-Z][a-z]+"),
    "acronyms": re.compile(r"\b[A-Z]{3,}\b"),
    "digits": re.compile(r"\d"),
    "commas": re.compile(","),
    "urls": re.compile(r"https?://|localhost"),
    "capitals": re.compile(r"[A-Z]"),
    "first_person": re.compile(r"(?i)\b(?:i|i'm|i've|i'd|i'll|me|my)\b"),
}
"""What is counted in a sentence, as the logarithm of the count."""

MARKS = {
    "bold": "**",
    "parenthesis": "(",
    "quote": '"',
    "exclaims": "!",
    "arrow": "\N{RIGHTWARDS ARROW}",
    "dash": "\N{EM DASH}",
    "check": "\N{WHITE HEAVY CHECK MARK}",
}

_CUES = [re.compile(pattern) for pattern in CUES.values()]
_LETTERS = re.compile(r"[^\W\d_]")
_PUNCTUATION = re.compile(r"[^\w\s]")
_WANTS = re.compile(CUES["i_want"] + "|" + CUES["demands"])
_HEADING = re.compile(r"(?m)^#")
_CONTINUED = ("This session is being continued", "<analysis>", "<summary>")

_TURN = [
    "by_person",
    "turn_chars",
    "turn_lines",
    "turn_sentences",
    "prose_share",
    "turn_questions",
    "turn_stops",
    "turn_mean_chars",
    "turn_headings",
    "turn_fenced",
    "turn_tagged",
    "turn_continued",
]
_PLACE = ["index", "relative", "first", "last", "chars_before", "chars_after", "alone", "listed", "indented"]
_AROUND = [f"{side}_{what}" for side in ("previous", "next") for what in ("chars", "asks", "introduces", "wants")]
_FORM = [
    "chars",
    "words",
    "word_chars",
    "letters",
    "punctuation",
    "ends_colon",
    "ends_question",
    "ends_stop",
    "lower_first",
]

MAX_READ_CHARS = 1_000
"""Of a sentence, in which cues and forms are looked for. No longer one is kept, and a paste may be one of a million."""

FEATURES = (*_TURN, *_PLACE, *_AROUND, *_FORM, *FORMS, *MARKS, *CUES)
"""The names of the columns."""


def features(text: str, sentences: Sequence[Span], *, by_person: bool) -> Matrix:
    """Return a row of `FEATURES` for each sentence of one turn, as float32 (sentences, features).

    `sentences` are those that `prose.sentences` finds in the text. Who speaks is all that is not in the text.
    """
    if not sentences:
        return np.zeros((0, len(FEATURES)), np.float32)
    said = [text[one.start : one.end] for one in sentences]
    read = [one[:MAX_READ_CHARS] for one in said]
    low = [one.lower() for one in read]
    turn = _of_turn(text, said, by_person=by_person)
    around = [_as_neighbour(*one) for one in zip(said, low, strict=True)]
    rows = [
        [
            *turn,
            *_of_place(text, sentences, n),
            *(around[n - 1] if n else _NOBODY),
            *(around[n + 1] if n + 1 < len(said) else _NOBODY),
            *_of_form(said[n]),
            *(math.log1p(len(pattern.findall(read[n]))) for pattern in FORMS.values()),
            *(float(mark in said[n]) for mark in MARKS.values()),
            *(float(pattern.search(low[n]) is not None) for pattern in _CUES),
        ]
        for n in range(len(said))
    ]
    return np.array(rows, np.float32)


def _of_turn(text: str, said: Sequence[str], *, by_person: bool) -> list[float]:
    lengths = [len(one) for one in said]
    return [
        float(by_person),
        math.log1p(len(text)),
        math.log1p(text.count("\n")),
        math.log1p(len(said)),
        sum(lengths) / len(text),
        sum(one.endswith("?") for one in said) / len(said),
        sum(one.endswith(".") for one in said) / len(said),
        math.log1p(sum(lengths) / len(said)),
        math.log1p(len(_HEADING.findall(text))),
        float("```" in text),
        float(text.lstrip().startswith("<")),
        float(text.startswith(_CONTINUED)),
    ]


def _of_place(text: str, sentences: Sequence[Span], n: int) -> list[float]:
    one = sentences[n]
    line = text.rfind("\n", 0, one.start) + 1
    stop = text.find("\n", one.end)
    lead = text[line : one.start][:80]
    return [
        math.log1p(n),
        n / len(sentences),
        float(n == 0),
        float(n == len(sentences) - 1),
        math.log1p(one.start),
        math.log1p(len(text) - one.end),
        float(not lead.strip() and not text[one.end : len(text) if stop < 0 else stop].strip()),
        float(LIST_MARK.match(lead) is not None),
        math.log1p(len(lead) - len(lead.lstrip())),
    ]


_NOBODY = (0.0, 0.0, 0.0, 0.0)


def _as_neighbour(said: str, low: str) -> tuple[float, ...]:
    return (math.log1p(len(said)), float("?" in said), float(said.endswith(":")), float(_WANTS.search(low) is not None))


def _of_form(said: str) -> list[float]:
    words = said.split()
    return [
        math.log1p(len(said)),
        math.log1p(len(words)),
        sum(map(len, words)) / max(1, len(words)),
        len(_LETTERS.findall(said)) / max(1, len(said)),
        len(_PUNCTUATION.findall(said)) / max(1, len(said)),
        float(said.endswith(":")),
        float(said.endswith("?")),
        float(said.endswith(".")),
        float(said[:1].islower()),
    ]
