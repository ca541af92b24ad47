"""FrameNet: the XML of a release through NLTK, sentences in lines, and what may be wrong."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from bertology.data import Field, load_corpus
from bertology.data.words.link_moves import LinkLimits
from bertology.data.words.links import links_of
from bertology.errors import DataError

NAMESPACE = 'xmlns="http://framenet.icsi.berkeley.edu"'
FRAME = f"""<?xml version="1.0" encoding="UTF-8"?>
<frame {NAMESPACE} name="Copying" ID="11" cDate="01/01/2003 00:00:00 PST Tue">
  <definition>&lt;def-root&gt;To copy.&lt;/def-root&gt;</definition>
  <FE name="Creator" abbrev="Cre" coreType="Core" ID="1"><definition>x</definition></FE>
  <FE name="Original" abbrev="Ori" coreType="Core" ID="2"><definition>x</definition></FE>
  <FE name="Goal" abbrev="Goal" coreType="Peripheral" ID="3"><definition>x</definition></FE>
  <lexUnit status="FN1_Sent" POS="V" name="copy.v" ID="10" lemmaID="5">
    <definition>COD: copy</definition>
    <sentenceCount annotated="2" total="2"/>
    <lexeme POS="V" name="copy" order="1"/>
  </lexUnit>
  <lexUnit status="Created" POS="V" name="ape.v" ID="12" lemmaID="6">
    <definition>COD: ape</definition>
    <sentenceCount annotated="0" total="0"/>
    <lexeme POS="V" name="ape" order="1"/>
  </lexUnit>
</frame>
"""
TEXT = "Yesterday he quietly copied it onto paper . "


def labels(*spans: tuple[str, int, int]) -> str:
    return "".join(f'<label name="{n}" start="{a}" end="{b}"/>' for n, a, b in spans)


def unit(text: str = TEXT, target: tuple[int, int] = (21, 26)) -> str:
    elements = (("Creator", 10, 11), ("Original", 28, 29), ("Goal", 31, 40))
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<lexUnit {NAMESPACE} status="FN1_Sent" POS="V" name="copy.v" ID="10" frame="Copying" frameID="11">
  <definition>COD: copy</definition>
  <lexeme POS="V" name="copy" order="1"/>
  <subCorpus name="one">
    <sentence sentNo="0" aPos="7" ID="77"><text>{text}</text>
      <annotationSet status="UNANN" ID="1">
        <layer rank="1" name="BNC">{labels(("PNP", 10, 11))}</layer>
      </annotationSet>
      <annotationSet status="MANUAL" ID="2">
        <layer rank="1" name="FE">{labels(*elements)}</layer>
        <layer rank="1" name="Target">{labels(("Target", *target))}</layer>
      </annotationSet>
    </sentence>
  </subCorpus>
</lexUnit>
"""


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "fndata"
    (folder / "lu").mkdir(parents=True)
    (folder / "frame").mkdir()
    indexes = {
        "frameIndex": '<frame ID="11" name="Copying"/>',
        "luIndex": '<lu name="copy.v" ID="10" status="FN1_Sent" frameID="11" frameName="Copying"/>'
        '<lu name="ape.v" ID="12" status="Created" frameID="11" frameName="Copying"/>',
        "frameRelations": "",
        "semTypes": "",
        "fulltextIndex": "",
    }
    for name, inside in indexes.items():
        file = folder / f"{name.replace('frameRelations', 'frRelation')}.xml"
        file.write_text(f"<?xml version='1.0'?>\n<{name} {NAMESPACE}>{inside}</{name}>\n")
    (folder / "frame" / "Copying.xml").write_text(FRAME)
    (folder / "lu" / "lu10.xml").write_text(unit())
    return folder


def test_a_release_in_its_own_layout(release: Path) -> None:
    import nltk

    before = list(nltk.data.path)
    corpus = load_corpus(release, reader="framenet")
    (example,) = corpus
    assert nltk.data.path == before  # NLTK may not read there afterwards
    assert example.id == "copy.v/77"
    assert example.get("words") == "Yesterday he quietly copied it onto paper .".split()
    assert example.get("predicate") == [3]
    assert example.get("roles") == {"Creator": (1, 2), "Original": (4, 5)}  # core ones only
    assert example.get("frame") == "Copying"
    assert {Field.OFFSETS, Field.PREDICATE, Field.ROLES} <= corpus.fields
    assert [(k.source, k.target, k.name) for k in links_of(example, "frame")] == [
        ((3,), (1,), "Creator"),
        ((3,), (4,), "Original"),
    ]


def test_the_folder_above_and_the_catalogue_find_it(release: Path) -> None:
    release.rename(release.parent / "fn")
    above = release.parent / "framenet-1.5"
    above.mkdir()
    (release.parent / "fn").rename(above / "fndata-1.5")
    assert len(load_corpus("framenet", root=release.parent)) == 1
    assert load_corpus("framenet-1.5", root=release.parent).name == "framenet"


def line(**changed: object) -> str:
    row = {"sent_id": "77", "lu": "copy.v", "frame": "Copying", "text": TEXT, "target": [[21, 26]],
           "fe": [["Creator", 10, 11, "Core"], ["Original", 28, 29, "Core"],
                  ["Goal", 31, 40, "Extra-Thematic"]]}  # fmt: skip
    return json.dumps({**row, **changed})


def test_lines_say_the_same_as_the_release(release: Path, tmp_path: Path) -> None:
    file = tmp_path / "sentences.jsonl"
    file.write_text(line() + "\n" + line(fe=[]) + "\n")
    corpus = load_corpus(file, reader="framenet")
    assert list(corpus) == list(load_corpus(release, reader="framenet"))


def test_an_element_in_two_pieces(tmp_path: Path) -> None:
    file = tmp_path / "sentences.jsonl"
    file.write_text(line(fe=[["Creator", 10, 11, "Core"], ["Creator", 28, 29, "Core"]]))
    roles = load_corpus(file, reader="framenet")[0].get("roles")
    assert roles == {"Creator": (1, 2), "Creator#2": (4, 5)}


def test_wrong_files_are_named(release: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    for wrong, message in (
        (line(target=[[40, 99]]), r"x.jsonl, line 1: characters 40 to 100 are not in its text"),
        (line(fe=[["Creator", 1]]), r"x.jsonl, line 1: not a FrameNet sentence"),
        (line(fe=[]), "no sentence with a predicate"),
    ):
        file.write_text(wrong)
        with pytest.raises(DataError, match=message):
            load_corpus(file, reader="framenet")
    (release / "lu" / "lu10.xml").write_text(unit()[:400])
    with pytest.raises(DataError, match="cannot be read as FrameNet"):
        load_corpus(release, reader="framenet")
    (release / "luIndex.xml").unlink()
    with pytest.raises(DataError, match=r"not a whole FrameNet release: luIndex.xml is missing"):
        load_corpus(release, reader="framenet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no FrameNet folder"):
        load_corpus(tmp_path / "empty", reader="framenet")


def test_nltk_has_it_or_fetches_it_when_asked(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nltk

    home = tmp_path / "nltk_data"
    monkeypatch.setattr(nltk.data, "path", [str(home)])
    fetched: list[str] = []

    def download(package: str, quiet: bool) -> bool:
        fetched.append(package)
        (home / "corpora").mkdir(parents=True)
        release.rename(home / "corpora" / package)
        return True

    monkeypatch.setattr(nltk, "download", download)
    with pytest.raises(DataError, match=r"nltk\.downloader framenet_v17"):
        load_corpus("framenet-v17", root=tmp_path)
    assert fetched == []  # nothing is fetched that was not asked for
    assert len(load_corpus("framenet-v17", root=tmp_path, download=True)) == 1
    assert len(load_corpus("framenet-v17", root=tmp_path)) == 1
    assert fetched == ["framenet_v17"]


def test_the_shared_sentences(shared: Path, tmp_path: Path) -> None:
    archive = shared / "data" / "framenet-1.5.tar.xz"
    if not archive.is_file():
        pytest.skip("needs framenet-1.5 among the shared datasets")
    name = "short_sentences_core_fe.jsonl"
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.name.endswith(name):
                inside = tar.extractfile(member)
                assert inside is not None
                (tmp_path / name).write_bytes(inside.read())
                break
    corpus = load_corpus(tmp_path / name, reader="framenet", limit=3000)
    kept, left = LinkLimits("frame").passing(corpus)
    assert left == sorted(left, reverse=True)
    assert len(kept) == left[-1] > 100
