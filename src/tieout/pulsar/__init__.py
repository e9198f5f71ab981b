"""What Pulsar's brokers say of a topic through their administration REST interface, or said when it was copied."""

from __future__ import annotations

from tieout.pulsar.administration import Administration
from tieout.pulsar.answers import MISSING, OK, Answer, AnswerError, Answers
from tieout.pulsar.copies import SavedAnswers
from tieout.pulsar.opening import opened_answers

__all__ = [
    "MISSING",
    "OK",
    "Administration",
    "Answer",
    "AnswerError",
    "Answers",
    "SavedAnswers",
    "opened_answers",
]
