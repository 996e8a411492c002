"""Calls a server by KServe's own InferenceGRPCClient, unmodified, and prints what came of each call as JSON.

A program of its own, since KServe's SDK and tritonclient register messages of the same names with protobuf, which one
process refuses. Arguments: the server's address, and optionally the files of an authority and of a client's pair, for
TLS.
"""

import asyncio
import importlib.util
import json
import logging
import sys
import types

import grpc
import numpy


def kserve_package():
    """The SDK's package without what its __init__ imports, which is all of the SDK and needs Kubernetes' client."""
    package = types.ModuleType('kserve')
    package.__path__ = list(importlib.util.find_spec('kserve').submodule_search_locations)
    return package


sys.modules['kserve'] = kserve_package()
from kserve.inference_client import InferenceGRPCClient  # noqa: E402
from kserve.protocol.infer_type import InferInput, InferRequest, RequestedOutput  # noqa: E402

VALUES = numpy.arange(32, dtype=numpy.float32).reshape(2, 16)
WORDS = ['dress', '', 'Ankle boot ü']


def request(model, tensor, **options):
    return InferRequest(model_name=model, infer_inputs=[tensor], **options)


def values(binary=None):
    """FP32 in typed contents, or set from an array: `binary` says whether as raw bytes."""
    if binary is None:
        return InferInput('INPUT0', [2, 16], 'FP32', data=VALUES.flatten().tolist())
    tensor = InferInput('INPUT0', [2, 16], 'FP32')
    tensor.set_data_from_numpy(VALUES, binary_data=binary)
    return tensor


async def answer(client, infer_request, **options):
    response = await client.infer(infer_request, **options)
    output = response.outputs[0]
    answered = output.as_numpy()
    if output.datatype == 'BYTES':
        answered = numpy.array([word.decode() if isinstance(word, bytes) else word for word in answered.flatten()])
    return {'model': response.model_name, 'version': response.model_version, 'id': response.id, 'name': output.name,
            'datatype': output.datatype, 'shape': list(output.shape), 'values': answered.flatten().tolist(),
            'parameters': sorted(response.parameters or {})}


async def outcome(call):
    try:
        return await call
    except grpc.RpcError as error:
        return {'code': error.code().name, 'message': error.details()}


async def calls(client):
    words = InferInput('INPUT0', [1, 3], 'BYTES', data=WORDS)
    halves = InferInput('INPUT0', [2, 16], 'FP16')
    halves.set_data_from_numpy(VALUES.astype(numpy.float16))
    asked = {
        'live': client.is_server_live(),
        'ready': client.is_server_ready(),
        'model ready': client.is_model_ready('identity'),
        'model unknown': client.is_model_ready('nobody'),
        'typed': answer(client, request('identity', values(), request_id='request 7')),
        'array, raw': answer(client, request('identity', values(binary=True))),
        'array, typed': answer(client, request('identity', values(binary=False))),
        'array, as data': answer(client, request('identity', InferInput('INPUT0', [2, 16], 'FP32', data=VALUES))),
        'version and output': answer(client, request('identity', values(), model_version='1',
                                                     request_outputs=[RequestedOutput('OUTPUT0')])),
        'parameters': answer(client, request('identity', values(), parameters={'priority': 1})),
        'words': answer(client, request('text', words)),
        'halves': answer(client, request('half', halves)),
        'no version': answer(client, request('identity', values(), model_version='9')),
        'wrong shape': answer(client, request('identity', InferInput('INPUT0', [1, 3], 'FP32', data=[1.0, 2.0, 3.0]))),
        'timeout': answer(client, request('slow', values()), timeout=0.01),
    }
    return {name: await outcome(call) for name, call in asked.items()}


async def main(address, authority=None, certificate=None, key=None):
    async with InferenceGRPCClient(address, use_ssl=authority is not None, root_certificates=authority,
                                   certificate_chain=certificate, private_key=key) as client:
        print(json.dumps(await calls(client)))


if __name__ == '__main__':
    logging.disable()  # the SDK logs what it raises
    asyncio.run(main(*sys.argv[1:]))
