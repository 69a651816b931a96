"""Contextual bandits with post-serving contexts: poLinUCB, its baselines and its context maps.

Names are imported at their first use, so that `import postserve` is quick; `__init__.pyi` lists them.
"""

import ast
from importlib import import_module

__version__ = "0.1.0"

_MODULE_OF = {
    imported.name: statement.module
    for statement in ast.parse(__loader__.get_data(f"{__path__[0]}/__init__.pyi")).body  # from archives, too
    if isinstance(statement, ast.ImportFrom)
    for imported in statement.names
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'postserve' has no attribute {name!r}")
    module = _MODULE_OF[name]
    if module == "postserve":  # a room, not a name in one
        return import_module(f"postserve.{name}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
