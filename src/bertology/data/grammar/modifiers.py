"""Adjectives, adverbs, times and function words of the grammar."""

from __future__ import annotations

# Which list of adjectives each sort of noun draws from.
SORT_GROUPS = """
person: person
kin: kin
animal: animal
food: fruit baked dish
mass: foodmass
drink: drink
document: writing
print: print
picture: picture
object: tool
container: container
furniture: furniture
structure: opening structure
vehicle: vehicle vessel rideable
clothing: clothing
plant: plant
music: music
toy: toy
valuable: valuable
idea: idea
puzzler: puzzler
event: event
home: home
town: town
land: land
building: building
"""

# Adjectives before the noun.
ADJECTIVES = """
person: old young kind tall clever smart tired quiet famous friendly polite brave honest proud
    lonely nervous cheerful busy patient strict generous careless curious lazy shy wealthy rich
    gentle talented
kin: young old older younger kind favorite
animal: small big large old young hungry brown black white wild friendly thin sleepy gray spotted
food: fresh delicious tasty small large enormous
mass: fresh delicious tasty warm
drink: cold hot fresh warm
document: long short old new important interesting strange boring useful
print: old new useful expensive strange
picture: old beautiful famous small large colorful
object: old new small heavy useful cheap ordinary broken
container: old new small heavy large empty blue
furniture: wooden old new heavy small large broken antique
structure: wooden old new small large damaged
vehicle: old new red blue small expensive yellow fast
clothing: red blue green warm old new woolen elegant dirty expensive white black
plant: tall old beautiful small young
music: old expensive new beautiful
toy: small red wooden new colorful yellow
valuable: expensive golden precious small old beautiful silver
idea: simple new strange important difficult bold unusual
puzzler: strange old simple difficult terrible
event: long important noisy annual short boring
home: small dark tidy cozy large
town: busy old crowded quiet small new modern
land: quiet beautiful distant small remote
building: old small large abandoned white beautiful
"""

# Adjectives after a form of "be".
PREDICATES = """
person: tired hungry happy glad sad angry nervous busy late ready sick ill proud bored thirsty
    afraid famous friendly polite brave honest lonely shy clever careful curious calm jealous
kin: tired hungry happy sad angry busy late ready sick bored shy clever
animal: hungry tired thirsty sleepy asleep restless friendly wild
food: delicious fresh tasty enormous ready expensive
mass: delicious fresh cold ready warm
drink: cold hot ready warm sweet
document: long short interesting important boring useful strange
print: old useful expensive missing new
picture: beautiful old famous strange
object: heavy old useful broken cheap missing
container: heavy old empty missing large
furniture: heavy old comfortable broken expensive
structure: old wooden damaged new
vehicle: old new expensive fast dirty
clothing: warm dirty clean expensive dry wet
plant: tall beautiful old healthy
music: expensive old beautiful
toy: colorful new missing broken
valuable: precious expensive missing beautiful
idea: simple important strange difficult
puzzler: simple strange difficult serious
event: long noisy boring important
home: small dark tidy empty cozy
town: busy crowded quiet closed empty
land: quiet beautiful distant
building: old empty small beautiful abandoned
"""

# Adverbs of manner, by the kind of action; each verb names its kind.
MANNER = """
care: carefully quickly slowly patiently quietly
social: warmly kindly politely gladly
harsh: harshly openly loudly unfairly angrily
speech: quietly softly calmly loudly politely
eating: slowly quickly happily hungrily eagerly
motion: slowly quickly quietly suddenly
feeling: secretly truly
devotion: secretly truly deeply
stealth: secretly quietly quickly
insight: finally gradually clearly
trade: finally happily quickly
sense: suddenly clearly briefly
mishap: accidentally suddenly carelessly
mind: quickly finally gladly
change: suddenly finally
patience: patiently carefully slowly
preparation: carefully quickly finally
warmth: warmly gladly tightly
attention: carefully quietly patiently politely
loud: loudly suddenly softly
growth: slowly rapidly
burn: slowly brightly
"""

FREQUENCY = "often usually sometimes rarely always"

# Times by tense: "adv" one adverb, "bare" a noun phrase, "in/on/at" a prepositional phrase.
TIMES = """
past: bare:yesterday bare:last_week bare:last_night bare:last_summer bare:last_month on:Monday
    on:Tuesday on:Sunday at:noon in:the_morning in:the_evening bare:this_morning ago:two_days
    ago:three_weeks at:midnight on:Friday
future: bare:tomorrow bare:next_week bare:next_month bare:next_year adv:soon adv:tonight on:Saturday
    on:Thursday in:the_morning bare:tomorrow
present: bare:every_day bare:every_week bare:every_morning bare:every_evening on:Sundays
now: adv:now bare:today adv:right_now bare:this_morning
perfect: adv:recently bare:today adv:twice adv:again
"""

# States that explain what somebody did, or make it remarkable.
CAUSES = """
because: bored curious lonely worried happy nervous angry kind impatient
although: tired busy nervous angry sad sick shy afraid
mishap: tired careless nervous impatient
"""

# What one is or is not; "very" does not go with these.
ABSOLUTE = frozenset(
    {
        "missing",
        "broken",
        "closed",
        "asleep",
        "wooden",
        "ready",
        "new",
        "abandoned",
        "enormous",
        "delicious",
        "empty",
        "damaged",
    }
)

ADJECTIVE_SYNONYMS = "clever=smart wealthy=rich big=large delicious=tasty sick=ill happy=glad"
ADVERB_SYNONYMS = "quickly=rapidly quietly=silently"

# Closed classes, listed so that the size of the lexicon can be stated.
FUNCTION_WORDS = """
the a an some every no many several few most these this that any two three
I you he she it we they me him her us them my your his its our their
myself yourself himself herself itself ourselves themselves who where when why there
not never n't ever and or but because while before after although if unless since
to by of in on at near behind beside from with for about ago 's
be have do will can must should might very really quite too already just once recently soon
probably supposedly perhaps hopefully certainly definitely clearly undoubtedly
surprising strange obvious clear possible likely important easy difficult hard fun impossible
dangerous useful
"""
