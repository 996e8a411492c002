"""Models that run in this process."""

import atexit
import os
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from swizzle_engine import _engine, cuda
from swizzle_engine.report import Report


class Model:
    """A model of an ONNX file, a packed file (.swz), or a Hugging Face checkpoint (*.safetensors, or its folder).

    Inputs are numpy arrays, whatever has __dlpack__ (tensors of PyTorch on the CPU), or numbers and lists of them; of
    models of strings str and bytes. Arrays are read where they are, if their elements lie one after the other. Outputs
    are numpy arrays of their own.

    Any number of threads may run one model at a time: the interpreter's lock is free meanwhile. `concurrency` says how
    many of them compute at once, each on its share of `threads`; others wait for their turn.
    """

    def __init__(self, path: str | os.PathLike[str], *, device: str = 'cpu', threads: int = 0, precision: str = 'fp32',
                 max_batch: int = 64, concurrency: int = 1, tuning_budget: float = 0.0, tune_now: bool = False,
                 tuning_cache: str | os.PathLike[str] = '', text: str = ''):
        """Opens the file, and nothing outside of its folder.

        device: 'cpu', or, with the package swizzle-engine-cuda, 'cuda', 'cuda:1', or 'auto': a GPU where there is one.
        threads: for all runs at a time; 0: all that the process may use.
        precision: 'fp32' or 'bf16'; on GPUs 'fp16x3', 'tf32', 'fp16' or 'int8', too.
        max_batch: rows that are computed together; what has more is computed in parts.
        tuning_budget: for how many seconds kernels may be measured to choose among them, while nothing runs or, with
            tune_now, before this returns. Without, they are chosen by estimates.
        tuning_cache: a file that keeps the times, for other processes, too.
        text: the encoder's input is text, by the tokeniser in its folder. 'embedding': its output is a vector of each;
            'token_embedding': that, and one of each of its tokens; 'classification': of each, or of each pair, the
            scores of its labels.
        """
        if device != 'cpu' and (module := cuda.find_module()) is not None:
            cuda.load_libraries(module)
            _engine.use_cuda_module(os.fsencode(module))
        self._engine = _engine.Model(
            os.fsencode(path), device=device, threads=threads, precision=precision, max_batch=max_batch,
            concurrency=concurrency, text=text, tuning_budget=tuning_budget, tune_now=tune_now,
            tuning_cache=os.fsencode(tuning_cache))
        self._run = self._engine.run
        self.name: str = self._engine.name
        self.inputs: list[_engine.TensorInfo] = self._engine.inputs
        self.outputs: list[_engine.TensorInfo] = self._engine.outputs
        self._texts = self.inputs[0].name if text and len(self.inputs[0].shape) == 2 else None
        _open.add(self)

    def run(self, inputs: Mapping[str, Any], outputs: Sequence[str] | None = None, *, truncate: bool = True,
            prompt_name: str | None = None) -> dict[str, numpy.ndarray]:
        """The outputs by name: all of them, or those that are asked for.

        Of a model of texts: whether a text that is too long is cut off, or refused with ValueError; and the name of the
        prompt that stands before each text, where it is not the model's default one.
        """
        inputs = inputs if type(inputs) is dict else dict(inputs)
        if self._texts is None:
            if prompt_name is not None or not truncate:
                raise TypeError(f"model '{self.name}' takes no texts, which truncate and prompt_name are for")
            return self._run(inputs, outputs)
        return self._run(self._by_rows(inputs), outputs, truncate, prompt_name)

    def __call__(self, *arrays: Any, **inputs: Any) -> dict[str, numpy.ndarray]:
        """As run. Inputs without a name are the first ones, in the model's order."""
        if arrays:
            inputs = self._named(arrays, inputs)
        return self._run(inputs if self._texts is None else self._by_rows(inputs))

    def _by_rows(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Rows have a text each, or a pair of them; of a text alone, or a list of texts, each is a row."""
        if self._texts not in inputs:
            return inputs
        texts = numpy.asarray(inputs[self._texts], dtype=object)
        return inputs | {self._texts: texts.reshape(-1, 1) if texts.ndim < 2 else texts}

    def _named(self, arrays: tuple[Any, ...], inputs: dict[str, Any]) -> dict[str, Any]:
        if len(arrays) > len(self.inputs):
            raise TypeError(f"model '{self.name}' has {len(self.inputs)} inputs, and {len(arrays)} were given")
        named = {info.name: array for info, array in zip(self.inputs, arrays)}
        if twice := named.keys() & inputs.keys():
            raise TypeError(f"input '{min(twice)}' was given twice, by its place and by its name")
        return named | inputs

    @property
    def properties(self) -> dict[str, str]:
        """How it runs now: its format, its zeros, its kernels."""
        return self._engine.properties

    @property
    def max_batch(self) -> int:
        """Rows that are computed together; 0 where rows are no matter of their own."""
        return self._engine.max_batch

    @property
    def tuned(self) -> bool:
        """Whether no kernel is left to be measured."""
        return self._engine.tuned

    @property
    def closed(self) -> bool:
        return self._engine.closed

    def inspect(self) -> Report:
        """Layers, zeros and kernels; it reads the file again when it is shown."""
        return Report(self._engine.inspect_text, self._engine.inspect_json, self._engine.inspect_html)

    def close(self) -> None:
        """Gives threads and memory back, once runs that have begun are done."""
        self._engine.close()

    def __enter__(self) -> 'Model':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        inputs, outputs = (', '.join(f'{info.name}: {info.datatype}{list(info.shape)}' for info in tensors)
                           for tensors in (self.inputs, self.outputs))
        return f'<swizzle_engine.Model {self.name!r} ({inputs}) -> ({outputs})>'.replace('None', '?')


_open: 'weakref.WeakSet[Model]' = weakref.WeakSet()


@atexit.register
def _end() -> None:
    """No thread of a model may be at work while the process takes itself apart."""
    _engine.end_interpreter()
    for model in list(_open):
        model.close()
