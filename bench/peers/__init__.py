"""zq beside other job queues: the same work in turn, each queue started as its own docs advise.

- roster/ holds the facts of every peer: packages, server, settings, what it acknowledges.
- adapters/ holds one file a peer: its client and its handlers. The peer's interpreter runs it.
- rows/ holds one file a row: the work of a peer and the figures that are taken.
- wire.py, tally.py, produce.py and work.py (and harness.mjs) are the protocol between them. They
  import only the standard library, since a peer's environment holds nothing else of ours.
"""
