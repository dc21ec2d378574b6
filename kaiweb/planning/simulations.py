"""Simulations as rows: a request stores the question, a Celery worker stores the answer.

The worker has a process of its own, so that a long simulation delays neither scheduling nor upkeep.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec
from celery import current_app
from django.contrib.auth.models import User
from kombu.exceptions import OperationalError as BrokerError

from kaiweb.models import Simulation, SimulationState
from kube.errors import KubeError
from kube.gateway import Gateway
from queues import selectors
from scheduler.core.errors import CoreError
from scheduler.tools.simulate.what_if.answer import answer_of
from scheduler.tools.simulate.what_if.picture import take_picture
from scheduler.tools.simulate.what_if.question import Question, QuestionError, read_question
from scheduler.tools.simulate.what_if.run import Outcome, simulate

log = logging.getLogger(__name__)

#: The name of the Celery task in `kaiweb.tasks`, which imports this module.
TASK = "kaiweb.tasks.run_simulation"
#: Unfinished simulations of one user, and of all.
MAX_OF_USER, MAX_UNFINISHED = 5, 50
#: A simulation that is unfinished for longer has lost its worker.
LOST_AFTER = timedelta(minutes=5)
STORED_FOR = timedelta(days=7)
UNFINISHED = (SimulationState.QUEUED, SimulationState.RUNNING)


class TooManySimulationsError(Exception):
    """The caller, or all callers, have too many unfinished simulations."""


class NoWorkerError(Exception):
    """The broker does not take the message, so nothing would run the simulation."""


def request_simulation(question: Question, author: User, now: datetime) -> Simulation:
    """Store a question and send it to the worker.

    Raises
    ------
    TooManySimulationsError, NoWorkerError : nothing was stored
    """
    unfinished = Simulation.objects.filter(state__in=UNFINISHED, created_at__gt=now - LOST_AFTER)
    if unfinished.filter(author=author).count() >= MAX_OF_USER:
        raise TooManySimulationsError(
            f"expected at most {MAX_OF_USER} unfinished simulations of a user"
        )
    if unfinished.count() >= MAX_UNFINISHED:
        raise TooManySimulationsError(f"expected at most {MAX_UNFINISHED} unfinished simulations")
    row = Simulation.objects.create(
        author=author, created_at=now, question=msgspec.to_builtins(question)
    )
    try:
        send(row.pk)
    except (BrokerError, OSError) as error:
        row.delete()
        raise NoWorkerError(f"the broker does not answer: {error}") from error
    return row


def send(pk: int) -> None:
    """Send the message that runs a simulation."""
    current_app.send_task(
        TASK, args=(pk,), retry=False, expires=LOST_AFTER.total_seconds(), queue="simulations"
    )


def run(pk: int, gateway: Gateway, now: Callable[[], datetime]) -> str:
    """Run a stored simulation once; return the state of its row, empty if another worker has it."""
    claimed = Simulation.objects.filter(pk=pk, state=SimulationState.QUEUED)
    if not claimed.update(state=SimulationState.RUNNING):
        return ""
    row = Simulation.objects.get(pk=pk)
    try:
        outcome = _answer(row, gateway, now())
    except (KubeError, CoreError) as error:
        log.warning("%s: %s", row, error)
        return _finish(row, SimulationState.FAILED, now(), error=str(error))
    row.answer = answer_of(outcome)
    row.verdict = row.answer["verdict"]
    return _finish(row, SimulationState.DONE, now())


def _answer(row: Simulation, gateway: Gateway, now: datetime) -> Outcome:
    question = read_question(row.question)
    picture = take_picture(gateway, question.shard, now.timestamp())
    try:
        return simulate(picture, question, usage=selectors.usage())
    except QuestionError as error:
        return Outcome(question=question, picture=picture, errors=error.findings)


def _finish(row: Simulation, state: SimulationState, now: datetime, error: str = "") -> str:
    row.state, row.error, row.finished_at = state, error, now
    row.save()
    return state.value


def state_of(row: Simulation, now: datetime) -> tuple[str, str]:
    """Return the state and the error; a simulation that has lost its worker has failed."""
    if row.state in UNFINISHED and row.created_at < now - LOST_AFTER:
        return SimulationState.FAILED.value, "the worker ended before it was finished"
    return row.state, row.error


def trim(now: datetime) -> int:
    """Delete old simulations; return how many."""
    count, _by_model = Simulation.objects.filter(created_at__lt=now - STORED_FOR).delete()
    return count
