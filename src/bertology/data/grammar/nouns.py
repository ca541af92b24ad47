"""The nouns and names of the grammar, by the sort of thing they name.

One line per sort. An entry is `singular`, `singular/plural` where the plural is irregular, and
`…:m` or `…:f` where the word itself settles the pronoun. Sorts are what verbs select for.
"""

from __future__ import annotations

NOUNS = """
person: farmer teacher doctor nurse pilot lawyer student neighbor artist singer writer baker
    gardener driver waiter:m waitress:f king:m queen:f actor:m actress:f engineer judge soldier
    sailor hunter painter dancer musician librarian mayor manager tailor butcher carpenter plumber
    journalist editor scientist professor banker dentist shopkeeper firefighter
    detective captain coach guest visitor tourist traveler stranger hiker cook tenant secretary
    architect chemist clerk merchant prince:m princess:f man/men:m woman/women:f boy:m girl:f
    child/children teenager reporter witness poet senator physician attorney kid lady:f
kin: uncle:m aunt:f father:m mother:f brother:m sister:f grandfather:m grandmother:f son:m
    daughter:f cousin nephew:m niece:f friend
animal: dog cat horse cow goat pig duck rabbit fox bear wolf/wolves mouse/mice bird pony donkey
    puppy kitten parrot hen owl lamb squirrel
fruit: apple pear orange lemon peach cherry plum tomato carrot potato mushroom
baked: cake pie cookie pancake muffin loaf/loaves pizza
dish: sandwich meal salad omelet breakfast dinner
foodmass: bread soup rice cheese pasta stew butter honey porridge
drink: tea coffee milk water juice lemonade wine
writing: letter book report novel poem article note story diary speech essay recipe review
print: newspaper map magazine dictionary ticket contract photograph notebook calendar menu
picture: picture painting portrait drawing
tool: hammer ladder shovel rope saw brush camera telephone radio computer umbrella lamp candle
    clock flashlight compass kettle broom
container: box basket bag bucket bottle jar suitcase barrel cup vase bowl package
furniture: table chair sofa desk bench shelf/shelves bed mirror cupboard
opening: door gate window drawer
structure: fence roof wall bridge staircase chimney balcony porch
vehicle: car truck bus van tractor taxi motorcycle
vessel: boat ship ferry
rideable: bicycle scooter
clothing: coat hat shirt dress scarf/scarves jacket sweater glove shoe boot uniform blanket
plant: tree rose flower bush tulip lily vine
music: piano guitar violin flute drum trumpet
toy: ball doll kite puzzle balloon
valuable: ring necklace coin watch bracelet medal key wallet crown statue
idea: plan idea proposal suggestion decision offer theory rule
puzzler: problem question mistake mystery secret
event: meeting party concert wedding game lecture festival ceremony trial race
home: kitchen garden attic basement bedroom yard garage
town: library market station school museum hotel hospital office restaurant park church theater
    airport bakery bank
land: river lake forest beach hill village field harbor mountain valley farm meadow island city town
building: house barn cottage castle tower cabin tent
"""

PERSON_NAMES = """
m: Adam Ben Carlos Daniel Edward Felix George Henry Isaac James Kevin Leo Martin Nathan Oscar Peter
    Robert Samuel Thomas Victor Walter Simon Paul David Michael Arthur Oliver Hugo Lucas Jacob
f: Alice Bella Clara Diana Emma Fiona Grace Helen Irene Julia Karen Laura Maria Nora Olivia Paula
    Rachel Sarah Teresa Vera Wendy Anna Susan Lucy Ruth Eva Sophie Martha Emily
"""

MASS_SORTS = ("foodmass", "drink")

# The preposition that says "at this place" most naturally.
LOCATIVES = """
in: kitchen garden attic basement bedroom yard garage library museum hotel hospital office
    restaurant park church theater forest village field valley meadow bakery bank city town barn
    tower castle cabin house
at: market station school airport
on: beach hill mountain farm island
near: river lake harbor
"""

# Where things of one kind are done; verbs name a line.
SCENES = """
w: garage yard garden
n: garden station market park school forest field village kitchen garage beach
s: park station market school library garden hotel restaurant village theater office museum city
b: market village city town
r: library garden office bedroom park school hotel kitchen
e: kitchen garden park restaurant hotel
k: kitchen
p: station hotel airport school
o: park garden forest field beach hill meadow village river lake farm
g: garden yard park field
m: theater park garden restaurant church school village
z: bedroom garden attic cabin hotel
v: station airport hotel village city island harbor
j: office hospital bakery library museum garden bank hotel field
x: station bank bakery river lake harbor
y: lake river
"""

# People of whom there is only one to speak of.
UNIQUE = frozenset({"king", "queen", "prince", "princess", "mayor"})

# What one is without its being a trade.
UNEMPLOYED = frozenset(
    {
        "neighbor",
        "guest",
        "visitor",
        "tourist",
        "stranger",
        "tenant",
        "king",
        "queen",
        "prince",
        "princess",
        "man",
        "woman",
        "boy",
        "girl",
        "child",
        "teenager",
        "witness",
        "kid",
        "lady",
        "traveler",
        "mayor",
    }
)

NOUN_SYNONYMS = "doctor=physician lawyer=attorney child=kid woman=lady picture=painting"
