"""What a person answers that is over soon: a failure they report, a step for now, a thought aloud."""

from __future__ import annotations

from scrubjay.distill.lexicon import CUES, KEEPS_UP, OUTCOME, any_of

_LEAD = r"^(?:\W|\b(?:and|so|but|also|just|yes|no|ok|okay|alright|great|good|nice|well|hmm?|ah|then)\b)*"
"""What a sentence may open with before it says anything."""

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


def is_passing(low: str) -> bool:
    """Say whether a sentence of a person, in lower case, is over soon."""
    return bool(_FOR_NOW.search(low)) or (
        bool(_COMPLAINS.search(low) or _STATE.search(low) or (_MISSES.search(low) and not _DECIDES.search(low)))
        and not _ASKS_FOR.search(low)
    )
