"""Runs pruned neural networks in this process, on the kernels that suit them: the engine of the Swizzle server.

    import swizzle_engine

    model = swizzle_engine.Model('model.onnx')
    outputs = model(x=array)              # {name: numpy.ndarray}
    print(model.inspect())                # layers, zeros, kernels

What is loaded when: this module alone is light. Model and the others bring the engine and numpy at their first use.
Nothing is ever downloaded.
"""

import importlib

_HOMES = {'Model': 'model', 'ModelError': '_engine', 'Report': 'report', 'prune': 'files', 'quantize': 'files',
          'pack': 'files'}

__all__ = ['Model', 'ModelError', 'Report', '__version__', 'pack', 'prune', 'quantize']


def __getattr__(name):
    if name == '__version__':
        value = importlib.import_module('swizzle_engine._engine').version()
    elif name in _HOMES:
        value = getattr(importlib.import_module(f'swizzle_engine.{_HOMES[name]}'), name)
    else:
        raise AttributeError(f"module 'swizzle_engine' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
