"""Calls a server by KServe's own InferenceRESTClient, unmodified, and prints what came of each call as JSON.

Argument: the server's address over HTTP.
"""

import asyncio
import json
import logging
import sys

import httpx
import numpy

from kserve_calls import VALUES, WORDS, request, values
from kserve.inference_client import InferenceRESTClient, RESTConfig
from kserve.protocol.infer_type import InferInput, RequestedOutput


async def answer(client, url, infer_request):
    response = await client.infer(url, infer_request, model_name=infer_request.model_name)
    output = response.outputs[0]
    answered = numpy.asarray(output.as_numpy()).flatten()
    return {'model': response.model_name, 'id': response.id, 'datatype': output.datatype, 'shape': list(output.shape),
            'values': [word.decode() if isinstance(word, bytes) else word for word in answered.tolist()]}


async def outcome(call):
    try:
        return await call
    except httpx.HTTPStatusError as error:
        return {'code': error.response.status_code, 'message': str(error)}


async def main(address):
    url = f'http://{address}'
    client = InferenceRESTClient(RESTConfig(protocol='v2', retries=0))
    halves = InferInput('INPUT0', [2, 16], 'FP16')
    halves.set_data_from_numpy(VALUES.astype(numpy.float16))
    words = InferInput('INPUT0', [1, 3], 'BYTES', data=WORDS)
    wanted = [RequestedOutput('OUTPUT0', parameters={'binary_data': True})]
    asked = {
        'live': client.is_server_live(url),
        'ready': client.is_server_ready(url),
        'model ready': client.is_model_ready(url, 'identity'),
        'model unknown': client.is_model_ready(url, 'nobody'),
        'typed': answer(client, url, request('identity', values(), request_id='request 7')),
        'array, raw': answer(client, url, request('identity', values(binary=True))),
        'array, typed': answer(client, url, request('identity', values(binary=False))),
        'bytes back': answer(client, url, request('identity', values(binary=True), request_outputs=wanted)),
        'words': answer(client, url, request('text', words)),
        'halves': answer(client, url, request('half', halves, request_outputs=wanted)),
        'wrong shape': answer(client, url, request('identity', InferInput('INPUT0', [1, 3], 'FP32', data=[1., 2., 3.]))),
    }
    print(json.dumps({name: await outcome(call) for name, call in asked.items()}))
    await client.close()


logging.disable()  # the SDK logs what it raises
asyncio.run(main(*sys.argv[1:]))
