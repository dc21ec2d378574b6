"""Runs cycles: one worker per shard, woken by changes and by a clock.

In the order of reading:

1. The way down: `tasks` (Celery) calls `services`, which starts and rests; `worker` lives as long as the process;
   `cycle` is one cycle.
2. Who and when: `lock` and `fence` for one worker at a time, `wake` and `pacing` for when it works.
3. What comes in: `watches`, `settings_follower`, `usage_feed` and `requeue`; `kept_cluster` and `marks` are what is
   remembered between cycles.
4. What comes out: `report` and `workload_decisions` (rows), `measure` (metrics), `debug_server`.
"""
