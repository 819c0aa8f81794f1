"""What kind of thing a sentence says: a decision, a preference, an insight, a goal, a fact, or nothing.

The first four have words of their own. A fact is what a speaker tells of themselves, of somebody by name, or of the
project; in talk between people, what is told of other things is mostly opinion, and is read with less confidence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from scrubjay.distill.chatter import is_chatter
from scrubjay.distill.lexicon import ADVERB_RUN, ADVERBS, OUTCOME, PAST_FORMS, any_of, words
from scrubjay.distill.person import KIN
from scrubjay.distill.reference import opens_pointing
from scrubjay.distill.standing import standing
from scrubjay.policy import DistillPolicy
from scrubjay_shared.records import MemoryType
from scrubjay_shared.text import STOP_WORDS


@dataclass(frozen=True, slots=True)
class Classification:
    """What a sentence is, and the confidence of its pattern in [0, 1], before its words are weighed.

    `asked` marks an instruction, whose subject is the listener; `standing` what is laid down in a few words, all of
    which count.
    """

    type: MemoryType
    confidence: float
    asked: bool = False
    standing: bool = False


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

# What people say at work with an agent. Between people who chat, the same words are small talk.

_LEAD = r"^(?:also |and |so |but |ok |okay |hey )*(?:please |pls )?"
_LATER = r"(?! (?:it|that|this|them|anything(?! new)|everything|yet|now|just|so|too|again|be|me)\b)"
"""After an order: one that is over as soon as it is obeyed, or that says nothing by itself."""

_ONCE = r"(?!.*\b(?:yet|for now|right now|this time|just now|at the moment|until i|before i|first)\b)"

WORK_INSTRUCTION = any_of(
    rf"{_LEAD}(?:don't|do not) (?!(?:like|love|want|need|have|know|think|care|mind|see|understand|get|remember|"
    rf"believe|forget|worry|bother|panic)\b)"
    rf"(?:ever )?[a-z-]{{3,}}{_LATER}{_ONCE},? \S+",
    rf"{_LEAD}(?:stop|avoid|no more) \w+ing \w+",
    rf"{_LEAD}use [\w./@+-]+,? (?:and )?(?:not|over|never) [\w./@+-]+",
    rf"{_LEAD}use [\w./@+-]+ for (?:all |every |any |the |our )?(?:\w+ )?\w{{3,}}s$",
    rf"{_LEAD}(?:only|exclusively) (?:use|write|commit|push|deploy|merge|run|target|support|log|import)\b",
    rf"^no (?:(?!{OUTCOME}\b)\w+ )?(?!{OUTCOME}\b)\w+ (?:in|on|for|outside|without|before|after) "
    r"(?:the|our|any|my|this|\w+s\b)",
    r"^(?:i|we) (?:only |always |really )?want (?:all|every|each|no|any) \w+ ?",
)

WORK_DECISION = any_of(
    r"^(?:we|i)(?:'re| are|'ll| will)? (?:now |only |always |just |still )?(?:us(?:e|ing)|run(?:ning)?|"
    r"deploy(?:ing)?|build(?:ing)?|"
    r"write|writing|go(?:ing)? with|stay(?:ing)? (?:with|on)|target(?:ing)?|support(?:ing)?|"
    r"ship(?:ping)?) [^.]{1,60}?,? "
    r"(?:not|instead of|rather than|never|over|and not) \S+",
    r"^we(?:'ve| have|'re| are)? (?:now |just |also )?(?:moved|moving|switched|switching|migrated|migrating|"
    r"went|going|changed|"
    r"replaced|replacing|swapped|dropped|dropping)\b [^.]{0,60}\b(?:to|with|for|by|in favou?r of) \S+",
    r"^we(?:'re| are|'ve| have)? (?:now |also )?(?:no longer [a-z]{2,} |stopped (?:using|supporting|running|shipping) |"
    r"(?:don't|do not) [^.,]{4,60} any ?more\b)",
    r"^we (?:always |now |only |currently )?(?:use|deploy|store|host|build|test|format|lint|bundle|package|track|log) "
    r"(?!(?:it|this|that|them|these|those)\b)(?:[\w./@+-]+ ){0,3}(?:for|in|on|with|to|via|at|as|by) "
    r"(?:the |our |all |every )?(?!(?:it|this|that|them|now|a|an|some)\b)[\w./@+-]+(?: [\w./@+-]+){0,4}$",
    r"^[\w.+-]+(?: [\w.+-]+){0,2} ?(?:\u2192|->|=>) ?[\w.+-]+(?: [\w.+-]+){0,5}$",
    r"^let's (?:not|never|always|only) \w{3,}(?! (?:it|that|this)\b) \S+",
    r"\bwe(?:'ll)? go with\b|^go(?:ing)? with \w+",
    r"^(?:[\w.+-]+ ){1,3}(?:is|are) out(?:,|$)",
    r"^(?:let's|we should|we) call (?:it|the \w+) \w+",
)

WORK_INSIGHT = any_of(
    r"\bthe (?:(?:actual|real|right|only|underlying|first|second|final|main) )?(?:fix|cause|solution|workaround|"
    r"reason|culprit|mistake|"
    r"bug|regression|answer|remedy|difference|leak|gotcha|upshot)(?: (?:here|for \w+(?: \w+){0,3}))? (?:is|"
    r"was)\b(?! (?:not )?(?:fixed|"
    r"gone|there|done|merged|ready|easy|simple|still|in place|good|fine|correct|wrong|ok)\b)",
    r"\b(?:went|goes|dropped|fell|rose|improved|grew|shrank|came|is|was) (?:down |up )?from [\d.,]+ ?\S* to [\d.,]+",
    r"\b(?:is|was|were|are|failed|fails|crashed|crashes|broke|breaks|happened|happens) because (?:of )?(?:the|a|an|"
    r"our|it|we|[\w.]+)\b",
)

WORK_FACT = any_of(
    r"^(?:the |our )?(?:\w+ ){0,3}(?:deadline|due date|target date|release date|release|launch|go-live|code freeze|"
    r"freeze|cut-?off|demo|"
    r"migration|audit|cut-?over)(?: (?:for|of) (?:the |our )?[\w-]+(?: [\w-]+)?)? (?:is|was|moved|moves|slipped|"
    r"happens|starts|ends)\b",
    r"^(?:the |our |all )?[\w./-]+(?: [\w./-]+){0,4} (?:is|are) (?:due|frozen|scheduled|planned|set|capped|limited|"
    r"pinned|locked|blocked|"
    r"reserved|deprecated|disabled|enabled|required|forbidden|allowed|owned|maintained|reviewed|generated|vendored|"
    r"encrypted|signed|"
    r"replicated|sharded|cached|rotated|retained)\b",
    r"\bon[- ]call\b(?: rota| schedule| order)?(?: is| goes|:| this| next| from| on| for| until| every|\W)",
    r"^(?:all|every|each|both) (?:\w+ ){1,4}?(?:are|is|must|has|have|live|lives|go|goes|use|uses|run|runs|return|"
    r"returns|need|needs)\b",
    r"^(?:the |our )?(?:\w+ )?(?:ports?|urls?|staging|prod(?:uction)?|region|branch(?:es)?|database|db|stack|"
    r"backend|frontend|rota|hosts?|"
    r"endpoints?|environments?|budget|quota|retention|licen[cs]e|owner|reviewers?|team|schedule|cadence|naming|"
    r"layout|timeouts?)s?: \S+ ?\S*",
    r"^(?:the |our |all )?(?:\w+ )?(?:tests?|builds?|migrations?|deploys?|releases?|backups?|jobs?|linters?|"
    r"docs) (?:run|runs|go|goes|work|"
    r"works|happen|happens|are run|is run|are started)(?: \w+)? (?:with|via|through|on|at|by|in|every|each|from|"
    r"under)\b",
    r"^to (?:run|build|test|deploy|release|start|install|lint|format|migrate|reset|debug|regenerate|publish|"
    r"seed)\b[^:,]{0,60}[:,] \S+",
    r"^run (?:the |our |all )?[^`]{3,40} (?:with|via|using) \S+",
    r"^(?:\w+ )?(?:[a-z]+ )?(?:went|goes) to \d",
)

WORK_ROLE = re.compile(
    r"^(?P<name>[A-Z][\w'-]+(?: [A-Z][\w'-]+| and [A-Z]\w+)?) (?:also |always |now |still )?(?:reviews?|owns?|"
    r"approves?|maintains?|leads?|"
    r"handles?|manages?|signs? off|decides?|deploys?|wrote|looks? after|takes? care of|is (?:responsible|in charge|"
    r"on (?:call|leave|holiday|"
    r"vacation))|releases?|merges?|pays?)\b"
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

WANTS = re.compile(r"(?:i|we) ")
"""An order that tells of who gives it: "I want all commits signed"."""

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
    laid_down = None if named_talk or role_agent else standing(low, text)
    if laid_down is not None:
        kind, asked = laid_down
        sure = policy.instruction_confidence if asked else policy.family_confidence
        return Classification(kind, sure, asked=asked, standing=True)
    if is_chatter(low):
        return None
    if not (named_talk or role_agent) and (INSTRUCTION.search(low) or WORK_INSTRUCTION.search(low)):
        return Classification(MemoryType.PREFERENCE, policy.instruction_confidence, asked=not WANTS.match(low))
    if opens_pointing(low) or (role_agent and not _of_the_project(low)):
        return None
    committed = _committed(low, policy, named_talk=named_talk)
    if committed is None and not named_talk:
        committed = at_work(low, text, policy)
    return committed or _statement(low, text, policy, role_agent=role_agent, named_talk=named_talk)


def _of_the_project(low: str) -> bool:
    """Say whether an agent tells of the project or of a finding, and not of its own steps or of the world at large."""
    if AGENT_SELF.match(low):
        return False
    told = OF_THE_PROJECT.match(low) and PROJECT_FACT.match(low)
    return bool(told or INSIGHT.search(low) or DECISION.search(low) or WORK_INSIGHT.search(low))


def at_work(low: str, text: str, policy: DistillPolicy) -> Classification | None:
    """Read what people and agents say of their work: findings, replacements, rotas, dates, who looks after what."""
    if WORK_INSIGHT.search(low):
        return Classification(MemoryType.INSIGHT, policy.family_confidence)
    if WORK_DECISION.search(low):
        return Classification(MemoryType.DECISION, policy.family_confidence)
    named = WORK_ROLE.match(text)
    if (named is not None and _is_name(named["name"])) or WORK_FACT.search(low):
        return Classification(MemoryType.FACT, policy.fact_confidence)
    return None


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
