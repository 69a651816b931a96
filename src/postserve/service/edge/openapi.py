"""The OpenAPI document: made of the table of verbs, the structs of the wire, and the experiment's fields."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from postserve import __version__
from postserve.service.edge.routing import JSON, PARAMETERS, REFUSALS, Verb
from postserve.service.edge.wire import ContextIn, DecideIn, ErrorOut, OutcomeIn, RewardIn
from postserve.service.experiment import LEAST, MOST_TEXT, PRINTABLE, Experiment, Field

Schema = dict[str, Any]
REFERENCE = "#/components/schemas/{name}"


def document(experiment: Experiment, verbs: Sequence[Verb]) -> Schema:
    """What OpenAPI 3.1 wants to know of the service."""
    kinds = [verb.body for verb in verbs if verb.body is not None]
    kinds += [verb.answer for verb in verbs if _is_struct(verb.answer)]
    _, schemas = msgspec.json.schema_components([*kinds, ErrorOut, DecideIn], ref_template=REFERENCE)
    _say_fields(schemas, experiment)
    paths: dict[str, Schema] = {}
    for verb in verbs:
        paths.setdefault(verb.path, {})[verb.method.lower()] = _operation(verb, experiment)
    found: Schema = {
        "openapi": "3.1.0",
        "info": {"title": f"postserve: {experiment.name}", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if experiment.keys:
        found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return found


def _operation(verb: Verb, experiment: Experiment) -> Schema:
    found: Schema = {
        "summary": verb.summary,
        "operationId": verb.handler.__name__,
        "responses": {"200": {"description": "Done.", "content": {verb.media: _schema(verb.answer)}}},
    }
    if verb.later:
        soon = "Kept; the model of this process learns it soon."
        found["responses"]["202"] = {**found["responses"]["200"], "description": soon}
    if verb.role is not None and experiment.keys:
        found["security"] = [{"key": [verb.role]}]
    found["parameters"] = [
        {"name": name, "in": "path", "required": True, **_schema(PARAMETERS[name])}
        for name in verb.parameters
    ]
    for field in () if verb.query is None else msgspec.structs.fields(verb.query):
        given = {"in": "query", "required": False, "schema": msgspec.json.schema(field.type)}
        found["parameters"].append({"name": field.name, **given})
    if verb.body is not None:
        most = f"At most {experiment.server.most_bytes:,} bytes."
        content = {JSON: _schema(verb.body)}
        found["requestBody"] = {"required": True, "description": most, "content": content}
    for kind in verb.refuses:
        code, word = REFUSALS[kind]
        described = found["responses"].setdefault(
            str(code), {"description": "", "content": {JSON: _schema(ErrorOut)}}
        )
        described["description"] = f"{described['description']} {word}: {kind.__doc__}".strip()
        if code in (429, 503):
            described["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return found


def _schema(kind: Any) -> Schema:
    """For a body, an answer or a parameter; what is not made of structs is not described further."""
    if _is_struct(kind):
        return {"schema": {"$ref": REFERENCE.format(name=kind.__name__)}}
    if kind in PARAMETERS.values():
        return {"schema": msgspec.json.schema(kind)}
    return {}


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _say_fields(schemas: Mapping[str, Schema], experiment: Experiment) -> None:
    """The experiment knows more of x, z and the reward than the wire does."""
    most, least = experiment.most_magnitude, f"Below {LEAST:g} in magnitude, it is taken as 0."
    number = {"type": "number", "minimum": -most, "maximum": most, "description": least}
    z = _fields(experiment.z, number) | {"minProperties": 1}
    x = _fields(experiment.x, number) | {"required": list(experiment.x)}
    schemas[DecideIn.__name__]["properties"]["context"] = x
    schemas[ContextIn.__name__]["properties"]["z"] = z
    schemas[RewardIn.__name__]["properties"]["reward"] = number
    outcome = schemas[OutcomeIn.__name__]["properties"]
    outcome["z"], outcome["reward"] = (
        {"anyOf": [z, {"type": "null"}], "default": None},
        {"anyOf": [number, {"type": "null"}], "default": None},
    )


def _fields(fields: Mapping[str, Field], number: Schema) -> Schema:
    """Categories beside those named are taken, too."""
    text = {"type": "string", "minLength": 1, "maxLength": MOST_TEXT, "pattern": PRINTABLE}
    properties = {
        name: number if field == "number" else {**text, "examples": list(field)}
        for name, field in fields.items()
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}
