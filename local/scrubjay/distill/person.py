"""First and second person become names, so that a sentence reads on its own. Verbs agree; nothing else changes.

The first mention of the speaker is the name, later ones are "they", "their", "them": nobody's gender is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from scrubjay.distill.lexicon import ADVERBS, BASE_VERBS, MODALS, is_past, third_person

CONTRACTIONS = {
    "im": "I'm",
    "ive": "I've",
    "dont": "don't",
    "doesnt": "doesn't",
    "didnt": "didn't",
    "cant": "can't",
    "isnt": "isn't",
    "wasnt": "wasn't",
    "wouldnt": "wouldn't",
    "couldnt": "couldn't",
    "shouldnt": "shouldn't",
    "havent": "haven't",
    "hasnt": "hasn't",
    "arent": "aren't",
    "thats": "that's",
    "lets": "let's",
    "theyre": "they're",
    "weve": "we've",
    "youre": "you're",
    "whats": "what's",
    "theres": "there's",
    "i": "I",
    "i'm": "I'm",
    "i've": "I've",
    "i'll": "I'll",
    "i'd": "I'd",
}
_SLOPPY = re.compile(rf"(?<![\w'./`-])(?:{'|'.join(CONTRACTIONS)})(?![\w'./-]*[\w/])")

_ADVERB = "|".join(sorted(ADVERBS))
_ADVERBS_AND_VERB = rf"(?P<adverbs>(?:,?\s+(?:{_ADVERB})(?![\w']))*)(?:\s+(?P<verb>[a-z]+(?:n't)?)(?![\w'-]))?"
_PERSONS = re.compile(
    r"(?<![\w.'/-])(?:"
    rf"(?P<i>I)(?P<short>'m|'ve|'d|'ll)?(?![\w'/-]|\.\w){_ADVERBS_AND_VERB}"
    r"|(?P<we>[Ww]e)(?P<weshort>'re|'ve|'d|'ll)?(?![\w'/-])(?=(?:\s+(?P<next>\w+))?)"
    r"|(?P<possessive>[Mm]y|[Oo]ur)(?: own)?(?![\w'/-])"
    r"|(?P<owned>[Mm]ine|[Oo]urs)(?![\w'/-])"
    r"|(?P<object>me|us)(?![\w'/-])"
    r"|(?P<self>[Mm]yself|[Oo]urselves)(?![\w'/-])"
    r"|(?P<you>[Yy]ou(?:'re|'ve|'d|'ll)?|[Yy]ours?|[Yy]ourself)(?![\w'/-])"
    r")"
)
KIN = (
    r"(?:family|famil(?:y|ies)|kids?|children|husband|wife|hubby|partner|girlfriend|boyfriend|fianc[eé]e?|"
    r"sisters?|brothers?|siblings?|"
    r"mom|mum|mother|dad|father|parents|cousins?|team|teammates?|crew|colleagues?|co-?workers?|"
    r"neighbou?rs?|dogs?|pups?|cats?|pets|"
    r"daughters?|sons?|band|bandmates?|budd(?:y|ies)|roommates?|grandma|grandpa|grandparents|aunt|uncle|"
    r"pals?|classmates?|"
    r"friends?|bestie|gang|group|class|nieces?|nephews?)"
)
"""Whom "and I" and "we" may include."""

_COMPANY = (
    rf"(?:(?:[Mm]y|[Tt]he|[Oo]ur|[Ss]ome|[Aa] (?:few|couple of)?)(?: [\w'-]+){{0,2}}? {KIN}(?: [A-Z]\w+)?|"
    r"(?:(?<=^)|(?<=, )|(?<=when )|(?<=that ))[A-Z]\w+)"
)
_MENTIONS = re.compile(
    rf"(?<![\w.'-])(?P<before>{_COMPANY}),? and (?:I|me|myself)(?![\w'/-])"
    rf"|(?<![\w.'-])(?:[Mm]e|I|[Mm]yself) and (?P<behind>{_COMPANY})(?![\w'/-])|" + _PERSONS.pattern
)
_SHARED_VERB = re.compile(
    rf"^(?P<between>[^.;,]{{0,80}}?),? and (?P<adverbs>(?:(?:{_ADVERB}) )*)"
    rf"(?P<verb>{'|'.join(sorted(BASE_VERBS))})(?![\w'-])"
)
_ALSO_HAVE = re.compile(r"(?<=\w )((?:and|but)(?: also)?) (have|haven't|am|don't)(?! to\b)(?![\w'])")
_BREAKS_SHARING = re.compile(
    r"\b(?:to|can|could|will|would|should|that|when|who|which|if|where|how|helps?|lets?|makes?|[a-z]+ing)\b"
)
_APOSTROPHES = re.compile(r"[\u2018\u2019\u02bc]|(?<=\w)[`\u00b4](?=\w)")
_GONNA = re.compile(r"(?i)(?<![\w'-])(gonna|gotta|wanna|kinda|sorta|cuz|'cause|'til|goin'|doin'|lotta)(?![\w'])")
_PLAIN = {
    "gonna": "going to",
    "gotta": "got to",
    "wanna": "want to",
    "kinda": "kind of",
    "sorta": "sort of",
    "cuz": "because",
    "'cause": "because",
    "'til": "until",
    "goin'": "going",
    "doin'": "doing",
    "lotta": "lot of",
}
_PARTICIPLES = frozenset(
    ("better", "been", "gone", "done", "seen", "taken", "given", "known", "had", "never", "always")
)


_AMPERSAND = re.compile(r" & (?=(?:I|me|my|you|your|we|our|us)\b)|(?<=\b(?:me|us)) & |(?<=\b(?:you)) & |(?<=\bI) & ")
"""An "and" beside a person that is written anew. Elsewhere it stays: it may be part of a name (Marks & Spencer)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """Who speaks, to whom. `name` None: nobody is known and persons stay as they are.

    `other` is who "you" is, None when that is not certain. `company` names who "we" includes besides the speaker
    ("their kids"); None: the text keeps "we" and "our".
    """

    name: str | None
    other: str | None = None
    company: str | None = None


def tidied(text: str) -> str:
    """Return the text with typewriter apostrophes, white space collapsed and careless contractions written out."""
    straight = " ".join(_AMPERSAND.sub(" and ", _APOSTROPHES.sub("'", text)).split())
    return _GONNA.sub(lambda m: _PLAIN[m[1].lower()], _SLOPPY.sub(lambda m: CONTRACTIONS[m[0]], straight))


def named(text: str, speaker: Speaker) -> str:
    """Return tidied text about the speaker in the third person."""
    if speaker.name is None:
        return text
    return _Renaming(speaker.name, speaker).run(text)


@dataclass(slots=True)
class _Renaming:
    """One pass over one sentence: remembers whether the speaker was named yet."""

    name: str
    speaker: Speaker
    mentioned: bool = False
    subject: bool = False

    def run(self, text: str) -> str:
        text = _agreeing(text)
        out: list[str] = []
        position = 0
        for match in _MENTIONS.finditer(text):
            out += [text[position : match.start()], self._replaced(match)]
            position = match.end()
        return "".join([*out, text[position:]])

    def _with_company(self, match: re.Match[str]) -> str:
        """Turn "my sister and I" into "NAME and their sister": a plural subject whose verb already agrees."""
        named, self.mentioned, self.subject = not self.subject, True, True
        company = re.sub(r"^(?:[Mm]y|[Oo]ur)\b", "their", match["before"] or match["behind"])
        if company.startswith(("The ", "Some ", "A ")):
            company = company[0].lower() + company[1:]
        return f"{self.name if named else 'they'} and {company}"

    def _replaced(self, match: re.Match[str]) -> str:
        if match["before"] or match["behind"]:
            return self._with_company(match)
        if match["i"]:
            return self._first_person(match)
        if match["you"]:
            return self._second_person(match)
        if self.speaker.company is None and match[0].lower().startswith(("we", "our", "us")):
            return match[0]
        return self._plural(match) if match["we"] else self._oblique(match)

    def _oblique(self, match: re.Match[str]) -> str:
        """Replace what is not a subject: "my", "mine", "me", "us", "myself"."""
        if match["self"]:
            return "themselves"
        named, self.mentioned = not self.mentioned, True
        if match["object"]:
            both = f"{self.name} and {self.speaker.company}" if match["object"] == "us" else self.name
            return both if named else "them"
        later = "theirs" if match["owned"] else "their"
        return (f"{self.name}'s" if named else later) + (" own" if match[0].endswith(" own") else "")

    def _first_person(self, match: re.Match[str]) -> str:
        adverbs, verb, short = match["adverbs"] or "", match["verb"] or "", match["short"] or ""
        named, self.mentioned, self.subject = not self.subject, True, True
        tail = f" {verb}" if verb else ""
        if not named:
            return "they" + {"'m": "'re"}.get(short, short) + adverbs + {" am": " are", " was": " were"}.get(tail, tail)
        if short:
            perfect = verb in _PARTICIPLES or is_past(verb)
            auxiliary = {"'m": "is", "'ve": "has", "'ll": "will", "'d": "had" if perfect else "would"}[short]
            return f"{self.name} {auxiliary}{adverbs}{tail}"
        return f"{self.name}{adverbs} {third_person(verb)}" if verb else f"{self.name}{adverbs}"

    def _plural(self, match: re.Match[str]) -> str:
        had = match["next"] and (match["next"] in _PARTICIPLES or is_past(match["next"]))
        auxiliaries = {"'re": " are", "'ve": " have", "'d": " had" if had else " would", "'ll": " will"}
        short = auxiliaries.get(match["weshort"] or "", "")
        named, self.mentioned, self.subject = not self.subject, True, True
        if not named:
            return "they" + short
        return f"{self.name} and {self.speaker.company}{short}"

    def _second_person(self, match: re.Match[str]) -> str:
        other, word = self.speaker.other, match["you"]
        if other is None:
            return word
        stem, _, short = word.lower().partition("'")
        if short:
            return other + {"re": " is", "ve": " has", "d": " would", "ll": " will"}[short]
        return {"you": other, "your": f"{other}'s", "yours": f"{other}'s"}.get(stem, "themselves")


def _agreeing(text: str) -> str:
    """Return the text with a present verb that shares its first "I" over an "and" put in the third person as well."""
    if text.startswith("I ") and " we " not in text:
        text = _ALSO_HAVE.sub(lambda m: f"{m[1]} {third_person(m[2])}", text)
    first = next((m for m in _PERSONS.finditer(text) if m["i"]), None)
    if first is None or first["short"] or not first["verb"] or is_past(first["verb"]) or first["verb"] in MODALS:
        return text
    shared = _SHARED_VERB.match(text[first.end() :])
    if shared is None or _BREAKS_SHARING.search(shared["between"]):
        return text
    start, end = (first.end() + at for at in shared.span("verb"))
    return text[:start] + third_person(shared["verb"]) + text[end:]
