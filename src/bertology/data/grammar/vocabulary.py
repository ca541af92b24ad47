"""The words of the grammar, as tables: nouns and names, verbs, adjectives, adverbs, times."""

from __future__ import annotations

# The nouns and names of the grammar, by the sort of thing they name.
#
# One line per sort. An entry is `singular`, `singular/plural` where the plural is irregular, and
# `…:m` or `…:f` where the word itself settles the pronoun. Sorts are what verbs select for.

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


# The verbs of the grammar: paradigms, frames, and what each may take as its arguments.
#
# A line of TRANSITIVE reads
#
#     forms | frame | subject sorts | object sorts | roles | manner | places | flags
#
# (an indented line goes on with the one before). `forms` is `base past participle [ing]` (one form:
# regular; the -ing form is given only where the consonant doubles), sorts name lines of NOUNS
# or, after "=", single nouns, `manner` names a line of MANNER, `places` one of
# SCENES.
# Flags: s stative (no progressive), n no passive, g no progressive, o the object may be left out,
# r also reflexive, y symmetric, 1 one object at a time.

TRANSITIVE = """
repair | Repairing | person | opening structure vehicle vessel rideable furniture music =clock
    =radio =ladder | agent patient | care | w |
fix | Repairing | person | opening structure vehicle vessel rideable furniture =clock =radio |
    agent patient | care | w |
paint | Painting | person | opening structure building furniture vessel | agent patient | care | |
build built built | Building | person | structure building vessel | agent product | care | |
clean | Cleaning | person | furniture vehicle opening tool home | agent patient | care | |
wash | Cleaning | person | clothing vehicle fruit =cup =bowl =bottle | agent patient | care | |
break broke broken | Breaking | person | container toy tool opening music =mirror | agent
    patient | mishap | | g
open | Opening | person | opening =box =basket =bag =bottle =jar =suitcase =package | agent
    patient | care | |
close | Closing | person | opening =box =basket =bag =bottle =jar =suitcase =package =book |
    agent patient | care | |
lock | Closing | person | =door =gate =suitcase =house =car =drawer | agent patient | care | |
carry carried carried | Carrying | person | container tool toy music fruit =chair =bench | agent
    theme | care | n |
lift | Moving | person | container furniture =ladder =rope | agent theme | care | | 1
push | Moving | person | vehicle furniture rideable =barrel | agent theme | care | | 1
drop dropped dropped dropping | Dropping | person | container tool toy fruit valuable print |
    agent theme | mishap | n |
hide hid hidden | Hiding | person | valuable writing tool toy print | agent theme | stealth | n |
find found found | Finding | person | valuable writing toy clothing print =umbrella =camera |
    agent theme | change | n | g
lose lost lost | Losing | person | valuable clothing toy print =umbrella =camera | agent theme |
    mishap | n | g
steal stole stolen | Theft | person | valuable vehicle rideable picture music =horse =computer |
    agent theme | stealth | s | 1
buy bought bought | Buying | person | vehicle clothing fruit baked furniture music valuable
    print toy tool building | agent theme | trade | b |
purchase | Buying | person | vehicle clothing furniture music valuable building | agent theme |
    trade | b |
sell sold sold | Selling | person | vehicle clothing fruit baked furniture music valuable
    building =horse =cow =goat =pig =pony =hen =puppy =kitten | agent theme | trade | b |
borrow | Borrowing | person | tool writing vehicle rideable music print | agent theme | trade |
    | 1
paint | Drawing | person | picture | agent product | care | |
admire | Liking | person | picture valuable music clothing building plant | experiencer stimulus
    | devotion | | s
read read read | Reading | person | writing =newspaper =magazine =contract =menu | agent theme |
    care | r | o
write wrote written | Writing | person | writing | agent product | care | r | o
translate | Translating | person | writing =contract | agent theme | care | |
publish | Publishing | person | =book =report =novel =poem =article =story =essay =review
    =photograph | agent theme | mind | |
study studied studied | Studying | person | writing =map =contract =photograph picture | agent
    theme | care | r | o
photograph | Photographing | person | animal building plant land vessel | agent theme | care | |
sign | Signing | person | =contract =letter =report =photograph | agent theme | care | | 1
eat ate eaten | Eating | person | fruit baked dish foodmass | agent patient | eating | e | o
drink drank drunk | Drinking | person | drink | agent patient | eating | e |
cook | Cooking | person | dish =soup =rice =pasta =stew =porridge | agent product | care | k | o1
bake | Cooking | person | baked =bread | agent product | care | k | o
taste | Tasting | person | baked fruit =soup =stew =cheese drink | agent theme | eating | k |
serve | Serving | person | dish baked drink =soup =pasta | agent theme | social | e |
pour | Pouring | person | drink | agent theme | care | k |
wear wore worn | Wearing | person | =coat =hat =shirt =dress =scarf =jacket =uniform | agent
    theme | | s | n1
fold | Folding | person | clothing =map =newspaper =letter | agent theme | care | |
drive drove driven | Driving | person | vehicle | agent theme | care | | o1
park | Parking | person | vehicle rideable | agent theme | care | p | 1
ride rode ridden | Riding | person | =horse =pony =donkey rideable =motorcycle | agent theme |
    care | o | 1
plant | Planting | person | plant | agent theme | care | g |
water | Watering | person | plant | agent theme | care | |
pick | Picking | person | =apple =pear =cherry =plum =mushroom =flower =rose =tomato | agent
    theme | care | g |
play | Performing | person | music | agent theme | speech | m | 1
tune | Tuning | person | =piano =guitar =violin =radio | agent theme | care | | 11
plan planned planned planning | Planning | person | event | agent theme | preparation | | 1
attend | Attending | person | event | agent theme | | | 1
organize | Planning | person | event | agent theme | preparation | | 1
cancel | Canceling | person | event | agent theme | change | | g1
enjoy | Liking | person | event dish baked picture writing | experiencer stimulus | feeling | |
explain | Explaining | person | idea puzzler | agent theme | speech | |
discuss | Discussing | person | idea puzzler event writing | agent theme | speech | s |
accept | Accepting | person | =proposal =suggestion =decision =offer =rule =plan | agent theme |
    mind | |
reject | Rejecting | person | =proposal =suggestion =offer =theory =plan =idea | agent theme |
    mind | |
support | Supporting | person | idea | agent theme | social | | s
understand understood understood | Knowing | person | idea puzzler | experiencer stimulus |
    insight | | s
remember | Remembering | person | idea event writing =secret =question | experiencer stimulus |
    sense | | s
forget forgot forgotten forgetting | Forgetting | person | =plan =idea =rule =question =meeting
    =party =story =poem =umbrella | experiencer stimulus | mishap | | g
ignore | Ignoring | person | idea puzzler person | agent theme | | |
solve | Solving | person | =problem =mystery =puzzle | agent theme | mind | | 1
describe | Describing | person | idea puzzler picture building land | agent theme | speech | |
visit | Visiting | person | town land person building | agent theme | | | 1
explore | Exploring | person | =forest =island =valley =harbor =village =castle =cabin =attic
    =basement | agent theme | care | | 1
enter | Entering | person | building =library =museum =church =theater =hospital =forest
    =kitchen =garden | agent theme | motion | | 1
leave left left | Departing | person | =library =museum =church =theater =office =station
    =village =farm =island =party =meeting =house | agent theme | motion | | 1
examine | Inspecting | person | picture valuable tool print plant vehicle | agent theme | care | |
notice | Perceiving | person | person animal valuable container =mistake =problem vehicle |
    experiencer stimulus | sense | n | g
see saw seen | Perceiving | person animal | person animal vehicle vessel | experiencer stimulus
    | sense | n | s
hear heard heard | Perceiving | person animal | person animal music | experiencer stimulus |
    sense | o | s
watch | Observing | person animal | person animal vessel | agent stimulus | care | o |
like | Liking | person | person animal fruit baked dish drink toy picture event | experiencer
    stimulus | feeling | | s
love | Liking | person | person animal music baked drink land | experiencer stimulus | devotion
    | | s
hate | Disliking | person | person event fruit =rule foodmass | experiencer stimulus | feeling |
    | s
need | Needing | person | tool container clothing vehicle | experiencer theme | | | sn
own | Owning | person | vehicle vessel building animal music | possessor theme | | | s
thank | Thanking | person | person | agent recipient | social | |
help | Helping | person | person | agent beneficiary | social | s |
assist | Helping | person | person | agent beneficiary | social | |
greet | Greeting | person | person | agent recipient | social | s |
welcome | Greeting | person | person | agent recipient | social | s |
follow | Following | person animal | person animal | agent theme | motion | |
meet met met | Meeting | person | person | agent theme | | s | yg
call | Contacting | person | person | agent recipient | | |
phone | Contacting | person | person | agent recipient | | |
invite | Inviting | person | person | agent recipient | social | |
respect | Liking | person | person | experiencer stimulus | devotion | | s
trust | Trusting | person | person | experiencer stimulus | devotion | | sr
fear | Fearing | person | person animal | experiencer stimulus | devotion | | s
praise | Praising | person | person | agent recipient | speech | | r
criticize | Criticizing | person | person idea writing | agent recipient | harsh | | r
blame | Blaming | person | person | agent recipient | harsh | | r
warn | Warning | person | person | agent recipient | speech | |
hug hugged hugged hugging | Embracing | person | person | agent theme | warmth | s | y
embrace | Embracing | person | person | agent theme | warmth | s | y
interview | Questioning | person | person | agent recipient | attention | s |
question | Questioning | person | person | agent recipient | care | |
hire | Hiring | person | person | agent theme | trade | |
employ | Hiring | person | person | agent theme | | |
advise | Advising | person | person | agent recipient | social | |
avoid | Avoiding | person animal | person animal | agent theme | | |
recognize | Recognizing | person | person valuable building | experiencer stimulus | sense | s | g
encourage | Encouraging | person | person | agent beneficiary | social | |
comfort | Comforting | person | person | agent beneficiary | social | |
rescue | Rescuing | person | person animal | agent theme | change | o |
save | Rescuing | person | person animal | agent theme | change | |
defend | Defending | person | person idea | agent beneficiary | care | | r
forgive forgave forgiven | Forgiving | person | person | agent recipient | social | | r
insult | Insulting | person | person | agent recipient | harsh | |
protect | Protecting | person | person animal valuable | agent beneficiary | care | | r
surprise | Surprising | person | person | stimulus experiencer | | s | g
amuse | Amusing | person animal | person | stimulus experiencer | | | r
annoy | Annoying | person animal | person | stimulus experiencer | | | g
frighten | Frightening | person animal | person animal | stimulus experiencer | change | o | g
impress | Impressing | person | person | stimulus experiencer | | | g
hurt hurt hurt | Hurting | person | person | agent patient | mishap | | gr
marry married married | Marrying | person | person | agent theme | | | yg1
photograph | Photographing | person | person | agent theme | care | o | r
draw drew drawn | Drawing | person | person building picture plant =map | agent product | care |
    o | r
feed fed fed | Feeding | person | animal | agent recipient | care | g |
pet petted petted petting | Touching | person | =dog =cat =horse =rabbit =pony =kitten =puppy
    =lamb =goat | agent theme | social | g |
train | Training | person | =dog =horse =pony =parrot =puppy | agent theme | care | o |
chase | Chasing | animal | animal person | agent theme | motion | o |
bite bit bitten | Biting | =dog =wolf =fox =parrot =horse =goat | person animal | agent patient
    | change | |
catch caught caught | Catching | animal person | =mouse =rabbit =duck =hen =squirrel | agent
    theme | change | o | g
"""

INTRANSITIVE = """
sleep slept slept | Sleeping | person animal | agent | | z |
laugh | Expressing | person | agent | speech | s |
smile | Expressing | person | agent | social | |
cry cried cried | Expressing | person | agent | speech | z |
wait | Waiting | person animal | agent | | s |
arrive | Arriving | person vehicle vessel | theme | | v | g
work | Working | person | agent | care | j |
rest | Resting | person animal | agent | | o |
dance | Moving | person | agent | | m |
sing sang sung | Performing | person =bird | agent | speech | m |
swim swam swum swimming | Moving | person =duck =dog =bear | agent | | y |
run ran run running | Moving | person animal | agent | motion | o |
jump | Moving | person animal | agent | | |
wander | Moving | person animal | agent | motion | o |
travel | Moving | person | agent | | |
resign | Resigning | person | agent | change | |
apologize | Apologizing | person | agent | social | |
shout | Speaking | person | agent | harsh | s |
whisper | Speaking | person | agent | | r |
listen | Listening | person | agent | attention | |
relax | Resting | person | agent | | o |
disappear | Vanishing | person animal valuable | theme | change | o | g
escape | Escaping | person animal | agent | change | | g
stay | Staying | person | agent | | v |
bark | Sounding | =dog =puppy =fox | agent | loud | g |
fall fell fallen | Falling | person =tree =ladder picture =shelf container | theme | change | n
    | g
collapse | Collapsing | structure =barn =tower =cabin =tent | patient | change | | g
bloom | Growing | =rose =flower =tulip =lily =bush | theme | | g |
grow grew grown | Growing | plant | theme | growth | g |
burn | Burning | baked =candle =barn =cabin | patient | burn | |
begin began begun beginning | Beginning | event | theme | | |
end | Ending | event | theme | change | | g
creak | Sounding | =door =gate =staircase =chair =bed | theme | loud | |
stop stopped stopped stopping | Stopping | vehicle person =clock | theme | change | x | g
"""

# Verbs of giving: the theme may be given *to* somebody, or made or bought *for* somebody.
DITRANSITIVE = """
give gave given | Giving | to | valuable toy writing fruit clothing tool print baked | mind | |
send sent sent | Sending | to | writing print valuable =package picture | mind | |
show showed shown | Showing | to | picture print writing valuable vehicle building | care | |
lend lent lent | Lending | to | tool vehicle rideable writing music clothing | social | |
offer | Offering | to | fruit baked drink =chair =sandwich =blanket | social | s |
hand | Giving | to | tool container print writing fruit clothing | care | |
sell sold sold | Selling | to | vehicle valuable building furniture music | trade | |
bring brought brought | Bringing | to | dish drink baked print container plant | care | |
mail | Sending | to | writing =package =photograph =contract | mind | |
pass passed passed | Giving | to | =cup =bowl =bottle =hammer =rope =note foodmass | care | k |
teach taught taught | Teaching | to | =poem =rule =recipe | patience | |
promise | Promising | to | valuable toy =kitten =puppy | mind | |
buy bought bought | Buying | for | clothing valuable toy rideable music | trade | |
bake | Cooking | for | =cake =pie =cookie =muffin =pizza | care | |
build built built | Building | for | building =fence =boat =desk =shelf | care | |
find found found | Finding | for | tool clothing =chair =book | change | | g
cook | Cooking | for | =meal =dinner =omelet =soup =stew | care | | 1
"""

# Verbs that take a that-clause. f: what the clause says is so.
COMPLEMENT = """
say said said | Stating |
think thought thought | Opinion | s
believe | Opinion | s
know knew known | Awareness | fs
hope | Desiring |
claim | Stating |
notice | Awareness | fg
hear heard heard | Hearsay | s
discover | Discovering | fg
realize | Awareness | fg
remember | Remembering | fs
suspect | Opinion | s
doubt | Doubting | s
learn | Discovering | fg
admit admitted admitted admitting | Stating | f
regret regretted regretted regretting | Regretting | fs
announce | Stating |
report | Stating |
"""

CONTROL = """
want | Desiring | s
hope | Desiring |
try tried tried | Attempting |
decide | Deciding | g
refuse | Refusing | g
promise | Promising |
manage | Achieving | g
forget forgot forgotten forgetting | Forgetting | g
need | Needing | s
agree | Agreeing | g
prefer preferred preferred preferring | Desiring | s
"""

OBJECT_CONTROL = """
ask | Requesting
tell told told | Requesting
persuade | Persuading
encourage | Encouraging
order | Requesting
force | Forcing
allow | Permitting
advise | Advising
remind | Reminding
teach taught taught | Teaching
"""

# Verbs whose subject may be a that-clause: "It surprised the teacher that …".
SURPRISE = """
surprise | Surprising
amuse | Amusing
annoy | Annoying
worry worried worried | Worrying
please | Pleasing
bother | Annoying
upset upset upset upsetting | Worrying
delight | Pleasing
"""

# What one does day by day, alone.
HABITS = (
    "laugh",
    "smile",
    "sing",
    "dance",
    "sleep",
    "work",
    "travel",
    "swim",
    "run",
    "whisper",
    "shout",
    "relax",
)

# Verbs of going somewhere, with a goal.
MOTION = (
    "walk",
    "hurry hurried hurried",
    "drive drove driven",
    "run ran run running",
    "return",
    "travel",
)

VERB_SYNONYMS = (
    "repair=fix buy=purchase help=assist rescue=save call=phone greet=welcome hire=employ"
)


# Adjectives, adverbs, times and function words of the grammar.

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
