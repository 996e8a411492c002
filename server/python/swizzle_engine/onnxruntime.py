"""For code that was written for ONNX Runtime: its session, as far as running models goes.

    import swizzle_engine.onnxruntime as onnxruntime

    session = onnxruntime.InferenceSession('model.onnx')
    outputs = session.run(None, {'x': array})

Errors are Python's own: ValueError, FileNotFoundError, NotImplementedError; and ModelError.
"""

import os
import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from swizzle_engine import cuda
from swizzle_engine.model import Model

_TYPES = {'BOOL': 'bool', 'UINT8': 'uint8', 'UINT16': 'uint16', 'UINT32': 'uint32', 'UINT64': 'uint64', 'INT8': 'int8',
          'INT16': 'int16', 'INT32': 'int32', 'INT64': 'int64', 'FP16': 'float16', 'FP32': 'float', 'FP64': 'double',
          'BF16': 'bfloat16', 'BYTES': 'string'}
_DEVICES = {'CPUExecutionProvider': 'cpu', 'CUDAExecutionProvider': 'cuda', 'TensorrtExecutionProvider': 'cuda'}


class SessionOptions:
    """intra_op_num_threads is heeded. Others may be set, and change nothing: graphs are always optimised."""

    intra_op_num_threads: int = 0

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith('_'):
            raise AttributeError(name)
        return 0

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Changes nothing."""


class NodeArg:
    """An input or output: its name, its type as 'tensor(float)', and its shape, with None where any size does."""

    def __init__(self, name: str, type_: str, shape: list[int | None]):
        self.name, self.type, self.shape = name, type_, shape

    def __repr__(self) -> str:
        return f'NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})'


class InferenceSession:
    """Runs a model, of a file or of its bytes."""

    def __init__(self, path_or_bytes: str | os.PathLike[str] | bytes, sess_options: SessionOptions | None = None,
                 providers: Sequence[Any] | None = None, provider_options: Sequence[Mapping[str, Any]] | None = None,
                 **_: Any):
        """providers: the first one that is known says where the model runs: CPUExecutionProvider, or
        CUDAExecutionProvider, perhaps with its device_id."""
        self._folder = None
        path = path_or_bytes
        if isinstance(path_or_bytes, bytes):
            self._folder = tempfile.TemporaryDirectory(prefix='swizzle-')  # reports read the file again
            path = pathlib.Path(self._folder.name) / 'model.onnx'
            path.write_bytes(path_or_bytes)
        device = _device(providers or (), provider_options)
        self._providers = ['CPUExecutionProvider'] if device == 'cpu' else list(_DEVICES)[1::-1]
        threads = int(getattr(sess_options, 'intra_op_num_threads', 0) or 0)
        self.model = Model(path, device=device, threads=threads)
        self._outputs = [info.name for info in self.model.outputs]
        self._run = self.model._run

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
            run_options: Any = None) -> list[numpy.ndarray]:
        names = output_names or self._outputs
        results = self._run(input_feed if type(input_feed) is dict else dict(input_feed), output_names or None)
        return [results[name] for name in names]

    def get_inputs(self) -> list[NodeArg]:
        return [_node_arg(info) for info in self.model.inputs]

    def get_outputs(self) -> list[NodeArg]:
        return [_node_arg(info) for info in self.model.outputs]

    def get_providers(self) -> list[str]:
        return list(self._providers)


def get_available_providers() -> list[str]:
    """With the package swizzle-engine-cuda CUDA's, too, whether or not there is a GPU."""
    return [*(['CUDAExecutionProvider'] if cuda.find_module() else []), 'CPUExecutionProvider']


def get_device() -> str:
    return 'GPU' if cuda.find_module() else 'CPU'


def _node_arg(info: Any) -> NodeArg:
    return NodeArg(info.name, f'tensor({_TYPES[info.datatype]})', list(info.shape))


def _device(providers: Sequence[Any], options: Sequence[Mapping[str, Any]] | None) -> str:
    """Of the first provider that is known. A GPU without a number need not be there if the CPU does as well."""
    pairs = [provider if isinstance(provider, tuple) else (provider, options[place] if options else {})
             for place, provider in enumerate(providers)]
    known = [(_DEVICES[name], own or {}) for name, own in pairs if name in _DEVICES]
    if not known or known[0][0] == 'cpu':
        return 'cpu'
    number = known[0][1].get('device_id')
    if number is not None:
        return f'cuda:{number}'
    return 'auto' if any(device == 'cpu' for device, _ in known) else 'cuda'
