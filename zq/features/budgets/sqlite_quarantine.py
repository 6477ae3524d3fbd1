"""The forms of what rows say of budgets and draws."""

from typing import Annotated

from msgspec import Meta

from zq.features.budgets.model import Draw

FORMS = {
    "budgets": {"level": Annotated[int, Meta(ge=-(2**53), le=2**53)]},
    "lines": {"draws": list[Draw]},
}
