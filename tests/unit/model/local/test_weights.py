"""Finds and checks the weights of the embedded model."""

import hashlib
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from services.model.local import weights
from services.model.local.config import LlmSettings
from services.runtime.config import ConfigError


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pretend that the package of the weights is installed; return its file."""
    spec = ModuleSpec(weights.PACKAGE, None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(weights, "find_spec", lambda name: spec)
    file = tmp_path / weights.FILE
    file.write_bytes(b"GGUF and more")
    return file


def test_packaged_weights_are_taken_when_their_digest_is_right(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    monkeypatch.setattr(weights, "SHA256", digest)

    assert weights.find_weights(LlmSettings()) == (package, "SmolLM2-135M-Instruct")


def test_packaged_weights_of_another_digest_are_refused(package: Path) -> None:
    with pytest.raises(ConfigError, match="damaged or another model"):
        weights.find_weights(LlmSettings())


def test_missing_weights_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "find_spec", lambda name: None)

    with pytest.raises(ConfigError, match="make demo"):
        weights.find_weights(LlmSettings())


def test_a_file_of_the_user_is_taken_as_it_is_and_named_after_itself(tmp_path: Path) -> None:
    file = tmp_path / "qwen3-0.6b.gguf"
    file.write_bytes(b"GGUF and more")

    assert weights.find_weights(LlmSettings(weights=file)) == (file, "qwen3-0.6b")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", None])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "wrong.gguf"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigError, match=r"llm\.weights"):
        weights.find_weights(LlmSettings(weights=file))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_the_embedded_model_listens_on_loopback(host: str) -> None:
    assert LlmSettings(host=host).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.7", "example.com"])
def test_the_embedded_model_listens_nowhere_else(host: str) -> None:
    with pytest.raises(ValueError, match="loopback only"):
        LlmSettings(host=host)
