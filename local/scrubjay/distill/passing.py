"""What a person says that is over soon: a failure they report, a step for now, a thought aloud, a lead-in to a list.

Such sentences look like knowledge to the selector, which sees how and where something is said. Some are never kept;
others may be knowledge, and are kept where the selector is surer than it is asked to be elsewhere.
"""

from __future__ import annotations

import re

from scrubjay.distill.features import CUES
from scrubjay.distill.lexicon import KEEPS_UP, OUTCOME, any_of

_LEAD = r"^(?:\W|\b(?:and|so|but|also|just|yes|no|ok|okay|alright|great|good|nice|well|hmm?|ah|then)\b)*"
"""What a sentence may open with before it says anything."""

_ASKED = (
    _LEAD + r"(?:(?:please|pls|kindly|now|next|first|finally|again|let'?s|lets|(?:can|could|would) you|"
    r"i (?:want|need) you to|go ahead and|you (?:should|need to))[ ,]+)*"
)
"""What an order may open with before its verb."""

_COMPLAINS = any_of(*(CUES[name] for name in ("fails", "not_working", "i_report")))
_MISSES = any_of(CUES["now_not"])
_STATE = any_of(
    _LEAD + r"now (?:the|it|i|my|there|this|that|all|none|nothing)\b|\bagain(?:\W*$|[,;])|\bstill\b",
    _LEAD + r"(?:there|here|here's|when i)\b",
    r"\b(?:is|are|does|did|was|were|(?:i|we|you|they|\w+s) do)(?: not|n'?t)\b"
    rf"(?! {KEEPS_UP}\b).{{0,60}}\bany ?more\b",
    r"\b(?:does|do|did|will|would)(?: not|n'?t) (?:start|open|load|work|show|run|appear|respond|build|compile|connect|"
    r"get \w+ed\b)",
    r"\b(?:it|there|that|this)? ?(?:seems?|looks? like|appears?)\b(?! (?:right|good|fine|reasonable|best))",
    _LEAD + r"(?:none|nothing|only (?:the|one|some)) .*\b(?:is|are|was|were|work\w*|show\w*|happen\w*)\b",
    r"\b(?:is|are) not (?:\w+ly )?\w+(?:ed|able|ible)\b",
    r"\b(?:same|exact) (?:behaviou?r|result|problem|issue|errors?|thing)\b|\bout of sync\b|\bmess(?:ed|es)\b",
    r"\b(?:says|complains)\b.*(?::|\b(?:errors?|could not|cannot|can'?t|not found)\b)",
    _LEAD + r"after (?:the|your|my|that|this) (?:\w+ )?(?:changes?|updates?|fix|restart|deploy\w*)\b",
    r"\b(?:and|but|so) now (?:it|the|i|my|there|this|all|none|nothing|everything)\b|^there must be (?:an?|some)\b",
    r"\b(?:remains?|stays?) (?:unchanged|empty|blank|the same)\b|\bno longer (?:filled|shown|displayed|updated|visible|"
    r"working|loaded|rendered)\b|\ball of a sudden\b|\bis (?:only|not) (?:\w+ )?updat\w+ when\b",
    rf"{_LEAD}no (?:\w+ )?{OUTCOME}\b(?! (?:without|unless|until))",
    rf"{_LEAD}we (?:(?:now|still|then|only|just) )?(?:end up|fall|hit|land|crash|lose|run into|get stuck|never reach|"
    r"overwrite|jump|arrive)\b",
    rf"{_LEAD}we (?:(?:now|still|only|just) )?(?:see|saw|got|are getting|keep getting|"
    r"get (?:an? |the )?(?:\d{3}s?|\w*errors?|\w*exceptions?|warnings?|timeouts?|nothing))\b",
    r"\bkeeps? (?:on )?(?!(?:using|doing|being|things?)\b)\w+ing\b|\bfor some reason\b",
    r"\byou (?:just |also |already )?(?:skipped|forgot|missed|broke|removed|deleted|changed|added|did|gave|made)\b",
    _LEAD + r"(?:i am|i'?m) (?:in|getting|seeing|still)\b",
    r"\bhave not been\b|\bhas not been\b|\bhasn'?t been\b|\bhaven'?t been\b",
)
"""A state of things that is told because it should be another."""

_ASKS_FOR = any_of(
    *(CUES[name] for name in ("demands", "i_want", "imperative", "instead")),
    r"\bcan (?:you|we)\b(?! (?:\w+ )?(?:check|see|look|explain|tell|help))",
    r"\b(?:by default|always|never|in general|from now on|for (?:all|every)|as a rule|going forward|in the future)\b",
)
_DECIDES = any_of(
    rf"\b(?:so|we|instead|moved|switched|replaced|dropped|decided|from now)\b.{{0,200}}[,;] (?:and |so |"
    rf"hence )?no (?!(?:[\w'-]+ ){{0,1}}{OUTCOME}\b)[\w' -]{{2,40}} any ?more\W*$",
    rf"^(?:but |and |so )?no (?!(?:[\w'-]+ ){{0,1}}{OUTCOME}\b)[\w' -]{{2,60}}: (?:.{{0,200}}\b)?we (?:always |"
    rf"both |will |only |just )*"
    r"(?:keep|use|take|store|ask|write|run|let|do|make|have|want|merge|show|send|read|check|decide|choose|stick|"
    r"stay|go)\b",
)
"""What is done without from now on, said after what is done instead or before it: no failure, though it has a "no"."""
_FOR_NOW = any_of(
    rf"(?:{_LEAD}|[,;] )(?:can|could|would|will) (?:you|we) (?:(?:please|also|maybe|quickly|just|now) )*(?:check|see|"
    r"look|explain|tell|help|try|find|test|verify|investigate|debug|undo|revert|redo|repeat|rerun|restart|read|"
    r"summari[sz]e|open|list|compare|(?:have|take) a look)\b",
    r"^(?:if|unless)\b(?!.*\b(?:then|should|must|always|never|only|has to|have to)\b)|"
    r"^(?:if|unless) (?:yes|so|not|.*you)\b|^(?:imagine|suppose|what if|maybe|perhaps|whenever)\b|"
    r"\b(?:maybe|perhaps|i wonder|not sure|thx)\b",
    r"\b(?:yet|for now|right now|this time|at the moment)\W*(?:$|,| (?:please|and|but)\b)",
    _LEAD + r"now,? (?:let'?s|lets|please|run|remove|fix|do|go|try|check|commit|continue|proceed|add|make)\b",
    r"\b(?:this|that) (?:line|part|one|section|comment|paragraph|sentence|bit)\b|\blines? \d+",
    _LEAD + r"(?:please |let'?s |lets )?(?:address|tackle|fix|do|handle|ignore|skip) (?:\W|the|issues?|items?|points?|"
    r"numbers?|findings?|comments?)*\d|^(?:\W|let'?s )*address(?::| -)",
    _LEAD + r"(?:please )?double[- ]check\b|\bwhat do (?:you|u) think\W*$|\bany (?:ideas?|thoughts?|opinions?)\W*$",
    r"\b(?:tell|show|give|let|walk) me\b|\bproceed with\b|\byou should (?:see|have|find)\b",
    _LEAD + r"(?:please )?(?:(?:have|take) (?:a|another) look|look (?:at|into|through))\b[^,:;()]{0,40}$",
    r"\broll(?:ed|ing)? ?back\b|\btake a (?:deep )?(?:breath|break|look)\b|\bforget (?:what|about|it|that)\b",
    _LEAD + r"(?:no idea|i (?:really |still )?(?:do|did)(?: not|n'?t) (?:know|understand|remember|get))\b",
    r"\bwould (?:it|that|this|there)\b.*\?|\b(?:are|were) you sure\b|\bwhat happens if\b",
    r"\b(?:aren'?t|isn'?t|don'?t|doesn'?t) (?:we|it|you|they)\W*\?",
    r"^(?:please )?(?:consider|ready to|make sure to (?:understand|read|check))\b|\bfirst,? th[ea]n\b",
    _LEAD + r"(?:please )?(?:remove|delete|fix|revert|undo|change|move|rename|rewrite|redo|drop|"
    r"try) (?:it|this|that|them)\b",
    _LEAD + r"(?:let'?s|lets|we can|we'll) (?:start|begin|continue|go on|proceed|move on) (?:with|by|from)\b",
    _LEAD + r"(?:please |let'?s |lets )?(?:create (?:a |the )?tag|commit|push|merge|stage|rerun|restart|"
    r"retry)\b(?! messages?\b)",
    r"\b(?:when|once|as soon as) (?:it|this|that|you|everything)(?:'s|'re| is| are) (?:done|finished|ready|through)\b",
    r"\b(?:do not|don'?t|dont|without) (?:touch|chang|modif|edit|alter|break)\w* (?:\S+ ){0,4}?(?:any ?thing else|"
    r"(?:any )?other \w+|the rest|else)\b(?!.*\b(?:ever|every|always|whenever)\b)",
    r"\b(?:get|got|getting|gives?|throws?|seeing) (?:this|the following|these|an?|some|the same|me) ?(?:\w+ )?"
    r"(?:errors?|exception|traceback)\b|\bnpm (?:warn|err)",
    _LEAD + r"(?:i am|i'?m) (?:not sure|unclear|confused|sure (?:there|that|it|you))\b",
    _LEAD + r"i (?:don'?t|do not) (?:think|believe|see|know)\b(?!.{0,20}\b(?:should|need|must)\b)",
    _LEAD + r"(?:next up|current(?: \w+)?:)",
    _LEAD + r"you (?:can|could|may) (?:(?:now|also|just|then|finally|simply) )*(?!find|access|reach|get|log|sign|"
    r"connect|not\b|only\b)\w+(?!.*\b(?:always|never|ever|every)\b)",
    r":\W*$",
)
_DOUBTFUL = any_of(
    r"^(?:but|and|so|because|which|then|or)\b",
    _LEAD + r"(?:that|that's|this|these|those|it|it's|its|they|they're|he|she)\b",
    _LEAD + r"we (?:just|had|could|were|have this|have that)\b",
    r"^[^(]*\)",
    r"\byou (?:just |did |also |already )?(?:were|did|have|forgot|are|broke|added|removed|made|changed|proposed)\b",
    r"\b(?:above|below|previous|last step|recent(?:ly)?|again)\b",
    r"\b(?:explor\w+|thinking (?:about|of)|curious|investigat\w+|look into|makes? (?:\w+ )?sense|currently)\b",
    r"\b\d[.)]\W*$",
    _LEAD + r"(?:now|first|next)\b",
    r"\bjust (?:do|try|run|fix|show|give)\b|\bdo the same\b",
    _ASKED + r"(?:review|verify|examine|inspect|scan|identify|summari[sz]e|locate|debug|audit|check|look|find|compare|"
    r"report|figure|suggest|propose|think|confirm|continue|proceed|go (?:on|ahead|through|over)|begin|tackle|"
    r"work on|move on|finish|complete|start (?:with|by|from|working))\b",
    _LEAD + r"(?:how|what|why|where|who|does|do (?:you|we|i)|did|is there|are there|once)\b|(?:^|\s)@[\w./]",
    r"\battach(?:ed|ing)\b|\b(?:this|the|a|my) screenshots?\b",
    r"^(?:e\.?g|i\.?e)\b|!\W*$",
    _LEAD
    + r"(?:it |that |this |all )?(?:looks?|sounds?) (?:\w+ )?(?:good|great|perfect|fine|ok|okay|right|better|amazing|"
    r"awesome|nice|cool)\b|\bimplement (?:it|this|that|all|them|these)\b|\bwhat you (?:planned|proposed|suggested)\b|"
    r"\byour (?:suggestions?|plan|proposal|recommendations?)\b",
    _LEAD + r"(?:i am|i'?m) (?:trying|hoping|going|happy|interested)\b",
    r"\?(?!.*\bcan (?:we|you)\b)",
    r"\b(?:for|with|of|about|like|to|on|in|at) (?:that|this|those|these|it)\W*$|^should (?:be|have)\b",
)
_VERDICT = re.compile(r"(?:\(?\d{1,3}\)?[.:]? ?)?[✓✔✗✘⚠✅❌❗🔴🟠🟡🟢]")
"""How an item begins in a list of findings that a review wrote, and somebody pasted: with a mark of how bad it is."""

_ASSERTS = any_of(
    *(CUES[name] for name in ("is", "demands", "imperative", "we", "i_want", "please", "not", "instead", "durable")),
    r"\b(?:i|i'm|i've|you|do|does|did|can|will|would|could|use|make|add|remove|change|show|keep|rename|put|get|only|"
    r"comes?|goes|means?|leads?|gets?|works?|takes?|gives?|stays?|happens?|knows?|becomes?|exists?|begins?|starts?)\b",
)
"""A verb of English by which something is said or asked; what has none is a list, a line of a log, or a fragment."""


def is_passing(low: str) -> bool:
    """Say whether a sentence of a person, in lower case, is over soon, or a finding of a review and not theirs."""
    return bool(_VERDICT.match(low) or _FOR_NOW.search(low)) or (
        bool(_COMPLAINS.search(low) or _STATE.search(low) or (_MISSES.search(low) and not _DECIDES.search(low)))
        and not _ASKS_FOR.search(low)
    )


def is_doubtful(low: str, least_words: int) -> bool:
    """Say whether a sentence of a person, in lower case, leans on what was said before, or is of the moment by half.

    So is one of fewer than `least_words` words, and one without a verb that we know.
    """
    return (
        bool(_DOUBTFUL.search(low) and not _DECIDES.search(low)) or not has_verb(low) or len(low.split()) < least_words
    )


def has_verb(low: str) -> bool:
    """Say whether a sentence in lower case has a verb that we know."""
    return _ASSERTS.search(low) is not None
