"""Reads the tensors of a PyTorch checkpoint of the format before 1.6 without PyTorch.

Such a file is a row of pickles: a magic number, a version, facts on the machine, the object, the storages' keys; then
each storage's elements. Pickles can run anything, so only what a dictionary of tensors needs is let through: ordered
dictionaries, the function that makes a tensor of a storage, and storages of floats and integers.
"""

import collections
import pickle
import struct

import numpy as np

MAGIC = 0x1950a86a20f9469cfc6c
DTYPES = {'FloatStorage': np.float32, 'HalfStorage': np.float16, 'LongStorage': np.int64, 'IntStorage': np.int32}


class Tensor:
    """A tensor whose storage is yet to be read."""

    def __init__(self, storage, offset, size, stride, *_):
        self.storage, self.offset, self.size, self.stride = storage, offset, size, stride


class TensorUnpickler(pickle.Unpickler):
    """Builds dictionaries of Tensor, and refuses everything else."""

    ALLOWED = {('collections', 'OrderedDict'): collections.OrderedDict, ('torch._utils', '_rebuild_tensor_v2'): Tensor}

    def find_class(self, module, name):
        if module == 'torch' and name in DTYPES:
            return name
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f'{module}.{name} is not part of a dictionary of tensors')
        return self.ALLOWED[module, name]

    def persistent_load(self, reference):
        kind, dtype, key, _, count, view = reference
        if kind != 'storage' or view is not None:
            raise pickle.UnpicklingError('a storage that is a view of another')
        return str(key), DTYPES[dtype], count


def strided(values, tensor):
    """Returns a copy of the part of a storage that a tensor shows."""
    last = tensor.offset + sum((size - 1) * stride for size, stride in zip(tensor.size, tensor.stride))
    if min((tensor.offset, *tensor.size, *tensor.stride), default=0) < 0 or last >= max(1, len(values)):
        raise ValueError('a tensor reaches beyond its storage')
    steps = [stride * values.itemsize for stride in tensor.stride]
    return np.lib.stride_tricks.as_strided(values[tensor.offset:], tensor.size, steps).copy()


def load(path):
    """Returns {name: array}; raises ValueError if the file is anything but a dictionary of tensors."""
    with open(path, 'rb') as file:
        try:
            if TensorUnpickler(file).load() != MAGIC:
                raise ValueError('it is not in the format of PyTorch before 1.6')
            TensorUnpickler(file).load()
            TensorUnpickler(file).load()
            tensors, keys = TensorUnpickler(file).load(), TensorUnpickler(file).load()
            if not isinstance(tensors, dict) or not all(isinstance(value, Tensor) for value in tensors.values()):
                raise ValueError('it holds something else than tensors')
            dtypes = {value.storage[0]: value.storage[1:] for value in tensors.values()}
            storages = {}
            for key in map(str, keys):
                (count,) = struct.unpack('<q', file.read(8))
                dtype, expected = dtypes[key]
                values = np.frombuffer(file.read(max(0, expected) * np.dtype(dtype).itemsize), dtype)
                if not count == expected == len(values):
                    raise ValueError('a storage has not the size that it should have')
                storages[key] = values
            return {name: strided(storages[value.storage[0]], value) for name, value in tensors.items()}
        except (pickle.UnpicklingError, struct.error, EOFError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f'{path} is not a checkpoint that can be read: {error}') from None
        except ValueError as error:
            raise ValueError(f'{path}: {error}') from None
