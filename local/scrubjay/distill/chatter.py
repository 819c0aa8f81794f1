"""Sentences that say nothing worth keeping: asked, hedged, polite, vague, broken off, or a report of work in progress.

Each table is one reason. A sentence is read in lower case, tidied and without its fillers; one match is enough.
"""

from __future__ import annotations

from scrubjay.distill.lexicon import ADVERB_RUN, any_of

_I = rf"i(?:'m|'ve|'d|'ll)? {ADVERB_RUN}"

ASKED_OR_SUPPOSED = (
    r"\?",
    r"\b(?:right|huh|eh|isn't it|don't you|doesn't it|aren't they)\W*$",
    r"^(?:if|unless|imagine|suppose|what if|maybe|perhaps|hopefully|guess|hope|hoping|wish|whenever|no matter)\b",
    r"\b(?:maybe|perhaps|might|may be|i guess|i suppose|i wonder|i bet|i doubt|not sure|probably|wish)\b",
    r"\b(?:would be|would have|could be|could have|should have|can be)\b",
    (
        r"\bi(?:'d| would| could)\b(?! (?:prefer|rather|say|already|always|never|been|planned|decided|had|"
        r"like to|love to))"
    ),
    (
        r"\bi(?:'d| would) (?:really |absolutely |definitely )?(?:love|like) (?:to (?:hear|see|know|"
        r"learn more|join|check|try|come|help|meet|visit|go|read|have|take)|some|your|that)\b"
    ),
    r"\bi (?:think|thought|believe|feel like|feel that|mean|assume|imagine|suspect|feel)\b",
    r"\b(?:can|could) \w+ (?:and|,)",
    (
        r"^we (?:all )?(?:should|must|need|can|could|have to|gotta)\b(?! (?:use|go|switch|ship|store|drop|"
        r"adopt|move|stick))"
    ),
)
COURTESY = (
    (
        r"\b(?:thank|thanks|thx|congrats|congratulations|appreciate|sorry|welcome|cheers|please let|bye|"
        r"good luck|take care|good night|no problem|no worries)\b"
    ),
    r"\b(?:can't|cannot|couldn't) (?:wait|believe|agree|imagine|help but|thank)\b",
    (
        r"\b(?:let me|let's see|let's catch|let's keep|let's chat|let us know|lemme|keep (?:me|us) posted|"
        r"keep in touch|keep you (?:posted|updated)|in mind|you know|hear from|here you go|check (?:it|this|"
        r"them|that) out|check out)\b"
    ),
    r"\b(?:glad|happy) to\b",
    r"\b(?:news|updates?|stories?|something) to (?:share|tell)",
    (
        rf"^{_I}(?:agree|know|see|hear|get|understand|bet|promise|swear|totally|wonder|remember when|gotta go|"
        r"gotta run|hope|wish|guess|mean)\b(?! (?:how|that i|\w+ (?:who|from|at)))"
    ),
    (
        rf"^i'll {ADVERB_RUN}(?:be|keep|let|check|try|make sure|do|take|give|think|look|see|remember|treasure|"
        r"cherish|send|show|consider|need|start|have to|get|call|continue|stay|support|tell|share|always|"
        r"go with|use your)\b"
    ),
    (
        r"^i(?:'ll| will| can| could| should) (?:have to |probably )?(?:look|check|see|imagine|tell|relate|"
        r"understand|also|help|show|send|share|try)\b"
    ),
    (
        r"^i (?:can(?!')|could|need to|have to|gotta|must|should|have got to|got to (?:say|admit|go|run)|do|"
        r"did|recommend|reccomend|suggest|advise|forgot to mention)\b"
    ),
    r"^i've got to\b",
)
FEELING = (
    (
        rf"^{_I}(?:been |felt |feeling )?(?:a bit |so |really )?{ADVERB_RUN}(?:upset|frustrated|stressed|tired|"
        r"sad|nervous|anxious|worried|"
        r"torn|swamped|overwhelmed|bored|stumped|scared|bummed|down)\b"
    ),
    (
        rf"^{_I}(?:so )?(?:glad|happy|proud|sorry|sure|here|grateful|thankful|excited|thrilled|stoked|pumped|"
        r"ready|curious|looking forward|rooting|open|lucky|fortunate|blessed|amazed|impressed|honored|touched|"
        r"good|okay|ok|fine|well|great|all|determined|keeping|hoping)\b"
    ),
    (
        rf"^i(?:'m| am| was| felt| feel|'ve been)? {ADVERB_RUN}(?:so|super|very|pretty|a bit|a little|feeling|"
        r"felt) (?!much time|many|far)"
    ),
    (
        r"^i'm (?:starting|sure|so|all|down|up|in|on it|always (?:here|up|down)|not sure|a bit|"
        r"off)\b(?! \w+ (?:a|the|my) )"
    ),
    r"^i (?:felt|feel|miss|remember (?:when|this|that|those|these|the)|guess|suppose)\b",
    r"\bi(?:'m| was| am) so\b|\b(?:i|we) feel\b",
    r"\b(?:feel|feeling|feels) (?:so|lucky|good|great|amazing|blessed|proud|right|like)\b",
    (
        r"\b(?:craving|starving|hungry|exhausted|sleepy|on my way|running late|last half hour|blown away|"
        r"over the moon|cloud nine|emotional rollercoaster)\b"
    ),
    r"\b(?:blows?|blew) \w+ away\b",
    (
        r"\b(?:means? (?:a lot|so much|the world|everything)|mean the world|worth it|all about|"
        r"goes a long way|one step at a time)\b"
    ),
)
VAGUE = (
    r"^(?:reminds|makes|helps|gives|keeps|feels|sounds|looks|seems|means|shows|brings|takes)\b",
    r"\bmake it\W*$|\bsomething \w+\W*$|\bsomeone from the\b|\b(?:was|were) (?:just )?(?:walking|sitting|standing)\b",
    r"\bcan (?:\w+ly |also |always |just )?(?:affect|make|help|be|get|feel|bring|lead|take|give)\b",
    r"\btaught myself(?=,|\W*$)|\bfavou?rite (?:was|is) (?:when|that|this|how)\b|\bgoing to .*\btonight\b",
    r"^we all\b",
    r"^(?:afterwards?|later|eventually|lots?|a lot|not much|much|a bunch)\b",
    r"\bkeep (?:\w+ing|at it|it up|up|on)\b",
    r"\b(?:going to be|gonna be)\b(?! (?:a|an|the|in|at|there)\b)",
    (
        r"\b(?:busy with something|mix of things|milestone moment|a bit of work|lots? (?:to learn|"
        r"has happened|happened)|make (?:it|this|that) happen|lend a hand|or whatever|work in progress)\b"
    ),
    r"\b(?:best part|highlight|no number|not only|the best thing|the most)\b",
    (
        r"\b(?:something (?:happened|cool|special|new|different|good|great|like|i|we|they|that|to)|"
        r"some (?:stuff|things)|(?:and|or) stuff)\b"
    ),
    r"\b(?:accomplished|did|doing|made) something\b|\bsomething\W*$|\bin particular\W*$",
    r"\ba (?:certain|similar)\b|\b(?:one|a) (?:good|great|nice|cool) thing\b|\bif (?:that|it|you)\b",
    r"\b(?:organizing|planning|working on|doing|trying|starting|building|making) something\b(?! (?:called|named))",
    (
        r"\b(?:playing|doing|practicing|learning|working|training|going|been) (?:for|since) (?:about |over |"
        r"around |almost |nearly )?(?:a |an |\w+ )?\w+(?: now| already)?\W*$"
    ),
    (
        r"\b(?:had|got|took|have) (?:an?|some|such an?|the) (?:\w+ ){0,3}(?:adventure|accomplishment|"
        r"achievement|milestone|experience|moment|time|"
        r"day|week|night|weekend|chat|conversation|blast|pics?|photos?|break|ride|setback|challenge|chance|"
        r"opportunity)(?: (?:yesterday|today|recently|last \w+|this \w+|the other day|together|"
        r"lately))?(?:\W*$| during\b| there\b)"
    ),
)
POINTING_OUT = (
    r"\ba few more(?= (?:in|on|at|last|this|yesterday)\b|\W*$)|\bthat they (?:will|would|can)\b",
    r"\blike (?:that|this|these|those)\b",
    r"\b(?:the|these|those|right|best|new|other|any|that|this|which) ones?\b(?! of| \w+ed)",
    r"(?<!number )(?<!day )\bone\b(?=\W*$| (?:from|with|in|on|at|for|and|but)\b)",
    r"\bthis (?:moment|feeling|spot|place|stage|thing|one|beauty|guy|girl|little)\b|\ball (?:this|that)\b",
    (
        r"\b(?:of|with|to|about|for|from|at|on|by|do|did|doing|like|love|loved|use|try|made|got|is|was|and|"
        r"that) (?:this|that|these|those)\b(?! \w)"
    ),
    r"\b(?:do|did|doing|done) (?:it|this|that|so)\b",
    r"\b(?:around|in|down|come|came|over|up|out|been|go|went|volunteering|started|living|work|working) here\b",
    r"\bthis(?= (?:in|into|on|to|for|with|by|and|is|was|at|as|from|all|last|yesterday)\b|\W*$)",
    (
        r"\b(?:put|use|used|want|do|make|add|take|got|get|wrapped|finished|done|started|read|heard|said|"
        r"bought|call|see|saw|know|tried|try|change|fix|stop doing|found) that\W*(?:$|\b(?:in|on|to|for|and|"
        r"from|with|at|into|as|up|out|off|down)\b)"
    ),
    r"\bthat (?:yet|too|again|before|once|soon|either|now|already|often|anymore)\b",
    r"^(?:after|before|since|because of|besides|despite|with|from|on|for|like|as for) (?:that|this|then|it)\b",
    r"\b(?:ever since|since then|since|that)\W*$|\bsome (?:to|for|from|of them)\b|\bmood is\b",
    (
        r"\b(?:here's|here is|here are|this is (?:me|my|a|the|what|how|from|one)|look at|take a look|"
        r"check this|these (?:pics|pictures|photos|are))\b"
    ),
    r"\b(?:this|that|the) (?:pic|picture|photo|image)\b|\b(?:pic|picture|photo) of\b",
)
BROKEN_OFF = (
    r"(?:\.\.|\b(?:but|and|so|or|then|because|with|to|of|the|a|realize|realise|like|think|know|said|mean|feel))\W*$",
)
NARRATED = (  # what an agent does now, to a file or a test, is its work and not its memory
    (
        r"^(?:now )?(?:i'll|i will|i'm going to|let me|i can|i could|i would|i've|i) (?:now |also |"
        r"then )?(?:run|running|look|check|search|read|open|add|added|create|created|write|update|updated|fix|"
        r"fixed|start by|begin|try|install|verify|edit|inspect|execute|grep|list|see|need to (?:check|look|"
        r"see|read|find))\b(?=.*(?:\.\w{1,4}\b|\btests?\b|\bfiles?\b|\bcode\b|`|\bfunction\b|\bscript\b))"
    ),
)

NOTHING = any_of(*ASKED_OR_SUPPOSED, *COURTESY, *FEELING, *VAGUE, *POINTING_OUT, *BROKEN_OFF, *NARRATED)


def is_chatter(low: str) -> bool:
    """Say whether a sentence in lower case says nothing worth keeping."""
    return NOTHING.search(low) is not None
