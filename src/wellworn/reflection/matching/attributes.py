"""Which things a person, a project or a plan has one of at a time. Tables only, as keys the reading gives."""

from __future__ import annotations

from wellworn.reflection.matching.reading import key_of


def _keys(text: str) -> frozenset[str]:
    return frozenset(key_of(word) for word in text.split())


def _places(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(","))


PERSONS = _keys(
    """boss manager supervisor landlord landlady therapist wife husband boyfriend girlfriend partner spouse fiance
    fiancee employer airline"""
)
"""Attributes whose value is a name."""
AMOUNTS = _keys(
    """height weight salary income rent budget deadline price cost rate balance score rank capacity limit
    quota headcount speed temperature size port room gate seat floor pin version bedtime phone number age wage fee
    allowance mileage"""
)
"""Attributes whose value has a number or a day in it."""
WORDED = _keys(
    """nickname surname email address username handle job role position profession occupation major diet car timezone
    zone plate postcode status level branch editor browser pronouns host hostname region language framework engine
    provider tariff team department title password"""
)
"""Attributes whose value is a word or a name."""
SINGLE = PERSONS | AMOUNTS | WORDED
"""Attributes with one value at a time: another value is a change."""
LASTING = _keys("birthday birthplace hometown nationality blood born origin maiden ")
"""Attributes that do not change: another value is a mistake somewhere."""
PASSING = _keys("new current latest present")
"""Words that tell when an attribute was told, not which it is: the new number is the number."""
CHOSEN = _keys("favorite preferred default main primary native")
"""Words that make any attribute single: the favourite band, the default branch."""
PARTNERS = _keys("wife husband spouse")
DATED = _keys("wedding launch graduation deadline surgery release funeral premiere defense defence finale")
"""Events that happen once: another date is a change, without anyone saying so."""
STATUSES = _keys("single married engaged divorced separated widowed dating relationship")
DIETS = _keys("vegetarian vegan pescatarian omnivore flexitarian keto kosher halal carnivore")
MEASURES = _keys("weigh earn cost")
IDLE = _keys("retired unemployed jobless")
HYPOTHETICAL = _keys(
    """plan want maybe would should must hope consider think try can ask wonder dream intend offer might wish
    believe suggest recommend say tell claim know interview apply say imagine discuss talk"""
)
"""Verbs and modals after which nothing is asserted."""
OCCUPATIONS = _keys(
    """engineer developer programmer designer nurse doctor surgeon dentist teacher professor lecturer tutor lawyer
    solicitor judge accountant architect manager director analyst consultant scientist researcher physicist chemist
    biologist writer author journalist editor translator interpreter artist painter sculptor photographer musician actor
    actress singer dancer chef cook baker waiter waitress bartender barista driver pilot sailor electrician plumber
    carpenter mechanic farmer gardener vet veterinarian pharmacist psychologist psychiatrist therapist cardiologist
    paramedic firefighter policeman policewoman detective soldier officer librarian salesman saleswoman salesperson
    cashier secretary receptionist assistant banker broker economist statistician politician diplomat entrepreneur
    founder ceo cto cfo freelancer student intern apprentice hairdresser tailor butcher cleaner postman builder surveyor
    technician administrator sysadmin recruiter trainer coach principal headteacher midwife radiologist optician
    clerk trader curator marketer copywriter lead"""
)
CASUAL = _keys(
    """student intern freelancer founder entrepreneur coach trainer officer lead assistant author writer artist painter
    musician singer dancer photographer cook baker gardener actor actress tutor sailor translator farmer trader
    consultant judge editor"""
)
"""Occupations that are held beside another, so a second one alone is no change."""
NO_EMPLOYERS = _keys("home night sea day heart free himself herself myself themselves nothing peanuts least once")
"""What stands after "works at" or "works for" without employing anyone."""
PRAISE = _keys("good great bad excellent talented terrible natural born brilliant lousy decent keen gifted amateur")
"""Words that make an occupation a talent: a good teacher need not teach."""
KINDRED = [
    _keys(line)
    for line in (
        "doctor surgeon cardiologist radiologist psychiatrist dentist",
        "engineer developer programmer lead technician",
        "teacher professor lecturer tutor coach trainer principal",
        "manager director lead ceo cto cfo founder entrepreneur",
        "writer author journalist editor copywriter",
        "artist painter sculptor photographer designer",
        "scientist researcher physicist chemist biologist statistician analyst student professor",
        "musician singer actor actress dancer artist",
        "chef cook baker",
        "lawyer solicitor judge",
    )
]
"""Occupations of which one may be another's plainer name: no change without a word that says so."""
WIDE_PLACES = _places(
    """
    africa, america, asia, europe, australia, us, uk, england, scotland, wales, ireland, germany, france, spain,
    portugal, italy, austria, switzerland, netherlands, the netherlands, holland, belgium, luxembourg, denmark, norway,
    sweden, finland, iceland, poland, czechia, czech republic, slovakia, hungary, slovenia, croatia, serbia, romania,
    bulgaria, greece, turkey, ukraine, russia, belarus, estonia, latvia, lithuania, israel, egypt, morocco, tunisia,
    algeria, nigeria, ghana, kenya, ethiopia, tanzania, uganda, south africa, china, japan, korea, south korea, india,
    pakistan, bangladesh, nepal, sri lanka, thailand, vietnam, indonesia, malaysia, singapore, philippines, taiwan,
    new zealand, canada, mexico, brazil, argentina, chile, peru, colombia, venezuela, ecuador, cuba, iran, iraq,
    saudi arabia, uae, qatar, jordan, lebanon, california, texas, florida, washington, oregon, nevada, arizona, utah,
    colorado, ohio, michigan, illinois, georgia, virginia, massachusetts, new jersey, pennsylvania, maryland, bavaria,
    catalonia, ontario, quebec, tuscany, brittany, hokkaido, scandinavia, balkans, midwest
    """
)
"""Places in which other places lie: living in one says nothing against living in a town."""
