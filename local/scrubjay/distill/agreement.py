"""A short answer to a proposal: "yes", "option B", "the second". The agent's words with the person's authority.

Only what is decided for longer counts. "Shall I run the tests?" – "yes" is a step, and over when it is done.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from scrubjay.distill.passing import is_passing


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What was agreed to, to be read after the person's name: "chose option B: …" or "agreed: …".

    `start` is where it begins in the proposal followed by a newline and the reply, `end` where the answer ends in the
    reply.
    """

    words: str
    start: int
    end: int


MAX_REPLY_CHARS = 240
"""A longer answer says what it means itself."""

MAX_PROPOSAL_CHARS = 6_000
"""How much of the end of a proposal is looked at: who answers with one word has read its last lines."""

MAX_QUESTION_CHARS = 600
"""Of the end of a proposal, in which its last question is looked for."""

MAX_CLAUSE_CHARS = 220
"""A longer option is a paragraph: its first sentence is taken."""

YES = re.compile(
    r"(?:(?:yes|yep|yeah|yup|ok(?:ay)?|sure|agreed|sounds good|perfect|great|good|fine|go ahead|do it|do that|"
    r"please do|lgtm|"
    r"approved|go for it|exactly|correct|makes sense|i agree|let's do (?:it|that)|that works|works for me)\b[ ,.!]*)+"
    r"(?P<but>(?:but|except|only) [^\n?]{4,160})?\W*$",
    re.IGNORECASE,
)
CHOICE = re.compile(
    r"(?:(?:yes|yeah|ok(?:ay)?|i think|let's|lets|i'd|i|we|go|going|do|take|pick|choose|prefer|use|want|with|for|"
    r"say|the|your)\b[ ,]*){0,6}"
    r"(?:(?:option|variant|choice|approach|alternative|plan|number|proposal) ?#?\(?(?P<named>[A-Da-d]|[1-9])\b\)?|"
    r"(?P<bare>[A-Da-d]|[1-9])(?:(?=[.!)](?!\d)|\s*$)|(?: (?:is|sounds|looks) (?:fine|good|great|ok|okay|best)\b))|"
    r"(?P<ordinal>first|second|third|last)(?: (?:one|option|variant|approach))?(?=[\s.,!]*$))"
    r"(?:[.,:;!)\s-]+(?P<rest>[^\n?]*))?$",
    re.IGNORECASE,
)
LABEL = re.compile(
    r"(?:^|(?<=\n)|(?<=[.;:?] ))[ \t]*(?:[-*] )?(?:\*\*)?(?:(?:option|variant|approach|alternative|plan|choice|"
    r"proposal) )?"
    r"\(?(?P<label>[A-D]|[1-9])(?:\*\*)?[).:](?:\*\*)? ?(?:[-\u2013\u2014] )?(?=\S)",
    re.IGNORECASE,
)
SUGGESTS = re.compile(
    r"(?:(?:I(?:'d| would)? (?:suggest|propose|recommend)(?: that)?(?: we| you| to)?|(?:Should|Shall|Could|Can) (?:I|"
    r"we)|(?:Do you )?[Ww]ant me to|"
    r"How about (?:we )?|What about|My (?:recommendation|suggestion|proposal)(?: is|:)(?: to| that we)?|We (?:could|"
    r"should|can)|"
    r"Let's|Would you like (?:me )?to|Is it (?:ok|okay|fine) (?:if (?:we|I)|to)) )"
    r"(?P<what>(?:not )?(?P<verb>use|using|go|going|switch|switching|stick|keep|keeping|adopt|drop|dropping|store|"
    r"storing|name|naming|call|move|"
    r"moving|migrate|migrating|replace|replacing|remove|removing|default|support|ship|host|require|pin|split|merge|"
    r"treat|limit|cap|"
    r"set|leave|put|make|have|return|rely|disable|enable|expose|cache|skip|rename|"
    r"target)\b[^\n?]{8,400}?)(?=[.?!](?:\s|$)|\n|$)"
)
RECOMMENDS = re.compile(
    r"(?:I(?:'d| would)? (?:suggest|propose|recommend|go with|pick|choose)|My (?:recommendation|suggestion|choice)"
    r"(?: is|:)) (?P<what>(?!that\b|we\b|you\b|to\b)(?:(?:using |the |an? )[^\n?.]{3,160}?|`[^`\n]{2,80}`))"
    r"(?=[.?!](?:\s|$)|\n|$|,? (?:because|since|as)\b)"
)
"""A thing that is recommended, without a verb of what to do with it."""
NO = re.compile(
    r"(?:no|nope|nah)\b[ ,.!:;-]+(?P<rest>(?!thanks|thank you|need|problem|idea)[^\n?]{4,160})$", re.IGNORECASE
)
NOT_YET = re.compile(
    r"(?:wait|not (?:yet|now)|later|first|let me|hold on|stop|that'?s not|i (?:mean|said|asked)|you)\b", re.IGNORECASE
)
ASKS = re.compile(
    r"(?:^|(?<=[.!?:\n] )|(?<=\n))(?:[-*] |\d[.)] )?(?:\*\*)?(?:(?:and|so|but|also|first|lastly|one (?:more )?"
    r"question)\b[,:]? )*(?P<question>(?:should|shall|do you (?:want|prefer|need|use|have|support)(?! me)|"
    r"would you (?:prefer|rather|like)(?! me| to\b)|which|what(?:'s| is| are| should| kind| version| name)|"
    r"how (?:long|many|often|much|large|big|far|should)|who|when|where|at what|in which|by when|is|are|does|must|may|"
    r"can)\b[^?\n]{6,200}\?)(?:\*\*)?[^?\n]{0,60}$",
    re.IGNORECASE,
)
"""The question that an agent's words end with, about how things are or are to be."""
OF_THE_MOMENT = re.compile(
    r"\b(?:(?:should|shall) i (?:run|proceed|continue|go|commit|push|start|stop|begin|fix|do|try|look|check|"
    r"investigate|wait|apply|revert|also|now|(?:make|implement|add|update|change|remove|create|keep) (?:this|that|"
    r"these|those|it|them))|do you see|you mean|do you think|(?:do you want|would you like) to (?:proceed|continue|"
    r"start|tackle|do|work|focus|see|review|test|try|run|go|look|check|move on)|tackle|"
    r"(?:what|which|the same) (?:error|issue|problem)s?|happens|happened|console|outputs?|"
    r"now|next|(?:is|are|being) shown|appears?|help|wrong|else|direction|"
    r"further|adjust\w*|proceed|continue|(?:start|begin) with|working|works|looks? (?:right|good)|make sense|right|"
    r"correct|clear|ready|okay|ok|"
    r"this (?:file|change|error|line|fix|one|"
    r"approach|plan|step)|any (?:other|more|further)|anything|something|thoughts|sound\w*)\b",
    re.IGNORECASE,
)
"""What is asked of the step at hand."""
ASKS_NOTHING = re.compile(
    r"(?:which|what|how)(?: one| option| approach| way)? (?:would|do|should|shall) (?:you|we|i) "
    r"(?:prefer|think|want|like|choose|do|go with|proceed)\W*$",
    re.IGNORECASE,
)
"""A question that says nothing of what it asks about."""
LEFT_OPEN = re.compile(
    r"(?:or|maybe|depends|whatever|later|not sure|no idea|i don'?t (?:know|care|mind)|(?:it'?s )?up to you|"
    r"you (?:decide|choose)|do(?:es)?(?: not|n'?t) matter|good (?:question|point|idea)|let me|wait|hm+|never ?mind|"
    r"forget|go (?:on|ahead)|what you think|as you (?:like|wish)|your (?:call|choice))\b",
    re.IGNORECASE,
)
"""What an answer begins with that leaves the question open."""
BARE = re.compile(
    r"(?:yes|yeah|yep|yup|y|no|nope|nah|n|both|either|neither|all|none|any|it|this|that|ok|okay|sure|skip|stop|continue|"
    r"the (?:first|second|third|last|former|latter)|do (?:it|that|both|all)|thanks|great|nice|perfect|cool)"
    r"\b[ .,!]*(?:\S+)?$",
    re.IGNORECASE,
)
"""An answer that says nothing without what it answers, and little with it."""
YES_OR_NO = re.compile(
    r"(?:yes|yeah|yep|yup|nope|nah|no(?! (?:idea|preference|opinion|problem|need|thanks|matter)))\b[ ,.!]+"
    r"(?P<rest>\S+ \S.*)",
    re.IGNORECASE,
)
"""Yes or no, and something that makes an answer of it: "no, Linux and macOS only"."""
EITHER_OR = re.compile(r"(?:is|are|does|must|may|can)\b", re.IGNORECASE)
HOW_IT_SHOULD_BE = re.compile(r"(?:(?:what|how|who|when|where|which \w+) should|should|shall)\b", re.IGNORECASE)
"""A question that is answered with an order for good: "retry it three times"."""
MAX_ANSWER_WORDS = 25
EITHER = re.compile(r"(?:^|(?<=[.!?\n] )|(?<=\n))(?P<question>[^.!?\n]{4,200}?\bor\b[^.!?\n]{2,160}\?)")
FIRST_SENTENCE = re.compile(r"[^\n]*?(?:[.!?;](?=\s|$)|\n|$)")
ORDINALS = {"first": 0, "second": 1, "third": 2, "last": -1}
EMPHASIS = re.compile(r"\*\*|__(?=\w)|(?<=\w)__")
PLAIN = re.compile(r"\*\*|__|`(?=\s|$)")
STEP = re.compile(
    r"(?i)\b(?:the tests?|(?:this|that|the) (?:file|change|fix|edit)|these changes|a (?:commit|pr)|(?<!for )now|"
    r"next step|ahead)\b"
)
"""What is over when it is done. "For now" bounds a decision and is none of these."""
ALL_OR_NONE = re.compile(r"(?i)(?:yes|no|both|either|neither|all|none|any|it|this|that|or)\b.{0,20}")
MARGIN_WORDS = 4
"""A reply of so few words may be one of the two things asked about."""


def agreed(proposal: str, reply: str, *, at_work: bool = True) -> Agreement | None:
    """Return what a person's reply to an agent's proposal decides, None where it decides nothing that lasts.

    Any question about how things are to be counts `at_work`; in talk people ask each other about anything.
    """
    answer = reply.strip()
    if not answer or len(answer) > MAX_REPLY_CHARS or "?" in answer:
        return None
    offset = max(0, len(proposal) - MAX_PROPOSAL_CHARS)
    shown = proposal[offset:]
    end = len(reply.rstrip())
    if choice := CHOICE.match(answer):
        found = _option(shown, choice)
    elif yes := YES.match(answer):
        found = _suggestion(shown, yes["but"])
    elif no := NO.match(answer):
        found = _refusal(shown, no["rest"]) or (_answer(shown, answer) if at_work else None)
    else:
        found = _alternative(shown, answer) or (_answer(shown, answer) if at_work else None)
    return None if found is None else Agreement(words=found[0], start=offset + found[1], end=end)


def _option(shown: str, choice: re.Match[str]) -> tuple[str, int] | None:
    """Return the option that was chosen, by its letter, number or place."""
    rest = (choice["rest"] or "").strip(" .,;-")
    labels = list(LABEL.finditer(shown))
    if len(labels) < 2 and choice["named"] and len(rest.split()) >= MARGIN_WORDS:
        return f"chose option {choice['named'].upper()}: {rest}", len(shown) + 1
    if len(labels) < 2:
        return None
    wanted = (choice["named"] or choice["bare"] or "").upper()
    if choice["ordinal"]:
        first = max(n for n, label in enumerate(labels) if label["label"].upper() in {"A", "1"} or n == 0)
        place = ORDINALS[choice["ordinal"].lower()]
        chosen = labels[-1] if place < 0 else labels[first + place] if first + place < len(labels) else None
    else:
        chosen = next((label for label in reversed(labels) if label["label"].upper() == wanted), None)
    if chosen is None:
        return None
    clause = _clause(shown, chosen.end())
    if len(clause.split()) < 2 or clause.endswith("?") or STEP.search(clause):
        return None
    added = f" ({rest})" if rest and rest.lower() not in clause.lower() else ""
    return f"chose option {chosen['label'].upper()}: {clause}{added}", chosen.start("label")


def _suggestion(shown: str, but: str | None) -> tuple[str, int] | None:
    """Return the last thing suggested that lasts, with what the person changed in it."""
    made = [found for found in SUGGESTS.finditer(shown) if not STEP.search(found["what"])]
    if not made:
        made = [found for found in RECOMMENDS.finditer(shown) if not STEP.search(found["what"])]
    if not made or " or " in made[-1]["what"]:
        return None
    what = PLAIN.sub("", made[-1]["what"]).strip()
    return f"agreed: {what}" + (f", {but.strip(' .!')}" if but else ""), made[-1].start()


def _refusal(shown: str, rest: str) -> tuple[str, int] | None:
    """Return what was suggested last and the person does not want, with what they said about it."""
    made = [found for found in SUGGESTS.finditer(shown) if not STEP.search(found["what"])]
    if not made or " or " in made[-1]["what"] or NOT_YET.match(rest):
        return None
    what = EMPHASIS.sub("", made[-1]["what"]).strip()
    return f"did not want to {what}: {rest.strip(' .!')}", made[-1].start()


def _answer(shown: str, answer: str) -> tuple[str, int] | None:
    """Return a short answer with the question that it answers, which the agent's words end with."""
    asked = ASKS.search(shown[-MAX_QUESTION_CHARS:].rstrip())
    said = answer.strip(" .!")
    words = len(said.split())
    if asked is None or not said or words > MAX_ANSWER_WORDS or "\n" in said or OF_THE_MOMENT.search(asked["question"]):
        return None
    if ASKS_NOTHING.match(asked["question"]):
        return None
    if EITHER_OR.match(asked["question"]) and " or " not in asked["question"]:
        return None  # it is answered by yes or no, and by talk
    is_step = is_passing(answer.lower()) and not HOW_IT_SHOULD_BE.match(asked["question"])
    reason = YES_OR_NO.match(answer)
    if is_step or LEFT_OPEN.match(answer) or BARE.match(answer) or (reason and NOT_YET.match(reason["rest"])):
        return None
    question = EMPHASIS.sub("", asked["question"]).strip()
    start = max(0, len(shown) - MAX_QUESTION_CHARS) + asked.start("question")
    return f'answered "{said}" to "{question[0].upper()}{question[1:]}"', start


def _alternative(shown: str, answer: str) -> tuple[str, int] | None:
    """Return which of two things in the last question a reply of a few words names."""
    named = answer.strip(" .!")
    asked = list(EITHER.finditer(shown))
    if not asked or ALL_OR_NONE.fullmatch(named) or len(named.split()) > MARGIN_WORDS or len(named) < 2:
        return None
    question = asked[-1]
    if not re.search(rf"(?<!\w){re.escape(named)}(?!\w)", question["question"], re.IGNORECASE):
        return None
    return f'chose {named}, asked "{EMPHASIS.sub("", question["question"]).strip()}"', question.start("question")


def _clause(shown: str, start: int) -> str:
    found = FIRST_SENTENCE.match(shown, start, min(len(shown), start + MAX_CLAUSE_CHARS))
    return PLAIN.sub("", found[0] if found else "").strip(" .;\n")
