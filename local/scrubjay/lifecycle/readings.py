"""What a sentence says about something that held before: what it ends, denies, plans or bounds. English; pure.

The words are of general English, and no text's subject is among them. A sentence in another language reads as one that
changes nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from scrubjay.lifecycle.restating import restated
from scrubjay_shared.text import analyse

WORD = re.compile(r"[^\W_](?:[\w'’./:@+#-]*[\w+#])?")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> frozenset[str]:
    return frozenset(text.split("|"))


DETERMINERS = _words("the a an our my your his her its their this that these those")
DEFINITE = DETERMINERS - _words("a an these those")
NOW_WORDS = _words("now currently actually instead henceforth nowadays finally just today")
NEGATORS = _words(
    "not no never without cannot longer anymore neither nor stop stopped don't doesn't didn't won't can't isn't aren't"
    " wasn't shouldn't mustn't haven't hasn't"
    " dont doesnt didnt wont cant isnt arent wasnt shouldnt mustnt havent hasnt"  # as people type them
)
_DENYING = NEGATORS - _words("longer anymore")
"""Without those that stand beside a word that denies, and do not deny a second time."""
_NOT_IN_CORE = (NEGATORS - {"never"}) | {"any"}
OPPOSITES = (  # words that say the same thing with the other polarity: the first is read as the second, denied
    ("disable", "enable"),
    ("disabled", "enabled"),
    ("disables", "enables"),
    ("forbid", "allow"),
    ("forbids", "allows"),
    ("forbidden", "allowed"),
    ("exclude", "include"),
    ("excludes", "includes"),
    ("excluded", "included"),
    ("avoid", "use"),
    ("avoids", "uses"),
    ("hate", "like"),
    ("hates", "likes"),
    ("dislike", "like"),
    ("dislikes", "likes"),
    ("love", "like"),
    ("loves", "likes"),
    ("optional", "required"),
    ("false", "true"),
    ("closed", "open"),
    ("off", "on"),
    ("never", "always"),
)
_LIKES = frozenset({"love", "loves"})
_DENIED = {word: said for word, said in OPPOSITES if word not in _LIKES}
_SAID = dict(OPPOSITES)

_LIGHT = frozenset(
    analyse(
        "use uses used using move moved switch switched change changed migrate migrated replace replaced drop dropped"
        " remove removed instead rather longer anymore now currently always never going make made keep kept get got"
        " want wants need needs decide decided please also really still yet new old stop stopped prefer"
        " like likes love hate dislike avoid cancel cancelled withdrawn withdraw deprecated retired abandoned scrapped"
        " revoked discontinued superseded renamed ejected happen happens"
    )
)
"""Stems that say what happens, not what it happens to: sharing these, two statements are not yet about one thing."""

_CLAUSES = "and|but|because|since|so|as|when|while|which|who|if"
_PLACES = "for|in|on|at"
_PHRASE = (
    rf"(?P<gone>[^\s,;:.()!?]+(?:(?:\s|[.:](?=\S))(?!(?:{_CLAUSES})\b)[^\s,;:.()!?]+){{0,4}}?)"  # five words at most
)
_NEW = rf"(?P<new>[^\s,;:()!?]+(?:\s(?!(?:{_CLAUSES}|{_PLACES})\b)[^\s,;:()!?]+){{0,3}})"
_END = rf"(?=\s*(?:[,;:()!?]|\.(?:\s|$)|$|\b(?:{_CLAUSES}|{_PLACES}|any ?more)\b))"
_BE = r"(?:is|are|was|were|be|been|being|gets?|got)"
_WAS = rf"(?:{_BE}|has been|have been|will be|is being)"
_ENDED = (
    r"(?:replaced|superseded|dropped|removed|deprecated|abandoned|retired|cancell?ed|discontinued|scrapped|withdrawn"
    r"|deleted|outdated|obsolete|gone|phased out|off the table"
    r"|called off|revoked|(?:switched|turned) off|shut down|taken down|decommissioned"
    r"|no longer (?:needed|used|true|valid|supported|allowed|engaged|planned))"
)
_ENDING = (
    r"(?:drop(?:s|ped|ping)?|abandon(?:s|ed|ing)?|scrap(?:s|ped|ping)?|retir(?:es?|ed|ing)|deprecat(?:es?|ed|ing)"
    r"|remov(?:es?|ed|ing)|ditch(?:es|ed|ing)?|discontinu(?:es?|ed|ing)|get(?:s|ting)? rid of|got rid of"
    r"|g[ai]ven? up on|(?:takes?|took|taking) back|withdr[ae]w(?:s|n|ing)?|call(?:s|ed|ing)? off"
    r"|(?:stop(?:s|ped)?|quit)(?: using| supporting)?)"
    r"(?: (?:the|our|any|all)? ?(?:idea|plan|thought|promise)s? (?:of|to))?"
)
_MOVING = r"(?:(?:mov|switch|migrat|chang|convert|port|transition)\w*|went|go(?:es|ing)?)"

_WITH = (
    r"(?:use|uses|using|want|need|needs|support|supports|on|in|with|[a-z]{2,12} (?:with|on|in|to|by|via|through|from))"
)
_THEN = re.compile(
    r"\s*(?:any ?more)?(?:[,;.:]\s*|\s+(?:and|but|so|then)\s+)"
    r"(?:and |but |so |then |we |we['’]?(?:re|ll) |i |let['’]?s |it['’]?s |please |just |now |all )*"
    r"(?:(?:use|using|take|adopt|pick|go(?:es|ing)? (?:with|for)|went (?:with|for)|(?:mov|switch)\w* to|is|are) )?"
    rf"(?:all |just |now )*{_NEW}(?=\s*(?:[,;.:!]|$|\b(?:{_CLAUSES}|{_PLACES}|now|instead)\b))",
    re.IGNORECASE,
)
"""What follows on an end and tells what comes in its place: "drop X, we go with Y"."""

ENDINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:{_MOVING})\b[^,;.!?]{{0,40}}?\b(?:away )?from {_PHRASE} (?:over )?to {_NEW}",
        rf"\b(?:{_MOVING}) (?:away from|off(?: of)?) {_PHRASE}{_END}",
        rf"\beject(?:ed|ing)? from {_PHRASE}{_END}",
        rf"(?:{_NEW} )?\b(?:instead of|rather than|in place of) {_PHRASE}{_END}",
        rf"\breplac(?:e|es|ed|ing) {_PHRASE} (?:with|by) {_NEW}",
        rf"{_NEW} (?:replaces|supersedes|takes the place of|took the place of) {_PHRASE}{_END}",
        rf"(?P<new>[^\s,;:()!?]+)(?<!was|are)(?<!were|been)(?<!is|be) replaced (?!by |with ){_PHRASE}{_END}",
        rf"\bno more {_PHRASE}{_END}",
        rf"{_PHRASE} {_WAS} (?:now |since |all |to be )?{_ENDED}(?: (?:with|by|in favou?r of) {_NEW})?",
        rf"\b{_ENDING} (?!from |by ){_PHRASE}(?: (?:in favou?r of|for) {_NEW}|{_END})",
        rf"\brenam(?:e|es|ed|ing) {_PHRASE} (?:in)?to {_NEW}",
        rf"\bno longer {_WITH} {_PHRASE}{_END}",
        rf"(?:\bnot|n['’]t|\b(?:do|does|did|wo|ca|is|are|was)nt) {_WITH} {_PHRASE} any ?more\b",
        rf"^{_PHRASE} (?:is|are) (?:off(?=\.?$)|out(?=, (?:we|use|so|please)\b))",
        rf"\b(?:forget|ignore|scratch) (?:what (?:i|we) said about|that about|the idea of) {_PHRASE}{_END}",
    )
)
"""Ways to say that something named has ended; `gone` is what, `new` is what came in its place, where that is said."""

_LEAD_IN = r"(?:(?:ah|oh|ok|okay|so|then|well|right|alright|hm+|yes|and|but)[, ]+){0,3}"

DENIALS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:^|[,;:.] ?){_LEAD_IN}(?:no|not) {_PHRASE}(?=\s*(?:[,;:!?]|\.(?:\s|$)|$|any ?more\b|\bbut\b|[.…]))",
        rf"\b(?:is|are|be) not {_PHRASE} but {_NEW}",
        rf"(?:^|\s){_PHRASE} ?(?:→|->|=>) ?{_NEW}",
    )
)
"""Ways to deny something in passing, which only tells what ended beside an earlier statement about the same thing."""

_HINT = re.compile(
    r"from |off |instead|rather|place|replac|supersed|drop|abandon|scrap|retir|deprecat|remov|ditch|discontinu| rid of"
    r"|up on|take|took|taking|call| off\b| down\b|decommission|revok|stop|quit|longer|any ?more|forget|ignore|scratch"
    r"|cancel|withdraw|delete|renam"
    r"|outdated|obsolete|gone|phased"
    r"|\bno |\bnot |→|->|=>"
)
"""One of these stands in every text, in lower case, in which something ends: to look for them first is far quicker."""

_NOW_HOLDS = (
    r"(?:no longer|any ?more|instead|from now on|as of|going forward|is going to be|are going to be|is now|are now"
    r"|now (?:use|uses|is|are|runs?)|rather than|turns out|changed my mind|after all|scratch that"
    r"|correction|these days|was wrong|mistake)"
)
CHANGE = re.compile(
    rf"\b{_NOW_HOLDS}\b|\bnow[.!]?$|\b{_BE} (?:now )?{_ENDED}\b|\b(?:mov|switch|migrat|chang|renam)(?:ed|ing|es)\b",
    re.IGNORECASE,
)
"""Signs that what held before does not."""

HYPOTHETICAL = re.compile(
    r"\?\s*$|\b(?:should we|could we|what if|maybe|perhaps|might|would|could|if we|if i|consider(?:ing)?"
    r"|thinking (?:of|about)|wonder(?:ing)?|proposal|propose[sd]?|suggest(?:s|ed)?)\b",
    re.IGNORECASE,
)
PLANNED = re.compile(
    r"\b(?:plan(?:s|ned|ning)? to|want(?:s)? to|hop(?:e|es|ing) to|intend(?:s)? to"
    r"|next (?:week|month|year|quarter|sprint)|tomorrow|someday|eventually|later|in future)\b",
    re.IGNORECASE,
)
BOUNDED = re.compile(
    r"\b(?:for now|until|till|temporar(?:y|ily)|for the time being|for the moment|this (?:week|month|time|once)"
    r"|just once|only (?:today|for|during|in|on)|during|except|unless|meanwhile|while)\b",
    re.IGNORECASE,
)
_SIGNS_OF_TIME = re.compile(
    r"\b(?:from now on|these days|scratch that|(?:i(?:['’]ve)? )?changed my mind[,:]?"
    r"|going forward|as of (?:now|today)|after all|for now|temporarily"
    r"|for the time being)\b",
    re.IGNORECASE,
)
_SINCE = re.compile(
    r"\bsince (?:yesterday|today|(?:last|this) (?:week|month|quarter|year|spring|summer|autumn|winter|sprint|\w+day)|"
    r"(?:the )?\d|\w+day\b)",
    re.IGNORECASE,
)
"""When what is said began to hold."""
_WILL_BE = re.compile(r"\b(?:(?:is|are) going to be|will be|is set to be)\b", re.IGNORECASE)

_SPEAKERS = _words("we i they")
"""After them comes a verb."""
BE_WORDS = _words("is are be will becomes became equals")
USE_WORDS = _words("use uses using chose choose pick picked adopt adopted prefer run runs need needs keep")
_HOLDING = BE_WORDS | USE_WORDS
_FUNCTIONAL = _phrases(
    "written in|runs on|run on|runs at|run at|running on|lives in|live in|lives at|listens on|listen on|defaults to"
    "|default to|due on"
    "|due by|due in|based in|based on|built on|built with|hosted on|hosted at|hosted in|deployed to|deployed on"
    "|stored in|kept in|located in|located at|called|named|set to|costs|starts at|starts on|ends at|ends on|happens on"
    "|happen on|stored as|sent to|cut from"
    "|scheduled for|assigned to|owned by|maintained by|reviewed by|belongs to|reports to|expires on|expires in"
    "|ends in|end in|run with|runs with|works at|works from|works for"
    "|answer in|reply in|respond in|speak in|talk in|limited to|capped at|goes to|go to|ships on|ships in"
)
"""Relations of which a thing has one at a time: another value is a later value."""
_CLAUSE = re.compile(
    r"\s*[,;(]?\s*\b(?:because|since|so that|in order to|as it|which|although|even though)\b.*", re.IGNORECASE
)
_CALENDAR = _words(
    "monday tuesday wednesday thursday friday saturday sunday january february march april june july august september"
    " october november december noon midnight daily weekly monthly"
)
_NUMERAL = _words("one two three four five six seven eight nine ten twelve twenty thirty hundred thousand")


_BOUND = (
    r"(?:until|till|during|while|as long as|for now|for the time being|for the moment|temporarily|meanwhile"
    r"|this (?:week|month|year|quarter|sprint|summer|winter|time))"
)
_BOUND_FIRST = re.compile(
    rf"^{_BOUND}\b[^,.]{{0,80}}, ?(?=\S+ \S+)|^(?:for now|for the time being|this \w+),? ", re.IGNORECASE
)
_BOUND_LAST = re.compile(rf"(?<=\w),? {_BOUND}\b.*$", re.IGNORECASE | re.DOTALL)
_BEGINS_BOUND = re.compile(rf"^{_BOUND}\b", re.IGNORECASE)
_CODE = re.compile(r"`([^`\n]{1,80})`")
_SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n")
_MIXED = re.compile(r"[a-z]-?\d|\d-?[a-z]", re.IGNORECASE)
_LISTS = re.compile(r"\w,? (?:and|or|as well as|with) \w", re.IGNORECASE)
_ASIDE = re.compile(
    r"^The user asked: |,? ?\b(?:by the way|btw|fyi|for the record|as you know|just so you know)\b(?:,(?= ))?",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r"(?<=\w)(?:,| -+| –| —| and| but)+ (?:not|never|no)(?: (?:with|to|on|in|use|using))?"
    r" (?P<denied>[^,;:.!?]{1,40})[.!]?$",
    re.IGNORECASE,
)
_NUMBERED = _words(
    "to is are at in on of by than the about for after before has have with within every"
    " only least most port line lines page pages issue issues pr prs"
    " ticket tickets step steps day days week weeks month months year years top level levels part parts phase"
    " phases chunk chunks task tasks item items option options stage stages round rounds milestone milestones"
    " sprint sprints section sections batch test tests case cases question questions run runs session sessions"
    " group groups team teams version v"
)
"""Words after which a number is a place in a row, or counts something, and is no version."""
_VERSION = re.compile(
    rf"\b(?P<name>(?!(?:{'|'.join(sorted(_NUMBERED))})\b)[a-z][\w+#-]*)(?:['’]s)?(?: version)?(?: (?:is|to))? "
    r"v?(?P<number>\d+(?:\.\d+)*(?:\.x)?)(?![\w%:/-])"
    r"(?! (?!is\b|was\b|has\b|as\b|this\b|does\b|needs\b|runs\b|works\b)[a-z]+s\b)",  # a number of things
    re.IGNORECASE,
)
"""A thing with a version of it: "postgres 16", "tailwind v4", "our node version is 20"."""
_RAISED = re.compile(r"\b(?:upgrad|downgrad|bump|updat|mov|switch|migrat)(?:e|es|ed|s|ing)?\b", re.IGNORECASE)
"""What is said to have been done to a thing that has another version since."""
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
DATE = re.compile(
    rf"\b(?:week of )?(?:\d{{1,2}} (?:{_MONTH})|(?:{_MONTH})(?: \d{{1,2}},?)?) \d{{4}}\b|\b\d{{4}}-\d\d-\d\d\b"
    r"|\b(?:yesterday|today|(?:last|this|next) (?:week|month|year|night|\w{3,6}day))\b",
    re.IGNORECASE,
)
"""A date as memories have it, or as people say it: when something was said to change is not what it changes."""
_PAST = _words("took was were had went ran got made did came saw said found cost")


@dataclass(frozen=True, slots=True)
class Ending:
    """Something named that has ended, in stems, and what came in its place. A `sure` one is no mere denial."""

    gone: frozenset[str]
    new: frozenset[str]
    sure: bool


@dataclass(frozen=True)
class Reading:
    """A sentence as far as it matters here; what of it costs much is read when it is asked for.

    `said` is the sentence without asides, `text` without what bounds it, and `low` are its words in lower case. `words`
    are those without determiners and signs of the present (`shown` as they are written), and `holder` is the place in
    `words` of the verb that says what holds, -1 without one.
    """

    said: str
    text: str
    low: tuple[str, ...]
    words: tuple[str, ...]
    shown: tuple[str, ...]
    holder: int

    @cached_property
    def stems(self) -> frozenset[str]:
        """What it is about."""
        return telling(self.text)

    @cached_property
    def _denials(self) -> int:
        found = sum(word in _DENYING for word in self.low)
        return found + sum(_DENIED.get(word) is not None and word not in NEGATORS for word in self.low)

    @cached_property
    def denied(self) -> bool:
        """Whether an odd number of words deny it."""
        return bool(self._denials % 2)

    @cached_property
    def core(self) -> frozenset[str]:
        """The stems, with those of opposites made one."""
        kept = [word for word in _telling_words(self.low) if word not in _NOT_IN_CORE]
        core = " ".join(_SAID.get(word, word) for word in kept)
        return frozenset(analyse(core.replace("_", " "))) | ({"like"} & set(core.split()))

    @property
    def definite(self) -> bool:
        """Whether it begins with one certain thing ("the …")."""
        return bool(self.low) and (self.low[0] in DEFINITE or any(word.endswith("'s") for word in self.low[:4]))

    @cached_property
    def endings(self) -> tuple[Ending, ...]:
        """What it says has ended."""
        return tuple(_endings(self.text))

    @cached_property
    def changes(self) -> bool:
        """Whether it tells of a change."""
        return CHANGE.search(self.said) is not None

    @cached_property
    def now(self) -> bool:
        """Whether it says that something is so now."""
        return any(word in NOW_WORDS for word in self.low) or self.changes or bool(_SINCE.search(self.said))

    @cached_property
    def hypothetical(self) -> bool:
        """Whether it says what might be."""
        return HYPOTHETICAL.search(self.said) is not None

    @cached_property
    def planned(self) -> bool:
        """Whether it says what is to be."""
        return PLANNED.search(self.said) is not None

    @cached_property
    def bounded(self) -> bool:
        """Whether it holds for a while."""
        return BOUNDED.search(self.said) is not None

    @cached_property
    def lists(self) -> bool:
        """Whether it says several things at once."""
        return _LISTS.search(self.said) is not None

    @cached_property
    def contrast(self) -> frozenset[str]:
        """What it denies at its end only to affirm the rest ("X, never Y")."""
        return _contrast(self.text) if self._denials == 1 else frozenset()

    @cached_property
    def dated(self) -> frozenset[str]:
        """Its dates of the calendar."""
        return frozenset[str]().union(*(telling(date[0]) for date in DATE.finditer(self.text)))

    @cached_property
    def versions(self) -> tuple[tuple[str, str], ...]:
        """The things that it names with a version."""
        found = _VERSION.finditer(DATE.sub(" ", self.text))
        return tuple((one["name"].lower(), one["number"]) for one in found)

    @cached_property
    def raised(self) -> bool:
        """Whether it tells of another version."""
        return _RAISED.search(self.text) is not None

    @cached_property
    def clauses_now(self) -> tuple[Reading, ...]:
        """Those of its clauses that say by themselves what is so now."""
        read_alone = map(read, clauses(self.text))
        return tuple(part for part in read_alone if part.now and not part.hypothetical)

    @cached_property
    def is_plain(self) -> bool:
        """Whether it only says what holds: nothing in it tells of an end, of a change or of the present."""
        return not (self.now or self.raised or self.endings or self.clauses_now)

    @cached_property
    def subject(self) -> frozenset[str]:
        """The stems before the verb that says what holds."""
        return telling(" ".join(self.words[: self.holder])) if self.holder > 0 else frozenset()


def _telling_words(low: tuple[str, ...]) -> list[str]:
    return [word for word in low if word not in DETERMINERS and word not in NOW_WORDS]


def telling(text: str) -> frozenset[str]:
    """Return the stems of a text that say what it is about."""
    return frozenset(analyse(text.replace("_", " "))) - _LIGHT


@lru_cache(maxsize=16_384)
def read(text: str) -> Reading:
    """Read a sentence. Costs some tens of microseconds; the same text is read again for nothing.

    A kilobyte or two is kept of each: of a large import, every memory is compared with some hundred others in time.
    """
    text = _spelled(text)
    text = restated(_ASIDE.sub("", text))
    head = _CLAUSE.sub("", _unbounded(_CODE.sub(lambda code: code[1].replace(" ", "_"), text))).strip() or text
    shown = [word.replace("’", "'") for word in WORD.findall(_merged(head))]
    low = tuple(word.lower() for word in shown)
    words = tuple(_telling_words(low))
    told = tuple(one for one, word in zip(shown, low, strict=True) if word not in DETERMINERS and word not in NOW_WORDS)
    return Reading(said=text, text=head, low=low, words=words, shown=told, holder=_holder(words))


def clauses(text: str) -> list[str]:
    """Return the clauses of a sentence that commas set apart and that may stand alone; none of a sentence of one."""
    parts = re.split(r"[,;] (?:and |so |but )?", text)
    return [part for part in parts if len(part.split()) >= LEAST_WORDS] if len(parts) > 1 else []


def _holder(words: tuple[str, ...]) -> int:
    held = (n for n, word in enumerate(words) if word in _HOLDING or _functional(words, n))
    return next(held, 1 if len(words) > LEAST_WORDS - 1 and words[0] in _SPEAKERS else -1)


def _contrast(text: str) -> frozenset[str]:
    found = _CONTRAST.search(text)
    return telling(found["denied"]) if found else frozenset()


@lru_cache(maxsize=512)
def ended(text: str) -> frozenset[str]:
    """Return the stems of what a text of several sentences says has ended; quicker than to read all that it says."""
    sentences = _SENTENCES.split(_spelled(text))
    return frozenset[str]().union(*(ending.gone for one in sentences for ending in _endings(one)))


def _spelled(text: str) -> str:
    """Return a text with "instead" as it is spelled: of all words that tell of a change it is mistyped most."""
    return _INSTEAD.sub("instead", text)


_INSTEAD = re.compile(r"\b(?:in stead|insted|instad|instaed|insteed|isntead|intead|insead|insteads)\b", re.IGNORECASE)


def _unbounded(text: str) -> str:
    """Return a text without the words that say for how long it holds; that it does not for long stands in `bounded`."""
    for pattern in (_BOUND_FIRST, _BOUND_LAST):
        shorter = pattern.sub("", text).strip()
        if len(shorter.split()) >= LEAST_WORDS:
            text = shorter
    return text


LEAST_WORDS = 3
"""Of a sentence: with fewer left, what seemed to say for how long is what is said."""


LEAST_PAST = 4
"""Letters that a word in -ed has at most without being one of the past: "need", "feed"."""


def begun(after: Reading, before: Reading) -> Reading:
    """Return a reading without what stands before the words with which another begins, where that bounds it in time."""
    if not (after.bounded and before.words and _BEGINS_BOUND.match(after.text) and before.words[0] in after.words):
        return after
    at = after.words.index(before.words[0])
    return replace(after, words=after.words[at:], shown=after.shown[at:], holder=after.holder - at)


def is_past(words: tuple[str, ...]) -> bool:
    """Say whether some words tell of something that happened, of which another may happen."""
    for before, word in zip(("", *words), words, strict=False):
        if word in _PAST or (word.endswith("ed") and len(word) > LEAST_PAST and before not in BE_WORDS):
            return True
    return False


def _merged(text: str) -> str:
    """Return a text in which the ways to say that something is now so are one."""
    text = _SIGNS_OF_TIME.sub(" ", _WILL_BE.sub("is", text))
    return re.sub(r"\bany more\b", "anymore", text, flags=re.IGNORECASE)


def _functional(words: tuple[str, ...], at: int) -> bool:
    return words[at] in _FUNCTIONAL or " ".join(words[at : at + 2]) in _FUNCTIONAL


def functional(words: tuple[str, ...]) -> bool:
    """Say whether the words before a value end in a relation of which a thing has one at a time."""
    return bool(words) and (words[-1] in _FUNCTIONAL or " ".join(words[-2:]) in _FUNCTIONAL)


def _endings(text: str) -> list[Ending]:
    found: list[Ending] = []
    if _HINT.search(text.lower()) is None:
        return found
    for patterns, sure in ((ENDINGS, True), (DENIALS, False)):
        for pattern in patterns:
            for match in pattern.finditer(text):
                groups = match.groupdict()
                gone = telling(DATE.sub(" ", groups["gone"]))
                if gone:
                    new = groups.get("new") or (_instead(text[match.end() :]) if sure else "")
                    found.append(Ending(gone, telling(new), sure))
    return found


def _instead(rest: str) -> str:
    """Return what the words after an end say comes in its place, where they say nothing else; else ""."""
    found = _THEN.match(rest)
    left = telling(rest[found.end() :]) if found else frozenset()
    return found["new"] if found and not left else ""


def kind_of(value: tuple[str, ...]) -> str:
    """Return what kind of value some words are: `number` (a time too), `name` (code too) or `word`."""
    low = [word.lower() for word in value]
    if any(word[:1].isdigit() or word in _CALENDAR or word in _NUMERAL for word in low):
        return "number"
    if any(word[:1].isupper() or any(mark in word for mark in "./:@#+_") or _MIXED.search(word) for word in value):
        return "name"
    return "word"
