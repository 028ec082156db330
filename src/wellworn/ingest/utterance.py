"""What a turn does: does it only ask, does it only react, or does it state something?

A turn that only asks or only reacts stays in its session and is never a hit. The tests are kept narrow: a turn that
might state something is taken to state it.
"""

from __future__ import annotations

import re

from wellworn.core.lazy import regex
from wellworn.core.wellformed import fold
from wellworn.ingest.word_lists import STOP_WORDS

ASSISTANT_ROLES = frozenset({"assistant", "ai", "model", "bot"})
LONGEST_CHARS = 400
"""A longer text states something."""
_MOST_WORDS = 12
"""A longer question has its sign."""
_WORD = regex(r"[^\W_]+")
_PIECE = regex(r"[^.!?。！？؟…\n]+[.!?。！？؟…]*|[?？؟]+")
_OPENING = regex(
    r"^\W*(?:(?:hey|hi|hello|ok|okay|so|and|but|also|btw|fyi|by the way|well|oh|um|hmm|wait|just|actually|please|sorry|again"
    r"|quick(?: question| one)?)\b[\s,:;-]*)+",
    re.I,
)
_WH = r"(?:who|whom|whose|what|which|where|when|why|how)"
_PRONOUN = r"(?:i|we|you|he|she|they|it|there|this|that|these|those)"
_SUBJECT = rf"(?:{_PRONOUN}|my|our|your|its|his|her|their|the|a|an)"
_AUX = r"(?:is|are|was|were|am|do|does|did|can|could|should|would|will|shall|must|has|have|had|might|may)"
_ALONE = r"(?!.*\b(?:i|we|im|is|are|was|were)\b)"
"""No second verb: "when Anna does yoga I run" and "what the doctor did was good" ask nothing."""
_TAG = r"(?:task-notification|local-command-stdout|bash-(?:input|stdout|stderr)|system-reminder|environment_context)"
_BY_PROGRAM = regex(rf"(?:<({_TAG})>(?:(?!</\1>).)*</\1>\s*)+|\[Request interrupted by user[^\]]*\]", re.DOTALL)
_ASKS = regex(
    rf"(?!(?:when|where)\W+{_PRONOUN}\b){_WH}(?:\W+\w+?){{0,3}}?(?:\W+{_AUX}|['’]?(?:s|re|d))\W+{_SUBJECT}\b"  # what time's the call
    rf"|{_WH}\W+(?:do|does|did)\W+\w"  # what does Owen do
    rf"|{_WH}(?!\W+{_SUBJECT}\b)(?:\W+\w+){{1,5}}?\W+(?:do|does|did)\W+(?!not\b){_ALONE}\w"  # what hours does Owen work
    rf"|{_WH}\W+(?:can|could|should|will|would|must)\W+(?!be\b|have\b){_ALONE}\w[^,;:]*$"  # what can Owen not eat
    rf"|(?:what|who|where|when|how)['’]?s\W+(?!more\b|new\b){_ALONE}[^,;:]+$"  # whats Owens last name
    rf"|how\W+(?:many|much|long|old|often|far|big|tall)\b(?!\W+{_SUBJECT}\b|.*\b(?:is|are|was)\W+\d)[^,;:]+$"  # how many of us sing
    rf"|(?:who|where|when|why|how)\W+(?:is|are|was|were)\W+{_ALONE}\w[^,;:]*$"  # where is Owen working in May
    rf"|(?:on|in|at|from|for|with|by)\W+{_WH}(?!\W+{_PRONOUN}\b)(?:\W+\w+)?\W+{_AUX}\W+{_SUBJECT}\b[^,;:]*$"  # on which days do I work
    rf"|(?!ha|might|may){_AUX}(?:n['’]t)?\W+{_SUBJECT}\b|{_AUX}(?:n['’]t)?\W+{_PRONOUN}\b|does\b"  # am I, does Ada
    rf"|{_WH}(?:\W+(?!{_PRONOUN}\b|\w+s\b)\w+){{0,2}}?(?:\W+(?:is|are|was|were)|['’]s){_ALONE}(?:\W+\w+){{1,8}}$"  # what day is squash
    rf"|who\W+\w+s\b|(?:who|whose|which|what)\W+(?!{_SUBJECT}\b|.*\b{_AUX}\b)[^,;:]+$"  # who signs my holidays
    r"|(?:where|when|how|what|which|whom?)\W+(?:\w+\W+)?to\b(?!\W+(?:me|us|him|her|them)\b)"  # where to send it
    rf"|(?:@\S+|(?:in|on|for|at)\W+(?:the\W+)?\S+),?\s+(?:{_WH}\W+{_AUX}|{_AUX})\W+(?:{_SUBJECT}\b|\w+\(\))"  # @app.py what does it do
    r"|[^.!?]+ not (?:here|there|locally|for me),\s*why$|wonder(?:ing)?\W+(?:if|whether|why|how|what)\b|any\W+(?:idea|reason|chance)\W+(?:why|you|we|of)\b",
    re.I,
)
"""A question without its sign, by its first words."""
_FEW_WORDS = 8
"""A longer sentence in another language may have a question within it."""
_ASKS_ABROAD = regex(
    r"(?!.*\b(?:the|and|is|are|of|to|my|with|on|in english)\b)(?:"
    r"(?:(?:a|de|di|en|con|para|por|com|in|da|na|do|w|z|o|в|на|о|с|у)\s+)?"  # a qué, na co, на что
    r"(?:wer|wem|wann|warum|wieso|weshalb|wo(?:hin|her|mit|für|gegen|von|nach|bei|zu|ran|rauf)?|welche[nmrs]?|qué|quién(?:es)?|dónde|cuándo|cuál(?:es)?|cómo"
    r"|cuánt[oa]s?|où|quel(?:le)?s?|pourquoi|combien|comment|dove|perché|quale|onde|quem|qual|hvem|hvor|hva[d]?|hvilke[nt]?|vem|vilken|waar|waarom|wanneer|welke?"
    r"|gdzie|dlaczego|czy|kto|jak(?:i|a|ie|ą|im)|nerede|neye|nereye|hangi|kaç|nasıl|кто|кем|где|куда|почему|зачем|сколько|как(?:ой|ая|ие|ое|\W+зовут)|أين|متى|ماذا"
    r"|لماذا|كيف|هل|ما\s+(?:اسم|هو|هي))\s"
    r"(?!(?:ich|du|er|sie|es|wir|man|je|j['’]|tu|il|elle|on|nous|eu|ik|jij|hij|we|wij|jag|jeg|vi|я|он|она|мы)\b\W*\w+\s+\w)"
    r"|wie\s+(?:hei(?:ß|ss)t|alt|viele?|lange|oft|spät|geht)\b|was\s+(?:ist|sind|hat|habe|kann|soll|bedeutet|mache|weißt|\w+e\s+ich)\b|wie\s+(?:ist|kann)\b|che\s+\w+\s+\w+$"
    r"|(?:cuando\s+es|quando\s+[éè])\s|kiedy\s+(?:mam|jest)\s+\w+$|когда\s+у\s+меня(?:\s\w+){1,2}$|donde\s+\w+$|chi\s+(?:è|era|sono)\s|que\s+\w+\s+tengo$|a\s+que\s+(?:soy|estoy|tengo)\s|(?:a|di|in)\s+cosa\s|(?:à|de|avec)\s+quoi\s|c['’]est\s+(?:quand|quoi|où|qui)\s|na\s+co\s(?!dzień)|на\s+что\s"
    r"|(?:kannst|könntest|würdest|hast|weißt)\s+du\b|(?:habe|bin|soll|darf)\s+ich\b|(?:quien|cual)\s+es\b|com[oe]\s+s[ei]\s+(?:llama|chama|chiama)|jak\s+(?:się\s+)?nazywa\s"
    r"|est-ce\b|puedes\s+\w+r\b|(?:peux|pourrais)-tu\b|(?:puoi|potresti)\s+\w+r[ei]\b"
    r"|(?:(?:sag|zeig|erklär)\s+mir|dime|dis-moi|montre-moi|dimmi|скажи)\b)[^,;:]*$"
    r"|(?:waar|wanneer|hoe|wat|wie)\s+(?:is|was|zijn|heet)\s+(?:mijn|onze?|de|het)\b[^,;:]*$|(?!.*\b(?:i|we|my|our|the|in|at|from|to|is)\b)[^,;:]*\sne(?: zaman)?$"
    r"|[^,;:，。]*(?:(?<![没沒无])(?:什么|什麼|谁|誰|哪[里裡个個些]|怎么|怎麼|多少)(?!.*[都也])|[吗嗎]$|(?:です|ます|でした|ました)か$|(?:いつ|何|どこ)$|까$)",
    re.I,
)
"""The same in other languages: by its first words, or where a language has them elsewhere, by any."""
_ASKS_ASSISTANT = regex(
    r"\b(?:did|have|had)\W+(?:you|u)\b(?!(?:\W+(?:ever|already|really|even))?\W+(?:and|know|remember|recall|hear|see|forg[eo]t|notice|get"
    r"|got|stored?|saved?|noted?|kept|keep|learn|been)\b)"
    r"|\b(?:you|u)(?:['’]ve)?\W+(?:once\W+|just\W+|also\W+|ever\W+)?(?:(?!need|want|store|save|learn|note)[a-z]{2,}ed|said|told|gave|wrote|put|came|did|made|found"
    r"|thought|had|drew|sent|chose|reckon)\b|\byour\W+(?:advice|suggestions?|recommendations?|recipes?|list|ideas?|tips?|answer|draft|version|plan)\b"
    r"|\bhast du\b.*\b(?:empfohlen|gesagt|vorgeschlagen|geraten|genannt|erwähnt|geschrieben)\b|\bheb je\b.*\b(?:gezegd|aan(?:geraden|bevolen)|voorgesteld)\b"
    r"|\b(?:as-tu|tu m['’]as) (?:dit|conseillé|recommandé|proposé|suggéré)|\b(?:dijiste|recomendaste|sugeriste|aconsejaste)\b"
    r"|\b(?:hai (?:detto|consigliato|suggerito|proposto)|você (?:disse|recomendou|sugeriu))\b",
    re.I,
)
_WANTS_TO_KNOW = regex(
    rf"(?:(?:can|could|would|will)\W+you\W+)?(?:please\W+)?(?:tell|show|remind)\W+(?:me|us)\W+(?:(?:again|please|of)\W+)?"
    rf"(?:{_WH}|if|whether|everything|anything|all|more|(?<!remind me )about|(?!that\b){_SUBJECT}|[^\W_]+$)\b(?!\W+to\b)[^:]*$"
    rf"|(?:any|no|an?)\W+(?:idea|clue)\W+{_WH}\b[^,;:]*$"
    rf"|(?:i|we)\b[^,;:]{{0,24}}?(?:\bwonder(?:ing)?|\bforg[eo]t(?:ten)?|\bcurious|(?:n['’]?t|\bnot)\W+(?:know|remember|recall)"
    rf"|\bto\W+(?:know|remember|recall|hear))\W+(?:again\W+)?(?!why|how\b(?!\W+(?:much|many|old|long|often|tall))){_WH}\b[^,;:]*$",
    re.I,
)
"""A request to be told something; how it ends does not matter."""
_TELLS_TOO = regex(
    r"\b(?:since|because|now that|given that|considering|seeing that)\W+(?:i|we|my|our|he|she|they)\b"
    r"|\b(?:know|knew|remember|mention|note|notice|heard?)\W+(?:that\W+(?:i|we|my|our)|(?:i|we)\W+\w+)\b"
    rf"|^(?!{_WH}\b).*\b(?:did|have) i\b.{{0,20}}\b(?:tell|told|mention|say)"
    r"|\byou\W+(?:please\W+)?(?:update|change|switch|set|note|save|store|add|put|log|record)\b.*\b(?:my|our|i|we)\b"
    rf"|^\W*(?:i|we|my|our|it)(?:\s+[^\s,;:]+){{3}}[^,;:]*[,;:](?!.*\b{_WH}\b)"
    rf"|^(?!{_WH}\b|{_AUX}\b)(?:[^\s,;:]+\s+){{3}}.*,\s*"  # "…, isn't it?"
    rf"(?:right|correct|huh|eh|{_AUX}n['’]t\W+{_PRONOUN}|\w+\W+you\W+(?:believe|imagine).*)\W*$",
    re.I,
)
"""A question that also states something: "did you know that I …", "since I …, which …"."""
TIME_NAME = r"(?:[A-Z]\w*days?|Christmas|Easter|(?:Jan|Febr)uary|March|April|May|June|July|August|[A-Z]\w+ber)\b"
"""Days, months and feasts, which are written like names."""
_SAYINGS = {
    regex(r"\bwho(?: am |['’]m )i\b", re.I): "what is my name",
    regex(r"\bfor (?:a|my) living\b", re.I): "for work",
    regex(r"\bwhere am i (?:originally )?from\b", re.I): "what is my origin",
    regex(
        r"^(?:(?:what|anything) (?:else )?(?:(?:do|did|have|has) )?(?:you|i|we) (?:know|remember|(?<!you )(?:say|said|told|tell)(?: you)?)"
        r"|(?:please )?tell me(?: (?:everything|all|more|again|what)(?: you (?:know|remember))?)?"
        r"|do you (?:still )?(?:know|remember)(?: anything| something)?) about (?!(?:me|us|myself|it|that|this)\b)",
        re.I,
    ): "",
    regex(
        r"^(?:do you (?:still )?remember|(?:please )?(?:tell|remind) me(?: again)?(?: of)?) "
        rf"(?=(?:my|our|the|{_WH})\b(?!.*\bto\b))",
        re.I,
    ): "",
    regex(
        r"(?i:^((?:who|what|which|where)\b.{0,120}\b(?:did|was|were)\b.{0,120}\bbefore) (?:the |my )?)(?!"
        + TIME_NAME
        + r")[A-Z]\w+(?: [A-Z\d]\w*)*\??$"
    ): r"\1?",
}
"""Ways to ask, and a plain one. What stood before Daan is asked for without Daan, whom all that is newer names."""
_ME = r"(?:me|us|myself|(?:the|this) user)"
_ALL = regex(
    rf"\W*(?:so\W+)?(?:what (?:all )?(?:do|did|have) (?:you|i|we) (?:already )?"
    rf"(?:know|remember|learn(?:ed|t)?|(?:tell|told) you|say|said)(?: so far)?(?: about {_ME})?"
    rf"|what(?:['’]s| is) (?:known|remembered|stored)(?: so far)?(?: about {_ME})?"
    rf"|(?:(?:tell|show) me )?(?:what|everything|anything|all|facts|information)(?: that)?(?: you| is| i(?:['’]s)?)?"
    rf"(?: (?:know|known|remember(?:ed)?|stored))? about {_ME}"
    rf"|do you (?:know|remember) (?:me|anything(?: about {_ME})?)"
    rf"|(?:about )?(?:the )?user(?:['’]s)? (?:profile|preferences|info(?:rmation)?|background|facts)"
    rf"|(?:what are )?my preferences"
    r"|(?:et |und |y )?(?:was (?:alles )?weißt du (?:alles |schon )?(?:über|von) mi[rc]h?|que sais-tu (?:déjà )?(?:de|sur) moi|qu['’]est-ce que tu sais de moi"
    r"|qué sabes (?:ya )?(?:de|sobre) mí|o que (?:é que )?(?:você )?sabes? (?:de|sobre) mim|(?:che )?cosa sai di me|wat weet je (?:al )?(?:over|van) mij"
    r"|co o mnie wiesz|что ты (?:обо мне знаешь|знаешь обо мне)))\W*",
    re.I,
)
"""Everything that is known of a person is asked for."""
_WORK = regex(
    r"\W*(?:(?:please|now|then|and|hey|ok(?:ay)?|bitte)\W+)*(?:(?:can|could|would|will|kannst|könntest|würdest) (?:you|du)\W+)?(?:(?:please|bitte)\W+)?"
    r"(?:(?:write|compose|draft|draw|paint|sketch|sing|translate|summari[sz]e|generate|proofread|rewrite|rephrase|calculate|brainstorm|invent"
    r"|schreibe?|zeichne|male?|dichte|übersetze?|erzähle?|erkläre?|berechne|écris|dessine|traduis|raconte|escribe|escríbeme|dibuja|traduce"
    r"|scrivi|scrivimi|disegna|traduci|schrijf|vertaal)"
    r"\W+(?:me|us|an?|the|this|these|some|something|my|our|mir|uns|eine?n?|das|diese[nsr]?|was|moi|nous|une?|des?|un[ao]?|el|la|il|lo|mij|een|it|them)\b"
    r"|(?:give|make|sing|read|play|recommend|suggest|find|order|book|bake|cook|send) (?:me|us) (?:an?|some|another|something)\b"
    r"|tell (?:me|us) (?:an?|another) (?:\w+ )?(?:joke|story|tale|riddle|poem)\b"
    r"|(?:explain|describe) (?:to )?(?:me|us)\b)",
    re.I,
)
"""A request to do something, which takes more than a memory."""
_EXCLAIMS = regex(r"(?:what an?|how)\s+\w+(?:\s\w+)?\W*", re.I)
_TELLS = regex(r"(?i:\b(?:i|my|we|our|always|every|instead|now on)\b)|[:=]|\s[A-Z\d]")
"""What a request also tells: something of oneself, a rule, a name or a number."""
_OWN = regex(r"\b(?:i|me|my|we|our|us)\b", re.I)
_AFTERTHOUGHT = regex(r"(?!.*\b(?:i|im|we|my|our|now|new|instead)\b)[^\W\d_A-Z]+(?:['’ ]+[^\W\d_A-Z]+){0,5}")
"""A few words without a name behind a question about oneself: "need it for a form"."""
_REACTIONS = frozenset(
    """
    absolutely afternoon agreed ah alright amazing appreciate appreciated awesome bye cheers clear congrats
    congratulations cool correct course day deal definitely done dunno evening exactly excellent fair fantastic feel
    fine free fun gladly glad goodbye good got gotcha great haha hahaha happy heard hello help helped helpful helps hey
    hi hm hmm hope idea interesting job keep kind know later lol lot love lovely luck makes mention mind moment morning
    much need never nice night no nope noted nothing of oh ok okay one oops perfect please point pleasure problem
    really record recorded remember right same saved saying see sense share sharing sorry sound sounds soon sure talk
    talked tell telling terrific thank thanks thx ty today told tomorrow tonight true try ugh understand understood
    useful wait way welcome well wish wonderful work worked works worries wow yay yeah yep yes yet yup
    able already anything asking blank bit certain check checking curious discussed earlier enough exact filed forget
    forgot forgotten gave give given honest information info let like look long make may maybe mentioned note only
    question recall reminder said say something somewhere still take thing things think time tracking while without
    wonder wondering
    danke dank dir vielen hallo guten morgen alles klar sehr bis merci beaucoup bonjour salut accord demain gracias muchas hola buenos buenas
    dias perfecto jajaja bueno que por favor obrigado obrigada grazie ciao buongiorno bene bedankt hoi goed
    dzieki dziekuje bardzo wielkie czesc dzien dobry dobre okej спасибо большое привет хорошо понятно tesekkurler tesekkur ederim
    merhaba cok tamam شكرا مرحبا 谢谢 谢你 谢谢你 你好 好的 ありかとう
    """.split()  # noqa: SIM905  a list of words reads better than a list of strings
)
"""Words of thanks, greetings, consent and "I do not know", the last lines in German, French, Spanish, Portuguese, Italian, Dutch, Polish,
Russian, Turkish, Arabic, Chinese and Japanese, without accents. A turn with no other content word only reacts."""
_GOING_ON = frozenset(
    """
    again ahead all apply b both c carry choice continue d execute finish first fix go implement last next number option
    part phase pick plan proceed resume retry run second start step steps third
    das ja weiter mach nochmal oui continuez vas y sí si sigue adelante continúa sim continua sì avanti да давай продолжай
    继续 好的 可以 はい 続けて 네 계속
    """.split()  # noqa: SIM905
)
"""Words that take up what was said before, or choose from it: English; the second half German, French, Spanish, Portuguese,
Italian, Russian, Chinese, Japanese and Korean."""
_CONSENTS = regex(
    r"\W*(?:yes|yeah|yep|sure|go ahead|please do|ja|oui|sí|sim|да)(?![\w/-])(?=\s*(?:[,.!;:…–—，。、\n]|-\s|$)|\s+(?:and|please|und|bitte|et)\b)",
    re.I,
)
_OTHER_WORK = regex(r"\b(?:now|next|new topic|but first|instead|also|stattdessen)\b", re.I)
_ANYTHING_ELSE = regex(
    r"(?:(?!\bor\b).)*\b(?:(?:anything|something|what)\s+(?:else|more)|sonst\s+noch|noch\s+(?:et)?was|autre\s+chose|algo\s+más)\b",
    re.I,
)
_MOST_ADDED = 8
"""Words of a consent that still adds to what was asked; a longer one is a task of its own."""
_IT = r"(?:that|this|it|you)"
_HERE = r"(?:\s+(?:it|that|anything|again|now|either|yet|at\s+all|for\s+me))*[^\S\n]*(?:[.!;\n]|$)"
"""The sentence ends: "it doesn't work", not "it doesn't work on Windows, add support"."""
_GOOD = r"(?:fine|good|great|perfect|okay|ok|done|enough)\b"
_SATISFIED = (
    r"(?:[^.!?\n]{0,200}\b(?:thank|thx\b)|(?:be)?dank|merci|obrigad|спасибо|gracias|grazie|alles\s+(?:gut|klar)|passt|c['’]est\s+(?:bon|tout|parfait)"
    r"|need\b|worr|problem|nothing|not\s+(?:yet|now|for\s+now|today)\b|leave\b|keep\b|ship\b|now\s+(?!it\b|that\b|this\b|the\b|you\b)"
    rf"|(?:all\s+|looks?\s+|(?:i['’]?m|we['’]?re)\s+)?{_GOOD}|(?:that|it)(?:['’]?s|\s+(?:is|was|will\s+be|looks?))\s+(?:{_GOOD}|(?:all(?!\s+wrong)|right|it)\b)|(?:it\s+|that\s+)?works\b)"
)
_FAILS = (
    r"(?:down|broke|broken|fail\w*|crash\w*|wrong|worse|slower|missing|red"
    r"|(?:does|do|is|are|can)\s*n(?:ot|['’]t)\s+(?:start|work|build|compil|load|run|open)\w*)"
)
_UNDO_IT = r"(?:undo|revert|roll\s*back)\b(?:\s+(?:it|that|this|your|everything|the\s+last)\b|\W*$)"
_REJECTS = regex(
    rf"(?:no|nope|nah|nein|non|nee|não|нет|不对|不是|いいえ)\b(?!-\w|[.:]\s*\d|\W{{1,5}}{_SATISFIED})"
    rf"(?:\s*[,.!;:–—，。、-]|\s*$|\s+{_IT}\b)|(?:wrong|falsch)(?:\W*$|[,.!;])"
    rf"|{_IT}(?:(?:['’]s|\s+(?:is|was))\s+(?:still\s+|just\s+|completely\s+)?not|\s+(?:is|was)n['’]t)\s+(?:what\s+(?:i|we)\b|(?:right|correct|it|working)(?:,|{_HERE}))"
    rf"|{_IT}(?:['’]s|\s+(?:is|was))\s+(?:still\s+|just\s+|completely\s+)?(?:(?:wrong|incorrect)(?:,|{_HERE})|broken{_HERE})"
    rf"|{_IT}\s+(?:does|did)(?:n['’]t|\s+not)\s+(?:work|help|fix){_HERE}"
    rf"|{_IT}(?:\s+(?:just|has|have))?\s+(?:broke|failed){_HERE}|(?:that|you)(?:\s+just)?\s+broke\s+(?:the|my|our|it|everything|all)\b"
    r"|not\s+what\s+i\b|das\s+ist\s+falsch\b|(?:it['’]?s\s+|it\s+(?:is\s+)?)?still\s+(?:(?:the\s+same|red)\W*$|wrong\b|broken\b|fail\w*"
    r"|(?:not|is(?:n['’]t|\s+not))\s+(?:working|right|correct|fixed|what)\b|does(?:n['’]t|\s+not)\s+(?:work|help|build|compile|run|start)\b)"
    rf"|{_UNDO_IT}|(?![^.!?\n]*\b(?:no|none|nothing|never|without|longer|gone|fixed|thank\w*)\b|[^.!?\n]*n[o'’]t\s+(?:fail|crash|broken|down|red|wrong|worse|slow|missing)\w*)"
    rf"[^.!?\n]{{0,80}}\b{_FAILS}\b[^.!?\n]{{0,40}}\b(?:since|after)\s+your\s+(?:last\s+)?(?:change|fix|edit)\b",
    re.I,
)
"""How a message opens that rejects what was done just before. In doubt it does not: thanks and requests are more common."""
UNDO = regex(rf"(?:^|[.,;:!\n–—-]\s{{0,3}}|\b(?:please|and|then|just|you)\s+){_UNDO_IT}", re.I)
"""What is done then is no way to do what was asked for."""
_RECORD = r"(?:\w+\W+){0,3}?(?:records?|information|details|memory|memories|notes?|idea)\b"
_KNOWS_NOT = regex(
    r"(?!.*(?:[;:–—]|\b(?:but|however|except|only|though|because|since)\b))(?:(?:unfortunately|sorry)\W+|i['’]m (?:afraid|sorry)\W+(?:but\W+)?)?(?:i "
    rf"(?:(?:do|did)(?: not|n['’]t)|cannot|can['’]t|could(?: not|n['’]t))\W+(?:(?:yet|currently|actually|really)\W+)?(?:know|recall|remember|(?:have|see|find) {_RECORD})"
    rf"|i (?:currently |still )?have no {_RECORD}|there(?: is|['’]s| are) no {_RECORD}|(?:i am|i['’]m) not (?:sure|aware)\b)",
    re.I,
)
_INVITES = regex(r"(?:i['’]d need|(?:please )?(?:tell me|share|let me know)|if you (?:tell|share|let me know))\b", re.I)
"""An answer that knows nothing."""
_OOPS = r"(?:(?:actually|ah|oh|oops|sorry|wait|no|nope|nein|non)\b\W*)"
_CORRECTS = regex(
    rf"\W*(?:{_OOPS}*(?:(?:i|ich) (?:meant?|meinte)(?! to\b)|make that)|{_OOPS}+it['’]?s)\b[,:]?(?:\s+\S+){{1,6}}\s*"
    r"|\W*(?:no\W+wait|wait\W+no|scratch that|correction)\s*[,:]\s*(?!(?:i|we|you|let)\b)\S+(?:\s+\S+){0,3}\s*",
    re.I,
)
"""It corrects what was said just before, and names only the right value: "No, I meant Saturdays"."""
_PHRASES = (("any more", "anymore"), ("these days", "nowadays"), ("passed away", "died"))
TITLE = regex(r"\b(?:Dr|Mrs?|Ms|Prof)\.? ")
_LEFT_OUT = regex(
    rf"[^.!?\n]*\?+|[\"“«][^\"”»]*\s[^\"”»]*[\"”»]|{TITLE.pattern}|(?i:\b(?:i|we)\s+(?:heard|read|saw|think|believe|guess"
    r"|know|learned)\s+(?:that\s+)?|\b(?:told|tells|asked|texted)\s+(?:me|us)\b)"
)
"""Questions, quotations, titles of persons, and how the speaker learned it."""

_THE_USER = regex(r"(?:\bthe\s+|^)user\b(?:(['’]s\b)|:)?", re.I)


def telling_words(content: list[str]) -> list[str]:
    """Those of some content words that do not merely react."""
    return [word for word in content if word not in _REACTIONS]


def without_opening(text: str) -> str:
    """A sentence without "Oh, well," and the like before it."""
    return _OPENING.sub("", text).strip()


def plainly(question: str) -> str:
    """A question with plain words for a saying that names nothing of what it asks for."""
    for saying, plain in () if asks_for_all(question) else _SAYINGS.items():
        question = saying.sub(plain, question)
    return question


def asks_for_all(question: str) -> bool:
    """Whether a question asks for whatever is known of the person: "what do you know about me?"."""
    return _ALL.fullmatch(question) is not None


def asks(sentence: str) -> bool:
    """Whether one sentence asks: by its sign, or without one by its first words."""
    said = without_opening(sentence)
    if said.endswith(("?", "？", "؟")):
        return True
    head, comma, tail = said.partition(",")
    if comma and _reacts(head):  # "no idea, where do I live"
        said = tail.strip()
    if len(said.split()) > _MOST_WORDS:
        return False
    without_sign = said[-1:].isalnum() and (
        _ASKS.match(said) or (len(said.split()) <= _FEW_WORDS and _ASKS_ABROAD.match(said))
    )
    return bool(without_sign or _WANTS_TO_KNOW.match(said))


def wants_answer(text: str) -> bool:
    """Whether the last sentence of a message asks."""
    return any(asks(piece) for piece in _PIECE.findall(text)[-1:])


def wants_work(text: str) -> bool:
    """Whether a message asks for something to be made: a poem, a translation, a list of ideas."""
    return _WORK.match(text) is not None


def tells(said: str) -> bool:
    """Whether a piece of a message neither asks nor wants something to be made."""
    return not (asks(said) or (wants_work(said) and not _TELLS.search(said)))


def asks_assistant(text: str) -> bool:
    """Whether a question asks what the assistant said: "What did you suggest?"; not "Do you know where I live?"."""
    return bool(_ASKS_ASSISTANT.search(text))


def only_asks(text: str) -> bool:
    """Whether a turn asks and states nothing besides."""
    if len(text) > LONGEST_CHARS:
        return False
    asked = about_self = False
    for piece in _PIECE.findall(text):
        said = without_opening(piece)
        if not any(c.isalnum() for c in said):
            continue
        if not tells(said):
            if _TELLS_TOO.search(said):
                return False
            asked = True
            about_self = about_self or bool(_OWN.search(said) and _ASKS.match(said))
        elif not (_reacts(said) or _EXCLAIMS.match(said) or (about_self and _AFTERTHOUGHT.fullmatch(said))):
            return False
    return asked


def only_reacts(content: list[str], text: str) -> bool:
    """Whether a turn with these content words is thanks, a greeting, consent or "I do not know"."""
    return len(text) <= LONGEST_CHARS and (_REACTIONS.issuperset(content) or bool(_EXCLAIMS.fullmatch(text.strip())))


def leans(text: str) -> bool:
    """Whether a message opens with a yes or a no, so that what was said before decides what it means."""
    return (_CONSENTS.match(text) or _REJECTS.match(without_opening(text))) is not None


def goes_on(text: str, answer: str = "") -> bool:
    """Whether a message only reacts, consents, goes on or chooses: "yes, go ahead", "option 2"; or consents to what an
    answer asked and adds a little: "yes, and run the tests"."""
    found = [word for word in _WORD.findall(text.lower()) if word not in STOP_WORDS and word not in _GOING_ON]
    adds = _CONSENTS.match(text) and len(found) <= _MOST_ADDED and not _OTHER_WORK.search(text)
    if adds and wants_answer(answer) and not _ANYTHING_ELSE.match(_PIECE.findall(answer)[-1]):
        return True
    return only_reacts([word for word in found if not (word.isdigit() and len(word) < 3)], text)


def rejects(text: str, answer: str) -> bool:
    """Whether a message rejects the work that an answer reported; a "no" to what the answer asked does not."""
    return _REJECTS.match(without_opening(text)) is not None and not wants_answer(answer)


def by_program(text: str) -> bool:
    """Whether a coding agent says this in the user's name: "<task-notification>…</task-notification>"."""
    return _BY_PROGRAM.fullmatch(text.strip()) is not None


def knows_not(text: str) -> bool:
    """Whether an answer says that it knows nothing, and at most asks: "I have no record of your bicycle. Which is it?"."""
    said = [
        piece
        for piece in _PIECE.findall(text)
        if any(c.isalnum() for c in piece) and not asks(piece) and not _reacts(piece)
    ]
    said = [piece for piece in map(without_opening, said) if not _INVITES.match(piece)]
    return len(said) > 0 and len(text) <= LONGEST_CHARS and all(_KNOWS_NOT.match(piece) for piece in said)


def _reacts(said: str) -> bool:
    return _REACTIONS.issuperset(word for word in _WORD.findall(fold(said)) if word not in STOP_WORDS)


def corrects(new: str) -> bool:
    """Whether a text only corrects what the same person said just before."""
    return _CORRECTS.fullmatch(new) is not None


def stated_in(text: str) -> str:
    """A text without what it asks or quotes, as its speaker would say it."""
    left = _LEFT_OUT.sub(" ", text)
    for phrase, word in _PHRASES:
        left = left.replace(phrase, word)
    return _THE_USER.sub(lambda found: "my" if found[1] else "" if found[0].endswith(":") else "I", left)
