#!/usr/bin/env python3
"""What Python adds to a run: the package's Model, and ONNX Runtime's session, on one tiny model, in turn.

    python_calls.py --package=build/dev/python

A run's time in Python less its time in the engine is what Python adds: of ours by Model.time_runs, of ONNX Runtime's by
its own profile, which says how long each Run took. Ends with 1 where ours adds more than --bound, or more than theirs.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnx
import onnxruntime


def tiny_model(path):
    """y = x + w for 4 numbers."""
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ['N', 4]) for name in ('x', 'y')]
    weight = onnx.numpy_helper.from_array(numpy.ones(4, numpy.float32), 'w')
    graph = onnx.helper.make_graph([onnx.helper.make_node('Add', ['x', 'w'], ['y'])], 'tiny', values[:1], values[1:],
                                   [weight])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid('', 17)], ir_version=8), path)
    return path


def microseconds(call, count):
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count * 1e6


def onnx_session(path, folder=None):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if folder:
        options.enable_profiling = True
        options.profile_file_prefix = str(folder / 'profile')
    return onnxruntime.InferenceSession(str(path), options, providers=['CPUExecutionProvider'])


def profiled(path, folder, feed, count):
    """(microseconds in Python, in the engine) of ONNX Runtime's runs; its profile counts whole microseconds."""
    session = onnx_session(path, folder)
    total = microseconds(lambda: session.run(None, feed), count)
    events = json.loads(pathlib.Path(session.end_profiling()).read_text())
    return total, statistics.mean(event['dur'] for event in events if event['name'] == 'model_run')


def import_milliseconds(package, what):
    script = f'import sys, time\nsys.path.append({str(package)!r})\nimport numpy\nbegin = time.perf_counter()\n' \
             f'import {what}\nprint((time.perf_counter() - begin) * 1e3)'
    return min(float(subprocess.run([sys.executable, '-c', script], capture_output=True, text=True, check=True).stdout)
               for _ in range(10))


def measure(options, folder):
    sys.path.append(str(options.package))
    import swizzle_engine
    path = tiny_model(folder / 'tiny.onnx')
    feed = {'x': numpy.ones((1, 4), numpy.float32)}
    model, session = swizzle_engine.Model(path, threads=1), onnx_session(path)
    numpy.testing.assert_array_equal(model.run(feed)['y'], session.run(None, feed)[0])
    rounds = []
    for _ in range(options.rounds):
        engine = model._engine.time_runs(feed, options.runs) / options.runs * 1e6
        ours = microseconds(lambda: model.run(feed), options.runs)
        by_name = microseconds(lambda: model(x=feed['x']), options.runs)
        theirs = microseconds(lambda: session.run(None, feed), options.runs)
        in_profile, their_engine = profiled(path, folder, feed, min(options.runs, 2000))
        rounds.append((engine, ours, by_name, ours - engine, theirs, in_profile - their_engine))
    return [statistics.median(column) for column in zip(*rounds)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--package', type=pathlib.Path, default='build/dev/python', help='the folder of swizzle_engine')
    parser.add_argument('--runs', type=int, default=3000, help='of each in a round')
    parser.add_argument('--rounds', type=int, default=15)
    parser.add_argument('--bound', type=float, default=15, help='microseconds that ours may add')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        engine, ours, by_name, added, theirs, added_there = measure(options, pathlib.Path(folder))
    print(f'engine alone          {engine:8.2f} us\nModel.run             {ours:8.2f} us\n'
          f'model(x=...)          {by_name:8.2f} us\nPython adds           {added:8.2f} us\n'
          f'ONNX Runtime, Python  {theirs:8.2f} us\nPython adds there     {added_there:8.2f} us')
    for what in ('swizzle_engine.model', 'onnxruntime'):
        print(f'import {what:20} {import_milliseconds(options.package, what):6.1f} ms after numpy')
    sys.exit(added > options.bound or added > added_there)


if __name__ == '__main__':
    main()
