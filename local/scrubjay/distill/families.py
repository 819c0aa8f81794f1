"""What kind of thing a sentence says: a decision, a preference, an insight, a goal, a fact, or nothing.

The first four have words of their own. A fact is what a speaker tells of themselves, of somebody by name, or of the
project; in talk between people, what is told of other things is mostly opinion, and is read with less confidence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from scrubjay.distill.chatter import is_chatter
from scrubjay.distill.lexicon import ADVERB_RUN, ADVERBS, PAST_FORMS, any_of, words
from scrubjay.distill.person import KIN
from scrubjay.distill.reference import opens_pointing
from scrubjay.policy import DistillPolicy
from scrubjay_shared.records import MemoryType
from scrubjay_shared.text import STOP_WORDS


@dataclass(frozen=True, slots=True)
class Classification:
    """What a sentence is, and the confidence of its pattern in [0, 1], before its words are weighed.

    `asked` marks an instruction, whose subject is the listener.
    """

    type: MemoryType
    confidence: float
    asked: bool = False


_US = rf"(?:i|we|they|she|he|the team|my \w+|our \w+)(?:'ve|'re|'d)? {ADVERB_RUN}"

DECISION = any_of(
    rf"\b{_US}(?:decided|agreed|chose|settled on|opted|made (?:the|a|my|our) decision|committed to|"
    r"made up my mind)\b(?! with)",
    r"^(?:ok |okay )?decided\b",
    r"\bthe (?:plan|decision) is (?:to )?\w+",
    r"^let's (?:use|go with|go for|switch|stick with|keep|adopt|drop|store|name|call|move (?:to|"
    r"everything)|put|ship|release|support|default)\b",
    r"\bwe(?:'ll| will| should|'re going to| are going to| shall) (?:\w+ly )?(?:use|go with|switch|ship|"
    r"deploy|release|move|migrate|store|keep|support|drop|adopt|build|launch|host|replace|remove|write|"
    r"stick|default|require|pin|charge|pivot|start with|stop)\b",
    r"^(?:i|we) (?:drop|dropped|switched|switch|migrated|went with|go with|stick with)\b",
    r"\bfrom now on\b",
    r"\b\w+ it is\b",
    r"^no more \w+",
)

PREFERENCE = any_of(
    rf"\b(?:i|we)(?:'d|'ve)? {ADVERB_RUN}(?:prefer|preferred|love|loved|like|liked|enjoy|enjoyed|hate|"
    r"hated|dislike|adore|detest|despise|favou?r|can't stand|don't (?:really )?(?:like|enjoy|want|eat|"
    r"drink|care for)|rather)\b",
    r"\bi want (?:the|my|our|all|every|each|no) [\w ]{2,30}? (?:to|on|in)\b",
    r"\b(?:my|our) (?:all-time |absolute |personal |current |other )?(?:favou?rites?|fave|preference|go-to)\b",
    rf"\bi(?:'m| am|'ve been|'ve always been) {ADVERB_RUN}(?:\w+ly )?(?:such )?(?:a |an )?(?:(?:big|huge|massive|"
    r"total|real) )?(?:fan of|into|fond of|obsessed with|hooked on|keen on|passionate about|allergic|"
    r"crazy about|in love with|drawn to|interested in)\b",
    r"^i(?:'ve got| have) a (?:passion|love|soft spot|thing|preference) for\b",
    rf"\bone of my {ADVERB_RUN}(?:\w+ )?(?:favou?rite|fave)",
)

INSTRUCTION = any_of(
    r"^(?:also |and |so |but )?(?:please )?(?:always|never) \w+",
    r"^(?:also |and |so |but )?(?:please )?(?:don't|do not) (?:ever )?(?:use|add|write|commit|push|put|"
    r"touch|mention|suggest|mock|deploy|create|include|ask|call|explain)\b",
    r"^(?:also |and |so |but )?(?:please )?keep (?:your|the|all|every|each|answers|commits|it short)\b",
    r"^(?:also |and |so |but )?(?:please )?use \w.* (?:instead of|rather than|for all|for every|"
    r"everywhere|not|against)\b",
    r"^remind me\b",
    r"^(?:also |and |so |but )?(?:please )?(?:always |only )?(?:answer|reply|respond|speak)(?: (?:to )?me)? in "
    r"(?!the\b|this\b|that\b|an?\b|detail|short|general|full|order)[a-z]+(?: (?:from now on|please|only))?$",
    r"^no \w+(?: \w+)? please\b",
)

INSIGHT = any_of(
    rf"\b{_US}(?:learned|learnt|realized|realised|discovered|figured out|found out|came to (?:see|realize|"
    r"understand)|noticed|understood) (?:that|how|to|it's|i|we|the|a|my)\b",
    r"\bturns out\b|\bturned out (?:that|to be|it|we|the|there)\b",
    r"\bthe (?:\w+ )?(?:key|insight|problem|issue|challenge|lesson|takeaway|trick|catch|bottleneck|"
    r"culprit|root cause) (?:here )?(?:is|was)\b",
    r"\bthe (?:\w+ )?key to \w+ is\b",
    r"\bthe (?:\w+ )?opportunity (?:here )?is\b",
    r"\b(?:root cause|lesson learned)\b(?: is| was|:)",
    r"\b(?:what i learned|taught me|made me (?:realize|realise|understand|appreciate)|showed me|"
    r"opened my eyes|note to self)\b",
)

GOAL = any_of(
    r"\b(?:my|our|the) (?:\w+ )?(?:goals?|objective|target|aim|vision|dream|mission|ambition|"
    r"priority)(?: (?:here|now|for \w+(?: \w+)?))? (?:is|are|was|has always been)\b",
    r"^goal(?: is|:)",
    rf"\b(?:i|we)(?:'m|'re| am| are|'ve been)? {ADVERB_RUN}(?:want|wanted|hope|plan|planned|aim|intend|"
    r"planning|hoping|aiming|trying|working|training|saving(?: up)?|preparing|striving) (?:to|for|"
    r"towards?|on)\b(?! (?:it|that|this|them|see|hear|know)\b)",
    r"\bi(?:'d| would) (?:really |absolutely )?(?:love|like) to \w+",
    r"\bwe're (?:building|creating|making|developing|launching)\b",
    r"\bi(?:'m| am) (?:thinking of|thinking about|considering|going to|gonna|dreaming of|looking to|"
    r"looking into|looking for|searching for|applying)\b",
)

_WHEN = (
    r"(?:yesterday|today|tonight|recently|lately|currently|nowadays|now|last \w+|this \w+|next \w+|"
    r"tomorrow|(?:a|two|three|four|five|\d+|a few|a couple of|some) \w+ (?:ago|back)|the other day|in \w+|"
    r"on \w+|since \w+|since then|after (?:that|all)|as a (?:kid|child|teen)|growing up|these days|"
    r"for (?:the )?(?:past|last) \w+(?: \w+)?|every \w+|usually|sometimes)(?: (?:morning|night|evening|"
    r"afternoon))?"
)

FIRST_PERSON = re.compile(
    rf"^(?:{ADVERB_RUN}|(?:[^,]{{3,60}}, )?|{_WHEN},? {ADVERB_RUN})(?:i|i'm|i've|i'd|we|we're|we've|we'd|my|our)\b"
)

TELLS_OF_ME = re.compile(
    r"^(?:[a-z]+ing\b|my \w+|[\w' -]{2,40}?(?:'s|'ve)? (?:has|have|helped|helps|made|makes|gave|gives|"
    r"taught|allowed|allows|lets|inspired|inspires|brought|reminds|reminded|got|keeps|introduced|"
    r"encouraged)) [^.]*\b(?:me|my)\b"
)

COMPANY_SUBJECT = re.compile(rf"^(?:yesterday |today |recently,? |last \w+,? )?(?:me and|my {KIN} and i|\w+ and i)\b")

PROJECT_FACT = re.compile(
    r"^(?:the|our|its|their|my|all|every|each|[a-z][\w./-]*(?:'s)?)(?: [\w./`'-]+){0,6}? (?:uses?|runs?|"
    r"lives?|sits|stores?|requires?|depends? on|is (?:written|deployed|hosted|stored|built|called|named|"
    r"served|kept|at|in|on|our|the)|are (?:written|deployed|hosted|stored|built|called|named|served|kept)|"
    r"listens|writes to|reads from|talks to|connects to|expires?|runs out|defaults? to|supports?|"
    r"points? (?:to|at)|must|never|always|needs? (?:to|an?)|goes to|keeps|returns|costs|caches|takes \d|"
    r"has (?:\d|an? )|have (?:to stay|\d)|report)\b"
)

OF_THE_PROJECT = re.compile(r"(?:the|our|all|every|each|only|both|[\w/-]*[./_`]\S*)\b")
"""How an agent begins when it tells of the project and not of the world at large."""

THIRD_PERSON = re.compile(
    r"^(?P<name>[A-Z][\w'-]+(?: [A-Z][\w'-]+| from the \w+| and [A-Z]\w+)?) (?:\w+ly |also |just |really |"
    r"still )?(?:is|was|has|had|wants|says|said|asked|told|likes|loves|hates|prefers|needs|works|lives|"
    r"joined|joins|joining|moved|got|can't|can|does|doesn't|went|gave|took|started|stopped|turns|keeps|"
    r"runs|owns|plays|uses|baked|made|forwarded|reports|became|won|did|came|bought|goes|gets|enjoys|eats|"
    r"barks|pays|will)\b(?!,)"
)

NOT_NAMES = words(
    """
    it that this these those there here what when where who how why they she he we you i yes no yeah yep nope
    wow oh hey hi hello ok okay sounds looks seems thanks thank congrats sure nice great awesome cool good love
    glad happy sorry keep take let just so and but or if also well now then today tomorrow yesterday life nature
    music art everyone everything nothing something someone anything one some all most many each every both
    either neither another such same definitely absolutely totally exactly being having getting going doing
    making taking seeing time people things work winning losing friends family pets books dogs cats
    """
)

OPINION = re.compile(
    r" (?:\w+ly |so |such |really |always |a |an |the |one of the |like |pretty |quite |very |all |"
    r"my )*(?:great|good|amazing|awesome|key|important|cool|beautiful|fun|nice|best|hard|tough|special|"
    r"perfect|wonderful|incredible|powerful|crucial|essential|calming|like|about|worth|such|so|way|way to|"
    r"how|what|feeling|sounds?|huge|big|colorful|cute|must-\w+|adorable|sweet|awful|lovely|gorgeous|"
    r"stunning|interesting|inspiring|super|classic|essential)\b"
)

VERB = re.compile(
    rf"\b(?:is|are|was|were|be|been|has|have|had|do|does|did|can|will|gets?|goes|\w{{2,}}ed|"
    rf"{'|'.join(sorted(PAST_FORMS))})\b"
)

SAYS = re.compile(
    rf"\b(?:i|we|i'm|i've|i'd|we're|we've|they|let's|goal|decided|cause|self|no more|it)\b|{VERB.pattern}|"
    r"\b(?:helps?|makes?|gives?|lets|takes|feels|keeps|brings|reminds?|needs?|wants?|loves?|likes?|runs?|"
    r"works?|lives?|says|goes|comes|means|looks)\b"
)

OWN_SUBJECT = re.compile(r"(?:my|our|the) (?:[\w'-]+ ){1,4}?(?:is|are|was|were|has been|have been) ")

AGENT_SELF = re.compile(r"(?:i|i'm|i've|i'd|my|me)\b")
OUTRIGHT = re.compile(r"\b(?:i|we) (?:\w+ )?prefer\b|\bi'd rather\b")
POSSESSED = re.compile(r"(?:[^,]*, )?(?:my|our)\b")
TOGETHER_SOON = re.compile(r"(?:\w+,? ){0,3}we(?:'ll| will) (?!be )")
OF_ONESELF = re.compile(r"\b(?:i|me|my|our)\b")
OF_US = re.compile(r"\b(?:me|my|our|us)\b")
BARE_SUBJECT = re.compile(
    r"the \w+(?:'s)? (?:is|was|has|had|got|made|makes|helps|helped|gave|took|were|are|always|really)\b"
)
"""In talk, "the film made me laugh" is about a film that was named before."""

THING_OF_MINE = re.compile(r"(?:the|my|our|an?|one|two|three) ")

VERBAL = frozenset((MemoryType.INSIGHT, MemoryType.GOAL))
"""Families whose patterns hold a verb; a sentence of the others must have one besides."""

TEAM_TALK = re.compile(r"let's|we should|we'll|no more|\w+ it is")
"""Openings that commit a team, and between two people who talk are invitations and moods."""


def classify(text: str, policy: DistillPolicy, *, role_agent: bool, named_talk: bool) -> Classification | None:
    """Return what a tidied sentence without its fillers says, or None for nothing.

    `role_agent`: an assistant speaks, whose "I" narrates its own work and whose opinions are nobody's. `named_talk`:
    two named people talk, where "let's" and "we should" are invitations, and nobody instructs anybody.
    """
    low = text.lower()
    if is_chatter(low):
        return None
    if not (named_talk or role_agent) and INSTRUCTION.search(low):
        return Classification(MemoryType.PREFERENCE, policy.instruction_confidence, asked=True)
    if opens_pointing(low) or (role_agent and not _of_the_project(low)):
        return None
    committed = _committed(low, policy, named_talk=named_talk)
    return committed or _statement(low, text, policy, role_agent=role_agent, named_talk=named_talk)


def _of_the_project(low: str) -> bool:
    """Say whether an agent tells of the project or of a finding, and not of its own steps or of the world at large."""
    if AGENT_SELF.match(low):
        return False
    told = OF_THE_PROJECT.match(low) and PROJECT_FACT.match(low)
    return bool(told or INSIGHT.search(low) or DECISION.search(low))


def _committed(low: str, policy: DistillPolicy, *, named_talk: bool) -> Classification | None:
    """Read the families with words of their own: insight, decision, goal, preference."""
    if OUTRIGHT.search(low):
        return Classification(MemoryType.PREFERENCE, policy.outright_confidence)
    if named_talk and TEAM_TALK.match(low):
        return None
    for pattern, kind in (
        (INSIGHT, MemoryType.INSIGHT),
        (DECISION, MemoryType.DECISION),
        (GOAL, MemoryType.GOAL),
        (PREFERENCE, MemoryType.PREFERENCE),
    ):
        if pattern.search(low) and (kind in VERBAL or SAYS.search(low)):
            return Classification(kind, policy.family_confidence)
    return None


def _statement(
    low: str, text: str, policy: DistillPolicy, *, role_agent: bool, named_talk: bool
) -> Classification | None:
    """Read a fact: of the speaker, of a named third, of the project."""
    about_self = FIRST_PERSON.match(low) or COMPANY_SUBJECT.match(low)
    named = None if role_agent else THIRD_PERSON.match(text)
    if named is not None and not _is_name(named["name"]):
        named = None
    if named_talk:
        return _statement_in_talk(low, text, named, policy, about_self=bool(about_self))
    sure: float | None = None
    if (about_self and (not POSSESSED.match(low) or SAYS.search(low))) or named is not None:
        sure = policy.fact_confidence
    elif PROJECT_FACT.match(low):
        sure = policy.project_confidence
    return None if sure is None else Classification(MemoryType.FACT, sure)


def _statement_in_talk(
    low: str, text: str, named: re.Match[str] | None, policy: DistillPolicy, *, about_self: bool
) -> Classification | None:
    """Read a fact in talk between people, where most of what is said of third things is opinion."""
    sure: float | None = None
    subject = OWN_SUBJECT.match(low)
    if BARE_SUBJECT.match(low) or TOGETHER_SOON.match(low):
        sure = None
    elif subject is not None and OPINION.match(low, subject.end() - 1):
        sure = policy.opinion_confidence
    elif about_self and (not POSSESSED.match(low) or SAYS.search(low)):
        sure = policy.fact_confidence
    elif TELLS_OF_ME.match(low) and SAYS.search(low):
        sure = policy.loose_confidence if low.startswith("my ") else policy.aside_confidence
    elif named is not None and not OPINION.match(text, named.end()):
        sure = policy.fact_confidence if OF_ONESELF.search(low) else policy.aside_confidence
    elif THING_OF_MINE.match(low) and OF_US.search(low) and SAYS.search(low):
        sure = policy.loose_confidence
    return None if sure is None else Classification(MemoryType.FACT, sure)


def _is_name(said: str) -> bool:
    first = said.split(maxsplit=1)[0].lower()
    return first not in NOT_NAMES | STOP_WORDS | ADVERBS and not first.endswith("ing") and "'" not in first
