"""Words that carry no topic, of English and of other languages, and stems of words that tell of a change."""

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
ENGLISH_WORDS = (STOP_WORDS - ELSEWHERE) | {"always", "every", "keep", "never", "please", "remind", "use", "without"}
FOREIGN_WORDS = frozenset(
    """
    auf bei das dem der ein eine einen für hab habe ich ist jetzt mein meine mich mir mit nicht und von wir zu zum
    con el en es los las mi mis para por que se soy tengo un una vivo
    avec dans des est et je les ma mes nous pour qui suis une
    che di gli il mia mio sono een het ik mijn niet voor eu meu minha não uma och jag inte jeg ikke
    """.split()  # noqa: SIM905
)
"""Form words of other languages that English hardly has."""
CHANGE_WORDS = frozenset(
    """
    abandon adopt anymor appoint becam becom bought broke bump bye cancel chang convert current cut dead delay die ditch drop end extend
    final finish fire forget gave gone goodby grew hand hire increas inherit instead join land latest leav left longer lower
    migrat move new newer newest now nowaday offici over pass pick postpon promot push quit rais reassign recent reduc reloc
    renam replac reschedul retir sell settl shift sign slip sold start stop swap switch took trade transfer uninstal updat
    upgrad went
    """.split()  # noqa: SIM905  a list of words reads better than a list of strings
)
"""Stems of words that tell of a change."""
END_WORDS = frozenset("dead die end gone leav left longer out quit resign retir".split())  # noqa: SIM905
"""Stems of words with which somebody or something is over, without an object."""
NEW_WORDS = frozenset({"current", "final", "latest", "new", "newer", "newest", "official", "recent"})
"""Those of them that stand before a thing: "my new manager" is a manager."""
NEGATES = frozenset({"no", "not", "never", "from", "t"})
BE_OR_HAVE = frozenset({"is", "are", "was", "were", "has", "have", "got", "will", "isn", "aren"})
PREPOSITIONS = frozenset({"in", "at", "with", "from", "near", "for", "by", "to", "of", "on", "into"})
REFERS = frozenset({"it", "its", "that", "this", "there", "here", "them", "they", "he", "she", "him", "her", "his"})
