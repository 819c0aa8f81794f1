"""Whether a turn hands over words of somebody else without a mark of quotation: "the readme says: …".

The turn is cut at colons, dashes, stops and line breaks into heads, and each head is read for what it says of the words
behind it: who said them, where they stand, or what is to be done with them as a text. Names are an open class, so a
head is told by its verb, by its preposition or by a genitive. In doubt the words are another's: the person is asked.

Each head is short and read once, so that time is linear in the text.
"""

from __future__ import annotations

import re

_MAX_HEAD = 160
"""Characters of a head that are looked at: who names a source before a colon needs no more."""

_AHEAD = 200
"""Characters behind a head in which anything must stand: else it hands over nothing."""

_AROUND = " \t>*_-•`#\"'"
"""Marks of lists, emphasis and quotes at the ends of a head."""

_HEAD = re.compile(
    r"(?P<head>[^\n:]*?)(?P<mark>[.!?…](?=\s|$)|:(?=[\s\"'`\u201c\u201e\u2018]|$)|,? (?=[\"\u201c\u201e\u00ab])|"
    r"(?: -{1,2}| ?\u2014| \u2013)(?= )|\n|:|$)"
)

_SAID = (
    r"(?:says|said|tells|told|reads|writes|wrote|states|stated|claims|claimed|answered|replied|recommends|recommended|"
    r"suggests|suggested|proposes|proposed|insists|insisted|mentions|mentioned|instructs|instructed|warned|advises|"
    r"advised|posted|commented|remarked|explained|concludes|concluded|ordered|goes|ends with|swears by|reminds|"
    r"reminded|declares|announced|"
    r"demanded|dictates|prescribes|printed|sent|put it (?:like|this|that|so)|puts it|has it|thinks|thought|believes|"
    r"argues|argued|"
    r"wants|wanted|expects|requires|requested|asked|keeps (?:saying|telling|writing|asking))"
)
_THEY = r"(?:they|people|folks|(?:the|their|its|these|those|some|other) (?:[\w'’-]+ ){0,3}[\w-]+s)"
_SAY = r"(?:say|tell|read|write|state|claim|answer|reply|recommend|suggest|propose|insist|advise|instruct|mean)"
_NOT_THEM = (
    r"(?:i|we|you|to|here|let|should|must|shall|will|would|can|could|may|might|not|please|always|never|and|or|that|"
    r"what|it|as)"
)
_SAYS = re.compile(
    rf"(?i)(?:(?<![\w'’-])(?!{_NOT_THEM} )[\w'’)./#+-]+ (?:(?:just|also|always|clearly|still|now|once|then|only|"
    rf"even) )?{_SAID}"
    rf"|(?<![\w'’-]){_THEY} (?:(?:just|also|always|clearly|still|now|all) )?{_SAY}"
    rf"|(?<![\w'’-])(?:does|do|did) (?!i\b|we\b|you\b)(?:[\w'’-]+ ){{1,5}}{_SAY})(?: [\w'’()/.-]+){{0,6}},?$"
)
"""Somebody or something says what stands behind; "as I said" and "it should say" do not."""

_DOCUMENT = (
    r"(?:[\w'’-]+ ){0,4}(?:e-?mail|mail|letter|issue|ticket|wiki|docs?|documentation|read ?me|runbook|guide|handbook|"
    r"manual|pr|mr|pull request|merge request|review|comments?|feedback|thread|post|article|blog|page|site|slides?|"
    r"talk|message|chat|channel|transcript|retro|stand-?up|spec|rfc|contract|prompt|template|snippet|tutorial|course|"
    r"book|paper|forum|stack ?overflow|slack|discord|reddit|hacker news|github|jira|confluence|notion|web|internet|"
    r"vendor|customer|client|reviewer|boss|manager|colleague|support|[\w-]+\.(?:md|rst|txt|html?|pdf|docx?|ya?ml|toml|"
    r"json|py|sh|[jt]s))"
)
_NOW = (
    r"(?:now|here|today|then|tomorrow|next|this (?:point|week|sprint|month|moment|day)|that|scratch|me|us|my|our|"
    r"experience|v?\d|version|release|sprint|phase|step|day|monday|tuesday|wednesday|thursday|friday|"
    r"the (?:start|beginning|outset|first))\b"
)
_SOURCES = re.compile(
    rf"(?i)(?:^|[,(] ?|\b(?:is|are|was|and|it|this|that|so) )(?:(?:straight|directly|copied|pasted|pasting|copying|"
    rf"taken|quoted) )?(?:"
    rf"from (?!{_NOW})(?:the |an? |this |that |their |his |her |its )?[\w@#.'’-]+(?: [\w@#.'’-]+){{0,5}}"
    r"|(?:according to|as per|per|quoting|citing|courtesy of) [^,]{2,80}"
    rf"|(?:in|on|at) (?:the|that|an?|their|his|her) {_DOCUMENT}(?: [\w'’#.-]+){{0,4}}"
    r"|(?:written|sent|posted|proposed|suggested|requested|left|added|reported|said|told)(?: to (?:me|us))? by "
    r"(?!me\b|us\b)[^,]{2,60})$"
)
"""Where the words behind come from: "from the wiki", "according to Bob", "on a slide of the talk"."""

_WORDS = (
    r"(?:e-?mail|mail|letter|message|words?|note|comment|feedback|remark|reply|response|answer|request|advice|tip|"
    r"suggestion|proposal|recommendation|instructions?|orders?|quote|text|paragraph|line|sentence|passage|rule|policy|"
    r"guideline|opinion|view|idea|prompt|ticket|issue|post|review|snippet|excerpt|error|warning|output)"
)
_OTHERS = (
    r"(?:reviewer|review|pr|mr|pull request|merge request|customer|client|vendor|qa|github|gitlab|slack|jira|linter|"
    r"bot|"
    r"issue|ticket|boss|manager|support|upstream|maintainer|colleague|teammate|intern|contractor|user|stack ?overflow)"
)
_ONES_OWN = r"(?:it|that|here|what|there|let|he|she|who|where|how|today|tomorrow|yesterday|everyone|one)"
_NAMES = re.compile(
    rf"(?i)(?:^|[,(>] ?|\b(?:and|so|fyi|but|the|this|is|was),? )(?:"
    rf"(?:the |an? |my |our )?(?:[\w-]+ ){{0,2}}(?!{_ONES_OWN}['’])(?:[\w-]+['’]s|"
    rf"[\w-]+s['’]) (?:[\w-]+ ){{0,2}}{_WORDS}"
    r"(?:,? [\w'’#.-]+){0,6}"
    rf"|(?:the |an? |my |our )?(?:[\w-]+ )?{_OTHERS} (?:comment|feedback|remark|reply|response|message|e-?mail|mail|"
    rf"words?|note|"
    r"answer|request|advice|suggestion|nit)(?: [\w'’#.-]+){0,6}"
    r"|(?:got |saw |read )?(?:the |an? |this |some )?(?:comment|feedback|remark|reply|response|message|e-?mail|mail|"
    r"letter|note|quote|"
    r"advice|suggestion|answer|instructions?|tip|ticket|word|excerpt|snippet|dm|pm|ping|memo|guidance|request|order|"
    r"rule|post|"
    r"info|heads[- ]up|line|paragraph|section|text) (?:from|by|of) (?!(?:me|us|now|mine|thumb|caution|advice|"
    r"honou?r|order|thought|checks?|work|defen[cs]e)\b)[\w'’#.-]+"
    r"(?: [\w'’#.-]+){0,5}"
    r"|(?:the |an? |this |some )?comment (?:on|in|at|above|below|under|next to) [\w'’#./-]+(?: [\w'’#./-]+){0,5}"
    r"|(?:the |this |a |in )?(?:[\w-]+ )?(?:ticket|issue|pr|mr|bug|rfc|pull request|comment|line|"
    r"page) #?[\w-]{0,12}\d+(?: [\w'’#.-]+){0,4}"
    rf"|(?:the |an? |this |their |its ){_DOCUMENT} (?:has|had|contains|contained|includes|included|shows|showed|"
    rf"goes|went)(?: [\w'’-]+){{0,3}}"
    r"|(?:the |this |its )?(?:[\w-]+ )?(?:message|text|wording|words|quote|body|subject|comment|feedback|reply|advice) "
    r"(?:is|was|were|are)|(?:one|some|most|the last|the first) of (?:the|their|these|those|his|"
    r"her) [\w '’-]{2,60} (?:is|was|were)"
    r"|(?:the |this |its )(?:[\w-]+ )?(?:body|text|wording|original)"
    r")$"
)
"""Whose words stand behind: "Bob's exact words", "reviewer comment", "a comment on line 40", "the error was"."""
_OWN_RULE = re.compile(
    r"(?i)^(?:so,? |and,? |but,? |ok,? )?(?:the|my|our|one|another|a) (?:[\w-]+ )?(?:rule|policy|guideline|idea|"
    r"instructions?|line)s? "
    r"(?:is|are|was)$"
)

_OWN_TAIL = re.compile(
    r"(?i)(?:^|[,.] ?(?:so |and |but )?|\b(?:so|and|hence) )(?:from (?:now|here|today|then) on|going forward|"
    r"in (?:the )?future|"
    r"one more thing|remember(?: this| that)?|note to self|important|please|(?:my|our|the|a) (?:new )?rule(?: is)?|"
    r"to be clear|we agreed|we decided|we do(?: this)?|i (?:want|prefer|decided|say|said))$"
)
"""How a person turns to their own rule at the end of a head, whoever was named before."""

_HANDS_OVER = re.compile(
    r"(?i)\b(?:here(?:'s|’s| is| are)|this is|that(?:'s|’s| is)|see|read|look at|check|consider|below(?: is)?|"
    r"have a look at) "
    rf"(?:what|how) (?!(?:i|we|you)\b)[\w'’ -]{{1,60}}? (?:{_SAID}|{_SAY}|left|put|added|had to say|asked|asks|"
    rf"wants?|want(?:ed)?)\b"
    r"|\b(?:found|saw|got|read|received|heard|copied|came across|stumbled (?:up)?on|discovered|spotted|picked up) "
    r"(?:it|this|that|these|the following|the (?:line|sentence|paragraph|rule|text) below) (?:\w+ )?(?:on|in|from|"
    r"at|under)\b"
    r"|^(?:\W|so |ok |and |but |fyi |hey |hi )*(?:this|it|that|these|the following|the next \w+) "
    r"(?:(?:is|was|are|were|comes|came|all) )?(?:up |straight |taken |copied |quoted |pasted )?(?:from|in|on|by) "
    rf"(?!{_NOW})(?:the|an?|our|their|my|[A-Z@#]|[\w-]+['’]s)"
    r"|\b(?:has|have|had|contains|includes|holds|shows|there(?:'s|’s| is| was)) (?:(?:this|the following|an?|"
    r"these) )(?:\w+ )?"
    r"(?:paragraph|line|sentence|rule|passage|section|note|comment|text|instruction|hint|tip|lines|rules|words)\b"
    r"|\b(?:said|says|wrote|writes|told (?:me|us|people)|tells (?:me|us|people)|reads|recommends|suggests|suggested) "
    r"(?:this|the following|as follows|verbatim)\b"
    r"|^(?:as |so )?(?:the |our |their |my |an? )?[\w'’-]+ (?:[\w'’-]+ )?(?:wrote|writes|told (?:me|us)|replied|"
    r"commented|posted)$"
    r"|^(?:the |their |its )?(?:quote|quotation|excerpt|wording|original(?: text)?|source text)$"
)
"""A sentence that presents what the next one says."""

_TEXT = (
    r"(?:(?:this|the|that|these|my|its|an?|following|one|each|next|below|last|whole|second|"
    r"first) )*(?:[\w-]+ ){0,2}?(?:sentence|line|"
    r"paragraph|text|wording|comment|quote|phrase|passage|message|e-?mail|rule|note|statement|instruction|tooltip|"
    r"label|caption|heading|title|snippet|string|ticket|review|prompt|clause|reply|answer|post|advice|excerpt|slogan|"
    r"bullet|remark|warning|hint)s?"
)
_IT = (
    rf"(?:(?:this|it|that|these|the following|below|what follows|the above|"
    rf"in|the next)(?: (?:one|bit|part|here))?|{_TEXT})"
)
_PLACED = r"[\w .'’-]{1,40}"
_END = (
    r"(?: (?:for me|please|to me|below|here|above|again|a bit|better|quickly|"
    rf"(?:in|from|of|by|to|into|as) {_PLACED}))*,?$"
)
_TREATS = (
    r"(?:translate|summari[sz]e|sum up|proof-?read|paraphrase|rephrase|reword|transcribe|spell-?check|explain|shorten|"
    r"simplify|correct|fix|improve|polish|rewrite|interpret|analy[sz]e|comment on|review|rate|judge|grade|tidy(?: up)?|"
    r"clarify|decipher|expand(?: on)?|condense|edit|decode|critique|assess|unpack|format|clean up|make sense of)"
)
_REQUESTS = re.compile(
    rf"(?i)\b{_TREATS} {_IT}{_END}"
    r"|(?<!\bto )\b(?:translate|summari[sz]e|sum up|proof-?read|paraphrase|rephrase|reword|transcribe|spell-?check|"
    r"shorten|grammar check)"
    rf"(?: (?:please|in|into|to|as)\b[\w .'’-]{{0,60}})?,?$"
    r"|\b(?:fix|correct|check|improve|polish|mend|find|spot) (?:the |my |its |this |any |all |"
    r"a )*(?:[\w-]+ )?(?:typos?|grammar|spelling|english|"
    rf"german|french|wording|phrasing|punctuation|style|tone|mistakes?|language|commas?)(?: (?:in|of|here|"
    rf"below)(?: {_IT})?)?{_END}"
    r"|\b(?:explain|tell me|understand|know|clarify|wonder|is that|see|sure|idea|get) what (?!(?:i|we|"
    r"you)\b)[\w'’ -]{1,60} means?\b"
    r"|\bwhat (?:does|do|did|could|would|is|was)(?: (?!you\b)[\w'’/.-]+){1,6} (?:means?|meant|trying to say|"
    r"getting at|saying|supposed to mean)"
    r"(?: (?:by|with|in|here|exactly)\b[\w '’.-]{0,40})?$"
    r"|\b(?:help me )?(?:understand|get|grasp|follow|read|parse) (?:the|this|that|these) [\w '’-]{2,60} (?:of|in|"
    r"from|on|at) [\w '’.-]{2,40}$"
    r"|\b(?:the )?meaning of\b[\w '’-]{0,40}$|\bwhat (?:is|does) this$"
    r"|\b(?:is|are|was|does|would|do) (?:this|that|it|the following|these)(?: [\w-]+)? (?:a )?(?:good|correct|right|"
    r"proper|clear|ok|okay|"
    r"fine|idiomatic|sound|read|grammatical|well|sensible|reasonable|safe|smart|wise|legit|normal|standard|allowed|"
    r"polite|appropriate|"
    r"best practice|common|serious|acceptable)\b[\w '’-]{0,50}$"
    r"|\bdoes (?:this|that|it) make sense(?: to you)?$"
    rf"|\bwhat(?:'s|’s| is| was) (?:the (?:\w+ ){{1,2}}(?:of|behind|in|with)|wrong with|meant by|bad about|"
    rf"good about) {_IT}{_END}"
    rf"|\bwhy (?:\w+ ){{1,4}}(?:write|say|want|recommend|suggest|put|add|include) {_IT}{_END}"
    rf"|\b(?:thoughts|opinions?|views?|comments?|take|ideas?) (?:on|about|of) {_IT}{_END}"
    rf"|\bwhat do you (?:think|make) (?:of|about) {_IT}{_END}"
    rf"|\bmake (?:it|this|that|{_TEXT}) (?:[\w-]+er|more \w+|less \w+|sound \w+|simpler|clear|"
    rf"readable)\b[\w ,'’-]{{0,40}}$"
    rf"|\b(?:how|what) (?:do|would|should) (?:i|we|you) (?:say|phrase|word|put|reply to|respond to|answer|"
    rf"call) {_IT}{_END}"
    rf"|\b(?:reply|respond|answer|react) to {_IT}{_END}"
    rf"|\b(?:turn|put|convert|change|make) {_IT} into\b[\w ,'’-]{{1,60}}$"
    r"|\b(?:word|way|term|phrase|expression|synonym)s? (?:for|to (?:say|put|phrase|word))\b[\w \"'’-]{1,60}$"
    r"|^(?:spelling|grammar|typo|translation|tl;?dr|meaning)(?: (?:please|check|check please))?$"
)
"""What is to be done with a text that stands behind: it is explained, corrected, shortened or judged."""

_POINTS_BACK = re.compile(
    rf"(?i)\b(?:is|was|that['’]s|this is) what (?!(?:i|we|you)\b)[\w'’ .-]{{1,40}}? (?:{_SAID}|{_SAY}|want)\b"
    r"|^(?:that|this|it|all of (?:that|this|it))(?:['’]s| is| was| comes| came)? (?:straight |copied |quoted |"
    r"taken |right )?"
    rf"(?:from|in|by|according to) (?!{_NOW})[\w@#]"
    rf"|^(?:or )?(?:so )?(?:says|said|writes|wrote|reads|according to|as per|via|quote from|source|quoted from|"
    rf"from) (?!{_NOW}|(?:we|i|"
    rf"you)\b)[\w@#]"
    r"|^(?-i:[A-Z])[\w'’-]+(?: (?-i:[A-Z])[\w'’-]+)?(?:, | \()(?:in|from|on|at|via) [\w '’.#-]{2,40}\)?$"
)
"""How the end of a turn says whose words the beginning was: "that's what the readme says", "- Bob, in the retro"."""

_OPENS = re.compile(
    r"(?i)\W*(?:quoting|to quote|in the words of|according to (?!(?:the |our |my )?(?:plan|roadmap|"
    r"schedule)\b)) ?\w[^,]{2,60}, \w"
)
"""A sentence that names its source before a comma."""

_ONES_OWN_LEAD = re.compile(
    r"(?i)(?:\W|(?:so|and|but|also|ok|okay|well|hey|hi|please|then|again|listen|look|yes|no|yeah|thanks?|thank you|"
    r"great|good|nice|"
    r"cool|perfect|right|sure|done|claude|codex)\b)*(?:(?:good|nice|great|well) (?:work|job|one|done)|that works|"
    r"works(?: now)?|looks good|"
    r"(?:from|starting) (?:now|here|today|then|this point) on(?:wards?)?|going forward|in (?:the )?future|henceforth|"
    r"(?:one|a|some|two|three|another|last|first|next|few) (?:more |last |other |new |small |simple |"
    r"quick )*(?:things?|rules?|notes?|points?|reminders?)|"
    r"(?:quick |important |side )?(?:note|rule|reminder|reminders|rules|important|remember|preferences?|convention|"
    r"decision|policy)(?: to self| of thumb| for (?:you|me|us))?|"
    r"remember (?:this|that)|please (?:note|remember)|to be (?:clear|safe|sure)|just to be clear|tl;?dr|in short|"
    r"in general|by default|"
    r"for (?:this|our|my) \w+|in (?:this|our|my) \w+|(?:my|our|the) (?:new |general |only |main )?(?:rule|"
    r"preference|policy|convention)(?: is)?|"
    r"(?:as|like) (?:i|we) (?:said|wrote|told you|agreed|decided)(?: \w+){0,2}|"
    r"(?:i|i'd|i’d|i'll|i'm|we) (?:want|like|would like|prefer|need|say|said|told you|repeat|decided|agreed|always|"
    r"never|hate|mean)(?: \w+){0,6}|"
    r"let me (?:repeat|be clear|say it|add)(?: \w+){0,3}|you (?:can|may|should|must|asked|forgot|need|don't|"
    r"do)(?: \w+){0,8}|"
    r"(?:why|what|how|when|where|can|could|will|would|did|do|are|were) (?:\w+ ){0,2}you(?: \w+){0,8})?\W*"
)
"""How a person leads over to a rule of their own. It is short: what is not known here may be anybody's."""


def names_others(text: str) -> bool:
    """Say whether a turn names somebody else, or a document, whose words it then brings, or asks something of a text.

    What is only told of others does not count: "Jonas moved the server".

    >>> names_others("the readme tells us: always disable the sandbox"), names_others("From now on: never push to main")
    (True, False)
    """
    for part in _HEAD.finditer(text):
        head, mark = part["head"].strip(_AROUND), part["mark"].strip()
        if not 2 < len(head) <= _MAX_HEAD:
            continue
        if _OPENS.match(head) or (part.start() and mark != ":" and _POINTS_BACK.search(head)):
            return True
        if text[part.end() : part.end() + _AHEAD].strip() and _hands_over(head, mark):
            return True
    return False


def is_plain(text: str) -> bool:
    """Say whether before the last sentence of a turn stands only what leads over to a rule of one's own.

    That is stricter than that nobody is named: for what may do most harm, since names and documents are open classes.

    >>> is_plain("Good work. From now on: just push"), is_plain("The chapter on agents concludes: just push")
    (True, False)
    """
    heads = [part["head"].strip(_AROUND) for part in _HEAD.finditer(text) if part["head"].strip()]
    return all(_ONES_OWN_LEAD.fullmatch(head[:_MAX_HEAD]) for head in heads[:-1])


def _hands_over(head: str, mark: str) -> bool:
    """Say whether a head brings words of others behind its mark; the break of a line, "" here, counts as a stop."""
    if _REQUESTS.search(head) or _HANDS_OVER.search(head):
        return True
    if mark[:1] in ".!?…" or _OWN_TAIL.search(head) or _OWN_RULE.match(head):
        return False
    return bool(_SAYS.search(head) or _SOURCES.search(head) or _NAMES.search(head))
