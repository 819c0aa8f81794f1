"""What people lay down at work in a few words: a rule, a choice, a value, who somebody is.

"PRs need two approvals", "no ORMs, plain SQL only", "our staging url is stage.shop.io": every word of it counts, and it
is no task that is over once it is done. A rule is about things of a kind ("functions", "every PR"), a task about one
("the function").
"""

from __future__ import annotations

import re
from functools import lru_cache

from scrubjay.distill.lexicon import KEEPS_UP, OUTCOME, any_of
from scrubjay_shared.records import MemoryType

_LEAD = r"^(?:also |and |so |but |ok |okay |hey )*(?:please |pls )?"
_KINDS = (
    r"(?:all |any |every |each |new |your |our )*(?!(?:the|this|that|these|those|it|my|both)\b)(?:[\w-]+ ){0,2}[\w-]+s"
)
"""Things of a kind, and not these ones here."""
_AN_ACT = (
    r"(?:commit(?:ting)?|push(?:ing)?|merg(?:e|ing)|deploy(?:ing|s|ment)?|releas(?:e|ing)|publish(?:ing)?|"
    r"ship(?:ping)?|rebas(?:e|ing)|tag(?:ging)?|(?:open(?:ing)? (?:a |the )?)?prs?)\b"
)
_NOT_ONE = (
    r"(?!.*\b(?:this|that|these|those|it|now|for now|first|again|the (?:pr|commit|branch|change|fix|release)|i)\b)"
)

_RULE = any_of(
    rf"{_LEAD}{_NOT_ONE}keep {_KINDS} (?:under|below|above|within|out of|at|short|small|pure|simple|flat|sorted|"
    rf"minimal|"
    r"tiny|atomic|alphabetical|separate|up to date|close to|next to)\b",
    rf"{_LEAD}{_NOT_ONE}(?:name|prefix|suffix|write|document|tag|squash) {_KINDS} (?:in|with|by|after|like|as|on|"
    rf"before)\b",
    rf"{_LEAD}{_NOT_ONE}(?:put|place|store|write|group) (?:all|any|every|new|our) [^,.]{{3,40}}? (?:in|into|under|"
    rf"next to|"
    r"beside|below|at|to|by)\b",
    rf"{_LEAD}{_NOT_ONE}(?:run|check|ask|update|lint|format|test|build|squash|bump|add|write|get|wait for) "
    rf"[^,.:]{{2,40}}? (?:before|after|whenever) (?:you |we |every |each |any |a )?{_AN_ACT}",
    rf"{_LEAD}{_NOT_ONE}(?:format|lint|type-?check|bundle|deploy|document|mock|parse|validate|style|log|manage) "
    r"(?!(?:the|this|that|these|those|my|both)\b)(?:[\w-]+ ){1,2}(?:with|using|through|via|as|in) [\w.+#-]+(?: "
    r"[\w.+#-]+)?$",
    r"^(?:short|brief|concise|terse|small|plain|simple|no|only|tiny) (?!(?:more|other|new|further|changes|worries|"
    r"problems|errors|ideas|tests)\b)(?:[\w-]+ )?[\w-]+s (?:please|pls)$",
    r"^no (?:new |more |extra |further )?(?:[\w-]+ )?[\w-]+ without (?:asking|approval|review|permission|tests?|my|"
    r"our|an?|the) ?",
    r"^no (?:new|extra|external|third[- ]party|additional) (?!(?:errors|issues|problems|messages|files|results|"
    r"warnings|changes|bugs|lines)\b)[\w-]+s$",
    rf"^no (?:[\w-]+ ){{0,2}}(?!{OUTCOME}\b)[\w-]+ (?:after|before|in|inside|outside|on|during|while|from|between|"
    r"across) (?!(?:it|this|that|these|those|my|how|what|the (?:logs?|output|console|terminal|screen)|either|both|"
    r"any)\b)\w[^,.;]{0,30}$",
    rf"{_LEAD}(?:split|break up|extract|shorten) {_KINDS} (?:over|above|longer than|larger than|bigger than|beyond) \d",
    r"^(?:please )?(?:no|not) (?:more|less|fewer|longer|bigger|deeper|later|earlier) than "
    r"(?:\d|one|two|three|four|five|ten)\S* [\w-]+",
    r"^no [\w-]+s, (?:(?:plain|pure|raw|only|use|always|just) \w|.* only$)",
    r"^no [\w.+-]+(?: (?:please|pls))?, (?:just |only )?[\w.+-]+(?: [\w.+-]+)? only$",
    r"^(?:english|german|french|spanish|italian|japanese|chinese|markdown|yaml|json|toml|tabs|spaces) for (?:all |the |"
    r"our )?[\w-]+(?: [\w-]+)?$",
    r"^[\w.+#-]+(?: [\w.+#-]+)? everywhere, (?:no|not|never) \w",
)
_NO_MEASURE = (
    r"(?:outputs?|results?|errors?|answers?|counts?|statuse?s?|responses?|problems?|issues?|bugs?|values?|diffs?|"
    r"scores?|code|totals?|lines?|messages?|question|idea|point|thing|next|text|title|font|button|width|height|"
    r"padding|margin|difference|first|second|last|other|current|fix|reason)"
)
"""What a person reads off a screen: its value is of this moment."""
_VALUE = (
    r"(?:#?[\w.:@+-]*\d[\w.:/@%+-]*|#[\da-f]{3,8}|https?://\S+|(?:[~.]?/)?[\w-]+(?:[./@][\w-]+)+/?|[~.]?/[\w-]+|"
    r"[a-z]+_[a-z_]+)"
)
_OF_THE_LOOK = (
    r"(?:fonts?|widths?|heights?|padding|margins?|gap|borders?|buttons?|texts?|titles?|headers?|icons?|images?|"
    r"version|[a-z])"
)
"""What is set to a number many times a day, until it looks right."""
_PRACTICE = (
    r"(?:archive|bill|buy|charge|communicate|deliver|deploy|develop|document|encrypt|export|flash|format|host|import|"
    r"invoice|label|lint|manage|measure|mock|monitor|order|pay|plan|print|provision|publish|rebase|release|rent|review|"
    r"seed|sell|ship|sign|squash|tag|test|track|translate|version)"
)
"""What a team does again and again; "we return null in that case" is told of code."""
_CHOICE = any_of(
    r"^we (?:always |only |strictly |just )?(?:follow|stick to|adhere to|use|support|target|practi[cs]e|are on|run on|"
    r"(?:don't|do not|never|only) (?:use|support|allow|accept)) (?!(?:it|this|that|them|these|those|the|a|an|some|any|"
    r"your|one|something|anything|him|her|you)\b)[\w.+#/-]+(?: [\w.+#/-]+){0,3}$",
    r"^(?!(?:the|this|that|your|my)\b)[\w.+#-]+(?: [\w.+#-]+)? over (?!the\b)[\w.+#-]+(?: [\w.+#-]+)? (?:because|"
    r"since|as|for|due to)\b",
    r"^we(?:'ve| have)? (?:just |now )?(?:upgraded|downgraded|updated|bumped) (?:from \S+ |(?:the |our )?[\w-]+ )?to "
    r"(?!(?:the|this|that|a|an)\b)[\w.+#/-]+(?: [\w.+#/-]+){0,2}$",
    rf"{_LEAD}(?:set|raise|lower|increase|decrease|reduce|bump|make|keep) (?:the |our )?(?!(?:[\w-]+ "
    rf"){{0,3}}{_OF_THE_LOOK}\b)(?:[\w-]+ ){{1,4}}?(?:to |at |from \S+ to )?(?:[\w.+#-]+ )?{_VALUE}$",
    r"^we(?:'re| are) not (?:doing|using|supporting|shipping|offering|targeting|adopting|going (?:with|to (?:do|use|"
    r"support|add|build|ship|offer))) (?!(?:it|this|that|anything|any of|the|these|those|all|enough|much)\b)\w",
    rf"^we (?:always |only |usually |normally |never )?{_PRACTICE} "
    r"(?:(?!(?:it|this|that|these|those|them)\b)\S+ ){0,5}?(?:with|using|via|over|through|from|to|against|once|twice|"
    r"every|only|at night|per|on (?:every|each|a|merge|tag|push)) (?!(?:it|this|that|these|those|them)\b)\w",
    rf"^we (?:always |only |usually |normally |never )?{_PRACTICE} (?:(?!(?:it|this|that)\b)\S+ ){{0,5}}?on "
    r"(?:mon|tues|wednes|thurs|fri|satur|sun|work|week)days?\b",
    r"[,;] so no (?!(?:need|problems?|worries|idea|changes?|luck|hurry|rush|point|wonder|one|more)\b)\w{3,}",
    r"\b(?:so|therefore|thus|that's why) (?:we|let's)(?:'ll| will)? (?:stay|stick|remain|keep|use|go with|build|write|"
    r"leave|drop|do all|do new)\b(?! (?:it|this|that)\b) .{3,}",
    r"^(?:please |let'?s |lets |we |always |yes |ok |no )*(?:use|go with|switch to|stick (?:to|with)|prefer) "
    r"(?!(?:it|this|that|these|those|the (?:other|new|old|same|first|second))\b)[^,.?]{2,50} (?:instead of|rather than|"
    r"and not) (?!(?:it|this|that|these|those)\b)\S[^,.?]{1,40}$",
    r"^(?:[\w-]+ ){0,3}\(?#[\da-f]{3,8}\)? (?:\w+ly )?(?:for|as) (?!(?:this|that|it|now)\b)\w",
    r"^(?:again,? |also |and |so |but )*(?:(?:the |all |each |every |any |our )(?:[\w`./-]+ ){1,3}|everything |"
    r"(?!(?:it|this|that|there|they|these|those|i|we|you|he|she|what|how|which|where|who|why|when|nothing|something|"
    r"one)\b)[\w`./-]+s )(?:should|must|has to|have to)(?! (?:look like|work like|cover|follow this|keep track|"
    r"have (?:been|worked|shown)|be (?:fixed|done|able|missing|wrong|broken|lost|stuck|some|an? \w+|"
    r"the (?:reason|cause|problem|issue)))\b) (?:(?:not|never|only|always|also|still|just|all) )?[a-z]+ \S"
    r"(?!.*(?:[?:]$|\b(?:now|again|yet|right)\b))",
    r"^[\w.+#-]+ (?:is|are) (?:good |more than )?(?:enough|fine|plenty)(?: for (?:now|us|this))?, (?:no|not) \w",
)
_CHANGE = any_of(
    r"^(?!(?:it|this|that|they|we|i|you|he|she|which)\b)[\w.+#/-]+(?: [\w.+#/-]+){0,2} (?:has |have )?(?:replaced|"
    r"superseded) (?!(?:it|this|that|these|those|my|the|a|an)\b)\w",
    r"^we(?:'ve| have)? (?:just |finally |also )?(?:got rid of|dropped|retired|abandoned|ditched|phased out|sunset) "
    r"(?!(?:it|this|that|them|these|those|the|a|an|some|all)\b)\w",
    r"^(?:the |our )?(?!(?:it|this|that|they|we|i|you)\b)[\w-]+(?: [\w-]+){0,2} (?:has |have )?"
    r"(?:(?:moved|switched|migrated) (?:over )?from \S+(?: \S+)? to|(?:switched|migrated) (?:over )?to) "
    r"(?!(?:the|its|an?|another|my|your|me|left|right|top|bottom|false|true|null|on|off)\b)\S+(?: \S+)?$",
    rf"^(?!(?:it|this|that|i|you)\b)[\w-]+(?: [\w-]+){{0,3}} (?:do|does)(?: not|n'?t) {KEEPS_UP}\b.* any ?more\b",
    r"^(?:i(?:'ve| have)? )?changed my mind[,:] (?!(?:about|on)\b)\w.{5,}",
    r"^(?!the |that |this )[\w.+#/-]+(?: [\w.+#/-]+)? (?:is|are) (?:not )?(?:allowed|permitted|forbidden|banned|fine|"
    r"ok|okay) (?:now|from now on)$",
)
"""What is otherwise since, said as a change."""
_TROUBLE = (
    r"(?:oom|leaks?|crash(?:es)?|bugs?|errors?|timeouts?|outages?|failures?|slowness|latency|problems?|issues?|"
    r"regressions?|flicker|deadlocks?|spikes?|duplicates?|\d{3}s)"
)
_FINDING = any_of(
    rf"^(?:the |our |those |these |all )?(?:[\w-]+ ){{0,3}}{_TROUBLE} (?:came|comes?|stems?|stemmed|resulted|"
    rf"results?) "
    r"from \w",
    rf"^(?:the |our |those |these |all )?(?:[\w-]+ ){{0,3}}{_TROUBLE} (?:is|are|was|were) caused by \w",
    r"^(?:increas|reduc|rais|lower|bump|upgrad|downgrad|pinn|sett|add|remov|disabl|enabl|cach|switch|mov|restart|"
    r"clear|rebuild|delet)ing [^,.]{3,60}? (?:fixed|solved|resolved|cured|broke|cut|reduced|halved|doubled|sped up|"
    r"slowed down|got rid of|made (?:the |our )?[\w-]+(?: [\w-]+)? (?:\w+ )?\w+(?:er|st)\b) ?\S*",
    r"^(?:the |our )?(?:[\w-]+ ){1,4}(?:passes|works|fails|breaks|broke|failed|crashed|crashes) (?:locally |only |in "
    r"ci |on ci )?because (?!(?:i|you|it|of (?:this|that|it|your))\b)\w",
    r"^we (?:lost|wasted|spent) [^,.]{3,40} because\b",
    r"\breason (?:why |that )?(?:we|i|it|they|the \w+) [^,]{3,60}? (?:is|was)\b(?! (?:not|unclear|unknown)\b)",
    r"^we (?:pinned|froze|disabled|vendored|forked|capped|downgraded|reverted) [\w./@ +-]{2,40}? (?:because|since|due "
    r"to)\b",
)
_OF_CODE = (
    r"(?:function|method|class|file|test|component|module|helper|constant|variable|code|logic|step|commit|hash|sha)"
)
"""What moves and is called in the course of the work."""
_SOMEBODY = r"(?!(?:it|this|that|there|they|we|you|i|he|she)\b)"
_FACT = any_of(
    r"^(?:all |every |each |new )?[\w-]+(?: [\w-]+)? needs? (?:at least |only |exactly )?(?:one|two|three|four|\d+|no|"
    r"an? (?:\w+ )?(?:approval|review|reviewer|test|ticket|changelog|sign-off|permission|label|description))\b",
    rf"^{_SOMEBODY}(?:all |our )?[\w-]+s are never (?:\w+ly )?(?:[\w-]*deleted|stored|logged|shared|committed|merged|"
    r"exposed|modified|mutated|edited|overwritten|cached|retried|sent|trusted|purged|removed|reused|released|"
    r"deployed)$",
    rf"^{_SOMEBODY}(?!i\b)[^?]{{3,80}}\b(?:is|are) (?:strictly |absolutely )?(?:not (?:acceptable|allowed|permitted|"
    rf"an option)|"
    r"unacceptable|forbidden|mandatory|a must|a no-go|non-negotiable|prohibited|off[- ]limits)\b",
    rf"^{_SOMEBODY}(?:the |our |all |every |each )?[\w-]+(?: [\w-]+)? must (?:not |never |always |also |only )?"
    r"(?!(?:be|have) (?:an?|some|something|in|the|because|wrong|missing|been|fixed|done|kidding)\b)[a-z]+ [\w./-]+",
    r"^(?:the |our )?default [\w-]+ (?:is|are) [\w./@:+-]+(?: [\w./@:+-]+)?$",
    rf"^(?:the |our )?(?!(?:[\w-]+ ){{0,3}}(?:{_NO_MEASURE}|{_OF_CODE}s?)\b)(?:[\w-]+ ){{0,3}}(?:is|are)(?: now| at| "
    rf"on| called)? {_VALUE}$",
    rf"^(?:the |our )?{_SOMEBODY}(?!(?:[\w-]+ )?{_OF_CODE}s?\b)[\w-]+(?: [\w-]+)? (?:has |was |got )?"
    r"(?:moved|renamed|migrated) to (?!(?:the|its|an?|another|my|your)\b)\S+(?: \S+)?$",
    r"^our (?:[\w-]+ )?(?:customers?|users?|clients?|readers?|audience|team|company|product|competitors?|investors?|"
    r"designers?|developers?|devs|ops|managers?|office|servers?|hosting|budget|runway|contract|sla|fiscal year|"
    r"sprints?) (?:is|are|have|has|use|uses|speak|speaks|work|works|live|lives|sit|sits|run|runs|start|starts|end|"
    r"ends|pay|pays|can|can't|must)\b(?! (?:\w+ly )?[\w-]+ing\b)",
)
_HERE = any_of(
    r"^(?:please note |note that |also |and |but |so )*(?:this|it|ours)(?: is|'s) (?:not )?(?:just |only |still )?an? "
    r"(?:[\w.+-]+ ){0,4}(?:project|app|application|repo|repository|monorepo|library|package|website|site|game|plugin|"
    r"extension|prototype|mvp|poc|fork)\b(?!.*\?)",
    r"^(?:i'?m|i am|we'?re|we are) (?:using|developing on|coding on|hosting on|running on) "
    r"(?!(?:it|this|that|these|the|your|an?|out|my)\b)[\w.+#-]+(?: [\w.+#-]+){0,3}(?: (?:to|for|as|with|on|and) "
    r"(?!(?:it|this|that)\b).{3,80})?$",
)
"""What sort of project this is, and what it is made with."""
_ALL = (
    rf"^(?:all |every |each |our |new )?(?!(?:this|its|his|these|those|the|some|many|both|two)\b)(?:[\w-]+ )?"
    rf"(?!(?<!commit )(?<!log )(?:{_TROUBLE}|{_NO_MEASURE}|{OUTCOME}|things?|tests?|clicks?|buttons?|pages?|files?|"
    r"this|his|always|sometimes|yes|its|lots|thanks|us)\b)[\w-]+s"
)
"""All things of a kind: "invoices", "our error reports"; a bare plural is never this one here."""
_ALL_ARE = any_of(
    rf"{_ALL} are (?:always |never |only )?(?:stored|kept|written|hosted|deployed|built|served|signed|sent|generated|"
    r"managed|owned|maintained|reviewed|cut|released|published|tracked|billed|named|versioned|logged|encrypted|"
    r"backed up|archived|tested|validated|translated|bundled|approved|paid|charged|measured|rounded|planned|imported|"
    r"exported|merged|tagged|labell?ed|grouped|numbered|prefixed|squashed|ordered|printed|delivered|shipped|hashed|formatted|"
    r"encoded|compressed|indexed) (?:in|on|as|from|with|by|to|at|per|through|via|under|after|before|every|once|using|"
    r"like) (?!(?:the (?:wrong|console|terminal|screen|log)|wrong|twice|again|it|this|that|these|those)\b)"
    r"\S(?!.*\btwice$)",
    rf"{_ALL} (?:live|go|belong|run|happen|come|ship|start|end|expire|stay) (?:in|on|to|as|at|from|with|under|into|"
    r"every|after|outside) (?!(?:wrong|the (?:wrong|next|first|last|top|bottom|end|start)|it|this|that|nowhere)\b)\S",
    r"^(?:the |our )?(?!(?:it|this|that|which|what|there|i|we|you|everything|nothing)\b)(?:[\w./-]+ ){1,4}(?:is|are) "
    r"(?:\w+ly )?(?:written|built|implemented|hosted|deployed|stored|configured|generated|documented|licensed|based|"
    r"located|served|managed|maintained|installed) (?:in|on|with|at|by|as|under|via|through|from|using) "
    r"(?!(?:it|this|that|the (?:wrong|same|old))\b)\w(?!.*\b(?:now|again|currently|yet|wrong|instead)\b)",
    r"^(?:the |our )?(?!(?:it|this|that|i|we|you|which)\b)(?:[\w-]+ ){1,4}(?:runs|listens) on (?:port )?[\w.:+-]+$",
    r"^(?:the |our |all )?(?!(?:it|they|these|those|that|this|i|we|he|she|you)\b)(?:[\w-]+ )?[\w-]+ lives? "
    r"(?:in|on|under|at) (?!(?:it|this|that|the (?:wrong|same))\b)[\w./@-]+",
    rf"{_ALL} are (?:named|called) [\w/<>{{}}-]+$",
    r"^(?:the |our )?(?:staging|production|prod|ci|dev|(?:[\w-]+ )?(?:server|service|cluster|site|website|app|api|db|"
    r"database|bot|worker|backend|frontend|pipeline)) (?:runs|is hosted|is deployed|sits) (?:on|in|at|under) "
    r"(?!(?:it|this|that|port|my|a|the)\b)[\w.+-]+(?: [\w.+-]+)?$",
    rf"{_ALL} (?:include|exclude|require|follow) (?!(?:it|this|that|the|a|an)\b)\w",
    rf"{_ALL} are (?:always |all )?(?:in )?(?:cents?|euros?|dollars?|meters?|metres?|grams?|kg|seconds?|minutes?|hours|"
    r"ms|milliseconds?|utc|cet|bytes?|percent|pixels?|celsius|english|german|french|spanish|italian|portuguese|dutch|"
    r"japanese|chinese|(?:snake|camel|kebab|pascal)[_ -]?case)\b",
    r"^(?:all|every|each) (?:[\w-]+ )?[\w-]+ (?:uses?|needs?|requires?|follows?|supports?|accepts?|inherits?|"
    r"implements?|has an?|have an?|goes through|go through|runs? in|starts? with|ends? with) "
    r"(?!(?:it|this|that|to be|the old|\d+ (?:ms|seconds?|minutes?|hours?))\b)\w(?!.*\bnow$)",
    r"^(?:the |our )?(?:[\w-]+ ){1,3}(?:starts|ends|opens|closes|begins|happens|is) (?:at|on|every) "
    r"(?:\d{1,2}(?::\d\d)?(?: ?[ap]m)?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|noon|midnight)\b",
    r"^(?:the |our )?(?:[\w-]+ )?(?:database|db|framework|language|runtime|server|os|broker|queue|cache|orm|shell|"
    r"compiler|toolchain|version|stack|backend|frontend|target|engine|kernel|distro|image) is (?:on )?"
    r"(?!(?:version|line|step|option|number)\b)[a-z][\w.+-]* v?\d+(?:\.\d+)*$",
    r"^(?:always )?use (?!(?:it|this|that|the|these|those|one|another|my|your)\b)[\w.+#-]+(?: [\w.+#-]+)? for "
    r"(?!(?:the|this|that|it|now|these|those|one|both|a|an|my|testing|example)\b)(?:[\w-]+ )?[\w-]+$",
)
"""How all things of a kind are, and what is used for what."""
_OF_SOMEBODY = re.compile(
    r"(?:The |Our )?[A-Z][a-z]+(?: [A-Z][a-z]+)? (?:(?:owns|reviews|approves|maintains|handles|leads|signs off|pays|"
    r"takes care of|looks after|is responsible for|is in charge of|is on call for)(?! (?:this|that|it|these)\b) \w|"
    r"is (?:my|our|the) (?:[\w-]+ )?(?:manager|boss|designer|lead|owner|contact|reviewer|maintainer|cto|ceo|colleague|"
    r"partner|client|customer|supplier|tester|admin|accountant|lawyer|teacher|supervisor|professor|advisor)\b)"
)
"""Who somebody is, and what is theirs; a name is told by its capital."""
_WAY = any_of(
    r"^to (?!be\b)[a-z]+ [^,:]{3,60}? (?:run|use|set|delete|call|open|export|press|restart|execute|type) (?!(?:it|"
    r"this|that|them)\b)\S+",
    r"^(?:use|run|call) [\w ./:=-]{3,40}? to (?:start|run|build|test|deploy|reset|debug|install|lint|format|seed|"
    r"migrate|generate|regenerate|publish|release) (?!(?:it|this|that)\b)\w",
    r"^[\w. -]{2,30} needs the -{1,2}[\w-]+ flag\b",
)
"""How something is done that is done again and again."""
_OF_ONESELF = any_of(
    r"^my (?!favou?rite|preferred|go-to)(?:[\w-]+ )?(?:editor|ide|time ?zone|shell|os|laptop|machine|name|pronouns|"
    r"terminal|keyboard|browser|handle|username|e-?mail|native language|mother tongue|boss|manager|role|job|birthday|"
    r"background|github|setup)(?: \w+)? (?:is|are) \S+",
    r"^i(?:'m| am) (?:new to|not (?:very |that |so )?(?:familiar|good|experienced) (?:with|at|in)|colou?r ?-?blind|"
    r"dyslexic|left-handed|on (?:a |an )?(?:mac|windows|linux|ubuntu|debian|fedora|arch|wsl)|based in|the (?:only|"
    r"lead|main|sole|new|senior|junior) (?:[\w-]+ )?\w+$|(?:not (?:that |very |so )?deep|no expert|not an expert|not "
    r"a (?:big )?fan) (?:in|into|of|at|on)|an? (?:[\w-]+ ){0,2}(?:beginner|novice|expert|engineer|developer|designer|"
    r"student|teacher|researcher|scientist|freelancer|founder|manager|analyst|admin|devops|programmer))\b",
    r"^i (?:don't |do not )?(?:know (?:little|nothing|not much|a lot|\w+ well)|speak \w+|live in \w+|use \w+ as my)\b",
)
_NAME = re.compile(r"(?:[Pp]lease |[Yy]ou can )?(?:just )?[Cc]all me (?!Back|Later|When|If|Crazy|Old|A\b)[A-Z][\w'-]+$")
"""A name is told by its capital."""
_OVER_SOON = re.compile(
    r"\b(?:right now|for now|at the moment|yet|today|just now|again|still|currently|anymore|any more|somehow|wrong|"
    r"broken|failing|missing|frozen|stuck|crashing|hanging|blank|unresponsive|dead)\b|[?:]\s*$"
)


_SINCE = re.compile(r"^since (?:yesterday|today|(?:last|this) \w+|\w+day),? ")
"""From when on something holds."""


@lru_cache(maxsize=64)
def standing(low: str, text: str) -> tuple[MemoryType, bool] | None:
    """Return the kind of what a tidied sentence lays down, and whether it asks for it; None where it lays down nothing.

    `low` is the sentence in lower case, `text` as it was written: a name is told by its capital.
    """
    low = _SINCE.sub("", low)
    if _NAME.match(text):
        return MemoryType.PREFERENCE, True
    if _FINDING.search(low):
        return MemoryType.INSIGHT, False
    if _CHOICE.search(low) or _CHANGE.search(low):
        return MemoryType.DECISION, False
    if _WAY.search(low) and not _OVER_SOON.search(low):
        return MemoryType.HOWTO, False
    asks = _RULE.search(low) is not None
    told = any(one.search(low) for one in (_FACT, _OF_ONESELF, _ALL_ARE, _HERE)) or _OF_SOMEBODY.match(text)
    if _OVER_SOON.search(low) or not (asks or told):
        return None
    return (MemoryType.PREFERENCE if asks else MemoryType.FACT), asks
