"""The errors that the terminal shows: what is wrong, and on a second line what to do about it."""

from __future__ import annotations

import click


class TerminalError(click.ClickException):
    """A command cannot be carried out.

    Parameters
    ----------
    message : what is wrong
    advice : what the person can do; empty if the message says it
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice

    def format_message(self) -> str:
        """Return the message, and the advice below it."""
        return f"{self.message}\n  {self.advice}" if self.advice else self.message
