"""What kind of memory a chosen sentence of work with an agent is: told by its cues, where no pattern is sure of it.

People who label sessions agree on what to keep more than on what to call it; these rules name what most would. Where
nothing else is said, a person decides and an agent reports.
"""

from __future__ import annotations

import re

from scrubjay.distill.features import CUES
from scrubjay.distill.lexicon import any_of
from scrubjay_shared.records import MemoryType

_EXPLAINS = re.compile(
    r"(?i)\b(?:because|since|due to|caused?|root cause|turns out|found|problem|issue|bug|fail\w*|error)\b"
)
_STEPS = any_of(
    r"^(?:then |next,? |so )?to (?!be\b)\w+[^,:]{2,80}[,:] (?:\W|you |just |simply )*"
    r"(?:`|(?:run|use|open|click|set)\b)",
    r"^(?:\W|then |next |first |just |simply )*(?:run|execute|launch|install|type|open|click|restart|reload)\b.*`",
    r"\b(?:run|execute|with|via|using) `(?:\./|\$ )?[\w./-]+ [^`]+`",
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

_FINDS = any_of(CUES["found_out"], CUES["i_report"], CUES["root"])
_AHEAD = any_of(
    r"\b(?:milestone|in the future|eventually|going to start|(?:the|my|our) (?:goal|aim)|(?:goal|aim) is)\b",
    r"\bwe(?:'re| are) (?:now )?at phase\b",
    r"^(?:\W|ok(?:ay)?|so|and|now|but|alright)*(?:let'?s|lets) start (?:with|\w+ing)\b|\bphase \d+ will\b",
    r"^(?:\W|ok(?:ay)?|so|and|now|but|alright)*i(?:'d| would)? (?:want|like)(?: to)? (?:build|create|establish|"
    r"develop|replace|introduce|have a (?:tool|page|site|app))\b",
)
_MANNER = any_of(
    r"\b(?:discuss|ask (?:me|questions?|any|first)|suggest\w*|propos\w+|step by step|1 by 1|one by one|incremental\w*|"
    r"tdd|reus\w+|redundan\w+|duplicat\w+|minim\w+|before (?:you|we|implement\w*|start\w*|chang\w*|proceed\w*))\b",
    r"\b(?:plan|analy[sz]e|research|review|test)\b.*\b(?:first|before|in advance)\b|\bno code\b|\bwe are planning\b",
    r"\b(?:existing|already (?:existing|established|defined)|follow (?:the|our)|pattern|convention)\b",
    r"\b(?:ugly|intuitive|readable|modern|consistent\w*|distracting|annoying|nicer|cleaner)\b",
    r"^(?:\W|ok(?:ay)?|so|and|but|please)*(?:you )?(?:don'?t|do not|never|always|avoid|stop)\b(?!.*\bwe\b)",
    r"\bi (?:really )?(?:prefer|like|hate|don'?t (?:like|want)|do not (?:like|want))\b",
)
"""How somebody wants to be worked with, and what they find good: it holds longer than one choice."""


def kind_of(said: str, *, by_person: bool) -> MemoryType:
    """Return the kind of a sentence that is kept. An agent finds out, reports and explains how; a person also wants."""
    low = said.lower()
    if _STEPS.search(low):
        return MemoryType.HOWTO
    if not by_person:
        return MemoryType.INSIGHT if _EXPLAINS.search(said) else MemoryType.FACT
    if _AHEAD.search(low):
        return MemoryType.GOAL
    if _MANNER.search(low):
        return MemoryType.PREFERENCE
    if _FINDS.search(low):
        return MemoryType.INSIGHT if _EXPLAINS.search(said) else MemoryType.FACT
    return MemoryType.DECISION if _WILL.search(low) else MemoryType.FACT
