"""zq beside other job queues: the same work, turn by turn, each started as its own docs advise.

- roster/ holds the facts of every peer: packages, server, settings, what it acknowledges.
- adapters/ holds one file a peer: its client and its handlers, run by the peer's own interpreter.
- rows/ holds one file a row: what is asked of a peer and what is counted.
- wire.py, tally.py, produce.py and work.py (and harness.mjs) are the protocol between them; these
  import nothing but the standard library, as the peers' environments hold nothing else of ours.
"""
