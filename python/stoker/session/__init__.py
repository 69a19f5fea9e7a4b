"""A run that cannot be lost: see ``stoker.Session``."""

from .budget import BudgetReached as BudgetReached
from .loop import Session as Session
from .random_state import seed_everything as seed_everything

__all__ = ["BudgetReached", "Session", "seed_everything"]
