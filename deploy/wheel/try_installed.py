"""Uses all that the wheel brings, as its users do. deploy/try-on-debian runs it in a bare Debian without a network.

    venv/bin/python deploy/wheel/try_installed.py MODEL.onnx

It runs in the environment that the wheel was installed in, with curl and tritonclient; the model takes one input, of
numbers. Each line that it prints is something that worked.
"""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import swizzle_engine
import tritonclient.grpc
import tritonclient.http

PROGRAMS = pathlib.Path(sys.executable).parent
SECONDS = 120


def succeed(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=SECONDS)
    if done.returncode != 0:
        sys.exit(f'{" ".join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}')
    return done.stdout


def hold(condition, what):
    if not condition:
        sys.exit(f'It does not hold: {what}')
    print(f'   {what}', flush=True)


def alike(actual, expected):
    return actual.shape == expected.shape and np.allclose(actual, expected, rtol=1e-3, atol=1e-3)


def run_here(path):
    """The model in this process: what it was given and what it answered, by name."""
    start = time.perf_counter()
    model = swizzle_engine.Model(path)
    own, = model.inputs
    shape = [extent or (64 if axis else 1) for axis, extent in enumerate(own.shape)]
    array = np.random.default_rng(1).normal(0, 1, shape).astype(own.dtype)
    outputs = model(**{own.name: array})
    hold(all(np.isfinite(output).all() for output in outputs.values()),
         f'Model answers {[output.shape for output in outputs.values()]} in {time.perf_counter() - start:.2f} s, '
         'opening included')
    report = str(model.inspect())
    hold(len(report.splitlines()) > 3, 'inspect() has a report')
    return {own.name: array}, outputs


def use_tools(path, inputs, expected, scratch):
    hold('layer' in succeed(PROGRAMS / 'swizzle-pack', 'inspect', path), 'swizzle-pack inspect')
    succeed(PROGRAMS / 'swizzle-pack', 'pack', path, scratch / 'model.swz')
    packed = swizzle_engine.Model(scratch / 'model.swz')(**inputs)
    hold(all(alike(packed[name], expected[name]) for name in expected), 'swizzle-pack pack, and its file answers alike')
    swizzle_engine.prune(path, scratch / 'pruned.onnx', sparsity=0.95)
    hold((scratch / 'pruned.onnx').stat().st_size > 0, 'prune()')
    versions = {succeed(PROGRAMS / name, '--version').split()[-1]
                for name in ('swizzle', 'swizzle-server', 'swizzle-pack')}
    hold(versions == {swizzle_engine.__version__}, f'programs and module are {swizzle_engine.__version__}')


def call(module, address, model, inputs, expected):
    """By tritonclient, over gRPC or HTTP."""
    client = module.InferenceServerClient(address)
    asked = []
    for name, array in inputs.items():
        metadata = module.InferInput(name, array.shape, 'FP32')
        metadata.set_data_from_numpy(array)
        asked.append(metadata)
    result = client.infer(model, asked)
    client.close()
    return all(alike(result.as_numpy(name), expected[name]) for name in expected)


def serve(path, inputs, expected):
    process = subprocess.Popen([PROGRAMS / 'swizzle', 'serve', f'{path},name=mine', '--http-port=8000',
                                '--grpc-port=8001', '--metrics-port=8002', '-o', 'json'],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        if not line:
            sys.exit(f'swizzle serve ended with {process.wait(SECONDS)}:\n{process.stderr.read()}')
        shown, = json.loads(line)['models']
        outputs = json.loads(succeed('bash', '-c', shown['curl']))['outputs']
        hold({output['name'] for output in outputs} == set(expected), 'swizzle serve, and the curl that it prints')
        hold(all(name in succeed(sys.executable, '-c', shown['python']) for name in expected), 'the Python that it prints')
        hold(call(tritonclient.grpc, 'localhost:8001', 'mine', inputs, expected), 'tritonclient.grpc is answered alike')
        hold(call(tritonclient.http, 'localhost:8000', 'mine', inputs, expected), 'tritonclient.http is answered alike')
        succeed(PROGRAMS / 'swizzle', 'health', 'mine')
        hold('mine' in succeed(PROGRAMS / 'swizzle', 'models'), 'swizzle models')
        shapes = [f'--shape={name}:{",".join(map(str, array.shape))}' for name, array in inputs.items()]
        hold('50 requests' in succeed(PROGRAMS / 'swizzle', 'bench', 'mine', '--requests=50', *shapes), 'swizzle bench')
        for page, text in (('metrics', 'swizzle_build_info'), ('', '<html'), ('livez', '')):
            hold(text in succeed('curl', '--silent', '--fail', f'http://localhost:8002/{page}'), f'the page /{page}')
        process.send_signal(signal.SIGINT)
        hold(process.wait(SECONDS) == 0, 'Ctrl-C ends it with 0')
    finally:
        process.kill()
        process.wait(SECONDS)


def main():
    path = pathlib.Path(sys.argv[1])
    inputs, expected = run_here(path)
    with tempfile.TemporaryDirectory() as scratch:
        use_tools(path, inputs, expected, pathlib.Path(scratch))
    serve(path, inputs, expected)


if __name__ == '__main__':
    main()
