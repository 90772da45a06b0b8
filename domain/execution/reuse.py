"""Fingerprints of steps, what differs between two of them, and reuse (5.3, 5.4, D15)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

InputHash = Mapping[str, str | bool]
"""`{"sha256": hex}` of a file, `{"dirhash": hex}` of a directory, or `{"missing": True}`."""

Parts = Mapping[str, str]
"""Digests by part, such as `params.threads`, `inputs.reads` and `outputs.report`."""

NO_MARKER: Final = "no success marker"
DIFFERENT: Final = "the last success has another fingerprint"


@dataclass(frozen=True)
class Fingerprint:
    """What a success depends on: the value a marker holds, and the digests it can be told by."""

    value: str
    parts: Parts


def fingerprint(
    params: Mapping[str, Any], outputs: Mapping[str, Any], inputs: Mapping[str, InputHash]
) -> Fingerprint:
    """The fingerprint of a step: `sha256:` over the JSON of params, outputs and inputs (5.3).

    `params` are as planned, `outputs` as declared and left out when there are none. Keys are
    sorted, and what JSON does not know is written as text. Raises `TypeError` for a mapping whose
    keys cannot be sorted.
    """
    whole: dict[str, Any] = {"params": params}
    if outputs:
        whole["outputs"] = outputs
    if inputs:
        whole["inputs"] = inputs
    parts = {
        f"{group}.{key}": _digest(value)[:16]
        for group, entries in whole.items()
        for key, value in entries.items()
    }
    return Fingerprint(f"sha256:{_digest(whole)}", parts)


def differences(before: Parts, now: Parts) -> tuple[str, ...]:
    """Names of the parts that were added, removed or changed, sorted (D15)."""
    return tuple(part for part in sorted({*before, *now}) if before.get(part) != now.get(part))


@dataclass(frozen=True)
class Reuse:
    """The last success still holds."""


@dataclass(frozen=True)
class Run:
    """The step must run: why, for its start event, and the missing outputs, for a warning."""

    why: tuple[str, ...]
    missing_outputs: tuple[str, ...] = ()


def reuse(
    marker: str | None,
    now: Fingerprint,
    missing_outputs: Sequence[str],
    last_success: Parts | None = None,
) -> Reuse | Run:
    """Decide on reuse once the prerequisites are satisfied (5.4).

    `marker` is the text of the success marker, none when there is none; `missing_outputs` are the
    paths of declared outputs that do not exist; `last_success` the parts stored with the step's
    last success, which say what differs (D15).
    """
    if marker is None:
        return Run((NO_MARKER,))
    missing = tuple(missing_outputs)
    why = _marker_says(marker, now, last_success)
    why += tuple(f"output {path} is missing" for path in missing)
    return Run(why, missing) if why else Reuse()


def _marker_says(marker: str, now: Fingerprint, last_success: Parts | None) -> tuple[str, ...]:
    if marker.strip() == now.value:
        return ()
    parts = differences(last_success, now.parts) if last_success else ()
    return tuple(f"{part} differs" for part in parts) or (DIFFERENT,)


def _digest(value: Any) -> str:
    return sha256(_canonical(value).encode("ascii")).hexdigest()


def _written(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return str(value)


_canonical: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_written).encode
