"""One call to a model on a running swizzle-server, with errors that say what to do."""

import sys

START = 'start it with: swizzle-server --model-repository=DIR/models, where --prepare=DIR made the models'


class Failure(Exception):
    """What went wrong and the remedy, for the person who ran the example."""


def need(module, requirements='client/python/requirements.txt'):
    """Imports and returns a module; raises Failure with the remedy if it is not installed."""
    try:
        return __import__(module, fromlist=['_'])
    except ImportError:
        raise Failure(f'the Python package of {module} is missing; pip install -r {requirements}') from None


def infer(address, model, inputs, output, seconds=60.0):
    """Returns one output of a model as a NumPy array.

    Args:
      address: HOST:PORT of the server's gRPC.
      inputs: {name: array}; int64 and float32 arrays go as INT64 and FP32.

    Raises Failure if nobody answers, or the server does not have the model or refuses the request.
    """
    triton = need('tritonclient.grpc')
    errors = need('tritonclient.utils')
    tensors = []
    for name, array in inputs.items():
        tensors.append(triton.InferInput(name, list(array.shape), errors.np_to_triton_dtype(array.dtype)))
        tensors[-1].set_data_from_numpy(array)
    try:
        with triton.InferenceServerClient(address) as client:
            wanted = [triton.InferRequestedOutput(output)]
            return client.infer(model, tensors, outputs=wanted, client_timeout=seconds).as_numpy(output)
    except errors.InferenceServerException as error:
        status = str(error.status() or '')
        if 'UNAVAILABLE' in status:
            raise Failure(f'no server answers at {address}; {START}, or name another with --address') from None
        if 'NOT_FOUND' in status:
            raise Failure(f'the server at {address} has no model {model!r}; {START}') from None
        raise Failure(f'the server at {address} did not answer the request: {error.message()}') from None


def run(main):
    """Runs an example; a Failure becomes one line and exit code 1."""
    try:
        main()
    except Failure as failure:
        sys.exit(f'{sys.argv[0]}: {failure}')
