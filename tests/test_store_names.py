"""The names that the store's package imports when they are asked for."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

from scrubjay import store


def test_no_name_of_the_store_is_that_of_a_module_in_it() -> None:
    """Importing the module would put it in the place of the name, for whoever asks for this later."""
    assert {module.name for module in pkgutil.iter_modules(store.__path__)} & set(store.__all__) == set()


@pytest.mark.parametrize("name", ["copies", "forgotten_since", "restore", "check"])
def test_a_name_of_the_store_is_itself_whatever_was_imported_before(name: str) -> None:
    code = f"import scrubjay.service.application, scrubjay.store; assert not hasattr(scrubjay.store.{name}, '__path__')"
    again = f"from scrubjay.store import {name}; from scrubjay.store import {name} as n; assert callable(n), n"

    done = subprocess.run([sys.executable, "-c", f"{code}; {again}"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
