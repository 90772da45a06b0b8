"""A resolved problem holds what the scope names, and nothing else."""

from statelog.domain.planning.problem import resolve
from statelog.domain.workflows.resources import EnvironmentVersion, Profile, Scope
from tests.domain.planning.graphs import diamond, mesh, resource

HERE = EnvironmentVersion(
    "here",
    resources=(resource("b", environment="here"), resource("a", environment="here")),
    activity_resource_profiles=(Profile("t", "a", 3.0),),
)
THERE = EnvironmentVersion(
    "there",
    resources=(resource("c", environment="there", schedulable=False),),
    activity_resource_profiles=(Profile("t", "c", 4.0),),
)
FAR = EnvironmentVersion(
    "far",
    resources=(resource("d", environment="far"),),
    activity_resource_profiles=(Profile("t", "d", 5.0),),
)


def resolved(*environments, resources=(), **limits):
    scope = Scope("s", environment_version_ids=("here", "there"))
    return resolve(diamond(), scope, mesh(["a", "b"]), environments, resources, **limits)


def test_resources_environments_and_profiles_are_those_of_the_scope():
    given = resolved(FAR, THERE, HERE, deadline_seconds=5.0, configuration={"x": 1})
    assert [e.id for e in given.environments] == ["here", "there"]
    assert [r.id for r in given.resources] == ["a", "b", "c"]
    assert [p.runtime_seconds for p in given.profiles] == [3.0, 4.0]
    assert [r.id for r in given.schedulable] == ["a", "b"]
    assert (given.deadline_seconds, given.budget, given.configuration) == (5.0, 0.0, {"x": 1})


def test_the_order_in_which_records_are_found_does_not_matter():
    assert resolved(HERE, THERE) == resolved(THERE, FAR, HERE)


def test_resources_registered_by_themselves_join_and_do_not_replace():
    alone = resource("e", environment="there")
    twice = resource("a", 64, environment="here")
    given = resolved(HERE, THERE, resources=(alone, twice, resource("f", environment="far")))
    assert [r.id for r in given.resources] == ["a", "b", "c", "e"]
    assert given.resources[0].cpu_cores == 1
