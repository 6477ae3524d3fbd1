"""One file a peer. Each has `connect()`, which returns a client with `enqueue` and `close`. If the
peer supports it, the client has `enqueue_many` and `call` too. If `connect` is a coroutine
function, so are all of these. A module has `work(concurrency)` if the peer has no command for a
worker.
"""
