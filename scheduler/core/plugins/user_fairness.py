"""Fairness among users: in leaf queues that ask for it, workloads of users who hold less go first.

One user who submits hundreds of workloads at once would otherwise be served before everybody who comes after him.
Priority still decides first, and a gang that runs without some of its tasks is completed first among equal
priority. Users of equal use, and the workloads of one user, keep their order.
"""

from __future__ import annotations

from scheduler.core.session.session import Session
from scheduler.core.session.user_shares import UserShares


class UserFairnessPlugin:
    """Compares users in the queues that ask for it; adds nothing to a session without such a queue."""

    def open(self, session: Session) -> None:
        """Register the key, and follow what users hold."""
        if not any(queue.user_fairness for queue in session.state.queues.inputs):
            return
        order = session.hooks.pod_group_order
        users = session.attach(UserShares(session.state, len(order)))
        session.hooks.listeners.append(users)
        order.append(users.opening_key)
