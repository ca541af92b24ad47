"""The verbs of the grammar: paradigms, frames, and what each may take as its arguments.

A line of TRANSITIVE reads

    forms | frame | subject sorts | object sorts | roles | manner | places | flags

(an indented line goes on with the one before). `forms` is `base past participle [ing]` (one form:
regular; the -ing form is given only where the consonant doubles), sorts name lines of nouns.NOUNS
or, after "=", single nouns, `manner` names a line of modifiers.MANNER, `places` one of
nouns.SCENES.
Flags: s stative (no progressive), n no passive, g no progressive, o the object may be left out,
r also reflexive, y symmetric, 1 one object at a time.
"""

from __future__ import annotations

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
