"""The OpenAPI document of the native API, made of the table of its operations."""

from __future__ import annotations

import re
from typing import Any

import msgspec

import excise
from excise.service.native.operation import BYTES, JSON, LINES, Operation, Query
from excise.service.native.table import OPERATIONS
from excise.substrates.remote.wire import RefusalWire

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_PART = re.compile(r"{(\w+)}")
_PARTS = {
    "id": "The sandbox, by id or name.",
    "number": "The process's number.",
    "action": "The id that the action was given.",
    "shell": "The shell's id.",
    "name": "The template, by name or id.",
    "digest": "SHA-256 of the archive, in hex.",
}


def document() -> dict[str, Any]:
    """The whole document, as a value."""
    bodies = [t for each in OPERATIONS for t in (each.takes, each.gives) if _is_struct(t)]
    unique = list(dict.fromkeys([*bodies, RefusalWire]))
    schemas, components = msgspec.json.schema_components(
        unique, ref_template="#/components/schemas/{name}"
    )
    by_type = dict(zip(unique, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(f"/v1{operation.path}", {})[operation.method.lower()] = _told(
            operation, by_type
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Excise",
            "version": excise.__version__,
            "description": "Sandboxes over HTTP. Bytes in JSON are base64.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{"key": []}, {"bearer": []}],
    }


def _told(operation: Operation, schemas: dict[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.says,
        "parameters": [
            *(_part(name) for name in _PART.findall(operation.path)),
            *(_parameter(each, "query") for each in operation.query),
            *(_parameter(each, "header") for each in operation.headers),
        ],
        "responses": {
            str(operation.status): _answer(operation, schemas),
            "default": {
                "description": "What went wrong, by whose fault, and whether to ask again.",
                "content": {JSON: {"schema": schemas[RefusalWire]}},
            },
        },
    }
    if operation.scope is None:
        found["security"] = []
    if operation.takes is bytes:
        found["requestBody"] = {
            "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}
        }
    elif operation.takes is not None:
        found["requestBody"] = {"content": {JSON: {"schema": schemas[operation.takes]}}}
    return found


def _answer(operation: Operation, schemas: dict[Any, Any]) -> dict[str, Any]:
    if operation.gives is None:
        return {"description": "Done."}
    if operation.gives is bytes:
        schema: dict[str, Any] = {"type": "string", "format": "binary"}
        return {"description": "The bytes.", "content": {BYTES: {"schema": schema}}}
    if operation.lines:
        return {
            "description": "JSON values, one a line.",
            "content": {LINES: {"schema": {"type": "string"}}},
        }
    known = schemas[operation.gives] if _is_struct(operation.gives) else {"type": "object"}
    return {"description": "Done.", "content": {JSON: {"schema": known}}}


def _part(name: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "maxLength": 255}
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": schema,
        "description": _PARTS[name],
    }


def _parameter(query: Query, place: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": _TYPES[query.kind]}
    least, most = ("minLength", "maxLength") if query.kind is str else ("minimum", "maximum")
    schema |= {} if query.least is None else {least: query.least}
    schema |= {} if query.most is None else {most: query.most}
    return {
        "name": query.name,
        "in": place,
        "required": query.required,
        "description": query.says,
        "schema": schema,
    }


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
