"""The cluster as arrays: what the snapshot says, and the state a session changes.

In the order of reading:

1. What comes in, and does not change: `inputs` with `constraints`, `device_inputs` and `disruption_limits`;
   `matching` compares labels, taints and ports, `device_backed` lists resources that are requested as devices.
2. How it is numbered: `axis` (a row for each resource), `status` (of a task), `classes` (of equal tasks).
3. The columns: `queues`, `queue_counts`, `podgroups`, `tasks` and `nodes`, and what several tasks hold together:
   `gpus` (fractions of one device) and `shared_claims`.
4. The whole: `state` is all columns and the only way to change them, `journal` undoes changes, `build` makes a state
   from a snapshot.
5. From one cycle to the next (ADR 32): `kept` reuses the last state, `splice` exchanges pod groups in it, `compare`
   checks it against one built anew.
6. Helpers: `changes` (what a reader has not seen yet), `memo` (values computed once), `amount_text` (for messages).
"""
