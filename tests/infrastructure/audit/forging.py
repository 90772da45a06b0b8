"""What can be wrong with a log, one kind after another, put into a log that keeps every rule.

A forger gets a log and chance, and answers the rows afterwards and where they are wrong; None when
the log has no place for it. Kinds that are about meaning have hashes that fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Any

import orjson

from statelog.domain.execution import invariants, rulebook
from statelog.infrastructure.audit import envelope, streams
from statelog.infrastructure.store.row import Row, hash_of

E = "execution."
HELD, RELEASED, REPORTING = f"{E}slot.held", f"{E}slot.released", f"{E}slot.report_filed"
STARTED, CLOSED = f"{E}attempt.started", f"{E}attempt.closed"
STEP_STARTED, STEP_SUCCEEDED = f"{E}attempt.step_started", f"{E}attempt.step_succeeded"
SAVED, REQUESTED = f"{E}plan.saved", f"{E}plan.run_requested"
FINISHED = f"{E}plan.request_finished"
ANSWERED = ("completed", "failed_fast", "preflight_rejected")

Forged = tuple[list[Row], int]
"""The rows, and the place among them of the one that is wrong, from 0."""


def payload(row: Row) -> dict[str, Any]:
    """What an event says."""
    value: dict[str, Any] = orjson.loads(row.data or b"{}")
    return value


def hashed(row: Row) -> Row:
    """With the hashes that it should have."""
    row = row._replace(data_hash=sha256(row.data or b"").digest())
    return row._replace(hash=hash_of(row))


def saying(row: Row, **changes: Any) -> Row:
    """An event that says something else."""
    data = orjson.dumps({**payload(row), **changes}, option=orjson.OPT_SORT_KEYS)
    return hashed(row._replace(data=data))


@dataclass
class Log:
    """A log to be forged."""

    rows: list[Row]
    random: Random

    def at(self, *names: str, where: Callable[[Row], bool] = lambda row: True) -> int | None:
        """A place of one of these events."""
        found = [at for at, row in enumerate(self.rows) if row.name in names and where(row)]
        return self.random.choice(found) if found else None

    def any(self) -> int:
        return self.random.randrange(len(self.rows))

    def last(self, name: str, before: int, where: Callable[[Row], bool] = lambda row: True) -> int:
        """The place of the last such event before a place, -1 when there is none."""
        found = [at for at in range(before) if self.rows[at].name == name and where(self.rows[at])]
        return found[-1] if found else -1

    def with_row(self, at: int, row: Row) -> Forged:
        return [*self.rows[:at], hashed(row), *self.rows[at + 1 :]], at

    def with_fields(self, at: int, **fields: Any) -> Forged:
        return self.with_row(at, self.rows[at]._replace(**fields))

    def saying(self, at: int | None, **changes: Any) -> Forged | None:
        return None if at is None else self.with_row(at, saying(self.rows[at], **changes))

    def inserted(self, at: int, *rows: Row) -> Forged:
        """With rows put in before a place, each in a command of its own."""
        fresh = [row._replace(command=f"forged-{n}", cause=None) for n, row in enumerate(rows)]
        return renumbered([*self.rows[:at], *fresh, *self.rows[at:]]), at

    def without(self, at: int) -> list[Row]:
        return renumbered([*self.rows[:at], *self.rows[at + 1 :]])


def renumbered(rows: Iterable[Row]) -> list[Row]:
    """Rows with positions, versions, times and hashes as a log has them; causes may be lost."""
    versions: dict[str, int] = {}
    made: list[Row] = []
    for position, row in enumerate(rows, 1):
        versions[row.stream] = version = versions.get(row.stream, 0) + 1
        time = max(row.time, made[-1].time) if made else row.time
        changes = {"position": position, "version": version, "time": time, "cause": None}
        made.append(hashed(row._replace(**changes)))
    return made


# envelopes


def a_gap(log: Log) -> Forged | None:
    at = log.any()
    moved = [hashed(row._replace(position=row.position + 1)) for row in log.rows[at:]]
    return [*log.rows[:at], *moved], at


def a_position_twice(log: Log) -> Forged | None:
    at = log.random.randrange(1, len(log.rows))
    return log.with_fields(at, position=at)


def an_earlier_time(log: Log) -> Forged | None:
    at = log.random.randrange(1, len(log.rows))
    return log.with_fields(at, time=log.rows[at - 1].time - log.random.randint(1, 10**9))


def a_command_again(log: Log) -> Forged | None:
    at = log.random.randrange(2, len(log.rows))
    one = log.random.randrange(at - 1)
    if log.rows[at - 1].command == log.rows[one].command:
        return None
    return log.with_fields(at, command=log.rows[one].command)


def another_stamp(log: Log) -> Forged | None:
    pairs = range(1, len(log.rows))
    found = [at for at in pairs if log.rows[at].command == log.rows[at - 1].command]
    if not found:
        return None
    column = log.random.choice(("actor", "correlation", "cause", "meta"))
    other = {"meta": '{"x":2}', "cause": "plan/p@1"}.get(column, "mallory")
    at = log.random.choice(found)
    return log.with_fields(at, **{column: other})


def a_version_too_many(log: Log) -> Forged | None:
    at = log.any()
    return log.with_fields(at, version=log.rows[at].version + log.random.randint(1, 9))


def a_version_again(log: Log) -> Forged | None:
    at = log.any()
    return log.with_fields(at, version=log.rows[at].version - 1)


def no_actor(log: Log) -> Forged | None:
    return log.with_fields(log.any(), **{log.random.choice(("actor", "command")): ""})


def meta_that_is_no_object(log: Log) -> Forged | None:
    return log.with_fields(log.any(), meta=log.random.choice(("[]", "1", "{", "null")))


def a_nul(log: Log) -> Forged | None:
    return log.with_fields(log.any(), correlation="a\0b")


def a_type_that_is_not_its_own(log: Log) -> Forged | None:
    at = log.any()
    column = log.random.choice(("actor", "time", "data"))
    wrong = {"actor": 7, "time": "now", "data": "{}"}[column]
    return [*log.rows[:at], log.rows[at]._replace(**{column: wrong}), *log.rows[at + 1 :]], at


def a_stream_badly_written(log: Log) -> Forged | None:
    at = log.any()
    stream = log.rows[at].stream
    return log.with_fields(at, stream=log.random.choice((f"{stream}%2f", f"{stream}/", "plan//x")))


def a_changed_header(log: Log) -> Forged | None:
    at, column = log.any(), log.random.choice(("actor", "correlation", "meta"))
    changed = log.rows[at]._replace(**{column: '{"n":9}'})
    return [*log.rows[:at], changed, *log.rows[at + 1 :]], at


def a_changed_payload(log: Log) -> Forged | None:
    at = log.any()
    data = (log.rows[at].data or b"").replace(b"}", b',"forged":1}', 1)
    return [*log.rows[:at], log.rows[at]._replace(data=data), *log.rows[at + 1 :]], at


def an_unknown_name(log: Log) -> Forged | None:
    at = log.any()
    return log.with_fields(at, name=log.rows[at].name + "_again")


def a_newer_schema(log: Log) -> Forged | None:
    at = log.any()
    return log.with_fields(at, schema=log.random.choice((0, 2, 99)))


def a_payload_of_another_shape(log: Log) -> Forged | None:
    at = log.any()
    data = log.random.choice((b"[]", b'{"unheard_of":1}', b"{", b"nonsense"))
    return log.with_fields(at, data=data)


def a_payload_with_spaces(log: Log) -> Forged | None:
    at = log.at(HELD, SAVED, STARTED, FINISHED)
    if at is None:
        return None
    return log.with_fields(at, data=(log.rows[at].data or b"").replace(b":", b": ", 1))


def a_payload_that_is_gone(log: Log) -> Forged | None:
    at = log.any()
    return [*log.rows[:at], log.rows[at]._replace(data=None), *log.rows[at + 1 :]], at


def a_cause_that_is_not_there(log: Log) -> Forged | None:
    cause = log.random.choice(("plan/p@99999", "nothing", "plan/none@1", "@1", "plan/p@0"))
    at = log.any()
    return log.with_fields(at, cause=cause)


def a_cause_that_comes_later(log: Log) -> Forged | None:
    at = log.any()
    later = log.random.choice(log.rows[at:])
    return log.with_fields(at, cause=f"{later.stream}@{later.version}")


# lifecycles


def a_stream_of_nobody(log: Log) -> Forged | None:
    at = log.any()
    stream = log.random.choice(("ticket/1", "plan/p/slot/more", "plan", "counter"))
    return log.with_fields(at, stream=stream, version=1)


def an_event_of_another_aggregate(log: Log) -> Forged | None:
    at, other = log.at(SAVED, HELD, CLOSED), log.at("contract.counter.added")
    if at is None or other is None:
        return None
    return log.inserted(at + 1, log.rows[other]._replace(stream=log.rows[at].stream))


def an_event_twice(log: Log) -> Forged | None:
    once = (STARTED, CLOSED, HELD, REPORTING, RELEASED, "contract.counter.started")
    at = log.at(*once)
    return at if at is None else log.inserted(at + 1, log.rows[at])


def a_beginning_that_is_missing(log: Log) -> Forged | None:
    starts = [at for at, row in enumerate(log.rows) if row.version == 1]
    at = log.random.choice(starts)
    stream = log.rows[at].stream
    after = next((n for n in range(at + 1, len(log.rows)) if log.rows[n].stream == stream), None)
    if after is None or log.rows[after].name in (SAVED, HELD, f"{E}plan.imported"):
        return None
    return log.without(at), after - 1


def a_step_that_ends_twice(log: Log) -> Forged | None:
    at = log.at(STEP_SUCCEEDED)
    return at if at is None else log.inserted(at + 1, log.rows[at])


def a_step_that_nobody_planned(log: Log) -> Forged | None:
    at = log.at(STEP_STARTED)
    return log.saying(at, step_id="unheard-of")


# decisions


def a_plan_in_a_stream_not_its_own(log: Log) -> Forged | None:
    return log.saying(log.at(SAVED), plan_id="another")


def a_token_that_jumps(log: Log) -> Forged | None:
    at = log.at(REQUESTED)
    if at is None:
        return None
    by = log.random.choice((-1, 1, 5))
    return log.saying(at, run_token=payload(log.rows[at])["run_token"] + by)


def a_generation_over_another(log: Log) -> Forged | None:
    at = log.at(SAVED)
    if at is None:
        return None
    name = f"{E}plan.generation_assigned"
    row = saying(log.rows[at]._replace(name=name, data=b"{}"), plan_generation="forged")
    return log.inserted(at + 1, row)


def a_slot_moved_by_another(log: Log) -> Forged | None:
    return log.saying(log.at(REPORTING, RELEASED), execution_id="x99")


def a_slot_freed_as_it_cannot_be(log: Log) -> Forged | None:
    at = log.at(RELEASED)
    if at is None:
        return None
    how = payload(log.rows[at])["how"]
    other = "unfinished" if how in ("recorded", "superseded") else "recorded"
    return log.saying(at, how=other)


def a_floor_that_sinks(log: Log) -> Forged | None:
    at = log.at(HELD)
    if at is None:
        return None
    name, floor = f"{E}slot.floor_raised", payload(log.rows[at])["execution_id"]
    row = saying(log.rows[at]._replace(name=name, data=b"{}"), execution_id=floor)
    return log.inserted(at + 1, row)


def an_attempt_in_a_stream_not_its_own(log: Log) -> Forged | None:
    field = log.random.choice(("execution_id", "plan_id"))
    return log.saying(log.at(STARTED), **{field: "another"})


def a_number_too_many(log: Log) -> Forged | None:
    at = log.at(STEP_STARTED, STEP_SUCCEEDED)
    return at if at is None else log.saying(at, seq=payload(log.rows[at])["seq"] + 1)


def two_steps_at_once(log: Log) -> Forged | None:
    at = log.at(STEP_STARTED)
    if at is None or payload(log.rows[at])["step_id"] != "a":
        return None
    return log.inserted(at + 1, saying(log.rows[at], step_id="c"))


def a_step_before_what_it_needs(log: Log) -> Forged | None:
    at = log.at(STEP_STARTED, where=lambda row: payload(row)["step_id"] == "a")
    return log.saying(at, step_id="b")


def _report(log: Log, **changes: Any) -> Forged | None:
    at = log.at(CLOSED)
    if at is None:
        return None
    return log.saying(at, report={**payload(log.rows[at])["report"], **changes})


def the_report_of_another(log: Log) -> Forged | None:
    field = log.random.choice(("execution_id", "plan_id", "plan_generation"))
    return _report(log, **{field: "another"})


def a_report_of_its_own_mind(log: Log) -> Forged | None:
    return _report(log, step_outcomes={"a": log.random.choice(("reused", "blocked"))})


# between streams


def a_start_of_another_request(log: Log) -> Forged | None:
    return log.saying(log.at(STARTED), plan_generation="another")


def a_result_nobody_reported(log: Log) -> Forged | None:
    at = log.at(FINISHED)
    return log.saying(at, termination_reason="preflight_rejected")


def a_result_for_another_generation(log: Log) -> Forged | None:
    return log.saying(log.at(FINISHED), plan_generation="another")


def a_token_that_sinks(log: Log) -> Forged | None:
    at = log.at(FINISHED)
    return at if at is None else log.inserted(at + 1, saying(log.rows[at], run_token=-5))


def a_report_that_is_dropped(log: Log) -> Forged | None:
    at = log.at(FINISHED)
    if at is None:
        return None
    execution = payload(log.rows[at])["execution_id"]
    rest = range(at + 1, len(log.rows))
    freed = [n for n in rest if log.rows[n].name == RELEASED]
    if not freed or payload(log.rows[freed[0]])["execution_id"] != execution:
        return None
    return log.without(at), freed[0] - 1


def a_result_twice(log: Log) -> Forged | None:
    at = log.at(FINISHED)
    return at if at is None else log.inserted(at + 1, log.rows[at])


def an_id_that_sinks(log: Log) -> Forged | None:
    at = log.at(HELD, where=lambda row: row.version > 1)
    return log.saying(at, execution_id="x0")


def an_admission_of_something_else(log: Log) -> Forged | None:
    at = log.at(HELD)
    change = log.random.choice(
        (
            {"run_token": 99},
            {"plan_generation": "another"},
            {"plan_version": 99},
            {"execution_authority": "run_once", "execution_owner": "mallory"},
        )
    )
    return log.saying(at, **change)


def _ended(log: Log, at: int) -> str | None:
    """How the attempt ended that this release is of."""
    execution = payload(log.rows[at])["execution_id"]
    stream = f"plan/p/attempt/{execution}"
    closed = log.last(CLOSED, at, lambda row: row.stream == stream)
    return None if closed < 0 else payload(log.rows[closed])["report"]["termination_reason"]


def an_answered_plan_again(log: Log) -> Forged | None:
    at = log.at(RELEASED, where=lambda row: payload(row)["how"] == "unfinished")
    if at is None or _ended(log, at) not in ANSWERED:
        return None
    held = log.last(HELD, at)
    between = [row.stream for row in log.rows[held + 1 : at + 1]]
    if held < 0 or "plan/p" in between:
        return None
    return log.inserted(at + 1, saying(log.rows[held], execution_id="x98"))


def a_plan_abandoned_for_ever(log: Log) -> Forged | None:
    at = log.at(RELEASED, where=lambda row: payload(row)["reason"] == "abandoned")
    if at is None:
        return None
    held = log.last(HELD, at)
    if held < 0 or any(row.stream == "plan/p" for row in log.rows[held : at + 1]):
        return None
    one = [row for row in log.rows[held : at + 1] if row.stream.startswith("plan/p/")]
    own = payload(log.rows[held])["execution_id"]
    again = [renamed(row, own, f"{own}.{n}") for n in range(4) for row in one]
    after = renamed(log.rows[held], own, f"{own}.4")
    rows, _ = log.inserted(at + 1, *again, after)
    # the fifth admission since this document, wherever the log had some before
    return rows, at + 1 + len(again)


def renamed(row: Row, old: str, new: str) -> Row:
    """The same of another execution."""
    data = re.sub(rb'"%s"' % old.encode(), b'"%s"' % new.encode(), row.data or b"")
    stream = re.sub(rf"/{old}$", f"/{new}", row.stream)
    return hashed(row._replace(stream=stream, data=data))


def a_start_without_the_slot(log: Log) -> Forged | None:
    at = log.at(STARTED)
    if at is None:
        return None
    row = saying(log.rows[at], execution_id="x97")
    return log.inserted(at + 1, row._replace(stream="plan/p/attempt/x97"))


def a_late_writer(log: Log) -> Forged | None:
    """A step goes on after its plan was taken from it; the close comes later still."""
    at = log.at(STEP_STARTED)
    if at is None:
        return None
    stream = log.rows[at].stream
    own = stream.rsplit("/", 1)[1]
    freed = [
        n
        for n in range(at, len(log.rows))
        if log.rows[n].name == RELEASED and payload(log.rows[n])["execution_id"] == own
    ]
    if not freed:
        return None
    row = log.rows[freed[0]]
    moved = [*log.rows[: freed[0]], *log.rows[freed[0] + 1 :]]
    return renumbered([*moved[:at], row._replace(command="forged"), *moved[at:]]), at + 1


def a_slot_freed_while_it_runs(log: Log) -> Forged | None:
    forged = a_late_writer(log)
    return None if forged is None else (forged[0], forged[1] - 1)


def a_result_superseded_for_nothing(log: Log) -> Forged | None:
    at = log.at(FINISHED)
    if at is None:
        return None
    rows = log.without(at)
    freed = next((n for n in range(at, len(rows)) if rows[n].name == RELEASED), None)
    if freed is None:
        return None
    reason = log.random.choice(("plan_missing", "generation_changed", "request_already_finalized"))
    rows[freed] = saying(rows[freed], how="superseded", reason=reason)
    return rows, freed


FORGERIES: dict[Callable[[Log], Forged | None], str] = {
    a_gap: envelope.POSITIONS,
    a_position_twice: envelope.POSITIONS,
    an_earlier_time: envelope.TIMES,
    a_command_again: envelope.COMMANDS,
    another_stamp: envelope.APPENDS,
    a_version_too_many: envelope.VERSIONS,
    a_version_again: envelope.VERSIONS,
    a_payload_that_is_gone: envelope.GONE,
    no_actor: envelope.FIELDS,
    meta_that_is_no_object: envelope.FIELDS,
    a_nul: envelope.FIELDS,
    a_type_that_is_not_its_own: envelope.FIELDS,
    a_stream_badly_written: envelope.STREAMS,
    a_changed_header: envelope.HEADERS,
    a_changed_payload: envelope.PAYLOADS,
    an_unknown_name: envelope.NAMES,
    a_newer_schema: envelope.SCHEMAS,
    a_payload_of_another_shape: envelope.DECODES,
    a_payload_with_spaces: envelope.CANONICAL,
    a_cause_that_is_not_there: envelope.CAUSES,
    a_cause_that_comes_later: envelope.CAUSES,
    a_stream_of_nobody: streams.OWNERS,
    an_event_of_another_aggregate: streams.KINDS,
    an_event_twice: streams.TRANSITIONS,
    a_beginning_that_is_missing: streams.TRANSITIONS,
    a_step_that_ends_twice: streams.TRANSITIONS,
    a_step_that_nobody_planned: streams.FOLDS,
    a_plan_in_a_stream_not_its_own: rulebook.ITS_PLAN,
    a_token_that_jumps: rulebook.BY_ONE,
    a_generation_over_another: rulebook.ONE_GENERATION,
    a_slot_moved_by_another: rulebook.ITS_EXECUTION,
    a_slot_freed_as_it_cannot_be: rulebook.AS_IT_STANDS,
    a_floor_that_sinks: rulebook.FLOOR,
    an_attempt_in_a_stream_not_its_own: rulebook.ITS_ATTEMPT,
    a_number_too_many: rulebook.NUMBERED,
    two_steps_at_once: rulebook.ONE_STEP,
    a_step_before_what_it_needs: rulebook.NEEDED,
    the_report_of_another: rulebook.OWN_REPORT,
    a_report_of_its_own_mind: rulebook.AS_TOLD,
    a_start_of_another_request: rulebook.AS_HELD,
    a_result_nobody_reported: rulebook.AS_REPORTED,
    a_result_for_another_generation: invariants.ITS_GENERATION,
    a_token_that_sinks: invariants.NEVER_LOWERS,
    a_report_that_is_dropped: invariants.KEPT,
    a_result_twice: invariants.ONCE,
    an_id_that_sinks: invariants.RISE,
    an_admission_of_something_else: invariants.AS_IT_IS,
    an_answered_plan_again: invariants.NOT_WOKEN,
    a_plan_abandoned_for_ever: invariants.THREE_FOLLOW,
    a_start_without_the_slot: invariants.NEVER_STARTS,
    a_late_writer: invariants.FENCED,
    a_slot_freed_while_it_runs: invariants.ONE_LIVE,
    a_result_superseded_for_nothing: invariants.GOOD_REASON,
}
