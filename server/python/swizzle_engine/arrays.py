"""Elements of what is no array yet, or none that the engine reads as it lies: lists, strings, other orders of bytes."""

import struct
from typing import Any

import numpy

_KINDS = {'BOOL': 'b', 'FP16': 'f', 'FP32': 'f', 'FP64': 'f', 'BF16': 'f'}  # else whole numbers
_DTYPES = {'BOOL': '?', 'UINT8': 'u1', 'UINT16': 'u2', 'UINT32': 'u4', 'UINT64': 'u8', 'INT8': 'i1', 'INT16': 'i2',
           'INT32': 'i4', 'INT64': 'i8', 'FP16': 'f2', 'FP32': 'f4', 'FP64': 'f8', 'BF16': 'f4'}
_DATATYPES = {numpy.dtype(code): datatype for datatype, code in _DTYPES.items() if datatype != 'BF16'}


def to_elements(name: str, datatype: str, value: Any) -> tuple[str, tuple[int, ...], Any]:
    """(datatype, shape, bytes) of the value of an input of that datatype: elements one after the other, little-endian.

    Arrays keep their type, so that the engine refuses a wrong one. Numbers become elements of the input's type if it
    has them: a number that would be cut off is refused.
    """
    if datatype == 'BYTES':
        return _strings(name, value)
    array = value if isinstance(value, numpy.ndarray) else _array_of(name, datatype, value)
    if array.dtype.name == 'bfloat16':  # of ml_dtypes
        return 'BF16', array.shape, numpy.array(array, order='C').view(numpy.uint16)
    native = array.dtype.newbyteorder('=')
    if native not in _DATATYPES:
        raise TypeError(f"input '{name}' has elements of type {array.dtype}, and {datatype} is needed")
    array = numpy.asarray(array, dtype=native, order='C')
    if datatype == 'BF16' and array.dtype == numpy.float32:
        return 'BF16', array.shape, _rounded_to_bfloat16(array)
    return _DATATYPES[native], array.shape, array


def from_elements(datatype: str, shape: tuple[int, ...], data: bytes) -> numpy.ndarray:
    """An array of an output that has no type of numpy's: float32 of BF16, str of BYTES."""
    if datatype == 'BF16':
        widened = numpy.frombuffer(data, numpy.uint16).astype(numpy.uint32) << 16
        return widened.view(numpy.float32).reshape(shape)
    texts, position = [], 0
    while position < len(data):
        length, = struct.unpack_from('<I', data, position)
        position += 4 + length
        texts.append(data[position - length:position].decode('utf-8', 'surrogateescape'))
    array = numpy.empty(len(texts), dtype=object)
    array[:] = texts
    return array.reshape(shape)


def _array_of(name: str, datatype: str, value: Any) -> numpy.ndarray:
    """Of numbers, lists of numbers or of arrays, and what has __array__."""
    if hasattr(value, '__dlpack__') and not hasattr(value, '__array__'):
        return numpy.from_dlpack(value)
    try:
        array = numpy.asarray(value)
    except ValueError as error:
        raise ValueError(f"input '{name}': {error}") from None
    wanted = numpy.dtype(_DTYPES[datatype])
    if array.dtype == wanted or hasattr(value, 'dtype'):
        return array
    if array.size == 0:
        return array.astype(wanted)
    kind = _KINDS.get(datatype, 'i')
    if array.dtype.kind not in {'b': 'b', 'f': 'biuf', 'i': 'biu'}[kind]:
        raise TypeError(f"input '{name}' has elements like {array.flat[0]!r}, and {datatype} is needed")
    if kind == 'i':
        limits = numpy.iinfo(wanted)
        if array.min() < limits.min or array.max() > limits.max:
            raise ValueError(f"input '{name}' has numbers that {datatype} does not hold: it goes from {limits.min} to "
                             f'{limits.max}')
    return array.astype(wanted)


def _strings(name: str, value: Any) -> tuple[str, tuple[int, ...], bytes]:
    if isinstance(value, numpy.ndarray) and value.dtype.kind not in 'OSUT':
        raise TypeError(f"input '{name}' has elements of type {value.dtype}, and strings are needed: str or bytes")
    array = numpy.asarray(value, dtype=object)
    parts = []
    for element in array.flat:
        if isinstance(element, str):
            element = element.encode('utf-8', 'surrogateescape')
        elif not isinstance(element, bytes):
            raise TypeError(f"input '{name}' has an element that is no str or bytes: {element!r}")
        parts += [struct.pack('<I', len(element)), element]
    return 'BYTES', array.shape, b''.join(parts)


def _rounded_to_bfloat16(array: numpy.ndarray) -> numpy.ndarray:
    """To the nearest, of two as near the even one; NaN stays NaN."""
    bits = array.view(numpy.uint32)
    rounded = (bits + (((bits >> 16) & 1) + 0x7fff)) >> 16
    return numpy.where(numpy.isnan(array), (bits >> 16) | 0x40, rounded).astype(numpy.uint16)
