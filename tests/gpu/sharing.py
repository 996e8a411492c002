"""Tensors in memory of the GPU, by Triton's client (tritonclient, with cuda-bindings): what a model answers is what it
answers to messages, and a client that ends, or frees what it has registered, harms nobody."""

import base64
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


def refusal(call, *given):
    from tritonclient.utils import InferenceServerException
    try:
        call(*given)
    except InferenceServerException as error:
        return error.message()
    raise RuntimeError(f'{call} {given} was not refused')


class Asker:
    """Asks a model of one input and one output, and knows what it answers to a message."""

    def __init__(self, client, model):
        import numpy
        import tritonclient.grpc as triton
        self.triton, self.client, self.model = triton, client, model
        metadata = client.get_model_metadata(model)
        self.input, self.output = metadata.inputs[0].name, metadata.outputs[0].name
        shape = [2 if size < 0 else size for size in metadata.inputs[0].shape]
        self.values = numpy.random.default_rng(1).standard_normal(shape, numpy.float32)
        self.expected = self.ask().as_numpy(self.output)

    def ask(self, source=None, target=None):
        """Regions' names; None: in messages."""
        tensor = self.triton.InferInput(self.input, list(self.values.shape), 'FP32')
        if source is None:
            tensor.set_data_from_numpy(self.values)
        else:
            tensor.set_shared_memory(source, self.values.nbytes)
        wanted = self.triton.InferRequestedOutput(self.output)
        if target is not None:
            wanted.set_shared_memory(target, self.expected.nbytes)
        return self.client.infer(self.model, [tensor], outputs=[wanted])

    def check(self, answer):
        import numpy
        check(numpy.allclose(answer, self.expected, rtol=1e-4, atol=1e-5), 'another answer', answer, self.expected)


def use_regions(client, asker):
    """Reads from one region and writes to another, which stay; what cannot be opened is refused."""
    import numpy
    import tritonclient.utils.cuda_shared_memory as shared
    sizes = {'in': asker.values.nbytes, 'out': asker.expected.nbytes}
    regions = {region: shared.create_shared_memory_region(region, size, 0) for region, size in sizes.items()}
    shared.set_shared_memory_region(regions['in'], [asker.values])
    handles = {region: shared.get_raw_handle(made) for region, made in regions.items()}
    for handle, device, size, wanted in (
            (handles['in'], 0, 1 << 40, 'is not in it'), (handles['in'], -1, 16, 'there is no GPU'),
            (handles['in'], 99, 16, 'there is no GPU'), (base64.b64encode(bytes(40)), 0, 16, 'has 64 bytes, not 40'),
            (base64.b64encode(bytes(64)), 0, 16, 'CUDA does not open this handle on GPU 0')):
        said = refusal(client.register_cuda_shared_memory, 'in', handle, device, size)
        check(wanted in said, 'a region that cannot be', said)
    for region, size in sizes.items():
        client.register_cuda_shared_memory(region, handles[region], 0, size)
    check(set(client.get_cuda_shared_memory_status().regions) == {'in', 'out'}, 'regions are missing')
    for _ in range(20):
        shared.set_shared_memory_region(regions['out'], [numpy.zeros_like(asker.expected)])
        asker.ask('in', 'out')
        asker.check(shared.get_contents_as_numpy(regions['out'], numpy.float32, list(asker.expected.shape)))


def share_memory(programs, model, scratch):
    """Serves the model, and shares memory with the server; what is not as it should be is a RuntimeError."""
    import tritonclient.grpc as triton
    repository = scratch / 'sharing'
    repository.mkdir()
    with Server(programs, repository, scratch, f'--model={model},name=model', '--device=cuda:0',
                '--cuda-shared-memory') as server, triton.InferenceServerClient(server.address) as client:
        asker = Asker(client, 'model')
        use_regions(client, asker)
        for how in ('ended', 'freed'):
            gone = subprocess.run([sys.executable, '-c', GONE, server.address, how, str(asker.values.nbytes)],
                                  capture_output=True, text=True, timeout=120, check=False)
            check(gone.returncode == 0, 'a client failed', gone.stderr)
            asker.ask('gone')
            client.unregister_cuda_shared_memory('gone')
        client.unregister_cuda_shared_memory()
        asker.check(asker.ask().as_numpy(asker.output))
        check('register it first' in refusal(asker.ask, 'in'), 'a region that is gone')
    return f'{asker.values.nbytes} bytes to the model and {asker.expected.nbytes} from it, as by messages'
