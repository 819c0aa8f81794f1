"""Words of talk that are no topic: they stand in every conversation, and name none. English; others have no list."""

from scrubjay_shared.text import analyse

_TEXT = """
able absolutely actually add again agent ago agree ahead already alright also always amazing another answer anyone
anything anyway appreciate around ask asked asking assistant away awesome back bad bah basically beautiful become
began begin believe best better big bit bring brought bye call called came can't care case certain certainly chance
change check code come comes coming congrats consider cool correct could couldn't course cut day days deal decide
decided definitely did different do does doing don't done easy else end enjoy enjoyed enough even ever every everyone
everything exactly example excellent excited experience explain fact fantastic far feel feeling feels felt few figure
file files find fine first follow following forward found full fun gave general get gets getting give gives giving
glad go goes going gone gonna good got gotta great guess guys had haha happen happened happy hard hear heard hello
help helped helpful helps here hey hi hold hope hopefully hour hours huge i'd i'll i'm i've idea imagine important
include including indeed input inspiring instead interested interesting issue it's item job just keep kept kind kinda
knew know knows last lately later learn least leave left let let's life like likely line lines little long longer look
looked looking looks lot lots love loved lovely made main make makes making many matter may maybe mean means meant
mention might mind minute minutes moment month months more morning most mostly much must name near need needed needs
never new next nice night no none nothing notice now number of often oh ok okay old omg one ones only open option or
order otherwise output part particular past people perfect perhaps person pick place plan plans please plus point
possible pretty probably problem proud provide put question quick quickly quite ran rather reach read reading ready
real really reason recent recently remember remind reply rest result right run running said same saw say saying says
second see seem seems seen sense set several share shared show showed shows side similar simple simply since small so
some someone something sometimes soon sorry sort sound sounds special spend spent start started starting stay step
still stop strong stuff such suggest sure swing take taken takes taking talk talking tell thank thanks that's then
there's these they're thing things think thinking this those though thought thoughts three thus time times to today
together told tomorrow tonight too took top totally tried true truly try trying turn two type understand until up
update upon us use used useful user uses using usual usually value various very via view wait wanna want wanted wants
was wasn't way ways we'll we're we've week weekend weeks welcome well went what's whatever whole why will wish within
without won't wonder wonderful word work worked working works world worry worth would wouldn't wow write wrong yeah
year years yep yes yesterday yet you're you've yup
"""
COMMON_STEMS = frozenset(analyse(_TEXT))
