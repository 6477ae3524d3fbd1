"""One file a peer. Each offers `connect()`, whose client has `enqueue`, `close`, and where the peer
can: `enqueue_many` and `call`. Where `connect` is a coroutine function, so are all of these.
A module has `work(concurrency)` where the peer has no command for a worker.
"""
