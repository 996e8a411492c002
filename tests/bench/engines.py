"""One inference engine in a process of its own, so that no engine's threads, pinning or libraries reach another's.

    engines.py ENGINE MODEL.onnx INPUTS.npz THREADS OUTPUT.npy

Opens the model for the batch that the inputs have, writes the output, prints a line with its version, and then for every
line read, a number of runs, a line of JSON with the milliseconds of each. Engines: onnxruntime, openvino, deepsparse.
"""

import json
import pathlib
import shutil
import sys
import tempfile
import time

import numpy as np


def onnxruntime(model, inputs, threads):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = ort.InferenceSession(model, options, providers=['CPUExecutionProvider'])
    return ort.__version__, lambda: session.run(None, inputs)


def openvino(model, inputs, threads):
    """With the batch fixed, as users who want speed do, and FP32 where the machine has BF16, too."""
    import openvino as ov
    core = ov.Core()
    network = core.read_model(model)
    network.reshape({name: array.shape for name, array in inputs.items()})
    compiled = core.compile_model(network, 'CPU', {'INFERENCE_NUM_THREADS': threads, 'PERFORMANCE_HINT': 'LATENCY',
                                                   'INFERENCE_PRECISION_HINT': 'f32'})
    request = compiled.create_infer_request()
    outputs = list(compiled.outputs)

    def run():
        results = request.infer(inputs, share_inputs=True)
        return [results[output] for output in outputs]
    return ov.__version__.split('-')[0], run


def deepsparse(model, inputs, threads):
    """On a copy of the file, whose shapes it overwrites."""
    import deepsparse as ds
    import onnx
    with tempfile.TemporaryDirectory() as folder:
        copy = str(pathlib.Path(folder) / 'model.onnx')
        shutil.copy(model, copy)
        names = [value.name for value in onnx.load(copy, load_external_data=False).graph.input]
        arrays = [inputs[name] for name in names]
        engine = ds.Engine(copy, len(arrays[0]), num_cores=threads, input_shapes=[list(a.shape) for a in arrays])
    return ds.__version__, lambda: engine.run(arrays)


ENGINES = {engine.__name__: engine for engine in (onnxruntime, openvino, deepsparse)}


def main():
    engine, model, inputs, threads, output = sys.argv[1:]
    version, run = ENGINES[engine](model, dict(np.load(inputs)), int(threads))
    np.save(output, run()[0])
    print(json.dumps({'version': version}), flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
        print(json.dumps(times), flush=True)


if __name__ == '__main__':
    main()
