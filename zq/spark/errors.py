"""The errors of zq's Spark side, each with a message that says what to do.

SourceError
PipelineError
├── JavaMissing
├── LakeChanged
├── LakeUnknown
├── NoHistory
├── SparkDown
└── StatsUnread
"""


class SourceError(Exception):
    """The data source cannot do this. The message says what to change."""


class PipelineError(Exception):
    """The pipeline cannot go on. The message is for the user."""


class JavaMissing(PipelineError):
    def __init__(self) -> None:
        super().__init__(
            "Spark needs Java 17, and none was found: apt-get install openjdk-17-jre-headless, "
            "or let JAVA_HOME name a Java that is installed"
        )


class LakeChanged(PipelineError):
    def __init__(self, lake: str) -> None:
        super().__init__(
            f"another run has changed {lake} meanwhile, and what this run has done since is not in "
            "it: let one run at a time write a lake, then run again"
        )


class LakeUnknown(PipelineError):
    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} is not a record of a lake that this version of zq keeps ({reason}): name"
            " another lake, and fill it from the same segments and servers"
        )


class NoHistory(PipelineError):
    """There is nothing to show."""


class SparkDown(PipelineError):
    def __init__(self) -> None:
        super().__init__("Spark did not start, for the reason that it gives above")


class StatsUnread(PipelineError):
    """A server does not tell what waits there."""
