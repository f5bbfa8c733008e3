"""The network and the writers' head as an ONNX file, written and extended without the onnx package.

An ONNX file is one protobuf message. Of protobuf this needs three rules: a field is a tag and a value; a message inside
another is a field of bytes; and two messages written one after the other read as one, with their lists joined. By the
last rule a file with writers is the network's file, unchanged, with the head written behind it: enrolling writers needs
no torch, and never touches the network.

* The network: input ``shape`` (n, 1, 64, w) uint8, output ``embedding`` (n, d), of length 1.
* The head: outputs ``logits`` (n, writers), calibrated, so that their softmax is the probability, and ``cosines`` (n,
  writers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]

IR_VERSION, OPSET = 8, 18
FLOAT, UINT8 = 1, 2  # of TensorProto.DataType
_INT, _INTS = 2, 7  # of AttributeProto.AttributeType
BLUR, LEAST_INK = 3, 1e-4
"""Cells around a place in which ink gives it weight, and what is added to a weight or a variance of nothing."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution with its bias, batch normalisation folded in; ``weight`` (out, in, k, k), ``bias`` (out,)."""

    weight: F32
    bias: F32
    stride: int


def network_file(layers: Sequence[Layer], weight: F32, bias: F32, metadata: Mapping[str, str]) -> bytes:
    """Write the network: convolutions with ReLU, mean and deviation of each channel where there is ink, a linear map.

    Parameters
    ----------
    layers
        The convolutions in order.
    weight, bias
        The linear map from (mean, deviation), ``(d, 2 · channels)`` and ``(d,)``.
    metadata
        Told with the file; the names of `head_file`'s metadata are others.
    """
    parts = [_node("Cast", ["shape"], ["levels"], to=FLOAT), _node("Div", ["levels", "white"], ["ink"])]
    arrays: dict[str, Any] = {"white": np.float32(255)}
    at = "ink"
    for k, layer in enumerate(layers):
        pad = layer.weight.shape[-1] // 2
        arrays |= {f"conv{k}.weight": layer.weight, f"conv{k}.bias": layer.bias}
        strides, pads = [layer.stride] * 2, [pad] * 4
        names = [at, f"conv{k}.weight", f"conv{k}.bias"]
        parts += [
            _node("Conv", names, [f"conv{k}"], strides=strides, pads=pads),
            _node("Relu", [f"conv{k}"], [f"r{k}"]),
        ]
        at = f"r{k}"
    cell = int(np.prod([layer.stride for layer in layers]))
    arrays |= {"places": np.array([2, 3], np.int64), "least": np.float32(LEAST_INK), "axis": np.array([1], np.int64)}
    parts += [
        # How much ink there is around each place; no place counts more for paper beside the word.
        _node("AveragePool", ["ink"], ["share"], kernel_shape=[cell] * 2, strides=[cell] * 2),
        _node("AveragePool", ["share"], ["near"], kernel_shape=[BLUR] * 2, pads=[BLUR // 2] * 4, count_include_pad=1),
        _node("Add", ["near", "least"], ["weights"]),
        _node("ReduceSum", ["weights", "places"], ["total"], keepdims=0),
        _node("Mul", [at, "weights"], ["first"]),
        _node("Mul", [at, "first"], ["second"]),
        _node("ReduceSum", ["first", "places"], ["sum1"], keepdims=0),
        _node("ReduceSum", ["second", "places"], ["sum2"], keepdims=0),
        _node("Div", ["sum1", "total"], ["mean"]),
        _node("Div", ["sum2", "total"], ["square"]),
        _node("Mul", ["mean", "mean"], ["mean2"]),
        _node("Sub", ["square", "mean2"], ["variance"]),
        _node("Relu", ["variance"], ["positive"]),  # rounding must not make it negative
        _node("Add", ["positive", "least"], ["safe"]),
        _node("Sqrt", ["safe"], ["deviation"]),
        _node("Concat", ["mean", "deviation"], ["seen"], axis=1),
        _node("Gemm", ["seen", "linear.weight", "linear.bias"], ["place"], transB=1),
        _node("ReduceL2", ["place", "axis"], ["norm"], keepdims=1),
        _node("Div", ["place", "norm"], ["embedding"]),
    ]
    arrays |= {"linear.weight": weight, "linear.bias": bias}
    graph = [*parts, _field(2, b"inktraj style"), *_initializers(arrays)]
    graph += [_field(11, _value("shape", UINT8, ["n", 1, "height", "w"]))]
    graph += [_field(12, _value("embedding", FLOAT, ["n", len(bias)]))]
    opset = _field(8, _field(2, OPSET))
    return _field(1, IR_VERSION) + _field(2, b"inktraj") + opset + _field(7, b"".join(graph)) + _metadata(metadata)


def head_file(weight: F32, bias: F32, centroids: F32, metadata: Mapping[str, str]) -> bytes:
    """Write what is put behind a network's file: logits and cosines of writers.

    Parameters
    ----------
    weight, bias
        The calibrated logits' linear map, ``(writers, d)`` and ``(writers,)``.
    centroids
        The writers' mean embeddings, of length 1, ``(writers, d)``.
    metadata
        Told with the file, beside the network's.
    """
    arrays = {"writers.weight": weight, "writers.bias": bias, "centroids": centroids, "no_bias": np.zeros_like(bias)}
    graph = [
        _node("Gemm", ["embedding", "writers.weight", "writers.bias"], ["logits"], transB=1),
        _node("Gemm", ["embedding", "centroids", "no_bias"], ["cosines"], transB=1),
        *_initializers(arrays),
        *(_field(12, _value(name, FLOAT, ["n", len(bias)])) for name in ("logits", "cosines")),
    ]
    return _field(7, b"".join(graph)) + _metadata(metadata)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _node(kind: str, inputs: list[str], outputs: list[str], **attributes: int | list[int]) -> bytes:
    """A NodeProto as a field of the graph."""
    parts = [_field(1, name.encode()) for name in inputs] + [_field(2, name.encode()) for name in outputs]
    parts += [_field(3, f"{kind}:{outputs[0]}".encode()), _field(4, kind.encode())]
    for name, value in attributes.items():
        if isinstance(value, list):
            body = b"".join(_field(8, item) for item in value) + _field(20, _INTS)
        else:
            body = _field(3, value) + _field(20, _INT)
        parts.append(_field(5, _field(1, name.encode()) + body))
    return _field(1, b"".join(parts))


def _initializers(arrays: Mapping[str, Any]) -> list[bytes]:
    out = []
    for name, array in arrays.items():
        kind = {"float32": FLOAT, "int64": 7}[array.dtype.name]
        dims = b"".join(_field(1, n) for n in array.shape)
        data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
        out.append(_field(5, dims + _field(2, kind) + _field(8, name.encode()) + _field(9, data)))
    return out


def _value(name: str, kind: int, shape: list[int | str]) -> bytes:
    """A ValueInfoProto; a size with a name is free."""
    sizes = [_field(1, n) if isinstance(n, int) else _field(2, n.encode()) for n in shape]
    dims = b"".join(_field(1, size) for size in sizes)
    return _field(1, name.encode()) + _field(2, _field(1, _field(1, kind) + _field(2, dims)))


def _metadata(values: Mapping[str, str]) -> bytes:
    pairs = (_field(1, name.encode()) + _field(2, text.encode()) for name, text in values.items())
    return b"".join(_field(14, pair) for pair in pairs)
