"""Environment versions as documents: in bundles, and in the pieces a request brings along (5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from statelog.domain.errors import Invalid
from statelog.domain.workflows.resources import (
    EnvironmentVersion,
    Profile,
    Resource,
    Runtime,
    RuntimeBinding,
)
from statelog.domain.workflows.shape import read


def read_environment(document: Any, where: str = "") -> EnvironmentVersion:
    """A bundle as an environment version, whose id is that of its `version`.

    The key `id`, which this program shows, may be there and is the same. Raises `Malformed` as
    `read` does, and `Invalid` for another `id`.
    """
    if type(document) is not dict:
        return read(EnvironmentVersion, document, where)
    version = document.get("version")
    id = version.get("id", "") if type(version) is dict else ""
    found = read(EnvironmentVersion, {"id": id, **document}, where)
    if found.id != id:
        raise Invalid(f"{where}.id" if where else "id", f"is not version.id, which is {id!r}")
    return found


def embedded_environments(
    resources: Iterable[Resource],
    runtimes: Iterable[Runtime] = (),
    bindings: Iterable[RuntimeBinding] = (),
    profiles: Iterable[Profile] = (),
) -> tuple[EnvironmentVersion, ...]:
    """The environment versions that resources and runtimes name, with what belongs to each.

    A binding belongs where its resource and its runtime are, and a profile where its resource is;
    what belongs nowhere is left out.
    """
    machines, runners = tuple(resources), tuple(runtimes)
    bound, known = tuple(bindings), tuple(profiles)
    owners = [r.environment_version_id for r in machines]
    owners += [r.environment_version_id for r in runners]
    return tuple(
        _embedded(
            id,
            tuple(each for each in machines if each.environment_version_id == id),
            tuple(each for each in runners if each.environment_version_id == id),
            bound,
            known,
        )
        for id in dict.fromkeys(filter(None, owners))
    )


def _embedded(
    id: str,
    resources: tuple[Resource, ...],
    runtimes: tuple[Runtime, ...],
    bindings: tuple[RuntimeBinding, ...],
    profiles: tuple[Profile, ...],
) -> EnvironmentVersion:
    here, runs = {each.id for each in resources}, {each.id for each in runtimes}
    return EnvironmentVersion(
        id,
        version={"id": id},
        runtimes=runtimes,
        resources=resources,
        activity_resource_profiles=tuple(p for p in profiles if p.resource_id in here),
        resource_runtime_bindings=tuple(
            b for b in bindings if b.resource_id in here and b.runtime_id in runs
        ),
    )
