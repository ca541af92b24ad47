"""Train the network for map types from the labelled maps, judge it, and write its weights.

    python benchmarks/train_map_types.py [--to FOLDER]

The labelled maps come with the package; no model is needed. Judged four ways: by cross-validation,
with the maps of one text and model always in one part; on the maps of models of another kind than
those it learned from; on a model that the network which is kept never learns from either; and on
fresh made maps. Maps that were drawn for learning, many of them where an earlier network was
unsure, are never asked about.
Variants are shown only of maps that are learned from.
Beside it stand a decision tree and a logistic regression on plain numbers.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
import torch
from map_type_training.procedural import make_maps
from map_type_training.training import (
    Settings,
    answers,
    made_sample,
    sample_of,
    train_network,
)
from map_type_training.training_sets import TrainingSets, seen_by
from map_type_training.variation import SeenMap
from safetensors.torch import save_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, f1_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from bertology.annotated.map_types.labelled import bundled_labels, bundled_maps, drawn
from bertology.annotated.map_types.network import WEIGHTS, MapTypeNetwork
from bertology.data.map_labels import MAP_TYPES, MapKey, MapLabel, given_by_map
from bertology.model.reducers.map_measures import map_measures
from bertology.stats.agreement import krippendorffs_alpha

FOLDS, RESAMPLES, LEVEL = 5, 2000, 0.95
KIN = "bertology-mini and its kin"
HELD_OUT = "sop-8x128"  # a model that was pre-trained for this alone; nothing learns from it
FIRST = 3  # labellers that every map had
CLEAR = 2 / 3  # of the labellers of a map
MADE, FRESH, FRESH_SEED = 1000, 500, 1
Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (learned from, asked about) -> types


def main() -> None:
    told = _arguments()
    torch.set_num_threads(told.threads)
    torch.backends.mkldnn.set_flags(False)  # slower than plain code for layers this small
    labels = bundled_labels()
    seen = seen_by(labels)
    stored = bundled_maps()
    keys = sorted(stored, key=lambda key: (key[0] == HELD_OUT, key))  # held out: these come last
    maps = [SeenMap(stored[key].weights, stored[key].segments, seen[key]) for key in keys]
    families = np.array([KIN if key[0].startswith("bertology-mini") else key[0] for key in keys])
    held_out = families == HELD_OUT
    lessons, plain = TrainingSets(maps[: int((~held_out).sum())], seed=0), sample_of(maps)
    made = made_sample(make_maps(MADE, seed=0))
    settings = Settings(steps=told.steps)
    types = plain.types.numpy()
    record: dict = {"labelled": int((~held_out).sum()), "held out": int(held_out.sum())}
    record |= {"made": MADE, "settings": asdict(settings)}
    for name, some in (("types", ~held_out), ("types, held out", held_out)):
        record[name] = {t: int((types[some] == i).sum()) for i, t in enumerate(MAP_TYPES)}
    asked = np.array([key not in drawn("for_learning") for key in keys])
    by_chance = np.array([key in drawn("at_random") for key in keys])
    record["asked"] = int((asked & ~held_out).sum())
    record["asked, drawn at random"] = int((by_chance & ~held_out).sum())
    for name, some in (
        ("asked", asked & ~held_out),
        ("at random", by_chance & ~held_out),
        ("learned only", ~asked),
        ("held out", held_out),
    ):
        chosen = {keys[i] for i in np.flatnonzero(some)}
        record[f"agreement, {name}"] = _agreement(labels, chosen)
        record[f"one labeller against the others, {name}"] = _one_against_others(labels, chosen)

    @cache
    def taught(learned: tuple[int, ...]) -> MapTypeNetwork:
        return train_network(lessons.learned_from(np.array(learned)), made, settings)

    def network(learned: np.ndarray, asked: np.ndarray) -> np.ndarray:
        found = taught(tuple(sorted(learned.tolist())))
        return answers(found, plain.of(torch.from_numpy(asked))).numpy()

    measures, facts = _measures(maps), plain.facts.numpy()
    judged: dict[str, Predict] = {
        "network": network,
        "logistic_facts": _plain(_logistic, facts, types),
        "logistic_measures": _plain(_logistic, measures, types),
        "tree_measures": _plain(_tree, measures, types),
    }
    groups = np.array(["\t".join(key[:4]) for key in keys])
    agreed = plain.seen.amax(-1).numpy()
    parts = {
        "": asked,
        ", two thirds agree": asked & (agreed >= CLEAR),
        ", labellers agree": asked & (agreed == 1),
        ", drawn at random": by_chance,
    }
    for name, predict in judged.items():
        record[name], named = _judge(predict, types, groups, families, parts)
        print(name, json.dumps(record[name]), flush=True)
        if name == "network":
            rows = zip(families[asked], groups[asked], by_chance[asked], types[asked], strict=True)
            _write_mistakes(told.to / "mistakes.csv", rows, named[asked])
    final = taught(tuple(np.flatnonzero(~held_out).tolist()))
    fresh = made_sample(make_maps(FRESH, seed=FRESH_SEED))
    record["fresh_made"] = _f1(fresh.types.numpy(), answers(final, fresh).numpy())
    half = {k: v.half().contiguous() for k, v in final.state_dict().items()}
    save_file(half, told.to / WEIGHTS)
    exact = answers(final, lessons.plain)
    final.load_state_dict({k: v.float() for k, v in half.items()})
    record["same_types_in_half_precision"] = float(
        (answers(final, lessons.plain) == exact).float().mean()
    )
    text = json.dumps(record, indent=1)
    (told.to / "record.json").write_text(text + "\n", encoding="utf-8")
    print("fresh made maps:", record["fresh_made"])
    print("same types in half precision:", record["same_types_in_half_precision"])


def _arguments() -> argparse.Namespace:
    here = Path(__file__).parents[1] / "src" / "bertology" / "checkpoints" / "map-types"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=here)
    parser.add_argument("--steps", type=int, default=Settings.steps)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def _logistic() -> object:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=3000))


def _tree() -> object:
    return DecisionTreeClassifier(max_depth=6, min_samples_leaf=4, random_state=0)


def _plain(make: Callable[[], object], features: np.ndarray, types: np.ndarray) -> Predict:
    def predict(learned: np.ndarray, asked: np.ndarray) -> np.ndarray:
        return make().fit(features[learned], types[learned]).predict(features[asked])

    return predict


def _measures(maps: list[SeenMap]) -> np.ndarray:
    """The measures of the study, and two numbers of the text."""
    rows = []
    for m in maps:
        weights, segments = torch.from_numpy(m.weights), torch.from_numpy(m.segments)[None]
        found = map_measures(weights[None, None], segments)[:, 0, 0]
        rows.append([*found.tolist(), np.log(len(m.segments)), float(m.segments.max() > 0)])
    return np.array(rows)


def _given(labels: list[MapLabel], keys: set[MapKey]) -> list[list[str]]:
    """What the first labellers said of each map, in their first pass.

    Disputed maps were given to four more; to count these here would make maps look harder.
    """
    return [given[:FIRST] for key, given in given_by_map(labels).items() if key in keys]


def _agreement(labels: list[MapLabel], keys: set[MapKey]) -> dict | None:
    """Krippendorff's α over all labellers."""
    found = krippendorffs_alpha(_given(labels, keys))
    return None if found is None else asdict(found)


def _one_against_others(labels: list[MapLabel], keys: set[MapKey]) -> float:
    """Macro-F1 of each label against what most others saw; in a tie, the first type."""
    said, seen = [], []
    for given in _given(labels, keys):
        for i, own in enumerate(given):
            others = given[:i] + given[i + 1 :]
            said.append(MAP_TYPES.index(own))
            seen.append(int(np.argmax([others.count(t) for t in MAP_TYPES])))
    return round(_f1(np.array(seen), np.array(said)), 4)


def _judge(
    predict: Predict,
    types: np.ndarray,
    groups: np.ndarray,
    families: np.ndarray,
    parts: dict[str, np.ndarray],
) -> tuple[dict, np.ndarray]:
    """Of each part of the maps; its first is all that may be asked about.

    Also what a network names that has not seen the kind of model.
    """
    everything, allowed, held_out = np.arange(len(types)), parts[""], families == HELD_OUT
    found = np.full_like(types, -1)
    asked, spare = everything[allowed & ~held_out], everything[~allowed & ~held_out]
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0)
    for learned, left in folds.split(asked, types[asked], groups[asked]):
        found[asked[left]] = predict(np.concatenate([asked[learned], spare]), asked[left])
    result = {}
    for name, part in parts.items():
        own = part & ~held_out
        result[f"cross_validation{name}"] = _summary(types[own], found[own], groups[own])
    unseen = np.full_like(types, -1)
    for name in np.unique(families):
        kind = families == name
        learned = everything[~kind & ~held_out]
        if not (allowed & kind).any() or not len(learned):
            continue
        unseen[allowed & kind] = predict(learned, everything[allowed & kind])
        for what, part in parts.items():
            own = part & kind
            result[f"never seen: {name}{what}"] = _summary(types[own], unseen[own], groups[own])
    return result, unseen


def _write_mistakes(path: Path, rows: Iterable[tuple], named: np.ndarray) -> None:
    """What `bertology.annotated.map_types.mistakes` reads: maps that were drawn by chance."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("model", "text", "seen", "named"))
        for (model, text, by_chance, seen), name in zip(rows, named, strict=True):
            if by_chance:
                table.writerow((model, text.replace("\t", " "), MAP_TYPES[seen], MAP_TYPES[name]))


def _summary(types: np.ndarray, found: np.ndarray, groups: np.ndarray) -> dict:
    """Macro-F1 with a bootstrap interval over texts, F1 of each type, and the confusions."""
    chance = np.random.default_rng(0)
    places = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    scores = []
    for _ in range(RESAMPLES):
        drawn = np.concatenate([places[i] for i in chance.integers(len(places), size=len(places))])
        scores.append(_f1(types[drawn], found[drawn]))
    low, high = np.quantile(scores, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    each = f1_score(types, found, average=None, labels=range(len(MAP_TYPES)))
    return {
        "macro_f1": round(_f1(types, found), 4),
        "low": round(float(low), 4),
        "high": round(float(high), 4),
        "accuracy": round(float((types == found).mean()), 4),
        "f1": dict(zip(MAP_TYPES, [round(float(f), 3) for f in each], strict=True)),
        "confusion": confusion_matrix(types, found, labels=range(len(MAP_TYPES))).tolist(),
        "n": len(types),
    }


def _f1(types: np.ndarray, found: np.ndarray) -> float:
    """Macro-F1 over the types that occur, since a resample may lack a rare one."""
    count = len(MAP_TYPES)
    table = np.bincount(types * count + found, minlength=count**2).reshape(count, count)
    asked, given = table.sum(1), table.sum(0)
    each = 2 * table.diagonal() / np.maximum(asked + given, 1)
    return float(each[asked > 0].mean())


if __name__ == "__main__":
    main()
