"""Loaded by Python at its start, because ``stoker run`` put this folder into PYTHONPATH: installs the hooks.

Whatever goes wrong in here must not be the script's problem, and a ``sitecustomize`` of the user's own, which
this one hides, is run afterwards.
"""

import os
import sys


def _load_stoker(package: str) -> None:
    """Makes ``import stoker`` work where the interpreter does not have it, without touching ``sys.path``."""
    import importlib.util

    if importlib.util.find_spec("stoker") is not None:
        return
    spec = importlib.util.spec_from_file_location(
        "stoker", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["stoker"] = module
        spec.loader.exec_module(module)


def _install(package: str) -> None:
    try:
        _load_stoker(package)
        from stoker.hooks import install

        install()
    except Exception as error:
        sys.stderr.write(f"stoker: not recorded: {type(error).__name__}: {error}\n")


def _run_the_hidden_one() -> None:
    mine = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if mine is not None:
            sys.modules["sitecustomize"] = mine


_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _here]
if os.environ.get("STOKER_RING"):
    _install(os.path.dirname(_here))
_run_the_hidden_one()
