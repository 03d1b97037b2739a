"""Tests that generated code which does not fit its protos is named."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.architecture.sources import PROTOS

PROTO = """
syntax = "proto3";
package sixhop.sample.v1;
service SampleService { rpc Ask(AskRequest) returns (stream AskResponse); }
message AskRequest { string question = 1; }
message AskResponse { int64 sequence = 1; }
"""
SAMPLE = Path("sixhop/sample/v1")


@pytest.fixture
def generator() -> ModuleType:
    """Return protos/generate.py, which is a command and no module of a package."""
    spec = importlib.util.spec_from_file_location("generator", PROTOS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def root(tmp_path: Path, generator: ModuleType) -> Path:
    """Return a folder with one proto and its generated code."""
    (tmp_path / SAMPLE).mkdir(parents=True)
    (tmp_path / SAMPLE / "sample.proto").write_text(PROTO, encoding="utf-8")
    generator.generate(tmp_path, tmp_path)
    return tmp_path


def test_fresh_code_is_not_stale(generator: ModuleType, root: Path) -> None:
    names = {path.name for path in (root / SAMPLE).glob("*.py*")}

    assert generator.stale_files(root) == []
    assert names == {
        "__init__.py",
        "sample_pb2.py",
        "sample_pb2.pyi",
        "sample_pb2_grpc.py",
        "sample_pb2_grpc.pyi",
    }


def test_a_changed_proto_makes_its_code_stale(generator: ModuleType, root: Path) -> None:
    changed = PROTO.replace("string question = 1;", "string question = 1; string language = 2;")

    (root / SAMPLE / "sample.proto").write_text(changed, encoding="utf-8")

    assert generator.stale_files(root) == [SAMPLE / "sample_pb2.py", SAMPLE / "sample_pb2.pyi"]


def test_a_missing_file_and_one_without_a_proto_are_stale(
    generator: ModuleType, root: Path
) -> None:
    (root / SAMPLE / "sample_pb2_grpc.py").unlink()
    (root / SAMPLE / "gone_pb2.py").touch()

    assert generator.stale_files(root) == [SAMPLE / "gone_pb2.py", SAMPLE / "sample_pb2_grpc.py"]


def test_a_proto_that_cannot_be_compiled_is_an_error(generator: ModuleType, root: Path) -> None:
    (root / SAMPLE / "sample.proto").write_text("syntax = 'proto3'; massage X {}", encoding="utf-8")

    with pytest.raises(generator.GenerationError):
        generator.stale_files(root)
