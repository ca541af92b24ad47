"""Events put into words: the verb group, active and passive clauses, relatives, questions."""

from __future__ import annotations

from dataclasses import dataclass

from bertology.data.grammar.lexicon import LEXICON, Verb
from bertology.data.grammar.meaning import Adjunct, Entity, Event
from bertology.data.grammar.phrases import adjunct_phrase, adverb, noun_phrase, time_phrase
from bertology.data.grammar.tree import Clause, Node, Role

_BE = {
    "present": {"sg": "is", "pl": "are", "1": "am"},
    "past": {"sg": "was", "pl": "were", "1": "was"},
}
_HAVE = {
    "present": {"sg": "has", "pl": "have", "1": "have"},
    "past": dict.fromkeys(("sg", "pl", "1"), "had"),
}
_DO = {
    "present": {"sg": "does", "pl": "do", "1": "do"},
    "past": dict.fromkeys(("sg", "pl", "1"), "did"),
}
_CONTRACTED = {"will": "wo", "can": "ca"}
_UNCONTRACTED = frozenset({"am", "might"})  # no "amn't", no "mightn't"


def comma() -> Node:
    """A comma, hung on the root of what it closes off."""
    return Node(",", ",", "PUNCT", "punct")


def mark(word: str) -> Node:
    """A subordinating conjunction."""
    return Node(word, word, "SCONJ", "mark")


def close(clause: Clause, stop: str = ".") -> Clause:
    """End the sentence."""
    clause.root.right.append(Node(stop, stop, "PUNCT", "punct"))
    return clause


def finite(verb: Verb, tense: str, agreement: str) -> str:
    """The finite form of a verb: present or past, agreeing with its subject."""
    if verb.lemma == "be":
        return _BE[tense][agreement]
    if tense == "past":
        return verb.past
    return verb.third if agreement == "sg" else verb.lemma


def _auxiliaries(event: Event, passive: bool) -> list[tuple[str, str]]:
    """(lemma, form its successor takes) of every auxiliary, the outermost first."""
    chain: list[tuple[str, str]] = []
    if event.modal:
        chain.append((event.modal, "base"))
    elif event.tense == "future":
        chain.append(("will", "base"))
    if "perfect" in event.aspect:
        chain.append(("have", "participle"))
    if "progressive" in event.aspect:
        chain.append(("be", "ing"))
    if passive:
        chain.append(("be", "participle"))
    return chain


def _aux_form(lemma: str, wanted: str, tense: str, agreement: str) -> str:
    if wanted == "finite":
        table = {"be": _BE, "have": _HAVE, "do": _DO}.get(lemma)
        return lemma if table is None else table[tense][agreement]
    if lemma == "be":
        return {"base": "be", "participle": "been", "ing": "being"}[wanted]
    return lemma


def _main_form(verb: Verb, wanted: str, tense: str, agreement: str) -> str:
    if wanted == "finite":
        return finite(verb, tense, agreement)
    return {"base": verb.lemma, "participle": verb.participle, "ing": verb.ing}[wanted]


def verb_group(
    event: Event, agreement: str, *, passive: bool = False, invert: bool = False
) -> tuple[list[Node], str]:
    """Auxiliaries with negation and frequency in their places, and the form of the main verb."""
    chain = _auxiliaries(event, passive)
    negation = event.negation
    is_be = event.verb.lemma == "be"
    if not chain and not is_be and (negation in ("not", "n't") or invert):
        chain = [("do", "base")]
    nodes: list[Node] = []
    wanted = "finite"
    for lemma, then in chain:
        rel = "aux:pass" if passive and lemma == "be" and then == "participle" else "aux"
        nodes.append(Node(_aux_form(lemma, wanted, event.tense, agreement), lemma, "AUX", rel))
        wanted = then
    form = _main_form(event.verb, wanted, event.tense, agreement)
    after_first: list[Node] = []
    if negation in ("not", "n't"):
        after_first.append(_not(nodes[0] if nodes else None, form, negation))
    elif negation:
        after_first.append(adverb(negation))
    if event.frequency:
        after_first.append(adverb(event.frequency))
    if nodes:
        nodes[1:1] = after_first
    else:
        nodes = after_first  # a bare copula comes before its negation; the caller places it
    return nodes, form


def _not(first: Node | None, copula: str, negation: str) -> Node:
    carrier = copula if first is None else first.form
    if negation == "not" or carrier in _UNCONTRACTED:
        return Node("not", "not", "PART", "advmod")
    if first is not None:
        first.form = _CONTRACTED.get(first.form, first.form)
    return Node("n't", "not", "PART", "advmod")


def _adjuncts(event: Event, root: Node, roles: dict[str, Role]) -> list[Node]:
    """Manner, place and time after the verb; returns what is to open the sentence instead."""
    opening: list[Node] = []
    if event.manner and not event.manner_first:
        root.right.append(adverb(event.manner))
        roles["manner"] = root.right[-1]
    if event.place is not None:
        node = adjunct_phrase(event.place)
        roles[event.place.role] = node
        (opening if event.front == "place" else root.right).append(node)
    if event.time:
        node = time_phrase(event.time)
        roles["time"] = node
        (opening if event.front == "time" else root.right).append(node)
    return [opening[0], comma()] if opening else []


def _head(event: Event, form: str, rel: str) -> Node:
    return Node(form, event.verb.lemma, "VERB", rel)


def _finish(event: Event, clause_: Clause) -> Clause:
    clause_.frame = event.verb.frame
    clause_.tense = "present" if event.modal else event.tense
    clause_.aspect = event.aspect
    return clause_


def _complements(event: Event, verb: Node, roles: dict[str, Role]) -> Node | None:
    """Objects of an active verb, in order; returns the direct object."""
    names = event.verb.roles
    direct = None
    if event.object is not None:
        reflexive = event.object.refers_to is event.subject
        case = "reflexive" if reflexive else "accusative"
        direct = noun_phrase(event.object, "obj", case)
        roles[names[1]] = direct
    if event.recipient is not None and direct is not None:
        if event.double_object:
            other = noun_phrase(event.recipient, "iobj", "accusative")
            verb.right += [other, direct]
        else:
            other = adjunct_phrase(Adjunct(event.verb.preposition, event.recipient))
            verb.right += [direct, other]
        roles[names[2]] = other
    elif direct is not None:
        verb.right.append(direct)
    if event.content is not None:
        inner = _content(event)
        verb.right.append(inner)
        roles["content"] = inner
    return direct


def _content(event: Event) -> Node:
    inner = event.content
    if inner is None:
        raise ValueError("an event without content has no complement clause")
    if event.infinitive:
        return infinitive(inner)
    root = clause(inner, rel="ccomp").root
    if not event.bare_that:
        root.left.insert(0, mark("that"))
    return root


def infinitive(event: Event, rel: str = "xcomp") -> Node:
    """A to-infinitive without a subject of its own."""
    verb = Node(event.verb.lemma, event.verb.lemma, "VERB", rel)
    verb.left.append(Node("to", "to", "PART", "mark"))
    if event.manner and event.manner_first:
        event = event.but(manner_first=False)
    _complements(event, verb, {})
    _adjuncts(event.but(front=""), verb, {})
    return verb


def _agent_first(event: Event, rel: str, subject: Node | None, invert: bool) -> Clause:
    """An active clause. `subject` replaces the subject's own words (who, that)."""
    agreement = event.subject.agreement
    if subject is None:
        subject = noun_phrase(event.subject, "nsubj")
    aux, form = verb_group(event, agreement, invert=invert)
    verb = _head(event, form, rel)
    roles: dict[str, Role] = {}
    if event.verb.roles:
        roles[event.verb.roles[0]] = subject
    if event.manner and event.manner_first:
        aux.append(adverb(event.manner))
        roles["manner"] = aux[-1]
    verb.left = [aux[0], subject, *aux[1:]] if invert else [subject, *aux]
    direct = _complements(event, verb, roles)
    verb.left[:0] = _adjuncts(event, verb, roles)
    done = Clause(verb, subject, verb, direct, roles, plural=agreement == "pl")
    return _finish(event, done)


def _patient_first(event: Event, rel: str, voice: str, subject: Node | None) -> Clause:
    """A passive clause: of the object, of the recipient, or with the agent left out."""
    names = event.verb.roles
    promoted = event.recipient if voice == "recipient" else event.object
    if promoted is None:
        raise ValueError(f"{event.verb.lemma!r} has nothing to make the subject of a passive")
    agreement = promoted.agreement
    if subject is None:
        subject = noun_phrase(promoted, "nsubj:pass")
    subject.rel = "nsubj:pass"
    aux, form = verb_group(event, agreement, passive=True)
    verb = _head(event, form, rel)
    roles: dict[str, Role] = {names[2] if voice == "recipient" else names[1]: subject}
    if event.manner:
        aux.append(adverb(event.manner))
        roles["manner"] = aux[-1]
    verb.left = [subject, *aux]
    direct = None
    if voice == "recipient" and event.object is not None:
        direct = noun_phrase(event.object, "obj", "accusative")
        verb.right.append(direct)
        roles[names[1]] = direct
    elif event.recipient is not None:
        other = adjunct_phrase(Adjunct(event.verb.preposition, event.recipient))
        verb.right.append(other)
        roles[names[2]] = other
    if voice != "short":
        agent = adjunct_phrase(Adjunct("by", event.subject), "obl:agent")
        verb.right.append(agent)
        roles[names[0]] = agent
    verb.left[:0] = _adjuncts(event.but(manner=""), verb, roles)
    return _finish(event, Clause(verb, subject, verb, direct, roles, plural=agreement == "pl"))


def _predication(event: Event, rel: str, subject: Node | None, invert: bool) -> Clause:
    """A clause with "be": something is tired, a nurse, or in the garden."""
    agreement = event.subject.agreement
    if subject is None:
        subject = noun_phrase(event.subject, "nsubj")
    aux, form = verb_group(event, agreement)
    copula = Node(form, "be", "AUX", "cop")
    predicate = event.predicate
    if isinstance(predicate, Entity):
        root, role = noun_phrase(predicate, rel), "attribute"
        root.ref = None  # a description, not a further mention
    elif isinstance(predicate, Adjunct):
        root, role = adjunct_phrase(predicate, rel), predicate.role
        root.ref = None
    else:
        root, role = Node(str(predicate), str(predicate), "ADJ", rel), "attribute"
        if event.degree:
            root.left.append(adverb(event.degree))
    first = root.left[0] if root.left else root
    last = _rightmost(root)
    has_aux = bool(event.modal) or event.tense == "future" or "perfect" in event.aspect
    group = [*aux, copula] if has_aux else [copula, *aux]
    root.left[:0] = [group[0], subject, *group[1:]] if invert else [subject, *group]
    roles: dict[str, Role] = {"theme": subject, role: (first, last)}
    root.left[:0] = _adjuncts(event, root, roles)
    frame = "Being_located" if isinstance(predicate, Adjunct) else "Being"
    done = _finish(event, Clause(root, subject, copula, None, roles, plural=agreement == "pl"))
    done.frame = frame
    return done


def _rightmost(node: Node) -> Node:
    while node.right:
        node = node.right[-1]
    return node


def clause(
    event: Event,
    voice: str = "active",
    *,
    rel: str = "root",
    subject: Node | None = None,
    invert: bool = False,
) -> Clause:
    """An event in words.

    `voice` is "active", "passive", "short" (a passive without agent) or "recipient" (a passive
    whose subject is the recipient). `subject` stands in for the subject's own words, as in relative
    clauses; `invert` puts the first auxiliary before the subject.
    """
    if event.verb is LEXICON.be:
        return _predication(event, rel, subject, invert)
    if voice == "active":
        return _agent_first(event, rel, subject, invert)
    return _patient_first(event, rel, voice, subject)


@dataclass(frozen=True, slots=True)
class Relative:
    """A relative clause: `gap` says which participant of the event is the noun it modifies."""

    event: Event
    gap: str = "subject"  # "subject" or "object"
    word: str = "that"

    def node(self) -> Node:
        """The tree, hung on a noun."""
        word = Node(self.word, self.word, "PRON", "nsubj") if self.word else None
        if self.gap == "subject":
            return clause(self.event, rel="acl:relcl", subject=word).root
        whole = clause(self.event.but(object=None), rel="acl:relcl").root
        if word is not None:
            word.rel = "obj"
            whole.left.insert(0, word)
        return whole
