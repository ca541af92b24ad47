"""Facts that most people know, written down by us: what is asked where no corpus of facts is here.

Each relation has its cardinality (1-1, N-1, N-M), wordings with [X] for the subject and [Y] for the
answer, and subjects by answer. Answers are single words. Subjects of `native-language` and
`country-of-birth` are people; some of their names mislead (Marie Curie spoke Polish, George Orwell
was born in India). Some names of cities hold the answer (Mexico City).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice, zip_longest

from bertology.data.clozes import worded
from bertology.data.grammar.lexicon import LEXICON
from bertology.data.grammar.rows import Row

SPLIT = "test"  # nobody learns from them, and they are too few to be split


@dataclass(frozen=True)
class KnownRelation:
    """A relation in several wordings, with the subjects of each answer."""

    cardinality: str
    wordings: tuple[str, ...]
    subjects: Mapping[str, str]  # answer -> subjects, separated by commas

    def facts(self) -> list[tuple[str, str]]:
        """Subject and answer of each fact."""
        return [
            (subject.strip(), answer)
            for answer, subjects in self.subjects.items()
            for subject in subjects.split(",")
        ]


RELATIONS: dict[str, KnownRelation] = {
    "capital-of": KnownRelation(
        "1-1",
        (
            "[X] is the capital of [Y].", "[X] is the capital city of [Y].",
            "The capital of [Y] is [X].",
        ),
        {
            "France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid",
            "Portugal": "Lisbon", "England": "London", "Scotland": "Edinburgh",
            "Ireland": "Dublin", "Wales": "Cardiff", "Norway": "Oslo", "Sweden": "Stockholm",
            "Denmark": "Copenhagen", "Finland": "Helsinki", "Poland": "Warsaw",
            "Austria": "Vienna", "Hungary": "Budapest", "Greece": "Athens", "Turkey": "Ankara",
            "Russia": "Moscow", "Romania": "Bucharest", "Bulgaria": "Sofia",
            "Serbia": "Belgrade", "Belgium": "Brussels", "Egypt": "Cairo", "Morocco": "Rabat",
            "Kenya": "Nairobi", "China": "Beijing", "Japan": "Tokyo", "Korea": "Seoul",
            "Vietnam": "Hanoi", "Thailand": "Bangkok", "Iran": "Tehran", "Iraq": "Baghdad",
            "Syria": "Damascus", "Lebanon": "Beirut", "Canada": "Ottawa", "Cuba": "Havana",
            "Chile": "Santiago", "Peru": "Lima", "Australia": "Canberra",
        },
    ),
    "country": KnownRelation(
        "N-1",
        ("[X] is a city in [Y].", "[X] is located in [Y].", "[X] is one of the cities of [Y]."),
        {
            "France": "Marseille, Lyon, Bordeaux, Toulouse, Strasbourg",
            "Germany": "Hamburg, Munich, Cologne, Dresden, Frankfurt",
            "Italy": "Milan, Naples, Venice, Florence, Turin",
            "Spain": "Barcelona, Seville, Valencia",
            "England": "Liverpool, Manchester, Birmingham, Oxford, York",
            "Scotland": "Glasgow, Aberdeen",
            "Japan": "Kyoto, Osaka, Hiroshima",
            "China": "Shanghai, Nanjing",
            "India": "Mumbai, Calcutta, Madras",
            "Canada": "Toronto, Montreal, Vancouver",
            "Australia": "Sydney, Melbourne, Brisbane",
            "Brazil": "Rio de Janeiro",
            "Mexico": "Mexico City", "Panama": "Panama City", "Kuwait": "Kuwait City",
        },
    ),
    "continent": KnownRelation(
        "N-1",
        (
            "[X] is a country in [Y].", "[X] is located in [Y].",
            "[X] is part of the continent of [Y].",
        ),
        {
            "Europe": "France, Germany, Italy, Spain, Portugal, Norway, Sweden, Denmark, Poland, "
            "Austria, Hungary, Greece, Romania, Belgium",
            "Asia": "China, Japan, India, Pakistan, Vietnam, Thailand, Iran, Iraq, Nepal, Korea",
            "Africa": "Egypt, Nigeria, Kenya, Ghana, Ethiopia, Sudan, Morocco, Libya, South Africa",
        },
    ),
    "official-language": KnownRelation(
        "N-1",
        (
            "The official language of [X] is [Y].", "The language of [X] is [Y].",
            "People in [X] speak [Y].",
        ),
        {
            "English": "England, Australia, Jamaica", "French": "France, Monaco",
            "German": "Germany, Austria", "Italian": "Italy",
            "Spanish": "Spain, Mexico, Cuba, Argentina, Chile, Colombia, Venezuela",
            "Portuguese": "Portugal, Brazil", "Dutch": "the Netherlands", "Greek": "Greece",
            "Norwegian": "Norway", "Swedish": "Sweden", "Danish": "Denmark", "Polish": "Poland",
            "Hungarian": "Hungary", "Romanian": "Romania", "Turkish": "Turkey",
            "Russian": "Russia", "Arabic": "Egypt, Syria, Jordan, Kuwait", "Persian": "Iran",
            "Chinese": "China", "Japanese": "Japan", "Korean": "Korea", "Thai": "Thailand",
            "Vietnamese": "Vietnam",
        },
    ),
    "kind": KnownRelation(
        "N-1",
        ("A [X] is a kind of [Y].", "The [X] is a type of [Y].", "Any [X] is some sort of [Y]."),
        {
            "bird": "robin, sparrow, pigeon, swan, hawk, crow, penguin, parrot",
            "fish": "salmon, shark, trout, herring, cod",
            "insect": "bee, butterfly, beetle, mosquito, fly",
            "dog": "poodle, terrier, spaniel", "snake": "cobra, python, viper",
            "tree": "cedar, pine, birch, willow, maple", "flower": "rose, tulip, daisy, lily",
            "fruit": "pear, banana, peach, plum, cherry",
            "tool": "hammer, saw, chisel, screwdriver", "weapon": "sword, rifle, pistol, spear",
            "vehicle": "car, truck, bus, van", "instrument": "piano, violin, flute, guitar, drum",
        },
    ),
    "colour": KnownRelation(
        "N-1",
        (
            "The colour of [X] is [Y].", "As we know, [X] is [Y].",
            "The usual colour of [X] is [Y].",
        ),
        {
            "white": "snow, milk, chalk, ivory", "black": "coal, tar, soot",
            "red": "blood, a tomato, a strawberry", "green": "grass, spinach, an emerald",
            "blue": "the sky, a sapphire", "yellow": "a lemon, the sun, butter",
            "brown": "chocolate, mud, coffee", "grey": "ash, an elephant",
        },
    ),
    "material": KnownRelation(
        "N-M",
        (
            "Usually [X] is made of [Y].", "Usually [X] comes from [Y].",
            "You need [Y] to make [X].",
        ),
        {
            "milk": "cheese, butter, yoghurt", "glass": "a window, a bottle, a mirror",
            "paper": "a book, an envelope, a newspaper", "wood": "a table, a log, a plank",
            "leather": "a saddle, a boot", "wool": "a sweater, yarn", "flour": "bread, dough",
            "iron": "a nail, an anvil", "gold": "a wedding ring", "stone": "a castle, a statue",
        },
    ),
    "workplace": KnownRelation(
        "N-M",
        ("A [X] works in a [Y].", "The [X] went to work in the [Y].", "You find a [X] in a [Y]."),
        {
            "school": "teacher, headmaster, pupil", "hospital": "nurse, surgeon, doctor",
            "church": "priest, bishop, preacher", "court": "judge, lawyer",
            "kitchen": "cook, chef", "theatre": "dancer, singer", "bank": "banker, cashier",
            "shop": "salesman, shopkeeper", "library": "librarian", "ship": "sailor, captain",
        },
    ),
    "opposite": KnownRelation(
        "1-1",
        (
            "The opposite of [X] is [Y].", "The word [X] is the opposite of [Y].",
            "Something that is not [X] is [Y].",
        ),
        {
            "cold": "hot", "small": "big", "bad": "good", "short": "long", "slow": "fast",
            "weak": "strong", "poor": "rich", "sad": "happy", "dark": "bright", "wet": "dry",
            "soft": "hard", "low": "high", "narrow": "wide", "empty": "full", "wrong": "right",
            "false": "true", "dead": "alive", "late": "early", "dirty": "clean", "old": "young",
            "closed": "open", "quiet": "loud", "expensive": "cheap", "thin": "thick",
        },
    ),
    "next": KnownRelation(
        "1-1",
        ("After [X] comes [Y].", "What follows [X] is [Y].", "Just before [Y] comes [X]."),
        {
            "Tuesday": "Monday", "Wednesday": "Tuesday", "Thursday": "Wednesday",
            "Friday": "Thursday", "Saturday": "Friday", "Sunday": "Saturday", "Monday": "Sunday",
            "February": "January", "March": "February", "April": "March", "June": "May",
            "July": "June", "August": "July", "September": "August", "October": "September",
            "November": "October", "December": "November", "January": "December",
            "summer": "spring", "autumn": "summer", "winter": "autumn", "three": "two",
            "five": "four", "seven": "six", "nine": "eight", "eleven": "ten",
        },
    ),
    "native-language": KnownRelation(
        "N-1",
        (
            "The native language of [X] is [Y].", "[X] spoke [Y].",
            "The mother tongue of [X] was [Y].",
        ),
        {
            "Italian": "Dante Alighieri, Giuseppe Verdi, Galileo Galilei, Enrico Fermi, "
            "Federico Fellini, Umberto Eco, Antonio Vivaldi, Giacomo Puccini",
            "French": "Victor Hugo, Claude Monet, Emile Zola, Jean Racine, Blaise Pascal, "
            "Marcel Proust, Claude Debussy, Jules Verne, Louis Pasteur, Charles de Gaulle",
            "German": "Johann Wolfgang von Goethe, Johann Sebastian Bach, Thomas Mann, "
            "Otto von Bismarck, Albert Einstein, Karl Marx, Friedrich Nietzsche, Max Planck, "
            "Heinrich Heine, Franz Kafka",
            "English": "William Shakespeare, Charles Dickens, Isaac Newton, Charles Darwin, "
            "Jane Austen, Virginia Woolf, John Milton, Winston Churchill, George Orwell, "
            "Oscar Wilde, James Joyce",
            "Russian": "Leo Tolstoy, Anton Chekhov, Fyodor Dostoevsky, Ivan Turgenev, "
            "Alexander Pushkin, Yuri Gagarin",
            "Spanish": "Miguel de Cervantes, Pablo Picasso, Francisco Goya, Diego Rivera, "
            "Pablo Neruda, Jorge Luis Borges, Fidel Castro",
            "Polish": "Marie Curie, Lech Walesa", "Norwegian": "Henrik Ibsen, Edvard Munch",
            "Swedish": "August Strindberg, Ingmar Bergman, Astrid Lindgren, Jean Sibelius",
            "Danish": "Hans Christian Andersen, Niels Bohr", "Dutch": "Vincent van Gogh",
            "Greek": "Plato, Aristotle, Sophocles", "Latin": "Julius Caesar, Cicero, Virgil",
            "Japanese": "Akira Kurosawa, Haruki Murakami", "Chinese": "Mao Zedong, Deng Xiaoping",
            "Turkish": "Orhan Pamuk", "Czech": "Milan Kundera", "Hebrew": "Amos Oz",
            "Portuguese": "Vasco da Gama, Fernando Pessoa",
        },
    ),
    "country-of-birth": KnownRelation(
        "N-1",
        ("[X] was born in [Y].", "[X] came from [Y].", "[X] is from [Y]."),
        {
            "Italy": "Giuseppe Verdi, Galileo Galilei, Enrico Fermi, Federico Fellini, "
            "Antonio Vivaldi, Giacomo Puccini",
            "France": "Victor Hugo, Claude Monet, Emile Zola, Jean Racine, Marcel Proust, "
            "Jules Verne, Louis Pasteur, Charles de Gaulle",
            "Germany": "Johann Sebastian Bach, Thomas Mann, Otto von Bismarck, Albert Einstein, "
            "Karl Marx, Max Planck, Heinrich Heine",
            "England": "William Shakespeare, Charles Dickens, Isaac Newton, Charles Darwin, "
            "Jane Austen, Virginia Woolf, Winston Churchill",
            "Scotland": "Adam Smith, David Hume, Robert Burns, Walter Scott",
            "Ireland": "Oscar Wilde, James Joyce, Samuel Beckett",
            "India": "George Orwell, Rudyard Kipling, Mahatma Gandhi, Rabindranath Tagore",
            "Russia": "Leo Tolstoy, Anton Chekhov, Ivan Turgenev, Yuri Gagarin",
            "Spain": "Miguel de Cervantes, Pablo Picasso, Francisco Goya",
            "Poland": "Marie Curie, Lech Walesa", "Norway": "Henrik Ibsen, Edvard Munch",
            "Sweden": "Alfred Nobel, Ingmar Bergman", "Denmark": "Niels Bohr", "Austria":
            "Wolfgang Amadeus Mozart, Sigmund Freud", "Japan": "Akira Kurosawa, Haruki Murakami",
            "China": "Mao Zedong, Deng Xiaoping", "Argentina": "Jorge Luis Borges, Diego Maradona",
            "Mexico": "Diego Rivera, Frida Kahlo", "Cuba": "Fidel Castro", "Chile":
            "Pablo Neruda", "Egypt": "Naguib Mahfouz", "Portugal": "Fernando Pessoa",
        },
    ),
}  # fmt: skip


def fact_rows(seed: int, size: int | None) -> list[tuple[str, dict[str, object]]]:
    """Text and annotation of all facts, or of so many drawn by the seed, relation by relation."""
    rows: list[tuple[str, dict[str, object]]] = [
        (
            worded(relation.wordings[0], subject),
            {
                "answer": [answer],
                "group": name,
                "entity": subject,
                "wordings": relation.wordings,
                "cardinality": relation.cardinality,
            },
        )
        for name, relation in RELATIONS.items()
        for subject, answer in relation.facts()
    ]
    if size is None or size >= len(rows):
        return rows
    kept = sorted(random.Random(seed).sample(range(len(rows)), size))
    return [rows[i] for i in kept]


# Analogies of the grammar's words: "cat" is to "cats" as "dog" is to "dogs".
#
# WORDS are the four words, GROUP is the section, as in the reader of published analogies.

_GENDERS = """
king queen prince princess actor actress waiter waitress man woman boy girl uncle aunt father mother
brother sister grandfather grandmother son daughter nephew niece
""".split()


def analogy_pairs() -> dict[str, list[tuple[str, str]]]:
    """The pairs of words of each section."""
    verbs = {verb.lemma: verb for verb in (*LEXICON.transitive, *LEXICON.intransitive)}
    nouns = [noun for noun in LEXICON.nouns.values() if not noun.mass]
    return {
        "plural": [(noun.lemma, noun.plural) for noun in nouns],
        "past": [(v.lemma, v.past) for v in verbs.values() if v.past != v.lemma],
        "third-person": [(v.lemma, v.third) for v in verbs.values()],
        "ing": [(v.lemma, v.ing) for v in verbs.values()],
        "adverb": _adverbs(),
        "gender": list(zip(_GENDERS[::2], _GENDERS[1::2], strict=True)),
        "capital": RELATIONS["capital-of"].facts(),
    }


def _adverbs() -> list[tuple[str, str]]:
    """Adjectives whose adverb the lexicon has too."""
    nouns = LEXICON.nouns.values()
    adjectives = {word for noun in nouns for word in (*noun.adjectives, *noun.predicates)}
    adverbs = {word for verb in LEXICON.transitive for word in verb.manner}
    made = {w: f"{w[:-1]}ily" if w.endswith("y") else f"{w}ly" for w in adjectives}
    return sorted((word, adverb) for word, adverb in made.items() if adverb in adverbs)


def analogy_rows(seed: int, n: int) -> Iterator[Row]:
    """So many questions, or all, one section after the other; what is drawn depends on the seed."""
    rng = random.Random(seed)
    sections = [
        [(name, question) for question in _questions(pairs, n, rng)]
        for name, pairs in analogy_pairs().items()
    ]
    turns = chain.from_iterable(zip_longest(*sections))
    for name, words in islice(filter(None, turns), n):
        yield " ".join(words), None, None, {"words": list(words), "group": name}


def _questions(
    pairs: list[tuple[str, str]], n: int, rng: random.Random
) -> list[tuple[str, str, str, str]]:
    """At most `n` of all ordered couples of pairs."""
    others = len(pairs) - 1
    drawn = rng.sample(range(len(pairs) * others), min(n, len(pairs) * others))
    found = []
    for number in drawn:
        first, second = divmod(number, others)
        second += second >= first  # never the same pair
        found.append((*pairs[first], *pairs[second]))
    return found
