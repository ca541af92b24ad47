"""Sentences with a noun of two senses, whose context says which of them is meant, and pairs.

Sentences of both senses are built alike, so only the words of the context tell the sense. The table
is our own: a small check that works everywhere, no measure of English.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from bertology.data.grammar.rows import Row, Stream
from bertology.data.words.alignment import Span
from bertology.data.words.targets import targeted_pair
from bertology.data.words.treebank_words import treebank_text

# Nouns with two senses, and what surrounds each of them: a table of our own.
#
# For each sense: who does something, what is done to the thing that the noun names (verbs whose
# past is also their participle), and what else is the case. What stands after // is in the held-out
# splits only, so that no word of a context is both learnt and tested. The two senses of a noun
# share no word either; tests hold both.

CONTEXTS = """
bank: institution
who: cashier lender investor robber accountant customer // merchant widow trader borrower
did: robbed managed trusted audited // sued founded insured defrauded
and: the loans were cheap; the interest rose; the vault was locked; the savings doubled;
    the money arrived; the deposit was safe // the mortgage was paid; the credit ran out;
    the wages vanished; the account was empty
bank: shore
who: fisherman beaver otter angler swimmer rower // heron ferryman toad camper
did: reached followed climbed avoided // crossed searched approached left
and: the river was deep; the reeds were green; the trout jumped; the current was strong;
    the mud was soft; the willows bent // the stream was shallow; the tide fell;
    the canoe drifted; the ducks swam
bat: animal
who: zoologist caver owl ranger farmer naturalist // biologist falcon hermit monk
did: frightened photographed caught studied // disturbed fed released examined
and: the wings were torn; the cave was dark; the insects vanished; the moths were eaten;
    the night fell; the blood was fresh // the dusk came; the roost was noisy;
    the ears twitched; the cavern echoed
bat: club
who: batter catcher umpire coach player hitter // slugger captain rookie champion
did: swung dropped gripped lifted // raised polished cracked lost
and: the ball flew over the fence; the inning ended; the crowd cheered; the runner scored;
    the glove was worn; the helmet broke // the stadium roared; the league was won;
    the bases were full; the team celebrated
bass: fish
who: fisherman angler cook diver heron guide // waiter otter pelican chef
did: caught hooked fried cleaned // grilled netted weighed served
and: the lake was calm; the rod bent; the bait was gone; the fins shone; the water was cold;
    the scales glittered // the lemon was sour; the stream was clear; the sauce was hot;
    the boat rocked
bass: instrument
who: guitarist singer drummer musician composer producer // pianist conductor violinist rocker
did: played tuned recorded amplified // rented borrowed strummed repaired
and: the concert began; the melody was slow; the strings hummed; the band was loud;
    the drums joined in; the song ended // the album sold well; the tune was sad;
    the jazz was wild; the chord faded
spring: season
who: gardener farmer poet beekeeper shepherd florist // painter hiker bride grower
did: awaited enjoyed loved welcomed // missed celebrated expected praised
and: the flowers opened; the snow melted; the birds returned; the buds were green;
    April was warm; the tulips bloomed // the meadows turned yellow; the lambs were born;
    the frost ended; the cherries blossomed
spring: coil
who: mechanic engineer watchmaker inventor locksmith welder // plumber technician smith builder
did: stretched replaced compressed oiled // bent tightened fitted removed
and: the lever snapped; the mattress sagged; the wheel spun; the clock ticked;
    the steel was rusty; the valve closed // the wire uncoiled; the machine stopped;
    the screw was loose; the suspension creaked
seal: animal
who: sailor whaler zookeeper shark diver trainer // walrus fisherman bear vet
did: hunted fed chased rescued // spotted tagged petted followed
and: the ice cracked; the herring swam away; the whiskers were wet; the waves were high;
    the pups barked; the beach was empty // the ocean was grey; the flippers slapped;
    the aquarium was full; the rocks were slippery
seal: emblem
who: king notary clerk bishop chancellor lawyer // duke secretary pope magistrate
did: pressed forged stamped kept // attached copied examined melted
and: the wax was red; the letter was secret; the document was signed; the treaty was valid;
    the envelope was opened; the decree was law // the parchment was old; the charter was read;
    the ribbon was cut; the contract was void
match: game
who: referee striker goalkeeper coach boxer spectator // champion rival wrestler commentator
did: watched lost won postponed // attended cancelled interrupted dominated
and: the score was even; the fans sang; the penalty was missed; the stadium was full;
    the goal was late; the opponents were tired // the trophy was heavy; the whistle blew;
    the tournament ended; the crowd roared
match: stick
who: smoker camper arsonist soldier cook scout // tramp miner guard hunter
did: lit struck used burned // found dropped shielded wasted
and: the candle glowed; the cigarette was dry; the wood caught fire; the smoke rose;
    the lantern was bright; the stove was hot // the flame died; the pipe was empty;
    the sparks flew; the ashes were grey
ring: jewel
who: jeweler bride thief goldsmith countess groom // pawnbroker burglar aunt heiress
did: polished bought admired lost // sold engraved pawned inherited
and: the diamond sparkled; the wedding was near; the finger was thin; the gold was pure;
    the ruby was red; the engagement ended // the pearl was fake; the necklace matched;
    the emerald was missing; the silver shone
ring: arena
who: boxer wrestler referee trainer fighter heavyweight // contender promoter champion manager
did: entered circled left crossed // dominated cleaned inspected approached
and: the bell sounded; the gloves were laced; the ropes shook; the punch landed;
    the round was short; the jaw was broken // the fans booed; the knockout was quick;
    the title was taken; the judges disagreed
palm: tree
who: islander gardener monkey sailor botanist parrot // tourist nomad climber castaway
did: planted climbed watered photographed // painted passed trimmed sketched
and: the coconuts fell; the beach was white; the desert was hot; the leaves swayed;
    the island was small; the dates were sweet // the lagoon was blue; the oasis was near;
    the sand burned; the tropics were humid
palm: hand
who: nurse surgeon beggar masseur doctor lover // priest patient glover dancer
did: touched kissed bandaged washed // scratched squeezed slapped opened
and: the fingers were cold; the blister hurt; the wrist was swollen; the thumb bled;
    the skin was rough; the glove was tight // the nails were dirty; the scar was deep;
    the knuckles cracked; the handshake was firm
mouse: animal
who: cat owl farmer weasel biologist maid // fox snake hawk grandmother
did: chased caught fed trapped // swallowed followed heard spotted
and: the cheese was gone; the tail was long; the hole was small; the trap snapped;
    the kitten purred; the barn was quiet // the seeds were eaten; the whiskers shook;
    the nest was warm; the cellar was damp
mouse: device
who: programmer gamer secretary designer student hacker // typist teenager intern developer
did: clicked connected moved replaced // unplugged cleaned bought ordered
and: the screen froze; the keyboard was sticky; the cursor jumped; the software crashed;
    the cable was short; the laptop restarted // the monitor flickered; the password was wrong;
    the website loaded; the printer jammed
plant: vegetation
who: gardener botanist florist goat caterpillar grandmother // herbalist beekeeper rabbit farmer
did: watered trimmed picked potted // sprayed smelled dried chewed
and: the leaves were green; the soil was moist; the roots were deep; the blossom was yellow;
    the greenhouse was warm; the seeds sprouted // the stem was thin; the petals fell;
    the garden was sunny; the herbs grew tall
plant: factory
who: worker engineer manager investor foreman inspector // owner minister contractor company
did: closed visited inspected expanded // opened modernized sold financed
and: the machines stopped; the strike continued; the steel was cheap; the pollution was serious;
    the production rose; the wages were low // the turbines were huge; the profits sank;
    the chimney smoked; the jobs were saved
bark: tree
who: beaver carpenter woodpecker lumberjack deer forester // porcupine botanist carver moose
did: gnawed peeled removed scratched // stripped carved collected dried
and: the branches were bare; the oak was old; the sap was sticky; the forest was dense;
    the timber was sold; the beetles crawled out // the birch was white; the cork was soft;
    the pine was tall; the moss was thick
bark: sound
who: burglar postman neighbor puppy shepherd trainer // thief walker visitor poodle
did: heard feared recognized recorded // ignored imitated noticed cursed
and: the dog growled; the leash was short; the kennel was locked; the teeth were bared;
    the hound ran; the tail wagged // the terrier was awake; the collar was red;
    the pup whined; the guard was alert
trunk: elephant
who: keeper calf trainer lion hunter ranger // poacher crocodile vet monkey
did: touched stroked grabbed injured // scratched measured washed pulled
and: the elephant trumpeted; the tusks were long; the herd moved on; the peanuts were gone;
    the circus was full; the ivory was valuable // the zoo was open; the ears flapped;
    the savanna was dry; the mammoth was huge
trunk: car
who: driver mechanic smuggler policeman salesman chauffeur // traveler detective kidnapper motorist
did: unlocked searched loaded locked // emptied closed filled checked
and: the suitcase was heavy; the tire was flat; the engine stalled; the luggage was wet;
    the sedan was stolen; the bumper was bent // the jack was rusty; the bags were packed;
    the highway was busy; the brakes failed
organ: body
who: surgeon doctor donor nurse patient pathologist // coroner physician medic anatomist
did: removed donated examined transplanted // replaced cooled tested saved
and: the kidney was healthy; the blood was thin; the operation was long; the tumor was small;
    the liver failed; the scalpel was sharp // the heart stopped; the disease spread;
    the stitches held; the anesthetic worked
organ: instrument
who: organist priest choirboy bishop composer musician // pianist pastor monk nun
did: played tuned restored heard // rebuilt praised admired repaired
and: the hymn was solemn; the choir sang; the pipes were tall; the cathedral was cold;
    the fugue was slow; the pedals creaked // the chapel was full; the psalm ended;
    the keys were yellow; the congregation knelt
court: law
who: lawyer judge prosecutor defendant witness senator // attorney plaintiff victim convict
did: addressed convinced insulted petitioned // thanked deceived advised shocked
and: the verdict was guilty; the trial was long; the sentence was harsh; the evidence was thin;
    the appeal failed; the crime was proved // the lawsuit was lost; the prison was full;
    the statute was changed; the alibi was false
court: field
who: player champion ballboy umpire amateur coach // athlete sprinter beginner trainer
did: crossed swept entered measured // left covered painted rented
and: the net was low; the racket broke; the serve was fast; the volley was wide;
    the tournament began; the set was close // the backhand was weak; the basketball bounced;
    the game was over; the lines were white
deck: ship
who: sailor captain pirate passenger steward admiral // mate smuggler stowaway fisherman
did: scrubbed crossed washed searched // swept left mopped reached
and: the sails were torn; the anchor was raised; the waves were high; the mast fell;
    the harbor was near; the cabin was dry // the storm came; the yacht sank;
    the gulls screamed; the cargo was lost
deck: cards
who: dealer gambler magician player croupier cheat // conjurer cowboy barman widow
did: cut shuffled counted marked // dealt dropped fanned split
and: the ace was missing; the bet was wild; the poker was rigged; the joker was red;
    the queen was drawn; the chips were gone // the trick worked; the casino was closed;
    the spades were trumps; the jack won
star: sky
who: astronomer sailor physicist astronaut shepherd poet // astrologer navigator scientist pilgrim
did: observed measured photographed followed // discovered studied named mapped
and: the telescope was large; the night was clear; the galaxy was distant; the moon rose;
    the comet passed; the planets were visible // the orbit was stable; the sky was dark;
    the universe expanded; the eclipse ended
star: celebrity
who: director reporter fan producer photographer agent // journalist critic actress bodyguard
did: hired interviewed adored praised // criticized filmed married recognized
and: the film was a success; the audience applauded; the premiere was late;
    the actors were nervous; Hollywood was excited; the autograph was sold // the movie flopped;
    the fame faded; the gossip spread; the scenes were cut
"""


_OPENINGS = (
    "", "yesterday", "later", "at last", "once", "in the end", "that day", "last week",
    "on Monday", "this time",
)  # fmt: skip
_BETWEEN = ("and", "but", "while")


@dataclass(frozen=True)
class Sense:
    """One sense of a noun; each part of its context to learn from, and held out."""

    noun: str
    name: str
    who: tuple[tuple[str, ...], tuple[str, ...]]
    did: tuple[tuple[str, ...], tuple[str, ...]]
    clauses: tuple[tuple[str, ...], tuple[str, ...]]

    def sentence(self, rng: random.Random, *, held_out: bool) -> tuple[list[str], int]:
        """A sentence as its words, and where in it the noun is."""
        who, did, clause = (
            rng.choice(part[held_out]) for part in (self.who, self.did, self.clauses)
        )
        opening, between = rng.choice(_OPENINGS).split(), rng.choice(_BETWEEN)
        frame = rng.choice(("active", "passive", "last"))
        if frame == "active":
            told = [*opening, "the", who, did, "the", self.noun]
        elif frame == "passive":
            told = [*opening, "the", self.noun, "was", did, "by", "the", who]
        else:
            told = ["the", who, did, "the", self.noun]
        halves = [clause.split(), told] if frame == "last" else [told, clause.split()]
        words = [*halves[0], ",", between, *halves[1], "."]
        words[0] = words[0][0].upper() + words[0][1:]
        return words, words.index(self.noun)


def _read(table: str) -> Iterator[Sense]:
    lines = table.strip().replace("\n    ", " ").splitlines()
    for first, *rest in zip(*(lines[i::4] for i in range(4)), strict=True):
        noun, name = first.split(": ")
        parts = [line.partition(": ")[2].split(" // ") for line in rest]
        (who, other_who), (did, other_did), (told, other_told) = parts
        yield Sense(
            noun,
            name,
            (tuple(who.split()), tuple(other_who.split())),
            (tuple(did.split()), tuple(other_did.split())),
            (tuple(told.split("; ")), tuple(other_told.split("; "))),
        )


SENSES = tuple(_read(CONTEXTS))
"""Both senses of each noun, one after the other."""


def _made(sense: Sense, rng: random.Random, *, held_out: bool) -> tuple[str, list[Span], int]:
    words, place = sense.sentence(rng, held_out=held_out)
    text, spans = treebank_text(words)
    return text, spans, place


def sense_rows(seed: int, *, held_out: bool) -> Stream:
    """Sentences of every sense of every noun."""
    rng = random.Random(seed)

    def make(sense: Sense) -> Row:
        text, spans, place = _made(sense, rng, held_out=held_out)
        about: dict[str, object] = {
            "words": [text[a:b] for a, b in spans],
            "offsets": spans,
            "senses": [[place, place + 1, f"{sense.noun}.n", sense.name]],
            "group": sense.noun,
        }
        return text, None, None, about

    while True:
        yield [partial(make, sense) for sense in SENSES]


def sense_pair_rows(seed: int, *, held_out: bool) -> Stream:
    """Pairs of sentences with each noun, in the same sense (label 1) or not (label 0)."""
    rng = random.Random(seed)
    nouns = list(zip(SENSES[::2], SENSES[1::2], strict=True))

    def make(both: tuple[Sense, Sense], label: int) -> Row:
        one = rng.choice(both)
        other = one if label else both[one is both[0]]
        made = [_made(sense, rng, held_out=held_out) for sense in (one, other)]
        pair = targeted_pair(
            "",
            (made[0][0], made[1][0]),
            [spans for _, spans, _ in made],
            [(place, place + 1) for *_, place in made],
            more={"group": one.noun},
        )
        return pair.text, pair.text_b, label, dict(pair.annotations)

    while True:
        yield [partial(make, both, label) for both in nouns for label in (0, 1)]
