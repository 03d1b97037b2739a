"""Holds the objects of the Gateway API to the fields that ours use.

There is no maintained package of its schemas for Python, so these are written from the API's
reference (v1, standard channel) as far as the manifests need them: a field more is a line more
here. Misses the rules in CEL, such as which matches exclude each other.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

import pydantic
from pydantic import Field

from gateway.manifests.documents import Document
from k8s.validation.places import place

VERSION = "gateway.networking.k8s.io/v1"
GROUP = VERSION.partition("/")[0]

Port = Annotated[int, Field(ge=1, le=65535)]
Name = Annotated[
    str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
]
Hostname = Annotated[
    str, Field(max_length=253, pattern=r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9-]+)*$")
]
Duration = Annotated[str, Field(pattern=r"^([0-9]{1,5}(h|m|s|ms)){1,4}$")]


class _Strict(pydantic.BaseModel):
    """Takes no field that it does not name, and no text for a number."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True)


class _Metadata(_Strict):
    name: Name
    namespace: Name | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Object(_Strict):
    apiVersion: Literal["gateway.networking.k8s.io/v1"]
    kind: str
    metadata: _Metadata


class _Selector(_Strict):
    matchLabels: dict[str, str]


class _Namespaces(_Strict):
    from_: Literal["All", "Selector", "Same", "None"] = Field(alias="from")
    selector: _Selector | None = None


class _Kind(_Strict):
    group: str = GROUP
    kind: str


class _Allowed(_Strict):
    kinds: list[_Kind] = Field([], max_length=8)
    namespaces: _Namespaces | None = None


class _Certificate(_Strict):
    group: str = ""
    kind: Literal["Secret"] = "Secret"
    name: Name
    namespace: Name | None = None


class _Tls(_Strict):
    mode: Literal["Terminate", "Passthrough"] = "Terminate"
    certificateRefs: list[_Certificate] = []


class _Listener(_Strict):
    name: Name
    hostname: Hostname | None = None
    port: Port
    protocol: Literal["HTTP", "HTTPS", "TLS", "TCP", "UDP"]
    tls: _Tls | None = None
    allowedRoutes: _Allowed | None = None


class _GatewaySpec(_Strict):
    gatewayClassName: Name
    listeners: list[_Listener] = Field(min_length=1, max_length=64)


class _Gateway(_Object):
    spec: _GatewaySpec


class _Parent(_Strict):
    group: str = GROUP
    kind: str = "Gateway"
    name: Name
    namespace: Name | None = None
    sectionName: Name | None = None
    port: Port | None = None


class _Backend(_Strict):
    group: str = ""
    kind: str = "Service"
    name: Name
    namespace: Name | None = None
    port: Port
    weight: int = Field(1, ge=0, le=1_000_000)


class _Header(_Strict):
    type: Literal["Exact", "RegularExpression"] = "Exact"
    name: str
    value: str


class _GrpcMethod(_Strict):
    type: Literal["Exact", "RegularExpression"] = "Exact"
    service: str | None = None
    method: str | None = None


class _GrpcMatch(_Strict):
    method: _GrpcMethod | None = None
    headers: list[_Header] = []


class _GrpcRule(_Strict):
    """Has no timeout and no retry: the API gives a route of gRPC none."""

    name: str | None = None
    matches: list[_GrpcMatch] = Field([], max_length=64)
    backendRefs: list[_Backend]


class _HttpPath(_Strict):
    type: Literal["Exact", "PathPrefix", "RegularExpression"] = "PathPrefix"
    value: Annotated[str, Field(pattern=r"^/", max_length=1024)]


class _HttpMatch(_Strict):
    path: _HttpPath | None = None
    headers: list[_Header] = []
    method: Literal["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"] | None = None


class _Timeouts(_Strict):
    request: Duration | None = None
    backendRequest: Duration | None = None


class _HttpRule(_Strict):
    name: str | None = None
    matches: list[_HttpMatch] = Field([], max_length=64)
    backendRefs: list[_Backend]
    timeouts: _Timeouts | None = None


class _RouteSpec(_Strict):
    parentRefs: list[_Parent] = Field(min_length=1, max_length=32)
    hostnames: list[Hostname] = Field([], max_length=16)


class _GrpcSpec(_RouteSpec):
    rules: list[_GrpcRule] = Field(max_length=16)


class _HttpSpec(_RouteSpec):
    rules: list[_HttpRule] = Field(max_length=16)


class _GrpcRoute(_Object):
    spec: _GrpcSpec


class _HttpRoute(_Object):
    spec: _HttpSpec


_MODELS: Mapping[str, type[_Object]] = {
    "Gateway": _Gateway,
    "GRPCRoute": _GrpcRoute,
    "HTTPRoute": _HttpRoute,
}


def findings(documents: Sequence[Document]) -> Iterator[str]:
    """Yield what is not of the Gateway API as it is known here."""
    for document in documents:
        if str(document.at("apiVersion") or "").partition("/")[0] != GROUP:
            continue
        model = _MODELS.get(document.kind)
        if model is None:
            yield f"{document.where}: {document.kind} is not known here; describe it in {__name__}"
            continue
        try:
            model.model_validate(document.body)
        except pydantic.ValidationError as error:
            for each in error.errors():
                yield f"{document.where}: {place(each['loc'])}: {each['msg']}"
