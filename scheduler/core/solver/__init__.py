"""Which running tasks must go so that a pod group can run: search, victims, trial, rules.

In the order of reading:

1. `search` looks for victims that make room for one pod group. `demand` is the part of the group that it tries to place
   at a time, `budget` limits how long it looks; `exchange` is the short way for one task that replaces one victim.
2. Victims: `leaves` and `queue_tree` sort pod groups, `victims` lists their tasks, `generators` makes the sets to try,
   `within_limits` reduces a set to what disruption limits allow.
3. What saves a trial: `usefulness`, `filters` and `bounds` with `room` (free GPUs), and `signatures` of failed searches.
4. `trial` evicts a set and places everybody, in the order of `turns`; `back_home` takes needless moves back.
5. `reclaim_rules` judges what other queues lost.
"""
