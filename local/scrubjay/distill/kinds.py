"""What kind of memory a kept sentence of a person at work is: told by its cues.

People who label sessions agree on what to keep more than on what to call it: of sentences whose kind was read blind,
one in four was labelled as another. These rules name what most would. What somebody likes, and how they want to be
worked with, is a preference; what is to be so of the thing itself is a decision; what is told without a wish is a fact.
"""

from __future__ import annotations

import re

from scrubjay.distill.lexicon import CUES, any_of
from scrubjay_shared.records import MemoryType

_EXPLAINS = re.compile(
    r"(?i)\b(?:because|since(?! (?:\d|then\b|last\b|yesterday\b|january|february|march|april|may\b|june|july|august|"
    r"september|october|november|december))|due to|caused?|root cause|turns out|found|problem|issue|bug|fail\w*|"
    r"error)\b"
)
_STEPS = any_of(
    r"^(?:then |next,? |so )?to (?!be\b)\w+[^,:]{2,80}[,:] (?:\W|you |just |simply )*"
    r"(?:`|(?:run|use|open|click|set)\b)",
    r"^(?:\W|then |next |first |just |simply )*(?:run|execute|launch|install|type|open|click|restart|reload)\b.*`",
    r"\b(?:run|execute|with|via|using) `(?:\./|\$ )?[\w./-]+ [^`]+`",
    r"^you (?:always )?(?:have|need) to \w+ .{3,60} (?:after|before|whenever) \w",
    r"\bcan be (?:run|started|tested|checked|built|installed|deployed|released) (?:with|by|via|using)\b",
)
"""A way to do something that can be done again: a command, or what to press."""

_WILL = any_of(
    *(CUES[name] for name in ("demands", "imperative", "we", "please", "plans", "instead")),
    r"\b(?:use|make|add|remove|change|show|keep|rename|display|put|get|default|only|just|want|like|prefer|no|when)\b",
    r"^(?:\W|\b(?:and|so|but|also|ok|okay|now|then|first|yes|please)\b)*(?:adapt|adjust|align|analy[sz]e|apply|build|bring|"
    r"call|check|clean|convert|copy|delete|drop|extend|extract|fetch|give|go|group|handle|have|hide|improve|increase|"
    r"insert|join|leave|limit|load|log|look|map|mark|merge|open|pass|pick|place|populate|provide|read|reduce|refactor|"
    r"replace|reset|resolve|restore|return|reuse|rework|save|select|send|separate|simplify|sort|split|start|store|switch|"
    r"take|test|treat|try|turn|validate|wrap)\b",
)
"""Somebody says how it is to be, and not how it is."""

_FINDS = any_of(
    r"(?<!not )(?<!n't )(?<!be )\bfound\b|\b(?:turn(?:s|ed) out|discovered|confirmed|verified|actually|it seems)\b",
    CUES["i_report"],
    CUES["root"],
)
_WISHES = re.compile(
    r"\b(?:should|must|needs?|want|let'?s|lets|please|make sure|shall|will|would|could|can|instead|no longer|i'd|"
    r"i like you)\b"
)
"""Without one of these words, a sentence that has a verb tells how something is."""

_TELLS = any_of(
    r"^(?:\W|\b(?:so|and|but|e\.g\.|well|ok|okay)\b)*(?:the|each|every|all|on each|our|its|it's|it|that's|this|"
    r"in (?:the|our|this)|for the time being|up to now) [^,:]{0,50}?\b(?:is|are|was|were|has|have|consists?|leads?|"
    r"'re)\b(?! to\b)",
    r"^(?:\W|\b(?:so|and|but|well|ok|okay)\b)*(?:we're|we are|we were|we have(?! to\b)|there's|there "
    r"(?:is|are|was|were))\b"
    r"(?! (?:now |only |just |not )*(?:going|dropping|moving|switching|using|keeping|removing|changing|replacing|"
    r"sticking|deleting|starting|building)\b)",
    r"^(?:\W|\b(?:so|and|but|ok|okay|well|also|hmm)\b)*(?:i|you) (?:\w+ly |just |already )?(?:applied|tried|tested|"
    r"changed|denied|reverted|updated|added|removed|did|made|got|ran|saw|put|moved|merged|tweaked|broke|have \w+ed)\b",
    rf"^(?!{CUES['imperative'][1:]}).*(?:https?://|\b127\.0|\blocalhost\b)",
)
"""Somebody says how something is, or what was done."""

_AHEAD = any_of(
    r"\b(?:milestone|in the future|eventually|going to start|(?:the|my|our) (?:goal|aim)|(?:goal|aim) is)\b",
    r"\bwe(?:'re| are) (?:now )?at phase\b|\bin the long run\b|\blong[- ]term\b|\b(?:by|until) (?:the )?(?:spring|"
    r"summer|autumn|winter|end of (?:the |this )?(?:year|quarter|month))\b|\bthis (?:quarter|year)\b|"
    r"\btrying to get (?:to|from)\b|\b(?:planning|hoping|aiming) to\b|\bthe idea is to\b",
    r"\b(?:we|i) want to (?:launch|release|ship|reach|grow|publish|open[- ]source)\b",
    r"^(?:\W|ok(?:ay)?|so|and|now|but|alright)*(?:let'?s|lets) start (?:with|\w+ing)\b|\bphase \d+ will\b",
    r"^(?:\W|ok(?:ay)?|so|and|now|but|alright)*i(?:'d| would)? (?:want|like)(?: to)? (?:build|create|establish|"
    r"develop|replace|introduce|have a (?:tool|page|site|app))\b",
)
_WAY_OF_WORK = any_of(
    r"\b(?:discuss|ask (?:me|questions?|any|first|before)|without asking|unsure|suggest\w*|propos\w+|"
    r"step by step|1 by 1|one by one|line by line|incremental\w*|"
    r"before (?:you|we|implement\w*|start\w*|chang\w*|proceed\w*))\b",
    r"\b(?:plan|analy[sz]e|research|review|test)\b.*\b(?:first|before|in advance)\b|\bno code\b|\bwe are planning\b",
    r"\bwait for (?:me|my)\b|\b(?:small|tiny) (?:steps|commits|changes)\b|\bexplain\b|\b(?:any|your) questions\b|"
    r"\bone \w+ at a time\b|\bwhat i (?:ask|asked|said|say|told)\b|"
    r"\b(?:before|after) (?:every|each) (?:change|commit|step|task)\b",
    r"\b(?:your |the |all )?(?:answers?|repl(?:y|ies)|responses?|explanations?|summar(?:y|ies))\b.*\b(?:short|brief|"
    r"long\w*|concise|terse|in (?:english|german|french|spanish|chinese|japanese))\b|"
    r"\bkeep (?:it|them|things|the diff|changes) (?:short|small|simple|minimal)\b|\bi (?:don'?t|do not) want you to\b",
    r"\b(?:tell|show|let|give) me\b|^(?:\W|so|but|and)*why (?:do|does|are|is|would|did|should)\b",
    r"\b(?:tdd|(?:table|data|test)[- ]driven|unit tests?|test cases?|tautolog\w*|coverage|commit messages?|"
    r"git commit for|code reviews?|prose)\b",
)
"""How somebody wants to be worked with: in which steps, asked and shown what, how tested, reviewed and committed."""

_QUALITY = any_of(
    r"\b(?:wherever|where (?:possible|needed|feasible)|as \w+ as possible|everywhere)\b|\bconventional commits?\b",
    r"\b(?:minim\w+|redundan\w+|duplicat\w+|hard[- ]?cod\w*|over-?engineer\w*|(?<!-)dry(?!-)|kiss|yagni|docstrings?|"
    r"type hints?|clever)\b|\b(?:bad|best|good|common) practice\b|\b(?:the|our|any) code\b",
    r"\b(?:functions?|methods?|classes|variables?|(?:variable|function|file|class) names?|names|log messages|"
    r"comments)\b (?:should|must|are always|have to)\b|\b(?:magic numbers?|early returns?|abbreviations?|inline \w+s|"
    r"default exports?|strict typing|(?:british|american) (?:english|spelling))\b",
    r"\b(?:make sure|ensure)\b|\b(?:must|should|may|shall)(?: not|n'?t)\b.{0,30}\b(?:chang\w+|overwrit\w*|touch\w*|"
    r"break\w*|rely|depend)\b|^(?:\W|and|so|but)*no \w+ing\b",
    r"^(?:\W|ok(?:ay)?|so|and|but|please)*(?:you )?(?:don'?t|do not|never|always|avoid|stop)\b(?!.*\bwe\b)|"
    r"\b(?:must|may|should|shall|is|are) never\b",
)
"""What somebody wants of all code, or never."""

_TASTE = any_of(
    r"\b(?:colou?rs?|bold|fonts?|wider|narrower|emoticons?|emojis?|gradients?|spacing|palette|rounded|rounder|lighter|"
    r"darker|crowded|cluttered)\b",
    r"\b(?:ugly|intuitive|readable|modern|consistent\w*|distracting|annoying|nicer|cleaner|easier|concise|compressed|"
    r"grammatical|tidy|user[- ]friendly)\b",
    r"\bi (?:also |really |still )*(?:prefer|like|hate|(?:don'?t|dont|do not) (?:like|want|care))\b(?! you to\b)",
    r"\bi also (?:want|would like)\b|\bcan(?:'?t|not) stand\b|\b(?:we|i) avoid\b|\btry to keep\b|"
    r"\bstick to (?:the|our|my) (?:style|conventions?|rules?|layout)\b",
    r"\bbetter (?:if|not|to|that)\b|\bit(?:'s| is| would be) better\b|\bprefer\w*\b|\brather than\b",
)
"""What somebody finds good, and how things are to look."""

_DECIDES = re.compile(
    r"\b(?:(?<!not )(?<!n't )(?:decided|agreed|settled on|opted for)|(?:i|we) ch(?:o|oo)se|made up my mind|"
    r"the decision is)\b"
)
_PREFERS = re.compile(r"\bi(?:'d| would)? (?:really |much |always )?(?:prefer|rather)\b")
_TURNS_OUT = re.compile(r"\b(?:turn(?:s|ed) out|(?:root cause|culprit) (?:is|was)|reason (?:is|was) that)\b")
_NAMED = (
    (_PREFERS, MemoryType.PREFERENCE),
    (_DECIDES, MemoryType.DECISION),
    (_AHEAD, MemoryType.GOAL),
    (_TURNS_OUT, MemoryType.INSIGHT),
)
"""Words that name the kind themselves, the surest first: no other cue is surer."""


def kind_of(said: str) -> MemoryType:
    """Return the kind of a person's sentence that is kept."""
    low = said.lower()
    if _STEPS.search(low):
        return MemoryType.HOWTO
    wanted = _wanted(low)
    if wanted is not None:
        return wanted
    return MemoryType.INSIGHT if _FINDS.search(low) and _EXPLAINS.search(said) else MemoryType.FACT


def _wanted(low: str) -> MemoryType | None:
    """Return what kind of wish of a person a sentence is; None for what is told without one."""
    for named, kind in _NAMED:
        if named.search(low):
            return kind
    wishes = _WISHES.search(low) is not None
    tells = not wishes and _TELLS.search(low) is not None
    if _TASTE.search(low) or (not tells and (_WAY_OF_WORK.search(low) or _QUALITY.search(low))):
        return MemoryType.PREFERENCE
    finds = not wishes and _FINDS.search(low) is not None
    return MemoryType.DECISION if not (tells or finds) and _WILL.search(low) else None
