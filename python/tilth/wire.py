"""The wire, ``tilth.v1``: messages and calls, made of ``wire.binpb``, which ``make generate`` makes of ``proto/``.

They are made when this module is imported, by whatever version of protobuf is there, from 3.21 on.
"""

from __future__ import annotations

from importlib import resources
from typing import Any, Callable, Dict, Tuple

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2

_PACKAGE = "tilth.v1"
_POOL = descriptor_pool.Default()
# Dependencies of the wire's files; importing them registers them in the pool.
_IMPORTED = (duration_pb2, timestamp_pb2)


def _read() -> descriptor_pb2.FileDescriptorSet:
    text = resources.files(__package__).joinpath("wire.binpb").read_bytes()
    return descriptor_pb2.FileDescriptorSet.FromString(text)


def _class(descriptor: Any) -> Any:
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(_POOL).GetPrototype(descriptor)


class Calls:
    """The calls of a channel, by service and method. ``metadata`` is asked before each call."""

    def __init__(self, channel: grpc.Channel, metadata: Callable[[], Tuple[Tuple[str, str], ...]]) -> None:
        self._channel, self._metadata = channel, metadata
        self._made: Dict[Tuple[str, str], Callable[..., Any]] = {}

    def __call__(self, service: str, method: str, timeout: Any = None, **fields: Any) -> Any:
        """Makes a call with a request of these fields: the answer, or, of a stream, an iterator of answers."""
        key = (service, method)
        if key not in self._made:
            self._made[key] = self._make(service, method)
        return self._made[key](timeout, fields)

    def _make(self, service: str, method: str) -> Callable[..., Any]:
        of = _POOL.FindServiceByName(f"{_PACKAGE}.{service}").methods_by_name[method]
        request, answer = _class(of.input_type), _class(of.output_type)
        streams = _STREAMS[f"{service}.{method}"]
        make = self._channel.unary_stream if streams else self._channel.unary_unary
        call = make(
            f"/{_PACKAGE}.{service}/{method}",
            request_serializer=request.SerializeToString,
            response_deserializer=answer.FromString,
        )
        return lambda timeout, fields: call(request(**fields), timeout=timeout, metadata=self._metadata())


def enum_name(enum: str, number: int, prefix: str) -> str:
    """The name of an enum's value as people and scripts see it, such as "running"."""
    value = _POOL.FindEnumTypeByName(f"{_PACKAGE}.{enum}").values_by_number.get(number)
    return str(value.name)[len(prefix) :].lower() if value is not None else str(number)


def enum_number(enum: str, name: str, prefix: str) -> int:
    """The number of what people call an enum's value; KeyError where there is none."""
    return int(_POOL.FindEnumTypeByName(f"{_PACKAGE}.{enum}").values_by_name[prefix + name.upper()].number)


def _load() -> Dict[str, bool]:
    """Puts the wire's files into the pool, and says which methods answer with a stream."""
    streams = {}
    for file in _read().file:
        _POOL.AddSerializedFile(file.SerializeToString())
        for service in file.service:
            streams.update({f"{service.name}.{m.name}": m.server_streaming for m in service.method})
    return streams


_STREAMS = _load()
