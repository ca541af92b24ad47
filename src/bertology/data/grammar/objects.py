"""Everyday objects, their properties, and what can be done with them: a table of our own.

Three relations, as Forbes, Holtzman and Choi (2019) have them:

- object-property: "An apple is sweet."
- object-affordance: "He ate the apple."
- affordance-property: "If you can eat something, then it is sweet." It is so if more than half of
  the objects have the property with which it can be done; only of affordances of three objects or
  more.

The table is our own, by what is typical: what stands in a row is so, all else is not. So it is a
small check that works everywhere, no measure of what people think.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from bertology.data.grammar.lexicon import LEXICON
from bertology.data.grammar.rows import Row

PROPERTIES = {
    "alive": "is alive", "edible": "is edible", "sweet": "is sweet", "soft": "is soft",
    "hard": "is hard", "sharp": "is sharp", "heavy": "is heavy", "light": "is light",
    "large": "is large", "small": "is small", "metal": "is made of metal",
    "wooden": "is made of wood", "fragile": "is fragile", "loud": "is loud", "fast": "is fast",
    "warm": "is warm", "has_legs": "has legs", "has_wheels": "has wheels",
    "round": "is round", "electric": "is electric",
}  # fmt: skip
AFFORDANCES = {
    "eat": "ate", "cook": "cooked", "peel": "peeled", "feed": "fed", "hunt": "hunted",
    "ride": "rode", "drive": "drove", "park": "parked", "wear": "wore", "fold": "folded",
    "throw": "threw", "lift": "lifted", "carry": "carried", "open": "opened", "fill": "filled",
    "play": "played", "read": "read", "break": "broke", "sharpen": "sharpened",
    "repair": "repaired", "wash": "washed", "burn": "burned", "charge": "charged",
    "climb": "climbed", "push": "pushed",
}  # fmt: skip
OBJECTS = {
    "apple": ("edible sweet small round light", "eat cook peel throw lift carry wash"),
    "banana": ("edible sweet soft small light", "eat cook peel throw lift carry"),
    "orange": ("edible sweet soft small round light", "eat peel throw lift carry wash"),
    "potato": ("edible hard small round light", "eat cook peel throw lift carry wash"),
    "carrot": ("edible sweet hard small light", "eat cook peel throw lift carry wash"),
    "onion": ("edible small round light", "eat cook peel throw lift carry"),
    "cake": ("edible sweet soft", "eat lift carry"),
    "bread": ("edible soft warm light", "eat throw lift carry"),
    "egg": ("edible small fragile round light", "eat cook peel throw lift carry break"),
    "cheese": ("edible soft small light", "eat lift carry"),
    "dog": ("alive fast loud warm has_legs soft", "feed lift carry wash"),
    "cat": ("alive fast small warm has_legs soft", "feed lift carry wash"),
    "horse": ("alive fast heavy large warm has_legs", "feed ride wash"),
    "cow": ("alive heavy large loud warm has_legs edible", "feed eat wash"),
    "rabbit": ("alive fast small soft warm has_legs edible light", "feed hunt eat lift carry"),
    "deer": ("alive fast large warm has_legs edible", "feed hunt eat"),
    "duck": ("alive small loud warm has_legs edible light", "feed hunt eat lift carry cook"),
    "elephant": ("alive heavy large loud warm has_legs", "feed ride hunt wash"),
    "wolf": ("alive fast loud warm has_legs", "feed hunt"),
    "spider": ("alive small light has_legs", "feed"),
    "car": ("heavy large metal loud fast hard has_wheels", "drive park push wash repair open"),
    "bus": ("heavy large metal loud fast hard has_wheels", "drive park wash repair ride"),
    "truck": ("heavy large metal loud fast hard has_wheels", "drive park push wash repair fill"),
    "bicycle": ("metal fast hard has_wheels", "ride park push lift carry wash repair"),
    "motorcycle": ("heavy metal loud fast hard has_wheels", "ride drive park push wash repair"),
    "tractor": ("heavy large metal loud hard has_wheels", "drive park wash repair ride"),
    "train": ("heavy large metal loud fast hard has_wheels", "drive ride repair"),
    "knife": ("metal sharp hard small light", "sharpen lift carry wash throw"),
    "sword": ("metal sharp hard heavy", "sharpen lift carry"),
    "axe": ("metal sharp hard heavy", "sharpen lift carry throw"),
    "scissors": ("metal sharp hard small light", "sharpen lift carry open"),
    "hammer": ("metal hard heavy", "lift carry throw"),
    "pencil": ("wooden sharp small light hard", "sharpen lift carry break burn"),
    "chair": ("wooden hard has_legs", "lift carry push break burn repair climb"),
    "table": ("wooden hard heavy large has_legs", "push repair burn climb wash lift"),
    "ladder": ("wooden hard large", "climb lift carry burn repair"),
    "bed": ("wooden soft heavy large has_legs warm", "push repair"),
    "tree": ("alive wooden hard heavy large", "climb burn"),
    "door": ("wooden hard heavy large", "open push repair burn wash"),
    "box": ("light", "open fill lift carry push burn fold"),
    "bottle": ("hard fragile light small", "open fill lift carry break throw wash"),
    "cup": ("hard fragile light small round", "fill lift carry break throw wash"),
    "bucket": ("light round", "fill lift carry wash"),
    "vase": ("hard fragile", "fill lift carry break wash"),
    "bag": ("soft light", "open fill lift carry fold wash"),
    "shirt": ("soft light warm", "wear fold lift carry wash burn throw"),
    "coat": ("soft warm", "wear fold lift carry wash burn"),
    "hat": ("soft light warm small", "wear throw lift carry"),
    "sock": ("soft light warm small", "wear fold throw lift carry wash burn"),
    "scarf": ("soft light warm", "wear fold lift carry wash burn"),
    "glove": ("soft light warm small", "wear throw lift carry wash"),
    "blanket": ("soft warm light", "fold lift carry wash burn"),
    "ball": ("round light small", "throw lift carry fill"),
    "guitar": ("wooden loud fragile light", "play lift carry break repair burn"),
    "piano": ("wooden loud heavy large hard has_legs", "play push repair burn open"),
    "drum": ("loud round light hard", "play lift carry repair break"),
    "violin": ("wooden loud fragile light", "play lift carry break repair burn"),
    "book": ("light", "read open lift carry burn throw"),
    "letter": ("light small", "read open fold lift carry burn"),
    "newspaper": ("light soft", "read open fold lift carry burn throw"),
    "phone": ("small light hard electric fragile loud", "charge lift carry repair break throw"),
    "laptop": ("light hard electric fragile", "charge open lift carry repair break"),
    "lamp": ("warm hard electric fragile", "lift carry repair break"),
    "radio": ("loud hard electric", "play lift carry repair charge"),
    "stone": ("hard heavy round", "throw lift carry"),
    "candle": ("warm light small", "burn lift carry"),
}  # fmt: skip
_FEWEST = 3  # objects that afford something, for what follows from it

ObjectRow = tuple[str, int, dict[str, object]]  # text, label, annotations


def object_rows(seed: int, n: int) -> list[ObjectRow]:
    """So many sentences of the table, drawn by the seed if these are not all."""
    every = list(_rows())
    chosen: Sequence[int] = range(len(every))
    if n < len(every):
        chosen = random.Random(seed).sample(chosen, n)
    return [every[i] for i in sorted(chosen)]


def _rows() -> Iterator[ObjectRow]:
    has = {name: set(given.split()) for name, (given, _) in OBJECTS.items()}
    affords = {name: set(given.split()) for name, (_, given) in OBJECTS.items()}
    for name in OBJECTS:
        for group, words in PROPERTIES.items():
            text = f"{_article(name)} {name} {words}."
            yield text, int(group in has[name]), _about(name, group, "object-property")
    for name in OBJECTS:
        for group, past in AFFORDANCES.items():
            text = f"He {past} the {name}."
            yield text, int(group in affords[name]), _about(name, group, "object-affordance")
    for done in AFFORDANCES:
        among = [has[name] for name in OBJECTS if done in affords[name]]
        for group, words in PROPERTIES.items():
            if len(among) >= _FEWEST:
                text = f"If you can {done} something, then it {words}."
                so = sum(group in one for one in among) / len(among)
                about = _about(done, group, "affordance-property") | {"share": so}
                yield text, int(so > 0.5), about


def _about(entity: str, group: str, relation: str) -> dict[str, object]:
    return {"entity": entity, "group": group, "relation": relation}


def _article(name: str) -> str:
    return "An" if name[0] in "aeiou" else "A"


OBJECT_SENTENCES = sum(1 for _ in _rows())


# Pairs of nouns and how similar they are, by what the grammar's tables say of them.
#
# The similarity of two objects is what they share of all that either has: the properties and
# affordances of the table of objects, and the sort that the lexicon counts them to. What few
# objects have counts for more (the logarithm of how many times rarer it is than being an object).
# It goes from 0 to 10. So it is a small check that works everywhere, no measure of what people
# think.

_MOST = 10


def word_pair_rows(seed: int, n: int) -> list[Row]:
    """So many pairs of the table, drawn by the seed if these are not all."""
    every = list(_similar_rows())
    chosen: Sequence[int] = range(len(every))
    if n < len(every):
        chosen = random.Random(seed).sample(chosen, n)
    return [every[i] for i in sorted(chosen)]


def _features() -> dict[str, frozenset[str]]:
    found = {}
    for name, (properties, affordances) in OBJECTS.items():
        noun = LEXICON.nouns.get(name)
        sort = {f"a kind of {noun.sort}"} if noun is not None else set()
        done = {f"to {what}" for what in affordances.split()}
        found[name] = frozenset({*properties.split(), *done, *sort})
    return found


def _similar_rows() -> Iterator[Row]:
    features = _features()
    counts = Counter(feature for has in features.values() for feature in has)
    weights = {feature: math.log(len(features) / count) for feature, count in counts.items()}
    for one, other in combinations(features, 2):
        shared, either = features[one] & features[other], features[one] | features[other]
        # Summed in order: sets have another one in each process.
        both, whole = (sum(weights[f] for f in sorted(part)) for part in (shared, either))
        yield one, other, round(_MOST * both / whole, 2), {}


WORD_PAIRS = sum(1 for _ in _similar_rows())
