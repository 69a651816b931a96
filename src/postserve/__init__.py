"""Contextual bandits with post-serving contexts: poLinUCB, its baselines and its context maps.

Names are imported at their first use, so that `import postserve` is quick; `__init__.pyi` lists them.
`__all__` has those that can be imported: some need an extra.
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


def __getattr__(name: str) -> object:
    if name == "__all__":
        value: object = sorted(filter(_is_installed, _MODULE_OF))
    elif name in _MODULE_OF:
        value = _imported(name)
    else:
        raise AttributeError(f"module 'postserve' has no attribute {name!r}")
    globals()[name] = value
    return value


def _imported(name: str) -> object:
    module = _MODULE_OF[name]
    if module == "postserve":  # a room, not a name in one
        return import_module(f"postserve.{name}")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as missing:
        got = f"postserve.{name} needs {missing.name}, which is not installed"
        needs = "client" if module == "postserve.client" else "experiments"  # all other names need no extra
        wanted = f"pip install 'postserve[{needs}]'"
        raise ModuleNotFoundError(f"{got}, wanted: {wanted}", name=missing.name) from missing


def _is_installed(name: str) -> bool:
    """Whether a public name can be imported: some need an extra."""
    try:
        _imported(name)
    except ModuleNotFoundError:
        return False
    return True


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
