"""Drafts a first contract from samples of the evidence, with its guesses as comments, to be read and corrected.

Pure: from samples to YAML. Nothing that could improve a verdict beyond UNKNOWN is guessed: no coverage is written, and
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
    ambiguous_ids,
    expected_columns,
    guessed,
    quoted,
    snake_case,
)
from tieout.contracts.sources import QUEUES
from tieout.contracts.sources.files import TABLE_FORMATS
from tieout.model import Guarantee, Identity, Ledger

_SNAPSHOTS: Final = frozenset({"jdbc"}) | TABLE_FORMATS
"""Forms that are read as a snapshot, so that they are complete until it is taken."""
_WITHOUT_TAKEN_AT: Final = frozenset({"files", "jdbc", "kafka"})
"""Kinds without `taken_at`: their coverage is declared in `coverage`, or known."""
_ROW_FORMATS: Final = frozenset({"jsonl", "csv", "parquet", "orc"})


@dataclass(frozen=True)
class Draft:
    """A contract as YAML, and one line for each thing that could not be guessed."""

    text: str
    open_questions: tuple[str, ...]


def draft(
    pipeline: str, guarantee: Guarantee, group: str | None, samples: Mapping[Ledger, LedgerSample]
) -> Draft:
    """Return a contract over the sampled sources, with its guesses explained.

    Args:
        pipeline: Its name.
        guarantee: The promised guarantee; evidence cannot show it.
        group: The consumer group or output, or None if the evidence may name it.
        samples: A sample of each ledger's source; `produced` and one of `delivered` and `read` are required.
    """
    guesses = {ledger: guessed(ledger, sample, samples) for ledger, sample in samples.items()}
    identity, identity_reason = _identity(
        {ledger: {*guesses[ledger], *samples[ledger].reader_columns} for ledger in samples}
    )
    questions = [
        f"{ledger}: {'coverage' if sample.kind in _WITHOUT_TAKEN_AT else 'taken_at'}, which is never guessed"
        for ledger, sample in samples.items()
        if sample.form != "kafka"
    ]
    name, group_reason = _group(pipeline, group, samples, guesses)
    lines = [
        "# Written by `tieout init` from a look at the first rows of each source. Read every line: the comments",
        "# say what was guessed, from what, and what was not. `tieout check` validates it.",
        "version: 1",
        f"pipeline: {pipeline}",
        f"guarantee: {guarantee.value}",
        f"group: {json.dumps(name, ensure_ascii=False)}  # {group_reason}",
        f"# {identity_reason}",
        f"identity: {identity.value}",
        *_consumption(samples),
        "ledgers:",
    ]
    for ledger, sample in samples.items():
        mapped = {*guesses[ledger], *OPTIONAL, *sample.reader_columns}
        missing = [column for column in expected_columns(ledger) if column not in mapped]
        unclear = _unclear_id(ledger, sample, samples[Ledger.PRODUCED])
        lines += _ledger_lines(ledger, sample, name, guesses[ledger], missing, unclear=unclear)
        remarks = (*_no_rows(sample), *unclear, *_questions(ledger, missing, identity), *sample.warnings)
        questions += [f"{ledger}: {remark}" for remark in remarks]
    if identity is Identity.MESSAGE_ID and "NOT GUESSED" in identity_reason:
        questions.insert(0, identity_reason)
    return Draft("\n".join(lines) + "\n", tuple(questions))


def _identity(columns: Mapping[Ledger, set[str]]) -> tuple[Identity, str]:
    """Return the identity of messages, from the columns that both sides have, and the reason."""
    both = columns[Ledger.PRODUCED] & columns.get(Ledger.DELIVERED, columns.get(Ledger.READ, set()))
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
    """Return the lines for `consumption: queue`, if `committed` holds the acknowledgements of a queue."""
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
    """Return the group, and its origin as text."""
    if group is not None:
        return group, "as given"
    for ledger, ledger_guesses in guesses.items():
        source = ledger_guesses["consumer_group"].source if "consumer_group" in ledger_guesses else None
        values = {
            value for column in samples[ledger].columns if column.name == source for value in column.values
        }
        if len(values) == 1:
            return values.pop(), f"the only value in {ledger}.{source}"
    return (
        pipeline,
        "NOT GUESSED: the pipeline's name stands here; rows that name another group are set aside",
    )


def _no_rows(sample: LedgerSample) -> tuple[str, ...]:
    """Return the remark that no row was found in files; unreadable rows are skipped and look the same."""
    if sample.rows or sample.kind != "files" or sample.form in {"kafka", "jdbc"}:
        return ()
    return (
        f"no row was found in {sample.path}, so no column was guessed; is it {sample.form}, and not empty?",
    )


def _unclear_id(ledger: Ledger, sample: LedgerSample, produced: LedgerSample) -> tuple[str, ...]:
    """Return the question which column is the message's id, if several are possible."""
    if (
        ledger is Ledger.PRODUCED
        or "message_id" not in expected_columns(ledger)
        or "message_id" in sample.reader_columns
    ):
        return ()
    candidates = ambiguous_ids(ledger, sample, produced)
    question = (
        f"message_id: NOT GUESSED, {' and '.join(candidates)} have values that produced has; "
        "map the one that was sent"
    )
    return (question,) if candidates else ()


def _ledger_lines(
    ledger: Ledger,
    sample: LedgerSample,
    group: str,
    guesses: Mapping[str, Guess],
    missing: Sequence[str],
    *,
    unclear: Sequence[str],
) -> list[str]:
    lines = [f"  {ledger}:", f"    # {sample.rows} rows were looked at. {_source_comment(sample)}".rstrip()]
    lines += [f"    # {_comment(remark)}" for remark in (*sample.warnings, *unclear)]
    lines += [f"    source: {_source(sample, group)}", "    columns:" if guesses else "    columns: {}"]
    if sample.reader_columns:
        lines.append(f"      # the reader gives {', '.join(sample.reader_columns)}")
    for name, guess in guesses.items():
        lines.append(
            f"      {name}: {_scalar(guess.expression)}  # {_comment(f'{guess.source}: {guess.reason}')}"
        )
    used = {guess.source for guess in guesses.values()}
    unused = [column for column in sample.columns if column.name not in used]
    if missing:
        lines.append(f"      # not found: {', '.join(missing)}")
    if unused:
        lines.append(f"      # not used: {_comment(', '.join(column.name for column in unused))}")
    lines += [f"      # {remark}" for remark in _advice(ledger, missing, unused)]
    return lines + [f"    # {remark}" for remark in _coverage_advice(sample, ledger)]


def _advice(ledger: Ledger, missing: Sequence[str], unused: Sequence[ColumnSample]) -> list[str]:
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
    payloads = [column for column in unused if snake_case(column.name) in ("body", "payload", "value")]
    if "payload_hash" in missing and payloads:
        name = quoted(payloads[0].name)
        content = f"to_json({name})" if payloads[0].kind == "other" else payloads[0].sql
        lines.append(
            f"changed payloads show where both sides hash the same bytes: payload_hash: sha2({content}, 256)"
        )
    return lines


def _coverage_advice(sample: LedgerSample, ledger: Ledger) -> list[str]:
    """Return the possible values of `coverage`, which rows cannot prove."""
    of_producers = (
        "  … producers: [NAME, …], sequences: gapless    these are all producers; their sequences show gaps"
    )
    if sample.form == "kafka":
        advice = ["no coverage is needed: a topic is complete up to its end when the run begins"]
        return [*advice, of_producers] if ledger is Ledger.PRODUCED else advice
    if sample.kind not in _WITHOUT_TAKEN_AT:
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
    if sample.form in _SNAPSHOTS:
        lines.append(
            "  coverage: {complete_until: now()}             a snapshot is complete until it was taken"
        )
    if ledger is Ledger.PRODUCED:
        lines.append(of_producers)
    return lines


def _questions(ledger: Ledger, missing: Sequence[str], identity: Identity) -> list[str]:
    """Return the questions about missing columns that the contract needs."""
    needed = {"attempted_at", "processed_at", "committed_at", "committed_offset"}
    if identity is Identity.MESSAGE_ID:
        needed.add("message_id")
    if ledger is Ledger.PRODUCED:
        needed.add("outcome")
    return [f"{name} was not found" for name in missing if name in needed]


def _source_comment(sample: LedgerSample) -> str:
    comments = {"csv": "CSV values are text.", "kafka": "Names are those of the fields in the values' JSON."}
    return comments.get(sample.form, "")


def _source(sample: LedgerSample, group: str) -> str:
    name, _, table = sample.path.partition(":")
    if sample.kind not in _WITHOUT_TAKEN_AT:
        return _source_of_system(sample, group)
    if sample.form == "kafka":
        return f"{{kind: kafka, connection: {name}, topic: {json.dumps(table, ensure_ascii=False)}}}"
    if sample.form == "jdbc":
        return f"{{kind: jdbc, connection: {name}, table: {json.dumps(table, ensure_ascii=False)}}}"
    options = "" if sample.separator == "," else f", options: {{sep: {json.dumps(sample.separator)}}}"
    return f"{{kind: files, format: {sample.form}, path: {json.dumps(sample.path, ensure_ascii=False)}{options}}}"


def _source_of_system(sample: LedgerSample, group: str) -> str:
    """Return a source of a kind with options of its own."""
    name, _, topic = sample.path.partition(":")
    place = {"connection": name, "topic": topic} if sample.form == "kafka" else {"path": sample.path}
    if sample.kind == "kafka_offsets":
        place = {"connection": name, "group": group}
    if sample.kind == "kafka_share_group":
        place = {"connection": name} if sample.form == "kafka" else {"path": sample.path}
        place["group"] = group
    form = {"format": sample.form} if sample.form in _ROW_FORMATS else {}
    options = {} if sample.separator == "," else {"options": {"sep": sample.separator}}
    fields = {**place, **dict(sample.options), **options}
    texts = [f"kind: {sample.kind}", *(f"{name}: {value}" for name, value in form.items())]
    texts += [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()]
    return f"{{{', '.join(texts)}}}"


def _scalar(text: str) -> str:
    """Return the text as a YAML scalar: plain if it is a name or a call, else in double quotes."""
    return text if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(\([A-Za-z0-9_ ()]*\))?", text) else json.dumps(text)


def _comment(text: str) -> str:
    """Return the text without characters that could end a comment's line, at most 300 characters."""
    return "".join(character if character.isprintable() else "?" for character in text)[:300]
