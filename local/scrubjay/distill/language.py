"""Whether a text is English, by its script and its small words: the patterns read no other language.

A name or a place of another language does not make a sentence foreign; its articles, pronouns and prepositions do.
"""

from __future__ import annotations

import re

from scrubjay.distill.lexicon import words

ENGLISH = words(
    """
    the a an and or of to in is are was were it that this for with on as at by from not be have has had we you i my
    our your they he she do does did but if so can will should would use just no all what when which there their its
    i'm i've don't it's let's dont im please them us me than then who how about into only after before every
    """
)
FOREIGN = (
    words(
        """
    der das und ist nicht ich wir sie ein eine einen einem einer mit auf für von dem den des zu im ist sind haben hat
    wird werden auch aber oder wenn dass mein meine meinen unser unsere kein keine bei nach über bitte immer nie mag
    nutzen benutzen verwenden lieber wohne heiße jetzt noch nur schon statt beim zum zur als wie uns mir mich
    le la les des une du et est nous vous je il elle ils elles que qui pas ne avec dans sur mais ou où mon ma mes
    notre nos votre leur cette ces aux sont suis avons utilisons toujours jamais j'aime j'habite c'est n'est d'un
    d'une l'api pour par plus préfère
    el los las una unos y es son no que de del con por para como pero mi mis nuestro nuestra está estoy tengo vivo
    prefiero usamos siempre nunca hemos decidido muy sin sobre
    il lo gli che di da è sono non per un uno della delle dei nel nella con ma abbiamo usiamo preferisco sempre mai mio
    mia o os um uma e é são não em no na dos das com mas eu nós meu minha usamos prefiro sempre nunca
    het een en van dat niet wij ik zijn heeft voor met maar ook altijd nooit gebruiken mijn liever
    och att det som på är inte jag vi med för om men alltid aldrig använder min mitt
    og at det som på er ikke jeg vi med for om men alltid aldri bruker min mitt
    """
    )
    - ENGLISH
    - words("plus pour par son sans des dos mit min com en em na e o y é è ou ma che per os men mag de la")
)
"""German, French, Spanish, Italian, Portuguese, Dutch, Swedish and Norwegian words that English has no use for."""

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_ACCENTED = re.compile(r"[\u00c0-\u024f\u1e00-\u1eff\u00bf\u00a1]")

LATIN_SHARE = 0.7
"""Letters of the Latin script below which a sentence is not English, whatever names and commands stand in it."""

CHARS = 600
"""Characters that are looked at: a language shows in two lines."""

SEVERAL = 2
"""Words with accents and without a capital, from which "on" and "a" beside them may be French: one may be borrowed."""


def is_english(text: str) -> bool:
    """Say whether a sentence may be English. What has no small words of any language, as a list of names, may be.

    >>> [is_english(s) for s in ("I moved to Malmö", "wir nutzen uv statt poetry", "我们使用 Postgres", "use uv")]
    [True, False, False, True]
    """
    text = text[:CHARS]
    letters = len(_LETTER.findall(text))
    if len(_LATIN.findall(text)) < LATIN_SHARE * letters:
        return False
    said = [word.lower().replace("\u2019", "'") for word in _WORD.findall(text)]
    english = sum(word in ENGLISH for word in said)
    foreign = sum(word in FOREIGN for word in said)
    accented = sum(bool(_ACCENTED.search(word)) and word[0].islower() for word in _WORD.findall(text))
    if accented >= SEVERAL:
        foreign += accented
    return foreign <= english
