"""English words by their lemma: which forms "carry" or "take" may have in a sentence.

Rules give more forms than English has ("goed" of "go"), which does no harm: a form is looked for in
a text that is known to have the word.
"""

from __future__ import annotations

from collections.abc import Sequence

_VOWELS = "aeiou"
_ENDINGS = ("s", "es", "ed", "d", "ing")
_COMPARED = ("er", "est")
_IRREGULAR = {
    forms.split()[0]: frozenset(forms.split())
    for forms in (
        "arise arose arisen", "awake awoke awoken", "be am is are was were been being",
        "bear bore borne born", "beat beat beaten", "become became", "begin began begun",
        "bend bent", "bid bade bidden", "bind bound", "bite bit bitten", "bleed bled",
        "blow blew blown", "break broke broken", "breed bred", "bring brought", "build built",
        "burn burnt", "buy bought", "catch caught", "choose chose chosen", "cling clung",
        "come came", "creep crept", "deal dealt", "dig dug", "dive dove",
        "do did done does", "draw drew drawn", "dream dreamt", "drink drank drunk",
        "drive drove driven", "dwell dwelt", "eat ate eaten", "fall fell fallen", "feed fed",
        "feel felt", "fight fought", "find found", "flee fled", "fling flung", "fly flew flown",
        "forbid forbade forbidden", "foresee foresaw foreseen", "forget forgot forgotten",
        "forgive forgave forgiven", "freeze froze frozen", "get got gotten",
        "give gave given", "go went gone goes", "grind ground", "grow grew grown", "hang hung",
        "have had has", "hear heard", "hew hewn", "hide hid hidden", "hold held", "keep kept",
        "kneel knelt", "know knew known", "lay laid", "lead led", "lean leant", "leap leapt",
        "learn learnt", "leave left", "lend lent", "lie lay lain lying", "light lit",
        "lose lost", "make made", "mean meant", "meet met", "mistake mistook mistaken",
        "overcome overcame", "overtake overtook overtaken", "overthrow overthrew overthrown",
        "pay paid", "plead pled", "rebuild rebuilt", "ride rode ridden", "ring rang rung",
        "rise rose risen", "run ran", "say said", "see saw seen", "seek sought", "sell sold",
        "send sent", "sew sewn", "shake shook shaken", "shine shone", "shoot shot",
        "show shown", "shrink shrank shrunk", "sing sang sung", "sink sank sunk", "sit sat",
        "slay slew slain", "sleep slept", "slide slid", "sling slung", "smell smelt",
        "sow sown", "speak spoke spoken", "speed sped", "spell spelt", "spend spent",
        "spill spilt", "spin spun", "spit spat", "spoil spoilt", "spring sprang sprung",
        "stand stood", "steal stole stolen", "stick stuck", "sting stung", "stink stank stunk",
        "strike struck stricken", "string strung", "strive strove striven", "swear swore sworn",
        "sweep swept", "swell swollen", "swim swam swum", "swing swung", "take took taken",
        "teach taught", "tear tore torn", "tell told", "think thought", "throw threw thrown",
        "tread trod trodden", "undergo underwent undergone", "understand understood",
        "undertake undertook undertaken", "undo undid undone", "uphold upheld",
        "wake woke woken", "wear wore worn", "weave wove woven", "weep wept", "win won",
        "wind wound", "withdraw withdrew withdrawn", "withhold withheld", "withstand withstood",
        "wring wrung", "write wrote written",
        "man men", "woman women", "child children", "foot feet", "tooth teeth", "goose geese",
        "mouse mice", "louse lice", "ox oxen", "person people", "die dice dying",
        "penny pence", "axis axes", "basis bases", "crisis crises", "analysis analyses",
        "thesis theses", "hypothesis hypotheses", "criterion criteria", "phenomenon phenomena",
        "datum data", "medium media", "bacterium bacteria", "stratum strata", "index indices",
        "matrix matrices", "vertex vertices", "appendix appendices", "radius radii",
        "stimulus stimuli", "nucleus nuclei", "fungus fungi", "focus foci", "locus loci",
        "alga algae", "formula formulae", "larva larvae", "antenna antennae",
        "good better best", "well better best", "bad worse worst", "far further farther",
        "little less least", "many more most", "much more most",
    )
}  # fmt: skip


def forms_of(lemma: str) -> frozenset[str]:
    """The lemma, in small letters, and what inflection may make of it."""
    word = lemma.lower()
    stems = {word}
    if word.endswith("e"):
        stems.add(word[:-1])
    if len(word) > 1 and word.endswith("y") and word[-2] not in _VOWELS:
        stems |= {f"{word[:-1]}i", word}
    if len(word) > 2 and word[-1] not in f"{_VOWELS}wxy" and word[-2] in _VOWELS:
        stems |= {word + word[-1]}
    if word.endswith("c"):
        stems.add(f"{word}k")
    found = {word, *(f"{stem}{ending}" for stem in stems for ending in _ENDINGS)}
    if word.endswith("ie"):
        found.add(f"{word[:-2]}ying")
    if word.endswith("f"):
        found.add(f"{word[:-1]}ves")
    if word.endswith("fe"):
        found.add(f"{word[:-2]}ves")
    if word.endswith("man"):
        found.add(f"{word[:-3]}men")
    return frozenset(found | _IRREGULAR.get(word, frozenset()))


def find_word(lemma: str, words: Sequence[str]) -> int | None:
    """Where a form of the lemma stands first: the lemma itself before other forms of it."""
    lower = [word.lower() for word in words]
    if lemma.lower() in lower:
        return lower.index(lemma.lower())
    forms = forms_of(lemma)
    # "er" also makes who or what does it: a toaster is no toast.
    compared = {f"{form.removesuffix('ed')}{end}" for form in forms for end in _COMPARED}
    for known in (forms, compared):
        for place, word in enumerate(lower):
            if word in known:
                return place
    return None
