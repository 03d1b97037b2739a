"""Generates the Python code of every proto file beside it.

``--check`` writes to a temporary folder instead and fails with the list of files that
differ from the committed ones.
"""

import argparse
import filecmp
import re
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent
"""The folder that holds the import root ``sixhop``."""

MESSAGE_SUFFIXES = ("_pb2.py", "_pb2.pyi")
"""What the name of a file with generated messages ends in; nothing written by hand may."""

SERVICE_SUFFIXES = ("_pb2_grpc.py", "_pb2_grpc.pyi")
"""The same for stubs and servicers, which only a proto with a service has."""

PACKAGE_DOCSTRING = (
    '"""Holds code generated from the protos of ``{package}``; generate.py writes it."""\n'
)


class GenerationError(Exception):
    """Says that the compiler refused the protos; its own words are on standard error."""


def proto_files(root: Path) -> list[Path]:
    """Return every proto file under ``root``, relative to it, in a fixed order."""
    return sorted(path.relative_to(root) for path in root.glob("sixhop/**/*.proto"))


def generate(root: Path, target: Path) -> list[Path]:
    """Compile the protos of ``root`` into ``target`` and return what was written, relative to it.

    Raises:
        GenerationError: the compiler refused a file.
    """
    protos = proto_files(root)
    compile_protos(root, protos, [f"--python_out={target}", f"--mypy_out=quiet:{target}"])
    services = [path for path in protos if has_service(root / path)]
    # Every caller and servicer here is asynchronous, so the stubs offer nothing else.
    stubs = f"--mypy_grpc_out=quiet,only_async:{target}"
    if services:
        compile_protos(root, services, [f"--grpc_python_out={target}", stubs])
    for package in packages_of(protos):
        dotted = ".".join(package.parts)
        text = PACKAGE_DOCSTRING.format(package=dotted)
        (target / package / "__init__.py").write_text(text, encoding="utf-8")
    return expected_files(root, protos)


def has_service(proto: Path) -> bool:
    """Return whether a proto defines a service."""
    return re.search(r"^service\s", proto.read_text(encoding="utf-8"), re.MULTILINE) is not None


def compile_protos(root: Path, protos: list[Path], outputs: list[str]) -> None:
    """Run protoc in this process, with the stub plugins of this interpreter's environment.

    Raises:
        GenerationError: the compiler refused a file, or there is none.
    """
    if not protos:
        raise GenerationError(f"no proto file to compile under {root / 'sixhop'}")
    scripts = Path(sysconfig.get_path("scripts"))
    arguments = [
        "protoc",
        f"--proto_path={root}",
        *(f"--proto_path={path}" for path in include_paths()),
        # Named here, because the scripts folder of a virtual environment need not be on PATH.
        *(f"--plugin={path}" for path in sorted(scripts.glob("protoc-gen-mypy*"))),
        *outputs,
        *(path.as_posix() for path in protos),
    ]
    code = protoc.main(arguments)
    if code != 0:
        raise GenerationError(f"protoc ended with code {code}")


def include_paths() -> list[Path]:
    """Return where Google's own protos are: the well-known types, then the common ones."""
    return [
        Path(grpc_tools.__file__).parent / "_proto",
        Path(sysconfig.get_path("purelib")),
    ]


def packages_of(protos: Iterable[Path]) -> list[Path]:
    """Return every folder on the way to a proto file, since each must be a package."""
    folders = {parent for path in protos for parent in path.parents if parent != Path()}
    return sorted(folders)


def expected_files(root: Path, protos: list[Path]) -> list[Path]:
    """Return every file that the generation of ``protos`` writes."""
    modules = [
        path.with_name(path.stem + suffix)
        for path in protos
        for suffix in MESSAGE_SUFFIXES + (SERVICE_SUFFIXES if has_service(root / path) else ())
    ]
    return sorted([*modules, *(package / "__init__.py" for package in packages_of(protos))])


def committed_files(root: Path) -> list[Path]:
    """Return the generated files that are there now, those whose proto is gone included."""
    present = (path.relative_to(root) for path in root.glob("sixhop/**/*.py*"))
    return sorted(
        path
        for path in present
        if path.name.endswith(MESSAGE_SUFFIXES + SERVICE_SUFFIXES) or path.name == "__init__.py"
    )


def stale_files(root: Path) -> list[Path]:
    """Return the files that are missing, differ from a new generation, or have no proto any more.

    Raises:
        GenerationError: the compiler refused a file.
    """
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        fresh = generate(root, target)
        _, different, missing = filecmp.cmpfiles(root, target, map(str, fresh), shallow=False)
    orphans = set(committed_files(root)) - set(fresh)
    return sorted([*map(Path, different), *map(Path, missing), *orphans])


def main(arguments: list[str]) -> int:
    """Generate, or check with ``--check``; return 0 when all is fresh, 1 when not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail when stale")
    options = parser.parse_args(arguments)
    try:
        if not options.check:
            for orphan in set(committed_files(ROOT)) - set(generate(ROOT, ROOT)):
                (ROOT / orphan).unlink()
            return 0
        stale = stale_files(ROOT)
    except GenerationError as error:
        print(error, file=sys.stderr)
        return 1
    for path in stale:
        print(f"stale: {ROOT.name}/{path.as_posix()} (run: make proto)", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
