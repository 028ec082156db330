"""Words that carry no topic."""

from __future__ import annotations

STOP_WORDS = frozenset(
    """
    a about above after again against ain all also am an and any are aren as at be because been before being below
    between both but by can cannot could couldn d did didn do does doesn doing don down during each few for from
    further had hadn has hasn have haven having he her here hers herself him himself his how i if im in into is
    isn it its itself just let ll m may me might more most must my myself no nor not now o of off on once only or
    other our ours ourselves out over own re s same shall she should shouldn so some such t than that the their
    theirs them themselves then there these they this those through to too under until up us ve very was wasn we
    were what when where which while who whom whose why will with won would wouldn you your yours yourself
    yourselves
    """.split()  # noqa: SIM905  a list of words reads better than a list of strings
)
"""English words that carry no topic: they are left out of the text index and of queries."""
ELSEWHERE = frozenset(
    """
    a all am an as at be d die do final for hand had her here him i im in is it land m me no o of off on or over re s so t to
    under up us ve was we were will
    """.split()  # noqa: SIM905
)
"""English words that other languages have too."""
ENGLISH_WORDS = STOP_WORDS - ELSEWHERE
FOREIGN_WORDS = frozenset(
    """
    auf bei das dem der ein eine einen für hab habe ich ist jetzt mein meine mich mir mit nicht und von wir zu zum
    con el en es los las mi mis para por que se soy tengo un una vivo
    avec dans des est et je les ma mes nous pour qui suis une
    che di gli il mia mio sono een het ik mijn niet voor eu meu minha não uma och jag inte jeg ikke
    """.split()  # noqa: SIM905
)
"""Form words of other languages that English hardly has."""
