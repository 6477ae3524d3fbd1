"""Attacks by one client, and what the other clients notice of them.

`python -m bench attacks` runs each attack against a server of its own with default limits. A
well-behaved client posts one job after the other, before and during the attack. The table has its
longest wait, the ratio of its p99 during the attack to that before, and the server's memory.

A file of attacks has functions that take a `Site` and the number of things to send, and a tuple
`ATTACKS` that names them; `CATALOGUE` in `attacks.py` has the list of these files. A function does
its attack once and returns an `Outcome`: what the server answered, and how many bytes of one body
it was sent. It ends by itself, in some seconds on the faultiest server, and raises no error for a
connection that the server cuts off, since that is an answer too.

The tests run all attacks at small sizes and look at the answers; `tests/` of the parts attacked
count the work that they cause.
"""
