"""Tensors in memory of the GPU, by Triton's client (tritonclient, with cuda-bindings): what a model answers is what it
answers to messages, and a client that ends, or frees what it has registered, harms nobody."""

import base64
import shutil
import subprocess
import sys

from losing import check
from serving import Server

# A client that registers memory, and then frees it, or only ends.
GONE = """
import sys
import tritonclient.grpc as triton, tritonclient.utils.cuda_shared_memory as shared
address, how, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
region = shared.create_shared_memory_region('gone', size, 0)
with triton.InferenceServerClient(address) as client:
    client.register_cuda_shared_memory('gone', shared.get_raw_handle(region), 0, size)
    if how == 'freed':
        shared.destroy_shared_memory_region(region)
"""


def share_memory(programs, model, scratch):
    """Serves the model, and shares memory with the server; what is not as it should be is a RuntimeError."""
    import numpy
    import tritonclient.grpc as triton
    import tritonclient.utils.cuda_shared_memory as shared
    from tritonclient.utils import InferenceServerException

    repository = scratch / 'sharing'
    (repository / 'model' / '1').mkdir(parents=True)
    shutil.copy(model, repository / 'model' / '1' / 'model.onnx')
    with Server(programs, repository, scratch, '--device=cuda:0', '--cuda-shared-memory') as server, \
            triton.InferenceServerClient(server.address) as client:
        metadata = client.get_model_metadata('model')
        name, shape = metadata.inputs[0].name, [2 if size < 0 else size for size in metadata.inputs[0].shape]
        output = metadata.outputs[0].name
        values = numpy.random.default_rng(1).standard_normal(shape, numpy.float32)

        def tensor(region=None):
            made = triton.InferInput(name, shape, 'FP32')
            if region is None:
                made.set_data_from_numpy(values)
            else:
                made.set_shared_memory(region, values.nbytes)
            return made

        def ask(source=None, target=None):
            wanted = triton.InferRequestedOutput(output)
            if target is not None:
                wanted.set_shared_memory(target, expected.nbytes)
            return client.infer('model', [tensor(source)], outputs=[wanted])

        def refusal(call, *given):
            try:
                call(*given)
            except InferenceServerException as error:
                return error.message()
            raise RuntimeError(f'{call} {given} was not refused')

        expected = ask().as_numpy(output)
        regions = {region: shared.create_shared_memory_region(region, size, 0)
                   for region, size in (('in', values.nbytes), ('out', expected.nbytes))}
        shared.set_shared_memory_region(regions['in'], [values])
        handles = {region: shared.get_raw_handle(made) for region, made in regions.items()}
        said = refusal(client.register_cuda_shared_memory, 'in', handles['in'], 0, 1 << 40)
        check('is not in it' in said, 'a region beyond its memory', said)
        for region, size in (('in', values.nbytes), ('out', expected.nbytes)):
            client.register_cuda_shared_memory(region, handles[region], 0, size)
        check(set(client.get_cuda_shared_memory_status().regions) == {'in', 'out'}, 'regions are missing')
        for _ in range(20):
            shared.set_shared_memory_region(regions['out'], [numpy.zeros_like(expected)])
            ask('in', 'out')
            written = shared.get_contents_as_numpy(regions['out'], numpy.float32, list(expected.shape))
            check(numpy.allclose(written, expected, rtol=1e-4, atol=1e-5), 'another answer', written, expected)
        said = refusal(client.register_cuda_shared_memory, 'other', base64.b64encode(bytes(40)), 0, 16)
        check('has 64 bytes, not 40' in said, 'a handle that is cut off', said)
        said = refusal(client.register_cuda_shared_memory, 'other', base64.b64encode(bytes(64)), 0, 16)
        check('CUDA does not open this handle on GPU 0' in said, 'a handle of nothing', said)
        for device in (-1, 99):
            said = refusal(client.register_cuda_shared_memory, 'other', handles['in'], device, 16)
            check('there is no GPU' in said, 'a GPU that is not there', said)
        for how in ('ended', 'freed'):
            subprocess.run([sys.executable, '-c', GONE, server.address, how, str(values.nbytes)], check=True, timeout=120)
            ask('gone')
            client.unregister_cuda_shared_memory('gone')
        client.unregister_cuda_shared_memory()
        check(numpy.allclose(ask().as_numpy(output), expected, rtol=1e-4, atol=1e-5), 'another answer at the end')
        check('register it first' in refusal(ask, 'in'), 'a region that is gone')
    return f'{values.nbytes} bytes to the model and {expected.nbytes} from it, as by messages'
