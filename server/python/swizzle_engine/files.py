"""Model files made of others: what the program swizzle-pack does, as functions.

They return the text that the command prints. What is at `output` stays as it was if they fail. `progress` is called
with a line of text now and then; to raise in it, or Ctrl-C, ends the work.
"""

import os
from collections.abc import Callable, Sequence

from swizzle_engine import _engine

Path = str | os.PathLike[str]
Progress = Callable[[str], object]


def prune(model: Path, output: Path, *, sparsity: float, method: str = 'magnitude', pattern: str = '2:4',
          vector_rows: int = 64, scores: Path = '', calibration: Path = '', skip: Sequence[str] = (),
          progress: Progress | None = None) -> str:
    """Zeros the smallest weights: `sparsity` of each layer, from 0 to 1.

    method: 'magnitude', 'n-m' with `pattern`, 'vector-wise', 'shfl-bw' or 'block' with `vector_rows`.
    scores: a file that says how much each weight matters, instead of its magnitude.
    calibration: arrays for the inputs (.npz, or a folder of .npy), to mend the weights that stay.
    skip: patterns of layers' or weights' names.
    """
    return _engine.prune(os.fsencode(model), os.fsencode(output), sparsity=sparsity, method=method, pattern=pattern,
                         vector_rows=vector_rows, scores=os.fsencode(scores), calibration=os.fsencode(calibration),
                         skip=_patterns(skip), progress=progress)


def quantize(model: Path, output: Path, *, calibration: Path = '', observer: str = 'minmax', skip: Sequence[str] = (),
             threads: int = 0, progress: Progress | None = None) -> str:
    """Makes weights and activations whole numbers, by what calibration data makes of the model.

    calibration: arrays for the inputs (.npz, or a folder of .npy); encoders need none.
    observer: how ranges are chosen: 'minmax', 'percentile' or 'mse'.
    """
    return _engine.quantize(os.fsencode(model), os.fsencode(output), calibration=os.fsencode(calibration),
                            observer=observer, skip=_patterns(skip), threads=threads, progress=progress)


def pack(model: Path, output: Path, *, format: str = 'auto', calibration: Path = '', threads: int = 0,
         progress: Progress | None = None) -> str:
    """Writes a packed model (.swz), with its weights compressed.

    format: of weights with zeros; 'auto' chooses by their pattern.
    """
    return _engine.pack(os.fsencode(model), os.fsencode(output), format=format, calibration=os.fsencode(calibration),
                        threads=threads, progress=progress)


def _patterns(skip: Sequence[str]) -> list[str]:
    """One pattern is not the list of its letters."""
    return [skip] if isinstance(skip, str) else list(skip)
