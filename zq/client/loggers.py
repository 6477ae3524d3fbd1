"""The loggers of this library, in programs that configure logging themselves."""

import logging


def keep_loggers() -> None:
    """Take back that `logging.config` has disabled loggers of zq.

    By default it disables all loggers that exist already and that it does not name. The warnings of
    a worker are then lost, although nobody wanted that. Levels and handlers stay.
    """
    for name, logger in [*logging.root.manager.loggerDict.items()]:
        if name.partition(".")[0] == "zq" and isinstance(logger, logging.Logger):
            logger.disabled = False
