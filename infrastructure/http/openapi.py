"""The OpenAPI 3.1 document: made of the endpoints and of the records they read and show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from statelog import __version__
from statelog.domain.workflows.portable import Portable
from statelog.domain.workflows.resources import Link, Profile, Scope, Topology
from statelog.domain.workflows.workflow import Command, Demand, Policy, Simulation
from statelog.infrastructure.http.bodies import JSON_TYPE, YAML_TYPES
from statelog.infrastructure.http.definition_endpoints import PORTABLE
from statelog.infrastructure.http.endpoint import Endpoint
from statelog.infrastructure.http.schema import Schemas

_NAMES: Final[dict[type[Any], str]] = {
    Scope: "ExecutionScope",
    Topology: "NetworkTopology",
    Link: "NetworkLink",
    Profile: "ActivityResourceProfile",
    Command: "ActivityCommand",
    Demand: "ActivityResources",
    Policy: "ActivityPolicy",
    Simulation: "ActivitySimulation",
    Portable: "PortableWorkflow",
}
_PARAMETER = re.compile(r"{(\w+)}")
_WHY: Final = {
    400: "The body does not decode to the shape, or the query is malformed",
    401: "The bearer token is missing or wrong",
    403: "The server has no token, and the request is not from this machine",
    404: "There is no such record",
    408: "The request took too long to arrive",
    409: "The state of the record forbids it",
    413: "The body is too large",
    415: "The content type is none of these",
    422: "The body decodes and breaks a rule",
    500: "A bug, or a damaged log",
    503: "The store cannot be used at the moment",
}
_EVERY: Final = (401, 403, 500, 503)
_OF_BODIES: Final = (400, 408, 409, 413, 415, 422)


def codes(endpoint: Endpoint) -> tuple[int, ...]:
    """Every error code that an endpoint may answer."""
    with_body = _OF_BODIES if endpoint.body is not None else ()
    return tuple(sorted({*_EVERY, *with_body, *endpoint.errors}))


def openapi(endpoints: Sequence[Endpoint], base_path: str) -> dict[str, Any]:
    """The document; paths are below `base_path`."""
    schemas = Schemas(_NAMES, PORTABLE)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, schemas)
        paths.setdefault(f"{base_path}{endpoint.path}", {})[endpoint.method.lower()] = operation
    components = schemas.components
    components["Error"] = {
        "type": "object",
        "properties": {"error": {"type": "string"}},
        "required": ["error"],
        "additionalProperties": False,
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "statelog",
            "version": __version__,
            "description": "Planning sessions, schedule plans and execution runs.",
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(endpoint: Endpoint, schemas: Schemas) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": _parameters(endpoint, schemas),
        "responses": {
            str(endpoint.status): _answer(endpoint, schemas),
            **{str(code): _error(code) for code in codes(endpoint)},
        },
    }
    if endpoint.body is not None:
        content = {"schema": schemas.of(endpoint.body)}
        types = (JSON_TYPE, *YAML_TYPES)
        made["requestBody"] = {"required": True, "content": dict.fromkeys(types, content)}
    return made


def _parameters(endpoint: Endpoint, schemas: Schemas) -> list[dict[str, Any]]:
    named = _PARAMETER.findall(endpoint.path)
    text = {"type": "string", "minLength": 1}
    found = [{"name": each, "in": "path", "required": True, "schema": text} for each in named]
    return found + [
        {"name": name, "in": "query", "required": False, "schema": _of_query(kind, schemas)}
        for name, kind in endpoint.query.items()
    ]


def _of_query(kind: Any, schemas: Schemas) -> dict[str, Any]:
    most = 10**18 - 1
    return (
        {"type": "integer", "minimum": -most, "maximum": most} if kind is int else schemas.of(kind)
    )


def _answer(endpoint: Endpoint, schemas: Schemas) -> dict[str, Any]:
    if endpoint.answer is None:
        return {"description": "Done"}
    content = {endpoint.media: {"schema": schemas.of(endpoint.answer)}}
    return {"description": endpoint.summary, "content": content}


def _error(code: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": _WHY[code], "content": {JSON_TYPE: {"schema": schema}}}
