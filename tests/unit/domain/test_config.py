"""Tests which settings the domain room refuses."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from services.domain.config import DomainSettings


def test_a_folder_that_does_not_exist_is_refused_when_the_settings_are_read(tmp_path: Path) -> None:
    assert DomainSettings(agent_dirs=(tmp_path,)).agent_dirs == (tmp_path,)
    with pytest.raises(ValidationError, match="nowhere does not exist"):
        DomainSettings(agent_dirs=(tmp_path, tmp_path / "nowhere"))
