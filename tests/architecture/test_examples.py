"""Holds the page for people who write clients to the example clients."""

import json

import pytest

from tests.requirements import requirement
from tests.strangers import EXAMPLES, PAGE, ROOT, TITLES, section


@requirement("strangers:quotes")
@pytest.mark.parametrize("language", TITLES)
def test_what_the_page_quotes_stands_in_the_file_that_it_names(language: str) -> None:
    found = section(TITLES[language])
    (file,) = found.files
    path = (PAGE.parent / file).resolve()

    assert path.parent == EXAMPLES / language
    assert found.quotes
    assert all(quote in path.read_text(encoding="utf-8") for quote in found.quotes)


@requirement("strangers:quotes")
def test_every_example_is_on_the_page() -> None:
    assert {path.name for path in EXAMPLES.iterdir() if path.is_dir()} == set(TITLES)


@requirement("strangers:examples")
def test_the_packages_of_the_example_come_from_whatever_registry_is_configured() -> None:
    lock = json.loads((EXAMPLES / "typescript/package-lock.json").read_text(encoding="utf-8"))
    packages = {name: each for name, each in lock["packages"].items() if name}

    assert not [name for name, each in packages.items() if "resolved" in each]
    assert all(each["integrity"] for each in packages.values())


@requirement("strangers:quotes")
def test_the_readme_asks_as_the_page_does() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    (asking,) = [line for line in readme if line.startswith("grpcurl ")]

    assert asking in section("Without any code").commands
