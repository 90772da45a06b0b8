"""What a step hands over, made storable before it is published (D21)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from statelog.domain.errors import Invalid
from statelog.domain.execution.step import Artifact, PermanentStepError
from statelog.infrastructure.codec import escaped, to_json

_ADVICE = "Return numbers, strings, booleans, lists and mappings with string keys."


def storable(value: Any, place: str) -> Any:
    """The JSON form of what a step produced.

    Raises `PermanentStepError` with code `unserializable`, naming the place, as all of these do.
    """
    try:
        return to_json({place: value})[place]
    except Invalid as error:
        _unserializable(str(error) if error.field else f"{place}: {error.why}", error)


def storable_mapping(value: Any, place: str) -> dict[str, Any]:
    """The JSON form of metrics or extras; nothing equals an empty mapping."""
    if value is None or value == {}:
        return {}
    if not isinstance(value, Mapping):
        _unserializable(f"{place}: must be a mapping, not a {type(value).__name__}")
    plain: dict[str, Any] = storable(value, place)
    return plain


def storable_artifacts(artifacts: Iterable[Any]) -> tuple[Artifact, ...]:
    """Artifacts as events hold them: every field is text, and escaped."""
    return tuple(
        storable_artifact(artifact, f"artifacts[{at}]") for at, artifact in enumerate(artifacts)
    )


def storable_artifact(artifact: Any, place: str = "artifact") -> Artifact:
    """One artifact as events hold it."""
    if not isinstance(artifact, Artifact):
        _unserializable(f"{place}: must be an Artifact, not a {type(artifact).__name__}")
    digest = artifact.digest
    return Artifact(
        escaped(str(artifact.key)),
        escaped(str(artifact.path)),
        None if digest is None else escaped(str(digest)),
    )


def _unserializable(why: str, cause: Exception | None = None) -> NoReturn:
    raise PermanentStepError(f"not JSON: {why}", code="unserializable", advice=_ADVICE) from cause
