"""For whom a sentence counts: for the person in every project, or for the project it was said in.

Everywhere hold who one is, what one likes, one's machine, how one wants to be answered, and what is said to hold
everywhere. A rule about branches, tools, files or colleagues holds where it was said.
"""

from __future__ import annotations

import re

from scrubjay.distill.lexicon import ADVERB_RUN
from scrubjay_shared.records import MemoryType

EVERYWHERE = re.compile(
    r"\b(?:(?:in|for|across|on) (?:all|every|any|each)(?: of)?(?: my| our)? (?:\w+ )?(?:projects?|repos?|"
    r"repositor(?:y|ies)|"
    r"codebases?|machines?|computers?|laptops?|languages?)|everywhere|wherever i|in general|no matter (?:which|what) "
    r"(?:project|repo)|regardless of (?:the )?project|anywhere i)\b"
)
PLACE = re.compile(
    r"\b(?:here|this (?:repo|project|repository|codebase|app|branch|service|module|folder|package|file|team|company))\b"
)
_OF_THE_CODE = re.compile(r"(?!(?:i|my)\b)[\w.+#-]+(?: [\w.+#-]+)? everywhere\b")
"""What is to be everywhere in the code, and not everywhere where the person works: "async everywhere"."""
_OF_THE_WORK = re.compile(
    r"(?:[^,]{0,40}, )?(?:i(?:'ve| have)? (?:just |already |also |now )?(?:set up|configured|installed|created|added|"
    r"deployed|moved (?!to\b|from\b|out\b|in\b|house\b)|renamed|removed|fixed|updated|changed|tested|wrote|pushed|"
    r"merged|enabled|disabled|registered|ordered)|i(?:'m| am) (?:building|creating|developing|writing|making|"
    r"working on) (?:an?|the|our|this|some)|i(?:'m| am) the (?:only|lead|main|sole))\b"
    r"(?!.*\bmy (?:\w+ )?(?:machine|laptop|computer|mac|macbook|desktop|pc|phone|dotfiles)\b)"
)
"""What somebody has done to a thing, or makes: it is told of the thing."""
OF_SEVERAL = re.compile(r"\b(?:we|our|us|we're|we've|we'll|the team)\b")
OF_ONESELF = re.compile(r"(?:[^,]{0,40}, )?(?:i|i'm|i've|i'd|my|mine)\b")
_OF_ONESELF_ANYWHERE = re.compile(r"\b(?:i|i'm|i've|i'd|me|my|mine|you|your)\b")
IDENTITY = re.compile(
    rf"(?:i'm|i am|i've been|i have been|i was born|i grew up|i studied|i live|i lived|i moved (?:to|from|out|house)|"
    rf"i (?:{ADVERB_RUN})?(?:work|worked|"
    r"speak|have|own|type|use|come|married|learned)|my (?:[\w'-]+ )?(?:name|wife|husband|partner|kids?|"
    r"children|"
    r"son|daughter|birthday|e-?mail|phone|time ?zone|machine|laptop|computer|mac|macbook|desktop|pc|phone|keyboard|"
    r"editor|"
    r"shell|terminal|monitor|screen|eyes|job|hobby|dog|cat|boss|employer|company|pronouns|handle|username|"
    r"favou?rite|background|native language|setup|os|dotfiles)\b)"
)
THING_OF_THE_PROJECT = re.compile(
    r"`|(?<=\w)[/_.](?=\w)|\b(?:the|this|that|these|those|our) (?!keyboard|terminal|shell|command line|mouse|"
    r"internet|dark|"
    r"morning|evening|weekends?|week|month|quarter|year|spring|summer|autumn|winter|details?|same)\w|\b(?:main|master|staging|prod|production|release|branch(?:es)?|"
    r"pipeline|"
    r"migrations?|deploys?|endpoint|schema|services?/|tests?/)\b"
)
MANNER = re.compile(
    r"\b(?:answers?|repl(?:y|ies)|responses?|explanations?|explain|emojis?|apologi[sz]e|tone|brief|concise|terse|"
    r"verbose|"
    r"call me|address me|speak|talk to me|in (?:german|english|french|spanish|japanese|chinese|plain language)|"
    r"step by step|"
    r"ask (?:me|before|first|questions)|tell me|flatter|praise|small talk|bullet points|jargon|remind me|suggestions?|"
    r"your (?:summar(?:y|ies)|messages?|output|plan)|show me|wait for my|without asking)\b"
)
ALWAYS = re.compile(
    r"(?:(?:and|also|please|so|but) )*always (?!run|deploy|tag|bump|regenerate|rebase|push|make|"
    r"build|test|start)"
)


def is_personal(low: str, kind: MemoryType, *, asked: bool) -> bool:
    """Say whether a tidied sentence in lower case holds for the speaker in every project."""
    if PLACE.search(low):
        return False
    everywhere = EVERYWHERE.search(low)
    if everywhere is not None:
        told_of_things = not asked and everywhere[0] == "everywhere" and not _OF_ONESELF_ANYWHERE.search(low)
        return not (told_of_things or _OF_THE_CODE.match(low))
    if asked:
        return bool(MANNER.search(low) or (ALWAYS.match(low) and not THING_OF_THE_PROJECT.search(low)))
    of_the_project = not OF_ONESELF.match(low) or OF_SEVERAL.search(low) or _OF_THE_WORK.match(low)
    if of_the_project or kind in {MemoryType.DECISION, MemoryType.INSIGHT}:
        return False
    if THING_OF_THE_PROJECT.search(low):
        return kind is MemoryType.FACT and IDENTITY.match(low) is not None
    return True
