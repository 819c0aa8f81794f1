"""The closed word lists that the patterns stand on, and English verb agreement. Words only; nothing here decides."""

from __future__ import annotations

import re

from scrubjay_shared.text import analyse


def words(listed: str) -> frozenset[str]:
    """Return the words of a list written with white space between them."""
    return frozenset(listed.split())


PAST_FORMS = words(
    """
    ate awoke beat became began bent bit bled blew bought broke brought built burnt came caught chose clung
    crept dealt did drank drew dreamt drove dug fed felt fell fled flew forbade forgot forgave fought found
    froze gave went got grew had heard held hid hung hurt kept knew laid lay learnt led left lent lit lost made
    meant met paid quit ran rang rode rose said sang sank sat saw sent shook shone shot shown slept slid sold
    spent spoke sped spun stole stood stuck struck swam swore swung took taught thought threw told tore
    understood was were woke wore won wound wrote withdrew overcame put set let cut hit read cost bet shut
    spread split upset
    """
)
"""Irregular past tenses, and verbs whose past looks like the present: those are read as past."""

BASE_IN_ED = frozenset(
    ("need", "feed", "breed", "bleed", "speed", "succeed", "exceed", "proceed", "embed", "shed", "heed")
)
"""Verbs that end in -ed without being past."""

MODALS = words(
    """
    can could may might must shall should will would can't cannot couldn't mustn't shouldn't won't wouldn't
    didn't hadn't wasn't weren't ought used
    """
)

IRREGULAR_THIRD = {
    "have": "has",
    "am": "is",
    "are": "is",
    "do": "does",
    "go": "goes",
    "haven't": "hasn't",
    "don't": "doesn't",
    "aren't": "isn't",
}

ADVERBS = words(
    """
    absolutely actually almost already also always barely basically clearly completely constantly currently
    definitely deeply even ever eventually finally first frequently fully generally genuinely gradually hardly
    highly honestly immediately initially just kinda lately literally mainly mostly nearly never normally not
    now occasionally often once only originally particularly personally primarily probably quickly quite rarely
    really recently regularly seldom simply slowly sometimes soon still strongly suddenly sure then totally
    truly typically usually
    """
)

ADVERB_RUN = rf"(?:(?:{'|'.join(sorted(ADVERBS))}) )*"
"""A regular expression: any number of adverbs, each with the space after it."""

BASE_VERBS = words(
    """
    add allow ask attend be bake become begin bike bring build buy call camp carry change check choose clean
    climb code collect come cook create cycle dance design do draw dream drink drive eat encourage enjoy
    exercise explore express feed feel find fish focus follow garden get give go grow hang have hear help hike
    hope hunt invite jog join journal jump keep know laugh learn like listen live look love make meditate meet
    mentor move need offer open organize own paint perform plan plant play post practice prefer promote read
    recharge relax remember ride run save see sell send share shop show sing sit ski sleep spend start stay stop
    stream study support surf swim take talk teach tell think train travel try use visit volunteer wait walk
    want watch wear win work write
    """
)
"""Common verbs: after "and", one of these shares the subject of the verb before it."""

GENERIC = words(
    """
    able absolutely actually adventure ago amaze amazing appreciate awesome awesomeness bad beautiful best
    better big bit blast blessed boost bring brighten bunch calm can't care catch challenge chance change check
    chill come comfort connect connection cool couple crazy cute day days definitely different dream dreams easy
    effort else end energy enjoy ensure especially even ever every everyone everything excited exciting
    experience experiences face fantastic far feel feeling feelings felt few fun future get getting give glad go
    goal goals gonna good got grateful great guy guys happen happy hard heart help helped helpful hear hey hope
    huge idea important impact incredible inspiring inspired inspiration interesting invaluable involved it's
    job join journey joy keep kind know late lately lead learn let level life like little look looking lot lots
    love loved lovely lucky make makes making mean means memory memories mind moment moments motivate motivated
    motivating motivation moving much need needed new next nice okay old one ones part passion passionate past
    peace peaceful people perfect person pic picture photo plan place point positive possible power powerful
    pretty probably proud push put reach real reality really refreshing relax reminder rest reward rewarding
    right same satisfy satisfying say see seem sense sharing share show side something someone sound special
    start step stay steps still stress strong stuff stunning success super support supportive sure surely take
    talk tell thankful thanks thing things think thought thoughts thrilled time times today together tonight
    tough treasure true truly try trying turn understand unique unreal use value want wanna warm way ways week
    weekend welcome well while wish wonderful wonder word words work worth wow yeah year years yes yet yep
    accept achieve achievement admire agree alive along already alright anyone anytime anyway apart around
    aspect atmosphere attention awe aware balance beat began begin believe belief bet bless bond breath brave
    bright center chat cheer cherish choose chase close complete confident content convince count courage crowd
    crucial crush current dealt dedicated dedication deep deserve desire detail determination determined
    difference difficult discover doubt drive ease emotion emotional empower encourage encouragement essential
    escape explore express extra eyes fact faith fall fascinate favorite favourite fill final finally find fine
    finish fire fix focus follow forever forget form forward found free freedom frustrate fulfill fuel full
    funny fully gorgeous grace gratitude grow growth grounded guess guide handle handy hang heal highly hold
    honest honor hour hundred hurt imagine improve indeed individual inner inside insight intense issue key kick
    lasting laugh leave less light line listen live long lose loss loud low magical main manage matter max
    meaningful mental mention mindset minute miss mix month mood nature necessary normal nothing notice obstacle
    ok open opportunity option outlet outside own overwhelm pace particular pay perspective persevere pick piece
    play plenty possibility practice precious prefer present pressure priceless priority problem process
    progress promise purpose quality question quick quiet quite rate react ready realize recharge recent
    recommend reflect regular relationship relief remain remember resilience resilient resource respect result
    role rough safe satisfaction scare scenario self serious set setback settle shape short shot similar simple
    situation skill slow small smile smooth social soon sort soul space spark specific spend spirit spot spread
    stage stand stop store strength strengthen strive struggle stuck stun succeed suggest surprise surround
    swamp tackle talent talented teach tend term tip thrill thrive touch track treat trouble trust uplift update
    upcoming upside various vibe view wait walk wave whole win wise wild world worry yourself rookie newbie
    beginner pro bite zone decade nowadays
    voice personal milestone breakthrough
    """
)
"""Words that carry no detail in talk: a sentence made of these alone says nothing worth keeping."""

VAGUE_STEMS = frozenset(analyse(" ".join(GENERIC | ADVERBS)))
_S_ENDING = re.compile(r"(?:s|x|z|ch|sh|o)$")
_Y_ENDING = re.compile(r"[^aeiou]y$")


def is_past(verb: str) -> bool:
    """Say whether a lower-case verb form is past, as far as its form tells."""
    return verb in PAST_FORMS or (verb.endswith("ed") and verb not in BASE_IN_ED)


def third_person(verb: str) -> str:
    """Return the form of a lower-case verb after "she": past forms and modals stay.

    >>> [third_person(verb) for verb in ("am", "try", "watch", "went", "can")]
    ['is', 'tries', 'watches', 'went', 'can']
    """
    if verb in IRREGULAR_THIRD:
        return IRREGULAR_THIRD[verb]
    if verb in MODALS or is_past(verb) or not verb.isalpha():
        return verb
    if _Y_ENDING.search(verb):
        return verb[:-1] + "ies"
    return verb + ("es" if _S_ENDING.search(verb) else "s")


def any_of(*alternatives: str) -> re.Pattern[str]:
    """Return the pattern that matches where any of the alternatives does."""
    return re.compile("|".join(f"(?:{alternative})" for alternative in alternatives))


OUTCOME = (
    r"(?:errors?|warnings?|changes?|outputs?|luck|differences?|effects?|results?|match(?:es)?|ideas?|problems?|issues?|"
    r"bugs?|need|signs?|traces?|data|rows?|hits?|entries|response|sound|mention|reason|way|point|improvement|progress|"
    r"one|more|longer|wonder|doubt|space|room|hurry|rush|worries|surprises?|failures?|crash(?:es)?|text|images?|"
    r"content|values?|feedback|connection)"
)
"""What somebody misses, or is glad to miss, on their screen: "no output on stderr" is no rule."""

KEEPS_UP = r"(?:need|use|require|support|ship|deploy|review|own|accept|have to|maintain|sell|offer|handle|approve)"
"""What ceases by a decision; what no longer works or shows has failed."""

CUES = {
    "demands": r"\b(?:must|has to|have to|needs? to|should(?:n't)?|shall|supposed to|ought|required?)\b",
    "fails": r"\b(?:bug|issue|problem|errors?|exception|fail\w*|broken|broke|wrong|crash\w*|panic|leak|race|warning)\b",
    "i_report": r"\bi (?:get|got|see|am getting|still|cannot|can'?t|do not see|don'?t see|dont see|ran|tried|forgot|"
    r"noticed|saw)\b",
    "i_want": r"\bi(?:'d| would| do| really| also| still)? (?:want|like|love|prefer|need|hate|don'?t want|dont want|"
    r"don'?t like|dont like|would like|rather)\b",
    "imperative": r"^(?:add|remove|make|use|keep|change|show|put|create|move|fix|do|don't|dont|set|rename|display|"
    r"allow|ensure|avoid|write|update|implement|include|run|commit)\b",
    "instead": r"\binstead\b|\brather than\b|\bno longer\b|\breplac\w*\b|\bin favou?r\b|\bnot .{1,40} but\b",
    "not_working": r"\b(?:doesn'?t work|not? (?:\w+ )?work\w*|not (?:show\w*|updat\w*|visible|displayed|"
    r"reflect\w*|chang\w*)|nothing (?:happens|changes))\b",
    "now_not": r"\b(?:still|now|but|again|anymore)\b.*\b(?:not|no|don'?t|doesn'?t|isn'?t|cannot|can'?t|won'?t|"
    r"nothing)\b",
    "plans": r"\b(?:plan|goal|next step|todo|later|future|eventually|phase)\b",
    "please": r"\b(?:please|pls|would you|can you|could you)\b",
    "root": r"\b(?:root cause|the (?:issue|problem|bug|reason|cause|culprit|fix|key|trick|catch) (?:is|was|lies))\b",
    "we": r"\b(?:we(?:'ll| will| should| need| want| can| don'?t| do not| use| have| are)?|let'?s|lets)\b",
}
"""Groups of words by which people complain, want and order at work. Matched in lower case."""
