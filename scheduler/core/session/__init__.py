"""One cycle's mutable world: hooks, order, statement, reasons.

In the order of reading:

1. `session` holds the state, the hooks and what was decided; `hooks` and `plugin` are how rules get into it.
2. Changes: `statement` and its `operations`, `direct` for single tasks, `decision_builders` for what leaves the core.
3. Rules of a pod group: `gang`, and `minimums` for semi-preemptible ones.
4. Queues: `policy` answers all questions about them, `order` decides whose turn it is, with `user_shares`;
   `model_bounds` finds queues with bounds per GPU model.
5. Where tasks may go and why they do not: `nodeset`, `neighbours` (affinity to pods), `disruptions`, `fit`.
"""
