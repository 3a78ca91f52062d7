"""All rules in the order of their ids, and the rule numbers that are left out."""

import importlib
import inspect
import pkgutil
from functools import cache

from a2a_proxy.rules import families
from a2a_proxy.rules.define.rule import Rule, registered_rules


@cache
def all_rules() -> dict[str, Rule]:
    """Return every rule by its id."""
    for module in pkgutil.walk_packages(families.__path__, f"{families.__name__}."):
        importlib.import_module(module.name)
    return registered_rules()


@cache
def family_subjects() -> dict[str, str]:
    """Return the subject of each family: `GEN` -> `Generation`."""
    return {
        name.upper(): inspect.cleandoc(module.__doc__ or "").rstrip(".")
        for name, module in _family_packages()
    }


@cache
def omitted_rules() -> dict[str, str]:
    """Return the numbered rules that are not implemented, each with the reason."""
    found = {
        ident: why
        for _, module in _family_packages()
        for ident, why in getattr(module, "LEFT_OUT", {}).items()
    }
    return dict(sorted(found.items()))


def _family_packages() -> list[tuple[str, object]]:
    return [
        (each.name, importlib.import_module(f"{families.__name__}.{each.name}"))
        for each in pkgutil.iter_modules(families.__path__)
        if each.ispkg
    ]
