"""The budget errors of the error tree."""

from zq.model.errors import Conflict, NotFound, Unprocessable


class BudgetNotFound(NotFound):
    code = "budget_not_found"

    def __init__(self, key: str) -> None:
        super().__init__(f"budget '{key}' not found")


class BudgetNotBound(NotFound):
    code = "budget_not_bound"

    def __init__(self, key: str) -> None:
        super().__init__(f"the job is not bound to budget '{key}'")


class BudgetExists(Conflict):
    code = "budget_exists"

    def __init__(self, key: str) -> None:
        super().__init__(f"budget '{key}' already exists")


class BudgetBound(Conflict):
    code = "budget_bound"

    def __init__(self, key: str) -> None:
        super().__init__(f"the job is already bound to budget '{key}'")


class BudgetInUse(Conflict):
    code = "budget_in_use"


class BudgetQuotaReached(Unprocessable):
    """A key would have more budgets than its quota allows. Waiting does not help."""

    code = "budget_quota"

    def __init__(self, key: str, made: int, most: int) -> None:
        super().__init__(
            f"the key {key!r} has made {made} budgets, and may have {most}: delete some, or give it"
            f" more by budgets=N among its scopes in the file of keys"
        )
