"""What can go wrong around the lake, each with a message that says what to do.

PipelineError
├── DeltaMissing
├── JavaMissing
├── LakeChanged
├── LakeFormat
├── NoHistory
└── SparkDown
"""


class PipelineError(Exception):
    """The pipeline cannot go on; the message is for the user."""


class DeltaMissing(PipelineError):
    """Delta was asked for, and is not there."""


class JavaMissing(PipelineError):
    def __init__(self) -> None:
        super().__init__(
            "Spark needs Java 17, and none was found: apt-get install openjdk-17-jre-headless, "
            "or let JAVA_HOME name a Java that is installed"
        )


class LakeChanged(PipelineError):
    def __init__(self, lake: str) -> None:
        super().__init__(
            f"another run has changed {lake} meanwhile, and what this one has done since is not in "
            "it: let one run at a time write a lake, then run again"
        )


class LakeFormat(PipelineError):
    def __init__(self, lake: str, format: str) -> None:
        super().__init__(
            f"{lake} is a lake of the format {format}: give --format {format}, or name another lake"
        )


class NoHistory(PipelineError):
    """There is nothing to show."""


class SparkDown(PipelineError):
    def __init__(self) -> None:
        super().__init__(
            "Spark did not start, for the reason that it gives above. If it lacks Delta's jars: it "
            "fetches packages from where spark.jars.ivySettings says, once, and then has them"
        )
