"""A first contract from a look at the evidence, with its guesses as comments, to be read and corrected.

Pure: from samples to YAML. What would make a verdict better than UNKNOWN is never guessed: no coverage is written, and
no outcome that the source does not state. Docs: docs/how-to/write-a-contract-from-files.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tieout.contracts.guessing import (
    OPTIONAL,
    PLACE,
    ColumnSample,
    Guess,
    LedgerSample,
    guessed,
    plain_name,
    quoted,
    rivals_of_id,
    wanted_columns,
)
from tieout.contracts.sources import QUEUES
from tieout.contracts.sources.files import TABLE_FORMATS
from tieout.model import Guarantee, Identity, Ledger

_SNAPSHOTS: Final = frozenset({"jdbc"}) | TABLE_FORMATS
"""What is read as it is at one time, so that it is complete until then."""
_CLAIM_NOTHING: Final = frozenset({"files", "jdbc", "kafka"})
"""Kinds without `taken_at`: what they cover is said in `coverage`, or known."""
_ROW_FORMATS: Final = frozenset({"jsonl", "csv", "parquet", "orc"})


@dataclass(frozen=True)
class Draft:
    """A contract as YAML, and in one line each what could not be guessed."""

    text: str
    open_questions: tuple[str, ...]


def draft(
    pipeline: str, guarantee: Guarantee, group: str | None, samples: Mapping[Ledger, LedgerSample]
) -> Draft:
    """Return a contract over the sampled sources, with its guesses explained.

    Args:
        pipeline: Its name.
        guarantee: What is promised; no evidence can tell.
        group: The consumer group or output, or None where the evidence may name it.
        samples: Per ledger what its source holds; `produced` and one of `delivered` and `read` are there.
    """
    guesses = {ledger: guessed(ledger, found, samples) for ledger, found in samples.items()}
    identity, why = _identity({ledger: {*guesses[ledger], *samples[ledger].gives} for ledger in samples})
    questions = [
        f"{ledger}: {'coverage' if found.kind in _CLAIM_NOTHING else 'taken_at'}, which is never guessed"
        for ledger, found in samples.items()
        if found.form != "kafka"
    ]
    name, of_group = _group(pipeline, group, samples, guesses)
    lines = [
        "# Written by `tieout init` from a look at the first rows of each source. Read every line: the comments",
        "# say what was guessed, from what, and what was not. `tieout check` validates it.",
        "version: 1",
        f"pipeline: {pipeline}",
        f"guarantee: {guarantee.value}",
        f"group: {json.dumps(name, ensure_ascii=False)}  # {of_group}",
        f"# {why}",
        f"identity: {identity.value}",
        *_consumption(samples),
        "ledgers:",
    ]
    for ledger, found in samples.items():
        known = {*guesses[ledger], *OPTIONAL, *found.gives}
        missing = [one for one in wanted_columns(ledger) if one not in known]
        unclear = _unclear_id(ledger, found, samples[Ledger.PRODUCED])
        lines += _ledger_lines(ledger, found, name, guesses[ledger], missing, unclear=unclear)
        told_of = (*_no_rows(found), *unclear, *_questions(ledger, missing, identity), *found.warnings)
        questions += [f"{ledger}: {told}" for told in told_of]
    if identity is Identity.MESSAGE_ID and "NOT GUESSED" in why:
        questions.insert(0, why)
    return Draft("\n".join(lines) + "\n", tuple(questions))


def _identity(known: Mapping[Ledger, set[str]]) -> tuple[Identity, str]:
    """Return what makes rows one message, from the columns that both sides have, and why."""
    both = known[Ledger.PRODUCED] & known.get(Ledger.DELIVERED, known.get(Ledger.READ, set()))
    if "message_id" in both:
        return Identity.MESSAGE_ID, "identity: both sides have an id"
    if set(PLACE) <= both:
        return Identity.POSITION, "identity: one side has no id, both have topic, partition and offset"
    if "payload_hash" in both:
        return (
            Identity.CONTENT,
            "identity: neither ids nor positions on both sides, only payload hashes; a loss that an equal duplicate "
            "cancels is then invisible",
        )
    return (
        Identity.MESSAGE_ID,
        "identity: NOT GUESSED, no column was found that names a message on both sides; map message_id below",
    )


def _consumption(samples: Mapping[Ledger, LedgerSample]) -> list[str]:
    """Return that messages are acknowledged one by one, where the acknowledgements of a queue are a ledger."""
    committed = samples.get(Ledger.COMMITTED)
    if committed is None or committed.kind not in QUEUES:
        return []
    return [
        "# messages of a queue are acknowledged one by one; redelivery is how long one may be in a consumer's hands",
        "consumption: queue",
    ]


def _group(
    pipeline: str,
    group: str | None,
    samples: Mapping[Ledger, LedgerSample],
    guesses: Mapping[Ledger, Mapping[str, Guess]],
) -> tuple[str, str]:
    """Return the group, and where it comes from."""
    if group is not None:
        return group, "as given"
    for ledger, known in guesses.items():
        source = known["consumer_group"].source if "consumer_group" in known else None
        values = {value for one in samples[ledger].columns if one.name == source for value in one.values}
        if len(values) == 1:
            return values.pop(), f"the only value in {ledger}.{source}"
    return (
        pipeline,
        "NOT GUESSED: the pipeline's name stands here; rows that name another group are set aside",
    )


def _no_rows(found: LedgerSample) -> tuple[str, ...]:
    """Return that files hold nothing to guess from; what cannot be read is passed over and looks the same."""
    if found.rows or found.kind != "files" or found.form in {"kafka", "jdbc"}:
        return ()
    return (
        f"no row was found in {found.path}, so no column was guessed; is it {found.form}, and not empty?",
    )


def _unclear_id(ledger: Ledger, found: LedgerSample, produced: LedgerSample) -> tuple[str, ...]:
    """Return the question which column is the message's id, where several may be."""
    if ledger is Ledger.PRODUCED or "message_id" not in wanted_columns(ledger) or "message_id" in found.gives:
        return ()
    rivals = rivals_of_id(ledger, found, produced)
    told = f"message_id: NOT GUESSED, {' and '.join(rivals)} have values that produced has; map the one that was sent"
    return (told,) if rivals else ()


def _ledger_lines(
    ledger: Ledger,
    found: LedgerSample,
    group: str,
    guesses: Mapping[str, Guess],
    missing: Sequence[str],
    *,
    unclear: Sequence[str],
) -> list[str]:
    lines = [f"  {ledger}:", f"    # {found.rows} rows were looked at. {_source_comment(found)}".rstrip()]
    lines += [f"    # {_comment(told)}" for told in (*found.warnings, *unclear)]
    lines += [f"    source: {_source(found, group)}", "    columns:" if guesses else "    columns: {}"]
    if found.gives:
        lines.append(f"      # the reader gives {', '.join(found.gives)}")
    for name, guess in guesses.items():
        lines.append(
            f"      {name}: {_scalar(guess.expression)}  # {_comment(f'{guess.source}: {guess.why}')}"
        )
    used = {guess.source for guess in guesses.values()}
    rest = [column for column in found.columns if column.name not in used]
    if missing:
        lines.append(f"      # not found: {', '.join(missing)}")
    if rest:
        lines.append(f"      # not used: {_comment(', '.join(column.name for column in rest))}")
    lines += [f"      # {told}" for told in _advice(ledger, missing, rest)]
    return lines + [f"    # {told}" for told in _coverage_advice(found, ledger)]


def _advice(ledger: Ledger, missing: Sequence[str], rest: Sequence[ColumnSample]) -> list[str]:
    lines = []
    if "outcome" in missing and ledger is Ledger.PRODUCED:
        lines += [
            "outcome is not stated, so every send counts as unknown: without an answer, which proves no loss.",
            "Where the source lists acknowledged sends only, say so: outcome: \"'acked'\"",
        ]
    if "outcome" in missing and ledger in (Ledger.DELIVERED, Ledger.READ):
        lines.append(
            "outcome is not stated, so every row counts as an effect that happened; say which ones did not"
        )
    payloads = [column for column in rest if plain_name(column.name) in ("body", "payload", "value")]
    if "payload_hash" in missing and payloads:
        name = quoted(payloads[0].name)
        content = f"to_json({name})" if payloads[0].kind == "other" else payloads[0].sql
        lines.append(
            f"changed payloads show where both sides hash the same bytes: payload_hash: sha2({content}, 256)"
        )
    return lines


def _coverage_advice(found: LedgerSample, ledger: Ledger) -> list[str]:
    """Return what may be written for `coverage`, which is a promise that rows cannot make."""
    of_producers = (
        "  … producers: [NAME, …], sequences: gapless    these are all producers; their sequences show gaps"
    )
    if found.form == "kafka":
        own = ["no coverage is needed: a topic is complete up to its end when the run begins"]
        return [*own, of_producers] if ledger is Ledger.PRODUCED else own
    if found.kind not in _CLAIM_NOTHING:
        return [
            "taken_at is not guessed: without it this ledger covers nothing. Write the one that is true into source:",
            "  taken_at: now      the files are the system's own, and complete until they are read",
            "  taken_at: TIME     they are a copy of that time, and complete until then",
        ]
    lines = [
        "coverage is not guessed: rows cannot show that none is missing. Without it this ledger covers nothing and the",
        "verdict is UNKNOWN at best, unless a break is certain without it. Write the one that is true:",
        "  coverage: declared                            complete over the window, its margin and its grace, as given",
        "  coverage: {watermark_file: PATH}              complete until the time in that file",
    ]
    if found.form in _SNAPSHOTS:
        lines.append(
            "  coverage: {complete_until: now()}             a snapshot is complete until it was taken"
        )
    if ledger is Ledger.PRODUCED:
        lines.append(of_producers)
    return lines


def _questions(ledger: Ledger, missing: Sequence[str], identity: Identity) -> list[str]:
    """Return what the contract needs an answer to before it can be used well."""
    needed = {"attempted_at", "processed_at", "committed_at", "committed_offset"}
    if identity is Identity.MESSAGE_ID:
        needed.add("message_id")
    if ledger is Ledger.PRODUCED:
        needed.add("outcome")
    return [f"{name} was not found" for name in missing if name in needed]


def _source_comment(found: LedgerSample) -> str:
    comments = {"csv": "CSV values are text.", "kafka": "Names are those of the fields in the values' JSON."}
    return comments.get(found.form, "")


def _source(found: LedgerSample, group: str) -> str:
    name, _, table = found.path.partition(":")
    if found.kind not in _CLAIM_NOTHING:
        return _source_of_system(found, group)
    if found.form == "kafka":
        return f"{{kind: kafka, connection: {name}, topic: {json.dumps(table, ensure_ascii=False)}}}"
    if found.form == "jdbc":
        return f"{{kind: jdbc, connection: {name}, table: {json.dumps(table, ensure_ascii=False)}}}"
    options = "" if found.separator == "," else f", options: {{sep: {json.dumps(found.separator)}}}"
    return (
        f"{{kind: files, format: {found.form}, path: {json.dumps(found.path, ensure_ascii=False)}{options}}}"
    )


def _source_of_system(found: LedgerSample, group: str) -> str:
    """Return a source of a kind with options of its own."""
    name, _, topic = found.path.partition(":")
    place = {"connection": name, "topic": topic} if found.form == "kafka" else {"path": found.path}
    if found.kind == "kafka_offsets":
        place = {"connection": name, "group": group}
    if found.kind == "kafka_share_group":
        place = {"connection": name} if found.form == "kafka" else {"path": found.path}
        place["group"] = group
    form = {"format": found.form} if found.form in _ROW_FORMATS else {}
    options = {} if found.separator == "," else {"options": {"sep": found.separator}}
    named = {**place, **dict(found.options), **options}
    texts = [f"kind: {found.kind}", *(f"{name}: {value}" for name, value in form.items())]
    texts += [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in named.items()]
    return f"{{{', '.join(texts)}}}"


def _scalar(text: str) -> str:
    """Return a YAML scalar that is this text: plain where it is a name or a call, else in double quotes."""
    return text if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(\([A-Za-z0-9_ ()]*\))?", text) else json.dumps(text)


def _comment(text: str) -> str:
    """Return text that stays on its line."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)[:300]
