# ruff: noqa: E501 - one row of a table, one line
"""Every way to write a contract wrong, and the exact words that say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieout.contracts import Contract, load_contract, load_contracts, loading, unknown_predecessors
from tieout.errors import ContractError

GOOD = """\
version: 1
pipeline: orders
guarantee: exactly_once
group: loader
grace: 15m
ledgers:
  produced:
    source: {kind: files, format: jsonl, path: produced/*.jsonl}
    columns:
      message_id: id
    coverage: declared
  delivered:
    source: {kind: jdbc, connection: warehouse, table: orders}
alerts:
  - {to: slack, connection: slack_default}
"""

REFUSED = "looks like a secret, and a contract holds none; name a connection instead (AIRFLOW_CONN_<NAME>)"

WRONG_FIELDS = [
    ("columns:", "colums:", "9: ledgers.produced.colums: unknown field; did you mean columns?"),
    (
        "group: loader",
        "gruppe: loader",
        " group: this field is required\nFILE:4: gruppe: unknown field; did you mean group?",
    ),
    (
        "guarantee: exactly_once\ngroup: loader\n",
        "",
        " guarantee: this field is required\nFILE: group: this field is required",
    ),
    ("version: 1", "version: 2", "1: version: found 2; expected one of 1"),
    ("version: 1", "version: '1'", '1: version: found "1"; did you mean 1?'),
    ("exactly_once", "exactly_onc", '3: guarantee: found "exactly_onc"; did you mean exactly_once?'),
    ("group: loader", "group: 7", "4: group: expected text, found 7; write it in quotes"),
    ("group: loader", "group: ' '", "4: group: expected some text, found none"),
    (
        "orders\n",
        "Orders\n",
        '2: pipeline: expected text that matches ^[a-z][a-z0-9_]{0,99}$, found "Orders"',
    ),
    *(
        (
            "message_id: id",
            f"message_id: '{star}'",
            f"10: ledgers.produced.columns.message_id: expected one value, found {star}, which stands for all columns; name one of them, or make one value of all, such as to_json(struct(*))",
        )
        for star in ("*", "doc.*", "`a b`.*")
    ),
    (
        "    coverage: declared",
        "    where: '*'\n    coverage: declared",
        "11: ledgers.produced.where: expected one value, found *, which stands for all columns; name one of them, or make one value of all, such as to_json(struct(*))",
    ),
    (
        "group: loader",
        "group: loader\nafter: Orders",
        '5: after: expected text that matches ^[a-z][a-z0-9_]{0,99}$, found "Orders"',
    ),
    (
        "group: loader",
        "group: loader\nafter: [enrich]",
        '5: after: expected a mapping of fields, found ["enrich"]',
    ),
    ("group: loader", "group: loader\nafter: {id: x}", "5: after.pipeline: this field is required"),
    (
        "group: loader",
        "group: loader\nafter: {pipeline: enrich, ids: x}",
        "5: after.ids: unknown field; did you mean id?",
    ),
    (
        "group: loader",
        "group: loader\nafter: orders",
        "5: after: expected the pipeline of another contract, found this contract's own",
    ),
    (
        "group: loader",
        "group: loader\nafter: {pipeline: enrich, id: '('}",
        "5: after.id: expected a regular expression in Python's syntax, found missing ), unterminated subpattern at position 0",
    ),
    (
        "group: loader",
        "group: loader\nidentity: content\nafter: {pipeline: enrich, id: '(.+)'}",
        "6: after.id: has no effect with identity: content",
    ),
    *(
        (
            "message_id: id",
            f"attempted_at: {text}",
            "10: ledgers.produced.columns.attempted_at: expected HH, the hour of the day, found yyyy-MM-dd hh:mm:ss: h is 1 to 12, and 12:30 without a, which says which half of the day, is read as 00:30",
        )
        for text in ("to_timestamp(t, 'yyyy-MM-dd hh:mm:ss')", 'try_to_timestamp(t, "yyyy-MM-dd hh:mm:ss")')
    ),
    *(
        (
            "  delivered:\n    source: {kind: jdbc, connection: warehouse, table: orders}",
            f"  delivered: {{source: {{kind: jdbc, connection: warehouse, table: orders}}}}\n  {ledger}:\n    source: {{kind: files, format: jsonl, path: produced/*.jsonl}}\n    columns: {columns}",
            f"14: ledgers.{ledger}.source: the ledger is the sends themselves: source, where and columns are those of produced; name the rows that the consumer's side wrote",
        )
        for ledger, columns in (
            ("read", "{message_id: id, processed_at: attempted_at}"),
            ("filtered", "{message_id: id}"),
        )
    ),
    (
        "message_id: id",
        "message_id: id\n      topic: \"'orders'\"\n  read:\n    source: {kind: files, format: jsonl, path: read.jsonl}\n    columns: {consumer_group: \"'orders-loader'\"}\n  staged:\n    source: {kind: files, format: jsonl, path: staged.jsonl}\n    columns: {consumer_group: \"'loader'\"}\n   ",
        "14: ledgers.read.columns.consumer_group: expected the group that is judged, 'loader', found 'orders-loader': every row would be set aside",
    ),
    ("grace: 15m", "grace: 15", "5: grace: expected a duration with its unit such as 15m, found 15"),
    (
        "grace: 15m",
        "grace: 15 min",
        "5: grace: expected a duration such as 15m, 1h30m, 250ms, 7d or PT15M, found '15 min'",
    ),
    (
        "grace: 15m",
        "grace: P1M",
        "5: grace: expected a duration such as 15m, 1h30m, 250ms, 7d or PT15M, found 'P1M'",
    ),
    (
        "grace: 15m",
        "grace: 99999w",
        "5: grace: expected a duration of at most a hundred years, found '99999w'",
    ),
    ("grace: 15m", "schedule: 0 25 * * *", "5: schedule: cron hour: expected 0 to 23, found '25'"),
    (
        "grace: 15m",
        "timezone: Europe/Berln",
        "5: timezone: expected a time zone such as UTC or Europe/Berlin, found 'Europe/Berln'",
    ),
    (
        "grace: 15m",
        "timezone: ../../etc/passwd",
        "5: timezone: expected a time zone such as UTC or Europe/Berlin, found '../../etc/passwd'",
    ),
    (
        "grace: 15m",
        "timezone: yes",
        "5: timezone: expected a time zone such as UTC or Europe/Berlin, found 'yes'",
    ),
    ("grace: 15m", "budgets: {late_ratio: 1%}", '5: budgets.late_ratio: expected a number, found "1%"'),
    (
        "grace: 15m",
        "budgets: {late_ratio: 2}",
        "5: budgets.late_ratio: expected less than or equal to 1, found 2",
    ),
    ("grace: 15m", "budgets: {late_ratio: true}", "5: budgets.late_ratio: expected a number, found true"),
    (
        "    coverage: declared",
        "    reach: 14m\n    coverage: declared",
        "11: ledgers.produced.reach: 14m is shorter than margin = 15m, which is read before every window",
    ),
    (
        "table: orders}",
        "table: orders}\n  committed:\n    source: {kind: jdbc, connection: warehouse, table: commits}\n    reach: 1d",
        "16: ledgers.committed.reach: committed is read whole: its last row before a window counts, however old it is",
    ),
    (
        "table: orders}",
        "table: orders}\n  committed:\n    source: {kind: jdbc, connection: warehouse, table: commits}\n    unknown: [key_hash]",
        "16: ledgers.committed.unknown: has no effect: no content of the ledger committed is compared",
    ),
    (
        "table: orders}",
        "table: orders}\n    unknown: [payload]",
        '14: ledgers.delivered.unknown.0: found "payload"; did you mean payload_hash?',
    ),
    (
        "table: orders}",
        "table: orders}\n  log:\n    source: {kind: jdbc, connection: warehouse, table: log}\n    reach: 1d",
        "16: ledgers.log.reach: of the ledger log only a kafka source finds where a time begins, jdbc does not",
    ),
    (
        "table: orders}",
        "table: orders}\n    reach: 1d\n  log:\n    source: {kind: kafka, connection: k, topic: orders}\nwindows: offsets",
        "14: ledgers.delivered.reach: has no effect with windows: offsets: a range of offsets begins at no time",
    ),
    (
        "grace: 15m",
        "active: {from: 2026-11-20 10:00}",
        "5: active.from: expected a time with its zone, found '2026-11-20 10:00'; add Z for UTC or an offset such as +01:00",
    ),
    (
        "grace: 15m",
        "base_dir: /",
        "5: base_dir: unknown field; expected one of version, pipeline, description, owner, after, guarantee, group, ordering, consumption, redelivery, identity, id_scope, effects, multiplicity, schedule, timezone, active, windows, match, margin, max_latency, clock_skew, grace, evidence_timeout, look_back, budgets, ledgers, settings, annotations, alerts, replay",
    ),
    (
        "grace: 15m",
        "settings: {producer: {acks: [1]}}",
        "5: settings.producer.acks: expected text, a number, or true or false",
    ),
    ("delivered:\n", "delivred:\n", '12: ledgers.delivred: found "delivred"; did you mean delivered?'),
    ("kind: jdbc", "kind: jbdc", '13: ledgers.delivered.source.kind: found "jbdc"; did you mean jdbc?'),
    ("kind: jdbc, ", "", "13: ledgers.delivered.source.kind: this field is required"),
    (
        "table: orders",
        "tabel: orders",
        "13: ledgers.delivered.source.tabel: unknown field; did you mean table?",
    ),
    (", table: orders", "", "13: ledgers.delivered.source: expected either table or query, found neither"),
    (
        ", table: orders",
        ", table: a, query: b",
        "13: ledgers.delivered.source: expected either table or query, found both",
    ),
    *(
        (
            ", table: orders",
            f", query: table orders {limit}",
            f"13: ledgers.delivered.source: expected a query of all rows, found {limit}: others would be missing",
        )
        for limit in ("LIMIT 500;", "limit 10 offset 20", "fetch first 5 rows only")
    ),
    ("format: jsonl", "format: json", '8: ledgers.produced.source.format: found "json"; did you mean jsonl?'),
    (
        "format: jsonl",
        "format: delta, options: {versionAsOf: 3}",
        "8: ledgers.produced.source: options: expected none, because a delta table is read as it is now, "
        "found versionAsOf",
    ),
    (
        "format: jsonl",
        "format: parquet, options: {pathglobfilter: a*}",
        "8: ledgers.produced.source: options.pathglobfilter: expected one of datetimeRebaseMode, int96RebaseMode for "
        "parquet, as other options can leave out files or rows of the evidence; remove it, or name the files in path "
        "and write where",
    ),
    (
        "path: produced/*.jsonl",
        "path: []",
        "8: ledgers.produced.source.path: expected at least one, found []",
    ),
    ("path: produced/*.jsonl", "path: 5", "8: ledgers.produced.source.path: expected a list, found 5"),
    (
        "message_id: id",
        "message_id: 5",
        "10: ledgers.produced.columns.message_id: expected text, found 5; write it in quotes",
    ),
    (
        "columns:\n      message_id: id",
        "columns: {message_id: sha2(body, 256)}",
        "9: ledgers.produced.columns.256): expected text, found null; within {…} an expression with a comma needs quotes",
    ),
    ("message_id: id", "message_id:", "10: ledgers.produced.columns.message_id: expected text, found null"),
    (
        "coverage: declared",
        "coverage: declred",
        '11: ledgers.produced.coverage: found "declred"; did you mean declared?',
    ),
    (
        "coverage: declared",
        "coverage: {until: now()}",
        "11: ledgers.produced.coverage.until: unknown field; expected one of complete_until, complete_from, watermark_file, producers, sequences",
    ),
    (
        "coverage: declared",
        "coverage: [declared]",
        '11: ledgers.produced.coverage: expected a mapping of fields, found ["declared"]',
    ),
    (
        "grace: 15m",
        "replay: {output: {table: 'orders; DROP', identity: id, order: at}}",
        '5: replay.output.table: expected text that matches ^[A-Za-z_][A-Za-z0-9_]{0,62}(\\.[A-Za-z_][A-Za-z0-9_]{0,62})?$, found "orders; DROP"',
    ),
    (
        "grace: 15m",
        "replay: {value: body, to: {connection: outbox}}",
        "5: replay.to: expected either table, in PostgreSQL, or topic, in Kafka",
    ),
    ("to: slack,", "to: slak,", '15: alerts.0.to: found "slak"; did you mean slack?'),
    (
        "to: slack,",
        "at: loud, to: slack,",
        '15: alerts.0.at: found "loud"; expected one of info, warning, critical',
    ),
]

BROKEN_RULES = [
    (
        "grace: 15m",
        "replay: {value: value, from: log}",
        "5: replay.from: the contract has no ledger log to take bodies from",
    ),
    (
        "grace: 15m",
        "replay: {key: id}",
        "5: replay.key: has no effect without value: nothing could be produced again",
    ),
    (
        "grace: 15m",
        "max_latency: 36525d\nclock_skew: 1s",
        " grace: 36525d is shorter than max_latency + clock_skew = 36525d1s: a window would be judged before its last message is due",
    ),
    (
        "grace: 15m",
        "grace: 1m",
        "5: grace: 1m is shorter than max_latency + clock_skew = 10m: a window would be judged before its last message is due",
    ),
    (
        "grace: 15m",
        "budgets: {loss_ratio: 0}",
        "5: budgets.loss_ratio: exactly_once ignores this budget; it uses late_ratio",
    ),
    (
        "exactly_once\ngroup: loader",
        "at_least_once\nbudgets: {loss_ratio: 0}\ngroup: loader",
        "4: budgets.loss_ratio: at_least_once ignores this budget; it uses duplicate_ratio and late_ratio",
    ),
    (
        "exactly_once\ngroup: loader",
        "at_most_once\nbudgets: {duplicate_ratio: 0}\ngroup: loader",
        "4: budgets.duplicate_ratio: at_most_once ignores this budget; it uses loss_ratio and late_ratio",
    ),
    (
        "  produced:",
        "  staged:",
        "6: ledgers: the ledger produced is required: without it nothing is known to have been sent",
    ),
    ("  delivered:", "  committed:", "6: ledgers: one of the ledgers delivered and read is required"),
    (
        "message_id: id",
        "mesage_id: id",
        "10: ledgers.produced.columns.mesage_id: the ledger produced has no such column; did you mean message_id?",
    ),
    (
        "coverage: declared",
        "coverage: {complete_until: now(), watermark_file: w.txt}",
        "11: ledgers.produced.coverage: expected either complete_until or watermark_file, found both",
    ),
    (
        "coverage: declared",
        "coverage: {complete_until: 2026-11-20T10:00:00}",
        "11: ledgers.produced.coverage.complete_until: expected a time with its zone, found '2026-11-20T10:00:00'; add Z for UTC or an offset such as +01:00",
    ),
    (
        "table: orders}",
        "table: orders}\n    coverage: {producers: [a]}",
        "14: ledgers.delivered.coverage.producers: only the ledger produced has producers, delivered has none",
    ),
    (
        "table: orders}",
        "table: orders}\n    coverage: {sequences: gapless}",
        "14: ledgers.delivered.coverage.sequences: only the ledger produced has sequences, delivered has none",
    ),
    (
        "grace: 15m",
        "effects: read",
        "5: effects: read has no effect beside the ledger delivered, which alone makes effects then",
    ),
    (
        "grace: 15m",
        "id_scope: session\nidentity: position",
        "5: id_scope: session has no effect with identity: position",
    ),
    (
        "grace: 15m",
        "redelivery: 30s",
        "5: redelivery: has no effect with consumption: log, where no message is locked; for a share group say "
        "consumption: queue",
    ),
    (
        "grace: 15m",
        "multiplicity: {kind: one_to_many}",
        "5: multiplicity: one_to_many: expected either effect_key or count, found neither",
    ),
    (
        "grace: 15m",
        "identity: content\nmultiplicity: {kind: one_to_many, count: 2}",
        "6: multiplicity: one_to_many needs ids or positions: equal contents have no parts",
    ),
    ("grace: 15m", "multiplicity: {count: 2}", "5: multiplicity.count: has no effect with kind: one_to_one"),
    (
        "grace: 15m",
        "active: {from: 2026-11-20T10:00:00Z, until: 2026-11-20T10:00:00Z}",
        "5: active.until: expected a time after active.from",
    ),
    (
        "slack_default}",
        "slack_default}\n  - {to: slack, connection: slack_default, at: info}",
        "16: alerts.1: alerts slack over slack_default a second time",
    ),
]

SECRETS = [
    (
        "connection: warehouse",
        "connection: postgres://me:hunter2@db/x",
        "13: ledgers.delivered.source.connection: expected the name of a connection: a letter, then letters, digits, '_', '-' or '.'; addresses and secrets belong into the connection itself (AIRFLOW_CONN_<NAME>)",
    ),
    (
        "path: produced/*.jsonl",
        "path: 's3a://key:hunter2@bucket/x'",
        f"8: ledgers.produced.source.path.0: {REFUSED}",
    ),
    (
        "format: jsonl,",
        "format: jsonl, options: {password: hunter2},",
        f"8: ledgers.produced.source: options.password: {REFUSED}",
    ),
    (
        "grace: 15m",
        "settings: {producer: {sasl.jaas.config: x hunter2}}",
        f"5: settings.producer.sasl.jaas.config: {REFUSED}",
    ),
    (
        "grace: 15m",
        "settings: {producer: {schema.registry.basic.auth.user.info: hunter2}}",
        f"5: settings.producer.schema.registry.basic.auth.user.info: {REFUSED}",
    ),
    (
        "grace: 15m",
        "settings: {producer: {ssl.keystore.key: hunter2}}",
        f"5: settings.producer.ssl.keystore.key: {REFUSED}",
    ),
    (
        "grace: 15m",
        "settings: {producer: {fs.azure.account.key.lake: hunter2}}",
        f"5: settings.producer.fs.azure.account.key.lake: {REFUSED}",
    ),
    (
        "grace: 15m",
        "settings: {producer: {snowflake.private.key: hunter2}}",
        f"5: settings.producer.snowflake.private.key: {REFUSED}",
    ),
    (
        "grace: 15m",
        "settings: {producer: {db.pwd: hunter2}}",
        f"5: settings.producer.db.pwd: {REFUSED}",
    ),
    (
        "grace: 15m",
        "description: jdbc:postgresql://db/x?user=me&password=hunter2",
        f"5: description: {REFUSED}",
    ),
    ("grace: 15m", "grace: http://me:hunter2@x", f"5: grace: {REFUSED}"),
    (
        "format: jsonl",
        "format: http://me:hunter2@x",
        "8: ledgers.produced.source.format: found what looks like a secret; expected one of jsonl, csv, parquet, orc, "
        "delta, iceberg",
    ),
]

YAML_ERRORS = [
    (GOOD.replace("grace: 15m", "group: b"), "5: group: given a second time, first on line 4"),
    (GOOD.replace("grace: 15m", "'group': b"), "5: group: given a second time, first on line 4"),
    (
        GOOD.replace("grace: 15m", "grace: [15m"),
        "6: not YAML: expected ',' or ']', but got ':'; a bracket is not closed, or what stands within it needs quotes",
    ),
    (
        GOOD.replace("grace: 15m", "  grace: 15m"),
        "5: not YAML: mapping values are not allowed here; a value with a colon and a space needs quotes",
    ),
    (
        GOOD.replace("    source:", "   source:", 1),
        "9: not YAML: expected <block end>, but found '<block mapping start>'; "
        "the line is not indented as those beside it are",
    ),
    (
        GOOD.replace("grace: 15m", "\tgrace: 15m"),
        "5: not YAML: found character '\\t' that cannot start any token; the line is indented by a tab; YAML takes spaces",
    ),
    (GOOD.replace("grace: 15m", "grace: a\x07b"), "5: not YAML: special characters are not allowed"),
    (GOOD.replace("grace: 15m", 'description: "a\\0b"'), "5: the character U+0000 is not allowed"),
    (GOOD.replace("grace: 15m", 'description: "a\\ud800"'), "5: the character U+D800 is not allowed"),
    (
        GOOD.replace("grace: 15m", "grace: !!python/name:os.system x"),
        "5: the tag tag:yaml.org,2002:python/name:os.system is not supported here",
    ),
    (GOOD.replace("grace: 15m", "[a, b]: 1"), "5: expected a field's name, found a list"),
    (
        GOOD.replace("grace: 15m", "budgets: &a {late_ratio: *a}"),
        "5: the value contains itself through an alias",
    ),
    (GOOD + "---\nversion: 1\n", "16: not YAML: but found another document; a file holds one contract"),
    (
        GOOD.replace("grace: 15m", "schedule: */5 * * * *"),
        "5: not YAML: expected alphabetic or numeric character, but found '/'; "
        "a value that begins with * or & needs quotes",
    ),
    (
        GOOD.replace("grace: 15m", "owner: *team"),
        "5: not YAML: found undefined alias 'team'; a value that begins with * needs quotes",
    ),
    (
        GOOD.replace("grace: 15m", "owner: @team"),
        "5: not YAML: found character '@' that cannot start any token; a value that begins with it needs quotes",
    ),
    (
        GOOD.replace("grace: 15m", 'owner: "C:\\data"'),
        "5: not YAML: found unknown escape character 'd'; "
        "in double quotes a backslash begins an escape, in single ones it does not",
    ),
    (
        GOOD.replace("grace: 15m", "grace:\u00a015m"),
        "6: not YAML: could not find expected ':'; a field is followed by a colon and a space; "
        "line 5 has a no-break space, which YAML takes for a letter",
    ),
    ("", " the file is empty; expected a contract that begins with version: 1"),
    ("# nothing yet\n", " the file is empty; expected a contract that begins with version: 1"),
    ("- version: 1\n", "1: expected a mapping of fields, found a list"),
    ("orders\n", "1: expected a mapping of fields, found a single value"),
    ("[" * 2_000, " nested too deeply to be a contract"),
    ("a: " + "[" * 2_000, " nested too deeply to be a contract"),
]


def _error_of(tmp_path: Path, text: str | bytes) -> str:
    """Return what loading says of the text, with the file's path as FILE."""
    file = tmp_path / "orders.yml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ContractError) as caught:
        load_contract(file)
    return str(caught.value).replace(str(file), "FILE")


def test_the_contract_that_the_tables_spoil_is_good(tmp_path: Path) -> None:
    """Every error below comes from its one change."""
    file = tmp_path / "orders.yml"
    file.write_text(GOOD)

    contract = load_contract(file)

    assert (contract.pipeline, contract.base_dir) == ("orders", tmp_path)


@pytest.mark.parametrize(("old", "new", "message"), [*WRONG_FIELDS, *BROKEN_RULES, *SECRETS])
def test_an_error_names_file_line_field_and_reason(tmp_path: Path, old: str, new: str, message: str) -> None:
    """The words are part of the interface: people search for them and editors link them."""
    assert GOOD.count(old) == 1

    found = _error_of(tmp_path, GOOD.replace(old, new))

    assert found == f"FILE:{message}"
    assert "hunter2" not in found


@pytest.mark.parametrize(("text", "message"), YAML_ERRORS)
def test_a_file_that_holds_no_contract_says_why(tmp_path: Path, text: str, message: str) -> None:
    """What is wrong before any field is looked at is told in the same form."""
    assert _error_of(tmp_path, text) == f"FILE:{message}"


def test_aliases_cannot_multiply_a_small_file_into_a_large_one(tmp_path: Path) -> None:
    """Nine lines of aliases would stand for a hundred million values; the walk stops long before."""
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    found = _error_of(tmp_path, "\n".join(["a0: &a0 [x, x]", *levels]))

    assert "expected at most 20000 values; aliases may have multiplied them" in found


def test_aliases_cannot_nest_a_small_file_deeply(tmp_path: Path) -> None:
    """Each line holds the line before; 40 of them are deeper than any contract, and Python's own limit is far."""
    nested = "".join(f"k{n}: &k{n} [*k{n - 1}]\n" for n in range(1, 40))
    file = tmp_path / "orders.yml"
    file.write_text(f"k0: &k0 [1]\n{nested}")

    with pytest.raises(ContractError, match="expected at most 32 levels; aliases may have nested them"):
        load_contract(file)


def test_a_thousand_problems_are_not_reported_one_by_one(tmp_path: Path) -> None:
    """The first fifty are, then their number: a file of mistakes costs no minutes."""
    file = tmp_path / "orders.yml"
    file.write_text(GOOD + "".join(f"z{n}: 1\n" for n in range(1000)))

    with pytest.raises(ContractError) as raised:
        load_contract(file)

    lines = str(raised.value).splitlines()
    assert len(lines) == 51
    assert lines[-1] == f"{file}:66: z50: and 950 more problems from here on"


@pytest.mark.parametrize(
    "text",
    [
        f"? {'k' * 400_000}\n: 1\n",
        f"settings:\n  producer: {{? {'k' * 400_000} : [1]}}\n",
        f"a: !{'t' * 400_000} 1\n",
        f"a: *{'x' * 400_000}\n",
        f"? {'k' * 200_000}\n: 1\n? {'k' * 200_000}\n: 1\n",
        "a: !%1b%5b31m%0aFILE%3a1%3a%20valid 1\n",
    ],
    ids=["field", "setting", "tag", "alias", "twice", "escapes"],
)
def test_what_a_file_calls_things_makes_no_error_long_or_unreadable(tmp_path: Path, text: str) -> None:
    """An error is shown in the terminal, in logs and as the page of the file's DAG."""
    file = tmp_path / "c.yml"
    file.write_text(text)

    with pytest.raises(ContractError) as raised:
        load_contract(file)

    lines = str(raised.value).split("\n")
    assert max(map(len, lines)) < 1_500
    assert all(line.isprintable() and line.startswith(f"{file}:") for line in lines)


def test_one_file_takes_no_other_contract_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens while it is read; the error names its kind and the file."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.yml").write_text(GOOD.replace("orders", f"orders_{name}", 1))
    read = loading.load_contract

    def fails_on_a(file: Path) -> Contract:
        if file.name == "a.yml":
            raise RecursionError("maximum recursion depth exceeded")
        return read(file)

    monkeypatch.setattr(loading, "load_contract", fails_on_a)

    contracts, errors = load_contracts(tmp_path)

    assert [contract.pipeline for contract in contracts] == ["orders_b"]
    assert [str(error) for error in errors] == [
        f"{tmp_path / 'a.yml'}: no contract can be read from it: RecursionError"
    ]


def test_all_problems_are_reported_in_the_order_of_their_lines(tmp_path: Path) -> None:
    """The first problem is the error's own; the others follow, each with its place."""
    text = (
        GOOD.replace("grace: 15m", "grace: 15").replace("table:", "tabel:").replace("to: slack", "to: slak")
    )

    assert _error_of(tmp_path, text).splitlines() == [
        "FILE:5: grace: expected a duration with its unit such as 15m, found 15",
        "FILE:13: ledgers.delivered.source.tabel: unknown field; did you mean table?",
        'FILE:15: alerts.0.to: found "slak"; did you mean slack?',
    ]


def test_files_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    """A missing file, a folder, another encoding and a huge file are told apart."""
    with pytest.raises(ContractError, match=r"missing\.yml: no such file"):
        load_contract(tmp_path / "missing.yml")
    with pytest.raises(ContractError, match="expected a contract file, found a folder"):
        load_contract(tmp_path)

    assert _error_of(tmp_path, b"version: 1\npipeline: caf\xe9\n") == "FILE:2: not UTF-8: byte 0xe9"
    assert _error_of(tmp_path, b"#" * 1_000_001) == "FILE: expected a contract of at most 1000000 bytes"


def _chain(folder: Path, **predecessors: str | None) -> None:
    for pipeline, before in predecessors.items():
        after = "" if before is None else f"after: {before}\n"
        text = GOOD.replace("pipeline: orders\n", f"pipeline: {pipeline}\n{after}")
        (folder / f"{pipeline}.yml").write_text(text)


def test_contracts_that_come_after_each_other_are_errors_and_take_no_other_away(tmp_path: Path) -> None:
    """Each of a cycle is told with the whole cycle; one that is after a hop of it is not part of it."""
    _chain(tmp_path, first=None, second="first", a="c", b="a", c="b", outside="a")

    contracts, errors = load_contracts(tmp_path)

    assert [one.pipeline for one in contracts] == ["first", "outside", "second"]
    assert [str(error) for error in errors] == [
        f"{tmp_path}/{name}.yml:3: after: expected a chain with a first hop, found the cycle {cycle}"
        for name, cycle in [
            ("a", "a after c after b after a"),
            ("b", "b after a after c after b"),
            ("c", "c after b after a after c"),
        ]
    ]


def test_a_predecessor_that_no_file_has_is_reported_on_request(tmp_path: Path) -> None:
    """Of a folder and of a file; nothing is refused, since a deployment may keep it elsewhere."""
    _chain(tmp_path, enrich=None, route="enrich", table="rout")

    reported = [
        f"{tmp_path}/table.yml:3: after: no contract here has the pipeline rout; did you mean route?",
    ]
    assert [str(error) for error in unknown_predecessors([tmp_path])] == reported
    assert [str(error) for error in unknown_predecessors([tmp_path / "table.yml"])] == reported
    assert unknown_predecessors([tmp_path / "route.yml"]) == ()
    assert len(load_contracts(tmp_path)[0]) == 3


def test_where_a_message_was_lost_changes_no_digest(tmp_path: Path) -> None:
    """So that a chain can be declared without judging a year of windows again."""
    _chain(tmp_path, orders=None)
    (tmp_path / "after.yml").write_text(
        GOOD.replace("pipeline: orders\n", "pipeline: orders\nafter: enrich\n")
    )

    alone, after = (load_contract(tmp_path / name) for name in ("orders.yml", "after.yml"))

    assert after.digest == alone.digest
    assert after.after is not None
    assert after.after.pipeline == "enrich"
    assert Contract.from_json(after.to_json(), tmp_path) == after


@pytest.mark.parametrize(
    "columns",
    [
        "{message_id: id, processed_at: handled_at}",
        "{message_id: id, processed_at: attempted_at, outcome: \"if(is_done, 'ok', 'failed')\"}",
    ],
)
def test_a_table_may_hold_sends_and_what_became_of_them(tmp_path: Path, columns: str) -> None:
    """As an outbox does: the time or the outcome of the effect is its own."""
    source = "source: {kind: jdbc, connection: warehouse, table: orders}"
    same = "source: {kind: files, format: jsonl, path: produced/*.jsonl}"
    path = tmp_path / "orders.yml"
    path.write_text(GOOD.replace(source, f"{same}\n    columns: {columns}"))

    assert load_contract(path).pipeline == "orders"


@pytest.mark.parametrize(
    "query",
    [
        "select distinct on (id) * from orders order by id, loaded_at",
        "select o.* from orders o, lateral (select 1 from lines limit 1) l",
        "select * from orders limit all",
        "select rate_limit from orders",
    ],
)
def test_a_query_of_all_rows_may_limit_others(tmp_path: Path, query: str) -> None:
    """A query inside it leaves out none of its own rows."""
    path = tmp_path / "orders.yml"
    path.write_text(GOOD.replace("table: orders}", f"query: '{query}'}}"))

    assert load_contract(path).pipeline == "orders"
