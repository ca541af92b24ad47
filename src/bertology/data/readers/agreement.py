"""Minimal pairs of verbs that agree, made of a treebank in CoNLL-U with features.

TEXT is a sentence of the treebank, CONTRAST the same with a finite verb in its other number, after
Bacon and Regier (2019). The other form is the most frequent one of the same lemma whose features
are the same but for Number, in all files of the treebank's folder; a verb without one is left out,
and so is one whose subject has another number than it, or is no noun, name or pronoun of the third
person. GROUP says whether the subject comes first; `attractors` counts nouns of the other number
between the two, and `others` all nouns there. SUBJECT is the subject's word.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import Request
from bertology.data.readers.conllu import ReadSentence, Token, sentences
from bertology.data.readers.files import read_text
from bertology.errors import DataError

FIELDS = frozenset(
    {Field.TEXT, Field.CONTRAST, Field.GROUP, Field.WORDS, Field.LEMMAS, Field.POS, Field.SUBJECT}
)
_OTHER = {"Sing": "Plur", "Plur": "Sing"}
_VERBS, _NOUNS = ("VERB", "AUX"), ("NOUN", "PROPN")
Kind = tuple[str, str, str]  # lemma, part of speech, features but for Number
Forms = Mapping[Kind, Mapping[str, Counter[str]]]  # by number


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The pairs of a .conllu file."""
    path, request = Path(source), Request.of(source, request)
    forms = _forms(path.parent)
    examples = [pair for one in sentences(path) for pair in _pairs(one, forms)]
    if not examples:
        raise DataError(
            f"{path.name} has no verb whose other number is in the treebank.",
            hint="Verbs need the features Number and VerbForm=Fin, and lemmas.",
        )
    return Corpus(request.name, examples, FIELDS, split=request.split)


@cache
def _forms(folder: Path) -> Forms:
    """All forms of finite verbs in the files of a folder."""
    found: defaultdict[Kind, defaultdict[str, Counter[str]]] = defaultdict(
        lambda: defaultdict(Counter)
    )
    for path in sorted(folder.glob("*.conllu")):
        for line in read_text(path).splitlines():
            cells = line.split("\t")
            if len(cells) == 10 and cells[3] in _VERBS:
                pairs = (pair.partition("=") for pair in cells[5].split("|"))
                kind, number = _kind(cells[2], cells[3], {name: v for name, _, v in pairs})
                if number:
                    found[kind][number][cells[1].lower()] += 1
    return found


def _kind(lemma: str, pos: str, features: Mapping[str, str]) -> tuple[Kind, str]:
    """What a finite verb is but for its number, and that; no number for what is none."""
    rest = "|".join(f"{name}={value}" for name, value in features.items() if name != "Number")
    number = features.get("Number", "")
    finite = features.get("VerbForm") == "Fin" and features.get("Person", "3") == "3"
    return (lemma, pos, rest), number if finite and number in _OTHER else ""


def _pairs(one: ReadSentence, forms: Forms) -> Iterator[Example]:
    words = [token for token in one.parsed if isinstance(token["id"], int)]
    example, about = one.example, one.example.annotations
    for at, verb in enumerate(words):
        if verb["upos"] not in _VERBS:
            continue
        kind, number = _kind(verb["lemma"], verb["upos"], verb["feats"] or {})
        subject = _subject(words, about["heads"], at) if number else None
        start, end = about["offsets"][at]
        if subject is None or example.text[start:end] != verb["form"]:
            continue  # a part of a word that is written as one with another
        given = forms[kind]
        others = [f for f, _ in given.get(_OTHER[number], Counter()).most_common()]
        if not others or others[0] in given[number]:
            continue
        form = others[0].capitalize() if verb["form"][0].isupper() else others[0]
        between = range(min(subject, at) + 1, max(subject, at))
        nouns = [w for w in between if words[w]["upos"] in _NOUNS] if subject < at else []
        yield Example(
            id=f"{example.id}/{at}",
            text=example.text,
            annotations={
                "contrast": f"{example.text[:start]}{form}{example.text[end:]}",
                "group": "after the subject" if subject < at else "before the subject",
                "words": about["words"],
                "lemmas": about["lemmas"],
                "pos": about["pos"],
                "subject": subject,
                "verb": at,
                "others": len(nouns),
                "attractors": sum(_number(words[w]) == _OTHER[number] for w in nouns),
            },
        )


def _subject(words: list[Any], heads: list[int], verb: int) -> int | None:
    """The subject of a verb, or of the word that it is the auxiliary or copula of."""
    relation = str(words[verb]["deprel"]).partition(":")[0]
    of = heads[verb] if relation in ("aux", "cop") else verb
    for at, token in enumerate(words):
        if heads[at] == of and str(token["deprel"]).partition(":")[0] == "nsubj":
            person = (token["feats"] or {}).get("Person", "3")
            known = token["upos"] in (*_NOUNS, "PRON") and person == "3"
            same = _number(token) == _number(words[verb])
            return at if known and same else None
    return None


def _number(token: Token) -> str:
    return str((token["feats"] or {}).get("Number", ""))
