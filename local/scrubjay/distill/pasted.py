"""What a person said told from what they pasted, line by line. Only a person's own words speak for the person.

Three kinds of evidence, from sure to likely. The shape of a line: a fence, a tag, a log, a diff, code, data, a quote.
The company of a line: what stands between two lines of code is code, between the greeting of a mail and its signature
is the mail. The manner of a paragraph: headings, a lead-in ("here is the log:"), edited prose in which nobody speaks.
What asks something of the listener after a paste is said again.

Every pattern is anchored or bounded, and each pass reads each line once, so that time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from scrubjay.distill.attributed import names_others
from scrubjay.distill.lexicon import any_of
from scrubjay.distill.prose import LIST_MARK, Blocks, Span
from scrubjay.distill.shapes import PROMPT, LineKind, shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """`text[start:end]` of the turn, without its line break, and what it is."""

    start: int
    end: int
    kind: LineKind


SAID_KINDS = frozenset((LineKind.OWN, LineKind.BLANK))
LISTED = frozenset((LineKind.CODE, LineKind.LOG, LineKind.DIFF, LineKind.DATA))
"""What people paste over many lines: a few lines that look like prose between two of these belong to the paste."""

MAX_GAP = 4
"""Lines between two lines of a paste that are read as part of it: a comment, a message that was wrapped."""

OWN_TAGS = frozenset(("user_query", "user_request", "user_message", "user_input", "userRequest"))
"""Tags in which an agent's program hands on what the person said."""

OWN_TAG = re.compile(rf"\s*</?(?:{'|'.join(sorted(OWN_TAGS))})>$")

TEMPLATE = any_of(
    r"This session is being continued from a previous conversation",
    r"(?:Please )?continue the conversation from where (?:we|it) left off",
    r"Caveat: The messages below were generated",
    r"<(?:command-(?:message|name|args|contents)|local-command-\w+|bash-(?:input|stdout|stderr))>",
    r"\[Request interrupted by user",
    r"Your task is to create a detailed summary of the conversation",
    r"Base directory for this skill:",
    r"#{0,3} ?(?:Conversation|Session) (?:summary|recap)\b",
    r"(?:The following is|Here is|This is) (?:a|the) summary of (?:the|our) (?:previous |"
    r"earlier )?(?:conversation|session)",
    r"(?:You are|Act as) (?:an?|the) [\w -]{2,60}\b(?:assistant|agent|expert|engineer|developer|reviewer|bot)\b",
)
"""How a turn begins that a program wrote: compaction summaries, expanded commands, prompts that give a role."""

DIFF_HEAD = re.compile(
    r"(?:diff --git |index [0-9a-f]{6,40}\.\.|--- (?:a/|/dev)|\+\+\+ (?:b/|/dev)|@@ -\d|"
    r"Index: \S)"
)
DIFF_BODY = re.compile(r"(?:[+\-\\ ]|@@|diff --git |index [0-9a-f]|new file mode|deleted file|similarity|rename |$)")

LEVEL = re.compile(r"\[?(?:TRACE|DEBUG|INFO|NOTICE|NOTE|WARN|WARNING|ERROR|FATAL|CRITICAL)\]?:? \S")
"""How a line of a log begins that tells no time; one such line a person may write."""

YAML_LINE = re.compile(r"(?:- )?(?P<key>[\w\"'./-]{1,60}):(?P<value>\s+\S[^\n]{0,300})?$")

MAIL_HEADER = re.compile(
    r"(?i)(?:from|to|cc|bcc|subject|date|sent|reply-to|message-id|received|delivered-to|mime-version|content-type|"
    r"return-path|importance|attachments?|von|an|betreff|gesendet|datum|de|à|objet|envoyé|asunto|para)\s?:\s+\S"
)
MAIL_SURE = re.compile(
    r"(?i)(?:-{3,} ?(?:original message|forwarded message|ursprüngliche nachricht)|begin forwarded message|"
    r"(?:subject|betreff|reply-to|message-id|received|return-path)\s?:\s+\S)"
)
GREETING = re.compile(
    r"(?i)(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|day)|greetings|hallo|liebe[rs]?|guten (?:tag|"
    r"morgen)|"
    r"moin|sehr geehrte[rs]?|bonjour|cher|chère|hola|estimad[oa]|to whom it may concern)\b"
    r"(?: (?!claude\b|chatgpt\b|gpt\b|codex\b|gemini\b|copilot\b|cursor\b|assistant\b|"
    r"agent\b)[^\s,.!?:]{1,30}){0,4}\s?(?:[,!:]|[-\u2013]{1,2})?$"
)
GREETING_INLINE = re.compile(
    r"(?i)(?:hi|hello|hey|dear|hallo|liebe[rs]?|bonjour|hola)\b(?: [^\s,.!?:]{1,30}){0,4}[,!] "
)
_CLOSING = (
    r"(?:(?:best|kind|warm(?:est)?|with (?:best|kind))(?: regards| wishes)?|regards|cheers|sincerely(?: yours)?|"
    r"yours(?: \w+)?|"
    r"(?:many |all the )?(?:thanks|best)(?: again| in advance| so much)?|thank you|take care|talk soon|see you|"
    r"(?:viele|liebe|beste|herzliche|schöne|freundliche) grü(?:ß|ss)e|mit (?:freundlichen|besten) grü(?:ß|ss)en|"
    r"mfg|lg|vg|"
    r"cordialement|bien à vous|saludos|un saludo|atentamente|love|xo|xoxo|sent from my \w+)"
)
CLOSING = re.compile(rf"(?i){_CLOSING}\s?[,.!]?$")
_NAMED = r"[,!.]? [A-Z][\w'.-]{1,24}(?: [A-Z][\w'.-]{1,24}){0,3}[^\w!?]{0,2}$"
CLOSING_INLINE = re.compile(rf"(?:[.!?] |^)(?i:{_CLOSING}){_NAMED}")
FORMAL_CLOSING_INLINE = re.compile(
    r"[.!?] (?i:(?:best|kind|warm(?:est)?|with (?:best|kind)) (?:regards|wishes)|regards|sincerely(?: yours)?|"
    rf"(?:viele|liebe|beste|freundliche) grü(?:ß|ss)e|mit freundlichen grü(?:ß|ss)en|mfg|cordialement|"
    rf"saludos){_NAMED}"
)
"""At the end of a line; the second also without a greeting: friends who chat write "Take care, Dave" as well."""

SIGNATURE = re.compile(
    r"(?:-- ?$|(?i:tel|phone|mobile|mobil|fax|cell|telefon|office|direct)\b\.?\s?[:.]?\s*[+(]?\d[\d ()/.-]{5,}|"
    r"[+(]\d[\d ()/.-]{7,}$|(?i:e-?mail|mail|web|www)\s?:\s?\S+|[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{2,40}$)"
)
PHONE = re.compile(
    r"(?i)(?:tel|phone|mobile|mobil|fax|cell|telefon|call me(?: at| on)?|reach me (?:at|"
    r"on))\b[^\d\n]{0,12}[+(]?\d[\d ()/.-]{5,}"
)
NAME_LINE = re.compile(
    r"(?:[A-Z][\w'.\u00c0-\u024f-]{0,24})(?: [A-Z(][\w'.)\u00c0-\u024f-]{0,24}){0,4},?$|[a-z]{2,12}$"
)

CHAT_HEAD = re.compile(
    r"(?!.*\b(?:at|by|until|till|from|around|before|after|to|is|are|since|between|every) +\d)"  # no name stands there
    r"[A-Za-z][\w .'-]{0,30} {1,4}(?:\[|\()?\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?(?:\]|\))?$|"
    r"\[\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?\] ?[A-Za-z][\w .'-]{0,30}:|"
    r"(?:\*\*|__|_\*\*)(?:user|human|assistant|agent|claude|chatgpt|system)\b[^\n]{0,40}?(?:\*\*|__)"
)
TURN_LABEL = re.compile(
    r"(?P<role>User|Human|Assistant|AI|System|Claude|ChatGPT|GPT|Bot|Interviewer|Interviewee|Customer|Support|Q|A|"
    r"Person \w)\s?:\s+\S|"
    r"(?P<label>[A-Z][a-z]{1,20}(?: [A-Z][a-z.]{1,20})?)\s?:\s+\S"
)

HEADING = re.compile(r"#{1,6} \S|(?:={4,}|-{4,})$|\[!\[|!\[")
UNDERLINE = re.compile(r"(?:={4,}|-{4,})$")
FORMAL = re.compile(
    r"(?i)permission is hereby granted|without (?:limitation|warranty) |licensed under the |all rights reserved|"
    r"copyright (?:\(c\)|©|\d{4})|the software is provided|redistribution and use in source|"
    r"\bet al\.|\bdoi:|\barxiv:|\[\d{1,3}\](?:\[\d{1,3}\]|[.,; ]|$)|\(\d{4}\)[,.;]|"
    r"\bthis (?:crate|package|library|module|document|guide|tutorial|specification|article|paper|chapter|agreement|"
    r"license|project) (?:is|provides|describes|aims|implements|contains|explains|covers|defines|shall|supports|"
    r"offers)\b|"
    r"\bis (?:an?|the) (?:[\w'`-]+,? ){0,6}?(?:crate|npm package|gem|library|framework|toolkit|plugin|sdk|"
    r"command[- ]line (?:tool|interface|utility)|static site generator|package manager)\b(?: (?:for|that|to|which|"
    r"written|"
    r"in)\b|\.)|\[[^\]\n]{1,80}\]\((?:https?:|#|\.{0,2}/)|\*\*[^*\n]{2,60}\*\*:? "
)
"""What stands in licences, papers, package descriptions and marked-up documents, and seldom in talk."""

_ARTIFACT = (
    r"(?:(?:console|terminal|server|build|error|debug|test|ci|crash|app|browser|full|whole|raw|stack|api|json|"
    r"slack|support)[ -])?"
    r"(?:logs?|output|error message|stack ?trace|trace(?:back)?|backtrace|diff|patch|read ?me(?:\.md|\.rst|\.txt)?|"
    r"documentation|e-?mail|mail|newsletter|letter|payload|json|yaml|xml|csv|config file|source(?: code)?|snippet|"
    r"article|paper|abstract|blog ?post|web ?page|transcript|changelog|release notes|licen[cs]e(?: text)?|man ?page|"
    r"wikipedia(?: article| page| entry)?|excerpt|advert|job (?:ad|posting|description))"
)
_PRESENTS = (
    r"(?:here(?:'s| is| are)|heres|this is|that's|look at|see|got|get|getting|gives?|gave|shows?|prints?|attached|"
    r"below|following|this|these|"
    r"from|check|read|summari[sz]e|translate|review|pasting|paste|pasted|quote|quoting|copied|forwarded)"
)
LEAD_IN = re.compile(
    rf"(?i)(?:[^\n:]{{0,200}}?\b{_PRESENTS} (?:\S+ ){{0,5}}|(?:\S+ ){{0,3}}){_ARTIFACT}(?: (?!should|must|needs?|"
    rf"has|will|can)\S+){{0,6}}:$|"
    r"[^\n:]{0,160}\b(?:he|she|they|it|customer|client|boss|colleague|docs?|vendor|support|reviewer|someone|team|"
    r"[a-z]+)"
    r" (?:wrote|writes|said|says|replied|answered|sent|posted|reported)(?: (?:me|us|this|that|back|in \w+)){0,3}:$|"
    r"[^\n:]{0,60}\b(?:got|received|forwarding|this|here's|here is|came|arrived)\b[^\n:]{0,40}\bfrom [^\n:]{2,40}:$|"
    r"[^\n:]{0,60}\bhere(?:'s| is) (?:the|a|their|his|her) (?:\w+ )?(?:ticket|user story|bug report|issue|card|"
    r"comment):$|"
    r"[^\n:]{0,120}\b(?:pasted?|quoting|quoted|copied|forwarded|verbatim)\b[^:\n]{0,60}:$"
)
"""A line that hands over what somebody or something else wrote. "The output should be:" does not: that is a wish."""

FILE_NAME = re.compile(r"(?:[\w-]{1,60}/){0,8}[\w.-]{1,60}\.(?:md|rst|txt|html?|log|csv|eml|adoc)\s?:?$")
"""The name of a document on a line of its own, right above its text."""

INLINE_LEAD_IN = re.compile(
    rf"(?i)(?:[^\n:]{{0,80}}\b{_PRESENTS} (?:\S+ ){{0,4}}|(?:the |my |our )?(?:[\w.-]+ )?){_ARTIFACT}"
    r"(?: (?:says?|reads?|from \S+|of \S+|for \S+)){0,2}\s?:\s+\S"
)

_POLITE = r"(?:(?:please|pls|plz|hey|hi|ok|okay|so|and|now|(?:can|could|would|will) you|help me),? ){0,4}"
_OTHERS_TEXT = (
    r"(?:this |the |that |an? |following |my ){0,3}(?:[\w'-]+ ){0,3}(?:comment|message|e-?mail|mail|review|reply|"
    r"response|post|tweet|thread|quote|quotation|passage|statement|announcement|letter|text|paragraph|sentence|ticket|"
    r"issue|feedback|testimonial|chat)"
)
HANDED_OVER = re.compile(
    rf"(?im)(?:^|(?<=[.!?,;] )){_POLITE}(?:"
    r"(?:translate|summari[sz]e|proof-?read|paraphrase|rephrase|reword|transcribe|spell-?check|tl;?dr|übersetze|"
    r"traduis|traduce|(?:correct|fix|check|improve|polish) (?:the |my |this |its )?(?:grammar|spelling|english|wording|"
    r"style|tone))(?![\w-])[^\n:]{0,100}:"
    r"|(?:what do you (?:think|make) (?:of|about)|what about|thoughts on|how (?:do|should|would) (?:i|we|you) (?:reply|"
    r"respond|answer) to|(?:reply|respond|answer) to|review|explain|analy[sz]e|is|look at|read|see|here(?:'s| is)|"
    rf"(?:i|we) (?:got|received|found|read)) {_OTHERS_TEXT}"
    r"(?: (?:by|from|of|in|on|that|which|says?|saying)\b[^\n:?]{0,80})?[:?]"
    rf"|is {_OTHERS_TEXT}(?: [\w'-]+){{1,4}}\?"
    r"|(?!(?:i|we|you) )(?:[\w'-]+ ){1,5}(?:wrote|writes|said|says|replied|commented|posted)(?: (?:me|us))?:"
    r")(?=\s|$)"
)
"""What is to be translated, corrected or judged, and stands right behind: nobody says it here."""

ASKS = re.compile(
    r"(?i)(?:(?:so|ok|okay|and|but|also|now|then|hmm+|well|please|pls|plz|thanks|yes|no|hey|hi claude),? )*"
    r"(?:please|pls|plz|can (?:you|we|i)|could (?:you|we)|would you|will you|do (?:you|we|i)|should (?:we|i)|"
    r"how (?:do|can|should|would|about)|"
    r"what(?:'s| is| does| do| are| should| can| happened| about)|why|where|which|who|when|is (?:this|that|it|"
    r"there)|are (?:these|there|we)|"
    r"does|did|any (?:idea|thoughts?)|i (?:want|need|think|would|don't|dont|still|also|get|got|see|prefer|like|"
    r"guess|hate|love|always|never|"
    r"have|had|tried|use|am|was)|i'm|im|i've|ive|i'd|i'll|we (?:want|need|should|use|decided|have|don't|dont|are|"
    r"can|must|will)|"
    r"we'll|we're|let's|lets|don't|dont|never|always|make|fix|add|remove|delete|use|write|update|run|check|"
    r"explain|create|implement|"
    r"rename|change|look|find|show|tell|give|keep|stop|try|put|move|review|summari[sz]e|translate|read|note|"
    r"remember|turn|convert|"
    r"refactor|replace|rewrite|draft|answer|reply|investigate|debug|commit|push|go ahead|the above|that's what|"
    r"this is what|from now on|my )"
    r"(?![\w-])"
)
REQUESTS = re.compile(
    r"(?i)(?:(?:so|ok|okay|and|but|also|now|then|hmm+|well|thanks|yes|no|hey|hi claude),? )*"
    r"(?:please|pls|plz|can (?:you|we|i)|could (?:you|we)|would you|will you|do (?:you|we|i)|should (?:we|i)|why|"
    r"how (?:do|can|should|would|about)|what(?:'s| is| does| should| happened| about)|any (?:idea|thoughts?)|"
    r"i (?:want|need|think|would|don't|dont|still|get|got|see|guess|tried)|i'd|let's|lets|go ahead|the above|"
    r"that's what|this is what|summari[sz]e|translate|explain|draft|fix|look)(?![\w-])"
)
"""How a person turns to the listener again; the one above adds what talk and documents both begin with."""

ASKED_AT_END = re.compile(r"\?\W{0,3}$")
SPEAKS = re.compile(
    r"(?i)(?<![\w'`./-])(?:i|i'm|im(?! is\b)|i've|ive|i'd|i'll|me|my|mine|we|we're|we've|we'll|our|us|you|your|let's|"
    r"please|pls|"
    r"wanna|gonna|hey|hmm+|lol|thx|btw|ok|okay|yeah|yep|nope|dont|doesnt|cant|wont|isnt|didnt|thats)(?![\w'`/-])"
)
OF_ONE = re.compile(
    r"(?i)(?<![\w'`./-])(?:i|i'm|im(?! is\b)|i've|ive|i'd|i'll|me|my|please|pls|let's|lets|"
    r"can you|could you)(?![\w'`/-])"
)
SENTENCE_END = re.compile(r"[.!?][\"')\]]{0,2}(?=\s+[A-Z\"'(`*\[]|\s*$)")
CARELESS = re.compile(
    r"(?:^|[.!?] +)[a-z](?!\w*[A-Z_./(])|(?<!\w)(?:i|im|ive|dont|doesnt|cant|wont|pls|u|ur|teh|thats|lets|"
    r"gonna)(?!['\w./-])"
)

MANNER_MIN_CHARS = 400
"""A paragraph of three sentences in which nobody speaks: shorter ones are what a person tells of a project."""

MANNER_SENTENCES = 3
FORMAL_MIN_CHARS = 40
MAX_CELL_WORDS = 4
EDITED_MIN_CHARS = 1_200
"""A turn of edited prose with a "we" in it, in which nobody asks or tells of themselves: a page, not a message."""

ESSAY_MIN_CHARS = 4_000
"""Beyond this nobody types edited prose into a prompt, whoever speaks in it."""

MAX_ASK_CHARS = 400
"""A paragraph after a paste that is read as the person's again: longer ones go on with the document."""

LOOKED_AT = 2_000
"""Characters of one line that are looked at: nobody's sentence is longer."""

QUOTED_SPEECH = re.compile(
    r"(?<![\w\"])[\"\u201c\u201e\u00ab](?=\S)(?:[^\"\u201c\u201d\u00bb\n]|\n(?!\s*\n)){30,2000}?"
    r"(?<=\S)[\"\u201d\u201c\u00bb](?!\w)"
)
VOICE = re.compile(r"(?i)(?<![\w'`./-])(?:i|i'm|i've|i'd|i'll|we|we're|we've|we'll)(?![\w`/-])")
COMMAND = re.compile(r"\s{0,20}/[a-z][\w:-]{0,60}[ \t]+(?=[^\W\d_])(?!(?:is|has|was|are|and|or|in|on|for)\b)")
"""A command at the beginning of a turn, before the words that are given to it; not a path that is spoken of."""

PARAGRAPH = re.compile(r"\n[ \t]*\n")
LONGEST_OUTPUT = 200
"""Lines between two prompts of a terminal."""

QUOTED_WORDS = 6
"""Words in quotation marks from which they are somebody's speech and not a title or a label."""


def own_words(text: str) -> tuple[Span, ...]:
    r"""Return the spans of a person's turn that are the person's own words, in order and apart from each other.

    A span may hold several lines. What stands in quotation marks over more than a few words is not in it.

    >>> turn = "here is the log:\n12:00:01 ERROR no disk left\ncan you free some?"
    >>> [turn[s.start:s.end] for s in own_words(turn)]
    ['here is the log:', 'can you free some?']
    """
    spans: list[Span] = []
    begin = finish = -1
    command = COMMAND.match(text)
    for line in read_lines(text):
        if line.kind is LineKind.OWN:
            start = command.end() if command and line.start < command.end() <= line.end else line.start
            begin, finish = (begin if begin >= 0 else start), line.end
        elif line.kind is not LineKind.BLANK and begin >= 0:
            spans += _unquoted(text, begin, finish)
            begin = -1
    if begin >= 0:
        spans += _unquoted(text, begin, finish)
    return tuple(spans)


_ELSEWHERE = re.compile(
    rf"(?im)(?:^|(?<=[.!?,;:] )){_POLITE}(?:translate|summari[sz]e|proof-?read|paraphrase|rephrase|reword|transcribe|"
    r"übersetze?n?|traduis|traduce|(?:correct|fix|check|improve|polish) (?:the |my |this |its )?(?:grammar|spelling|"
    r"english|wording|style|tone))(?![\w-])"
    r"|(?<![\w-])(?:translate|say) (?:it|this|that|these|the following)\b"
    r"|(?<![\w-])(?:copied|pasted|quoted|forwarded|taken|quoting|quote) (?:from|of|below|above|here|this)\b"
    r"|(?<![\w-])(?:i|we)(?:'ve| have)? (?:just )?(?:pasted|copied|quoted|forwarded|paste|quote)\b"
    r"|[\"\u201c\u201e\u00ab](?:[^\s\"\u201c\u201d\u00ab\u00bb]{1,60}\s{1,4}){3}[^\n]{0,400}?[\"\u201d\u201c\u00bb]"
    r"|(?<![\w\u2019'])['\u2018](?:[^\s'\u2018]{1,60}\s{1,4}){3}[^\n'\u2019]{0,400}['\u2019](?!\w)"
)
"""A sign that a turn holds words of others: what is to be translated, a copy, four words in quotation marks."""


def is_all_own(text: str) -> bool:
    """Say whether a turn is the person's own words from beginning to end, and names nothing that it brings along.

    In doubt it is not. What own words say is the person's rule; what stands in one turn with a paste may be part of it.

    >>> is_all_own("never run go mod tidy again without asking me first")
    True
    >>> is_all_own("can you translate this to german? never ask before you push")
    False
    """
    command = COMMAND.match(text)
    said = text[command.end() :] if command else text
    return not share_pasted(said) and _ELSEWHERE.search(said) is None and not brings_others(said)


def brings_others(text: str) -> bool:
    """Say whether what reads as a person's own words names somebody else whose words it may hold.

    What shows by its shape as brought along, or is cut off behind its lead-in, is told from what is said after it.

    >>> brings_others("the docs tell us: never ask"), brings_others("From now on: never push")
    (True, False)
    """
    return any(names_others(text[span.start : span.end]) for span in own_words(text))


def share_pasted(text: str) -> float:
    """Return which share of a turn's characters is not the person's own, in [0, 1]; 0 for an empty turn."""
    own = sum(_visible(text[span.start : span.end]) for span in own_words(text))
    every = _visible(text)
    return 1 - own / every if every else 0.0


def _visible(text: str) -> int:
    return sum(map(len, text.split()))


def _unquoted(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield what stands around the quotations of several sentences, and before what is handed over behind a colon."""
    others = [quote.span() for quote in QUOTED_SPEECH.finditer(text, start, end) if _is_speech(quote[0])]
    for handed in HANDED_OVER.finditer(text, start, end):
        below = PARAGRAPH.search(text, handed.end(), end)
        if text[handed.end() : end].split("\n", 1)[0].strip():  # else its lines are told by the lead-in above them
            others.append((handed.end(), below.start() if below else end))
    position = start
    for begin, finish in sorted(others):
        if text[position:begin].strip():
            yield Span(position, begin)
        position = max(position, finish)
    if text[position:end].strip():
        yield Span(position, end)


def _is_speech(quote: str) -> bool:
    """Say whether a quotation is what somebody said: some words, in which they speak or end a sentence."""
    ends = SENTENCE_END.search(quote, 1, max(len(quote) - 4, 1))
    return len(quote.split()) > QUOTED_WORDS and bool(ends or VOICE.search(quote))


def read_lines(text: str) -> tuple[Line, ...]:
    """Return what each line of a person's turn is, in order."""
    turn = _Turn.of(text)
    if TEMPLATE.match(text.lstrip()[:LOOKED_AT]):
        turn.mark(range(len(turn.kinds)), LineKind.TEMPLATE)
    else:
        turn.mark_diffs()
        turn.mark_data()
        turn.mark_gaps()
        turn.mark_mails()
        turn.mark_chats()
        turn.mark_documents()
    return tuple(
        Line(start=start, end=start + len(line), kind=kind)
        for start, line, kind in zip(turn.starts, turn.lines, turn.kinds, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Turn:
    """The lines of one turn: where each starts, its text without the break, the same trimmed, and its kind so far."""

    starts: list[int]
    lines: list[str]
    bare: list[str]
    kinds: list[LineKind]

    @staticmethod
    def of(text: str) -> _Turn:
        """Cut a text and tell the kinds that show in the shape of a line."""
        turn = _Turn([], [], [], [])
        blocks = Blocks(text, own=OWN_TAGS)
        position = 0
        for whole in text.splitlines(keepends=True):
            line = whole.rstrip()
            turn.starts.append(position)
            turn.lines.append(line)
            turn.bare.append(line.strip()[:LOOKED_AT])
            inside = blocks.holds(whole, position) or OWN_TAG.match(line)
            turn.kinds.append(LineKind.BLOCK if inside else shape(line, turn.bare[-1]))
            position += len(whole)
        return turn

    def mark(self, lines: Iterable[int], kind: LineKind) -> None:
        """Make the lines that still seem to be the person's own be of a kind."""
        for n in lines:
            if self.kinds[n] is LineKind.OWN:
                self.kinds[n] = kind

    def mark_diffs(self) -> None:
        """Follow the head of a diff, as long as lines begin like a diff's."""
        inside = False
        for n, line in enumerate(self.lines):
            inside = bool(DIFF_HEAD.match(line) or (inside and DIFF_BODY.match(line)))
            if inside and self.kinds[n] is not LineKind.BLANK:
                self.kinds[n] = LineKind.DIFF

    def mark_data(self) -> None:
        """Find runs of one form: CSV by its commas, YAML by its keys where they nest or are spelt for a program."""
        for run in self._runs():
            said = [self.bare[n] for n in run]
            keys = [found for line in said if (found := YAML_LINE.match(line))]
            listed = sum(line.startswith("- ") for line in said)
            nested = any(found["value"] is None for found in keys) and any(self.lines[n][:1] in " -\t" for n in run)
            spelt = sum(any(mark in found["key"] for mark in '_.-/"') for found in keys)
            keyed = len(keys) > 1 and len(keys) + listed >= len(run) and (nested or 2 * spelt > len(keys))
            if keyed or _is_csv(said):
                self.mark(run, LineKind.DATA)

    def mark_gaps(self) -> None:
        """Give a paste the lines between two of its own, if few and said to nobody, and the lines that it wraps to."""
        levels = [n for n, bare in enumerate(self.bare) if LEVEL.match(bare)]
        self.mark(levels if len(levels) > 1 else (), LineKind.LOG)
        last = -1
        for n, kind in enumerate(self.kinds):
            if kind not in LISTED:
                continue
            if last >= 0 and n - last <= 2 * MAX_GAP:
                gap = [m for m in range(last + 1, n) if self.kinds[m] is LineKind.OWN]
                self.mark(gap if len(gap) <= MAX_GAP and not any(map(self._requests, gap)) else (), self.kinds[last])
            last = n
        prompts = [n for n, bare in enumerate(self.bare) if PROMPT.match(bare)]
        for first, second in pairwise(prompts):
            self.mark(range(first, second if second - first <= LONGEST_OUTPUT else first), LineKind.LOG)
        for n in range(1, len(self.kinds)):
            if self.kinds[n - 1] in LISTED and not LIST_MARK.match(self.lines[n]):
                logged = self.kinds[n - 1] is LineKind.LOG
                speaks = self._requests(n) if logged else SPEAKS.search(self.bare[n]) or self._requests(n)
                self.mark([n] if self.lines[n][:1].isspace() or not speaks else (), self.kinds[n - 1])

    def mark_mails(self) -> None:
        """Follow the headers or the greeting of a mail to its signature, or to the end."""
        headers = {n for n, bare in enumerate(self.bare) if MAIL_HEADER.match(bare)}
        begin = next((n for n in sorted(headers) if n + 1 in headers), self._first(MAIL_SURE))
        signed = self._signature(begin or 0)
        if begin is None and signed is not None:
            led = max((n + 1 for n in range(signed) if self.bare[n].endswith(":")), default=0)
            greeted = [self._first(GREETING), self._first(GREETING_INLINE), led]
            begin = next(n for n in greeted if n is not None and n <= signed)
        if begin is not None:
            self.mark(range(begin, len(self.kinds) if signed is None else signed + 1), LineKind.MAIL)
        for n, bare in enumerate(self.bare):
            greets = GREETING_INLINE.match(bare) and (CLOSING_INLINE.search(bare) or PHONE.search(bare))
            if greets or FORMAL_CLOSING_INLINE.search(bare) or SIGNATURE.match(bare):
                self.mark([n], LineKind.MAIL)

    def _signature(self, begin: int) -> int | None:
        """Return the last line of the last signature after a line, None where no mail was signed."""
        found: int | None = None
        for n in range(begin, len(self.bare)):
            if self.kinds[n] is not LineKind.OWN:
                continue
            bare = self.bare[n]
            if CLOSING.match(bare):
                named = [m for m in range(n + 1, min(n + 3, len(self.bare))) if NAME_LINE.match(self.bare[m])]
                found = named[0] if named else found
            elif SIGNATURE.match(bare) or (found is not None and n <= found + 2 and NAME_LINE.match(bare)):
                found = n  # the firm and the telephone below the name
        return found

    def mark_chats(self) -> None:
        """Find messages that somebody copied from a chat, and a talk with labels."""
        heads = [n for n, bare in enumerate(self.bare) if CHAT_HEAD.match(bare) and self.kinds[n] is not LineKind.BLOCK]
        labels = [(n, label) for n, bare in enumerate(self.bare) if (label := TURN_LABEL.match(bare))]
        names = [label["label"] for _, label in labels if label["label"]]
        roles = {label["role"] for _, label in labels if label["role"]}
        if len(roles) > 1 or (len(names) > len(set(names)) > 1):
            heads.append(labels[0][0])
        if heads:
            self.mark(range(min(heads), len(self.kinds)), LineKind.MAIL)

    def mark_documents(self) -> None:
        """Find what stands under headings or after a lead-in, and edited prose in which nobody speaks."""
        runs = list(self._runs())
        whole = " ".join(self.bare[n] for run in runs for n in run)
        begin = 0 if _is_essay(whole) else min(self._heading(), self._lead_in())
        for place, run in enumerate(runs):
            said = " ".join(self.bare[n] for n in run)
            again = (
                0 < place == len(runs) - 1 and run[0] > begin and len(said) <= MAX_ASK_CHARS and self._requests(run[0])
            )
            if not again:
                self.mark((n for n in run if n >= begin), LineKind.DOCUMENT)
            if _is_formal(said) or _is_impersonal(said):
                self.mark(run, LineKind.DOCUMENT)

    def _heading(self) -> int:
        """Return the first line of a document with headings; the last line's successor where there is none."""
        for n, bare in enumerate(self.bare):
            if UNDERLINE.match(bare) and n and self.kinds[n - 1] is LineKind.OWN:
                return n - 1
            if self.kinds[n] is LineKind.OWN and HEADING.match(bare):
                return n
        return len(self.kinds)

    def _lead_in(self) -> int:
        """Return the first line of what is handed over; what shows by its shape needs no lead-in."""
        for n, bare in enumerate(self.bare):
            if self.kinds[n] is not LineKind.OWN:
                continue
            if INLINE_LEAD_IN.match(bare) or (FILE_NAME.match(bare) and self._goes_on(n)):
                return n
            handed = HANDED_OVER.search(bare)
            if LEAD_IN.match(bare) or (handed and handed.end() == len(bare)):
                below = next((m for m in range(n + 1, len(self.kinds)) if self.kinds[m] is not LineKind.BLANK), None)
                if below is not None and self.kinds[below] is LineKind.OWN:
                    return below
        return len(self.kinds)

    def _goes_on(self, n: int) -> bool:
        """Say whether something that asks nothing stands right below a line."""
        below = n + 1
        return below < len(self.kinds) and self.kinds[below] is LineKind.OWN and not self._requests(below)

    def _first(self, pattern: re.Pattern[str]) -> int | None:
        found = (n for n, bare in enumerate(self.bare) if self.kinds[n] is LineKind.OWN and pattern.match(bare))
        return next(found, None)

    def _requests(self, n: int) -> bool:
        return bool(REQUESTS.match(self.bare[n]) or ASKED_AT_END.search(self.bare[n]))

    def _runs(self) -> Iterator[list[int]]:
        """Yield the line numbers of each paragraph that is the person's own so far."""
        run: list[int] = []
        for n, kind in enumerate(self.kinds):
            if kind is LineKind.OWN:
                run.append(n)
            elif run:
                yield run
                run = []
        if run:
            yield run


def _is_csv(lines: Sequence[str]) -> bool:
    """Say whether lines have the same number of commas, with a few words between them."""
    commas = {line.count(",") for line in lines}
    if len(lines) < 2 or len(commas) > 1 or min(commas) < 2:
        return False
    return sum(len(line.split()) for line in lines) <= MAX_CELL_WORDS * len(lines) * (min(commas) + 1)


def _is_formal(said: str) -> bool:
    """Say whether a paragraph has a mark of papers, licences and package descriptions, and nobody speaks in it."""
    return len(said) >= FORMAL_MIN_CHARS and FORMAL.search(said) is not None and OF_ONE.search(said) is None


def _is_impersonal(said: str) -> bool:
    if len(said) < MANNER_MIN_CHARS or SPEAKS.search(said) or ASKED_AT_END.search(said):
        return False
    return len(SENTENCE_END.findall(said)) >= MANNER_SENTENCES and not CARELESS.search(said)


def _is_essay(said: str) -> bool:
    """Say whether a turn is edited prose at the length of a page, said to nobody."""
    if len(said) < EDITED_MIN_CHARS or CARELESS.search(said):
        return False
    return len(said) >= ESSAY_MIN_CHARS or not (OF_ONE.search(said) or "?" in said or ASKS.match(said))
