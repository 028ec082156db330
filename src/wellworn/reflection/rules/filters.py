"""What is not a statement about the speaker: questions, requests, hypotheses, politeness, play.

Each test looks at one sentence in lower case, with quotations taken out. Knows English only.
"""

from __future__ import annotations

import re

from wellworn.ingest.stopwords import STOP_WORDS
from wellworn.reflection.rules.lists import words
from wellworn.reflection.rules.verbs import BASE

_COMMANDS = BASE | words(
    """
    act adjust analyse analyze answer assume brainstorm break calculate classify combine compare compile condense
    conduct convert copy correct critique define describe detail discuss draft elaborate enter evaluate expand
    extend extract figure fill format generate identify ignore implement increase insert label let merge modify name
    negotiate number optimize outline output paraphrase pretend pinpoint produce proofread propose prove rank
    rearrange redo refactor refine regenerate remove reorder repeat rephrase replace reply respond restate retry
    return review revise reword rewrite search select shorten show simplify simulate solve sort specify split state
    step summarise summarize switch update verify using based given
    """
)
_BEFORE_COMMAND = words("please kindly now ok okay great and so then also just next again")
_ASKING = words(
    """
    what what's how how's why who who's whose which when when's where where's is are am was were do does did can
    could should would will shall may has have had isn't aren't don't doesn't didn't can't couldn't won't any
    """
)
_TELLING = re.compile(
    r"(?:when|what|where|how|which|why|who) (?:i|we|my|our|makes|keeps|is why|it comes)\b(?!.*\?)"
    r"|(?:have|had|did|was|were|is|are|will|do|don't|can't|didn't) (?:been|to|a|the|not|not|lots|some|my|so)\b"
)
_REQUEST = re.compile(
    r"\b(?:can|could|would|will|may) (?:you|i get|i have|i see|we (?:get|do|make|have|see|go|start|just))\b"
    r"|\bi(?:'d| would|'ll)? (?:\w+ ){0,2}?(?:want|need|like|expect|require|ask(?:ed)?|told|trust|prefer)"
    r" (?:for )?you\b"
    r"|\blet me know\b|\b(?:tell|show|give|send|walk|get|find|help|remind) me\b(?! (?:of|how much))"
    r"|\byou (?:are|will be) (?:a|an|my|the)\b|\byou're (?:a|an|my) \w+er\b"
    r"|\bwhat'?s (?:next|the)\b|\bwhat (?:do|should|would|are|is|can|exactly|specific)\b"
    r"|\bhow (?:do|should|can|does)\b"
    r"|^(?:\w+ ){0,2}?i (?:\w+ )?(?:want|need|would like) (?:to (?:see|know|hear)|your|those|that|these|this|clear"
    r"|exact|specific|details?|answers?|results?|something"
    r"|(?:the|a|an|some|more)(?: \w+){0,3}? (?:plan|lists?|summary|table"
    r"|e?mail|titles?|names?|descriptions?|script|outline|template|report|examples?|ideas?|version|draft|steps?|guide"
    r"|schedule|breakdown|overview|strategy|answers?|explanation|solutions?|recommendations?|way|prompts?|code|options?"
    r"|articles?|tweets?|post|help|assistance|information|info|details|facts))\b"
)
_HYPOTHETICAL = re.compile(
    r"^(?:if|suppose|imagine|assum|pretend|let's say|lets say|say i|what if|in (?:this|that|the) (?:scenario|story))\b"
    r"|\bif (?:i|we) (?:were|was|had|could|am|are|do|did|have|don't|get|go)\b|\bi (?:wish|would(?:n't)? have)\b"
    r"|\bas if (?:i|we)\b|\bhypothetical"
)
_PLAY = re.compile(
    r"\b(?:act as|acting as|role[- ]?play|pretend (?:to be|you|that)|play the role|in character|stay in character"
    r"|you are now|as an ai|my character|our character|level up|experience points)\b|^(?:you(?:'re| are) (?:a|an)\b)"
)
_CHATTER = re.compile(
    r"^(?:i|we)(?:'m|'ll|'ve|'d| am| will| have| can| do| would| totally| completely| really| also| just| now)*"
    r" (?:see|understand|understood|agree|appreciate|know|guess|suppose|hear|bet|apologi[sz]e|mean|got it|hope so"
    r"|think so|believe so|get it|sorry|glad|happy to hear|ready|listening|waiting|sure|here|back|with|all ears"
    r"|good|fine|okay|ok|excited to hear|curious|look forward|looking forward|thankful|grateful|impressed|on board)\b"
    r"|^(?:it's |that's |this is )?my (?:bad|apolog\w+|mistake|point|question|patience|pleasure)\b"
)
_THANKS = re.compile(
    r"\b(?:thanks?|thank you|thx|cheers|welcome|congrat\w*|good (?:luck|job|morning|night|evening)|take care|see you"
    r"|talk (?:to you )?soon|bye|have a (?:great|good|nice))\b"
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_EMPTY = words(
    """
    yes yeah yep no nope ok okay sure right alright well oh ah hey hi hello wow please thanks thank really very good
    great nice fine perfect exactly absolutely definitely cool awesome amazing thing things something anything
    everything stuff way lot bit got get go going know think see say said sound sounds like want need feel make made
    let look looks one two much many time now today here there back still even maybe guess hope thought mean i'm
    i've i'll i'd it's that's don't can't didn't let's you're we're what's there's
    """
)


def is_question(lower: str, end: str) -> bool:
    """It asks, with a question mark or by its first word."""
    if end == "?":
        return True
    first = _WORD.match(lower)
    return first is not None and first[0] in _ASKING and not _TELLING.match(lower)


def is_command(lower: str) -> bool:
    """It tells the listener to do something: it begins with the verb."""
    first = next((word for word in _WORD.findall(lower[:80]) if word not in _BEFORE_COMMAND), "")
    return first in _COMMANDS


def is_request(lower: str) -> bool:
    return bool(_REQUEST.search(lower))


def is_hypothetical(lower: str) -> bool:
    return bool(_HYPOTHETICAL.search(lower))


def is_play(lower: str) -> bool:
    """Play and instructions for it: "act as", "you are a"."""
    return bool(_PLAY.search(lower))


def is_chatter(lower: str) -> bool:
    """Politeness, agreement and talk about the talk."""
    return bool(_CHATTER.match(lower)) or bool(_THANKS.search(lower))


def content_words(lower: str) -> list[str]:
    """The words that say something: no stop words, no small talk."""
    return [
        word
        for word in _WORD.findall(lower)
        if word not in _EMPTY and word not in STOP_WORDS and word.split("'")[0] not in STOP_WORDS
    ]
