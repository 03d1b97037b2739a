"""Tests how manifests are read."""

import io
from pathlib import Path

import pytest

from gateway.manifests.documents import STDIN, at, items, read_manifests
from tests.requirements import requirement

TWO = "kind: A\nmetadata: {name: a}\n---\n\n---\n# nothing\n---\nkind: B\nmetadata: {name: b}\n"


def test_a_file_may_hold_many_objects_and_each_knows_its_line(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(TWO, encoding="utf-8")

    reading = read_manifests(file)

    assert [(each.kind, each.name, each.line) for each in reading.documents] == [
        ("A", "a", 1),
        ("B", "b", 8),
    ]
    assert reading.documents[1].where == f"{file}:8 B b"


def test_a_folder_is_read_with_those_in_it_and_without_hidden_ones(tmp_path: Path) -> None:
    for name in ("b.yml", "base/a.yaml", ".git/c.yaml", "notes.txt"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("kind: A\n", encoding="utf-8")

    reading = read_manifests(tmp_path)

    assert [Path(each.file).name for each in reading.documents] == ["b.yml", "a.yaml"]
    assert reading.file_count == 2


def test_the_output_of_another_command_is_read_from_standard_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(TWO))

    assert [each.file for each in read_manifests(STDIN).documents] == ["standard input"] * 2


def test_a_list_is_its_items(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("kind: List\nitems: [{kind: A}, {kind: B}, 3]\n", encoding="utf-8")

    assert [each.kind for each in read_manifests(file).documents] == ["A", "B"]


def test_patches_of_a_kustomization_are_parts_and_are_not_read_as_objects(tmp_path: Path) -> None:
    texts = {
        "kustomization.yaml": (
            "resources: [a.yaml]\n"
            "patches: [{path: patch.yaml}, {patch: 'x: 1'}]\n"
            "patchesStrategicMerge:\n- old.yaml\n- |\n  kind: A\n  x: 1\n"
        ),
        "a.yaml": "kind: A\n",
        "patch.yaml": "kind: A\n",
        "old.yaml": "kind: A\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    reading = read_manifests(tmp_path)

    assert [each.kind for each in reading.documents] == ["A", "Kustomization"]
    assert [Path(file).name for file in reading.patch_files] == ["old.yaml", "patch.yaml"]
    assert reading.kustomized


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: A\n  x: [\n", "x.yaml:2 cannot be read"),
        ("a: 1\nb: 2\na: 3\n", "x.yaml:3 cannot be read: the key a stands twice"),
        ("a: !!python/object:os.system x\n", "x.yaml:1 cannot be read"),
        ("a: &x [*x]\nb: {c: 1, c: 2}\n", "the key c stands twice"),
    ],
)
def test_what_is_no_plain_yaml_is_told_with_its_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "y.yaml").write_text("kind: A\n", encoding="utf-8")

    reading = read_manifests(tmp_path)

    assert words in reading.unreadable[0]
    # One file that cannot be read does not hide the others.
    assert [each.kind for each in reading.documents][-1] == "A"


@requirement("check:manifests")
@pytest.mark.parametrize("deep", ["[" * 5_000, "a: " + "{b: " * 5_000, "[" * 5000 + "]" * 5000])
def test_what_is_nested_without_end_is_told_and_hides_no_other(deep: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(deep, encoding="utf-8")
    (tmp_path / "y.yaml").write_text("kind: A\n", encoding="utf-8")

    reading = read_manifests(tmp_path)

    assert reading.unreadable == (
        f"{tmp_path / 'x.yaml'} cannot be read: it is nested deeper than any manifest",
    )
    assert [each.kind for each in reading.documents] == ["A"]


@requirement("check:manifests")
@pytest.mark.parametrize("letter", ["x", "ä"])
def test_standard_input_may_be_as_large_as_a_file(
    letter: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limit = 64
    monkeypatch.setattr("gateway.manifests.documents.MAX_BYTES", limit)
    most = "kind: A\n#".ljust(limit, "x")
    more = most[:-1] + (letter if letter == "ä" else "xx")
    file = tmp_path / "x.yaml"

    for text, said in ((most, ()), (more, ("is larger than any manifest (64 bytes)",))):
        file.write_text(text, encoding="utf-8")
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        for name, path in (("standard input", STDIN), (str(file), file)):
            assert read_manifests(path).unreadable == tuple(f"{name} {each}" for each in said)


def test_standard_input_that_is_no_text_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe"), encoding="utf-8"))

    assert "standard input cannot be read" in read_manifests(STDIN).unreadable[0]


def test_what_is_not_there_and_what_holds_nothing_are_told(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")

    assert "does not exist" in read_manifests(tmp_path / "none").unreadable[0]
    assert "cannot be read" in read_manifests(tmp_path).unreadable[0]
    (tmp_path / "x.yaml").unlink()
    assert "holds no manifest" in read_manifests(tmp_path).unreadable[0]


def test_values_are_found_at_any_depth_or_not_at_all() -> None:
    body = {"a": {"b": [{"c": 1}, 2]}}

    assert at(body, "a", "b") == [{"c": 1}, 2]
    assert at(body, "a", "x", "y") is None
    assert at(body, "a", "b", "c") is None
    assert items(body, "a", "b") == [{"c": 1}]
    assert items(body, "a") == []
