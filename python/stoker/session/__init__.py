"""A run that cannot be lost: see ``stoker.Session``."""

from .budget import BudgetReached as BudgetReached
from .random_state import seed_everything as seed_everything
from .session import Session as Session

__all__ = ["BudgetReached", "Session", "seed_everything"]
