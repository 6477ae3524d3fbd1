"""Refusals that several verbs share: what a status means there."""

NO_JOB = {404: "There is no such job."}
ENDED = {409: "The job's status does not allow that."}
FULL = {
    429: "A queue is full: try again after `Retry-After` seconds.",
    507: "There is no room for new jobs.",
}
UNBUILT = {422: "A feature that this version does not have."}
