"""Reads Kubernetes objects from YAML: files, folders, or what another command writes.

PyYAML reads YAML 1.1, as kubectl does; a reader of YAML 1.2 would take `on` and `yes` for text
where the cluster sees true. A key that stands twice is refused, as the API server's strict check
refuses it: which of the two would count is an accident.
"""

import sys
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

STDIN = Path("-")
SUFFIXES = (".yaml", ".yml")
MAX_BYTES = 16 * 1024 * 1024
"""A larger file is no manifest."""
KUSTOMIZATION_KINDS = ("Kustomization", "Component")
_PATCH_LISTS = ("patches", "patchesStrategicMerge", "patchesJson6902")


@dataclass(frozen=True, slots=True)
class Document:
    """Is one object."""

    kind: str
    name: str
    body: Mapping[str, Any]
    file: str
    line: int
    """Where it begins."""

    @property
    def where(self) -> str:
        """Return where it stands, and what it is."""
        return f"{self.file}:{self.line} {self.kind} {self.name}"

    def at(self, *keys: str) -> Any:
        """Return what stands under these keys; None when nothing does."""
        return at(self.body, *keys)


@dataclass(frozen=True, slots=True)
class Reading:
    """Is all that was read."""

    documents: tuple[Document, ...]
    file_count: int
    unreadable: tuple[str, ...] = ()
    """What is no YAML, each with its place."""
    patch_files: tuple[str, ...] = ()
    """Files that a kustomization takes for patches; they are parts and say nothing alone."""

    @property
    def kustomized(self) -> bool:
        """Return whether a kustomization is among it, whose output differs from its files."""
        return any(document.kind in KUSTOMIZATION_KINDS for document in self.documents)


def at(body: Any, *keys: str) -> Any:
    """Return what stands under these keys; None when nothing does."""
    for key in keys:
        if not isinstance(body, Mapping):
            return None
        body = body.get(key)
    return body


def items(body: Any, *keys: str) -> list[Mapping[str, Any]]:
    """Return the tables of the list under these keys; none when there is no such list."""
    found = at(body, *keys)
    if not isinstance(found, list):
        return []
    return [each for each in found if isinstance(each, Mapping)]


def texts(body: Any, *keys: str) -> list[str]:
    """Return the entries of the list under these keys as text; none when there is no such list."""
    found = at(body, *keys)
    return [str(each) for each in found] if isinstance(found, list) else []


def table(body: Any, *keys: str) -> Mapping[str, Any]:
    """Return the table under these keys; an empty one when there is no such table."""
    found = at(body, *keys)
    return found if isinstance(found, Mapping) else {}


def read_manifests(path: Path) -> Reading:
    """Return every object of a file, of a folder and those in it, or of standard input (`-`)."""
    if path == STDIN:
        return _read_stdin()
    if not path.exists():
        return Reading((), 0, (f"{path} does not exist; name a folder or a file of manifests",))
    files = [path] if path.is_file() else sorted(_files(path))
    texts: list[tuple[str, str]] = []
    unreadable: list[str] = []
    for file in files:
        try:
            if file.stat().st_size > MAX_BYTES:
                unreadable.append(_too_large(str(file)))
                continue
            texts.append((str(file), file.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            unreadable.append(f"{file} cannot be read: {error}")
    if not files:
        unreadable.append(f"{path} holds no manifest: no file ends with {' or '.join(SUFFIXES)}")
    return _read(texts, unreadable)


def read_text(name: str, text: str) -> Reading:
    """Return every object of a text; its name stands for a file's."""
    return _read([(name, text)])


def _read_stdin() -> Reading:
    name = "standard input"
    try:
        text = sys.stdin.read(MAX_BYTES + 1)
    except UnicodeDecodeError as error:
        return Reading((), 1, (f"{name} cannot be read: {error}",))
    if len(text.encode()) > MAX_BYTES:
        return Reading((), 1, (_too_large(name),))
    return read_text(name, text)


def _too_large(name: str) -> str:
    return f"{name} is larger than any manifest ({MAX_BYTES} bytes)"


def _files(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if file.suffix in SUFFIXES and file.is_file() and not hidden:
            yield file


def _read(texts: list[tuple[str, str]], unreadable: list[str] | None = None) -> Reading:
    unreadable = unreadable or []
    documents: list[Document] = []
    for file, text in texts:
        try:
            documents += _documents(file, text)
        except yaml.YAMLError as error:
            unreadable.append(_yaml_problem(file, error))
        except RecursionError:
            unreadable.append(f"{file} cannot be read: it is nested deeper than any manifest")
    patches = set(_patch_files(documents))
    whole = tuple(each for each in documents if each.file not in patches)
    return Reading(whole, len(texts), tuple(unreadable), tuple(sorted(patches)))


def _documents(file: str, text: str) -> Iterator[Document]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                body = loader.construct_document(node)
                yield from _objects(file, node.start_mark.line + 1, body)
    finally:
        loader.dispose()


def _objects(file: str, line: int, body: Any) -> Iterator[Document]:
    if not isinstance(body, Mapping):
        return
    kind = body.get("kind")
    if kind == "List":
        for item in items(body, "items"):
            yield from _objects(file, line, item)
        return
    # A kustomization may leave its kind out.
    if kind is None and Path(file).stem == "kustomization":
        kind = KUSTOMIZATION_KINDS[0]
    if isinstance(kind, str):
        yield Document(kind, str(at(body, "metadata", "name") or "?"), body, file, line)


def _patch_files(documents: list[Document]) -> Iterator[str]:
    for document in documents:
        if document.kind not in KUSTOMIZATION_KINDS:
            continue
        for key in _PATCH_LISTS:
            patches = document.at(key)
            for patch in patches if isinstance(patches, list) else ():
                path = patch.get("path") if isinstance(patch, Mapping) else patch
                if isinstance(path, str) and "\n" not in path:
                    yield str(Path(document.file).parent / path)


def _yaml_problem(file: str, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    place = f":{mark.line + 1}" if mark is not None else ""
    problem = getattr(error, "problem", None) or "no YAML"
    return f"{file}{place} cannot be read: {problem}"


class _Loader(yaml.SafeLoader):
    """Reads plain data only, and refuses a key that stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key} stands twice", key_node.start_mark
                )
            if isinstance(key, Hashable):
                seen.add(key)
        return super().construct_mapping(node, deep)
