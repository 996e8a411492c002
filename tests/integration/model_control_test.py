"""Models that are loaded, replaced and unloaded while the server serves, by the clients that people have."""

import os
import shutil
import signal
import threading

import grpc
import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

from conftest import DENSE, SHIPPED, SPARSE, wait_until

EXPLICIT = ['--model-control=explicit', '--control-address=127.0.0.1:0']


def image_input(image):
    tensor = triton.InferInput('image', list(image.shape), 'FP32')
    tensor.set_data_from_numpy(image)
    return [tensor]


def replace(repository, model, source):
    """As a deployment does: the new file takes the old one's place in one step."""
    target = repository.directory / model / '1' / 'model.onnx'
    part = target.with_name('.part')
    shutil.copy(source, part)
    os.replace(part, target)


def states(client):
    return {(model.name, model.version): (model.state, model.reason)
            for model in client.get_model_repository_index().models}


def test_tritonclient_loads_and_unloads(start, repository, test_images):
    repository.shipped().identity()
    server = start(repository, *EXPLICIT)
    with triton.InferenceServerClient(server.grpc) as client, triton.InferenceServerClient(server.control) as control:
        assert client.is_server_ready()
        assert states(client) == {(SPARSE, ''): ('UNAVAILABLE', 'not loaded'),
                                  ('identity', ''): ('UNAVAILABLE', 'not loaded')}
        assert not client.is_model_ready(SPARSE)
        control.load_model(SPARSE)
        assert client.is_model_ready(SPARSE, '1')
        assert client.infer(SPARSE, image_input(test_images[0][:1])).as_numpy('logits').shape == (1, 10)
        assert states(control)[(SPARSE, '1')] == ('READY', '')
        ready = client.get_model_repository_index(as_json=True)
        assert len(ready['models']) == 2
        control.unload_model(SPARSE)
        assert not client.is_model_ready(SPARSE)
        with pytest.raises(InferenceServerException, match='is not loaded'):
            client.infer(SPARSE, image_input(test_images[0][:1]))
        wait_until(lambda: states(client)[(SPARSE, '1')] == ('UNAVAILABLE', 'unloaded'), 30, 'the end of the model')
        assert not server.metric('swizzle_model_ready')
        assert not server.metric('swizzle_model_weight_bytes')
        assert 'swizzle_queue_depth{' not in server.http('/metrics')[1]
        with pytest.raises(InferenceServerException, match='there is no model'):
            control.load_model('nobody')
        with pytest.raises(InferenceServerException, match='an address for operators'):
            client.load_model(SPARSE)
        with pytest.raises(InferenceServerException, match='this address is for operators'):
            control.infer(SPARSE, image_input(test_images[0][:1]))
    assert server.stop() == 0


def test_kserve_puts_the_name_elsewhere(start, repository):
    repository.identity()
    server = start(repository, *EXPLICIT)
    with grpc.insecure_channel(server.control) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        stub.RepositoryModelLoad(service_pb2.RepositoryModelLoadRequest(repository_name='identity'), timeout=60)
        assert stub.ModelReady(service_pb2.ModelReadyRequest(name='identity'), timeout=60).ready
        stub.RepositoryModelUnload(service_pb2.RepositoryModelUnloadRequest(repository_name='identity'), timeout=60)
        assert not stub.ModelReady(service_pb2.ModelReadyRequest(name='identity'), timeout=60).ready


def test_versions_are_served_side_by_side(start, repository, test_images):
    for version, model in ((1, DENSE), (2, SPARSE), (3, DENSE)):
        repository.file('m', 'model.onnx', SHIPPED / f'{model}.onnx', version=version)
    (repository.directory / 'm' / 'config.pbtxt').write_text('version_policy { latest { num_versions: 2 } }')
    server = start(repository)
    with triton.InferenceServerClient(server.grpc) as client:
        assert list(client.get_model_metadata('m').versions) == ['2', '3']
        assert client.is_model_ready('m', '2')
        with pytest.raises(InferenceServerException, match='has no version 1'):
            client.is_model_ready('m', '1')
        inputs = image_input(test_images[0][:1])
        assert client.infer('m', inputs).get_response().model_version == '3'
        assert client.infer('m', inputs, model_version='2').get_response().model_version == '2'
        assert {stats.version for stats in client.get_inference_statistics('m').model_stats} == {'2', '3'}
    assert server.metric('swizzle_model_ready', model='m') == 2


def test_one_broken_model_of_ten(start, repository):
    for i in range(9):
        repository.identity(f'good_{i}')
    repository.file('broken', 'model.onnx', b'no model')
    server = start(repository, *EXPLICIT, '--load-model=*')
    with triton.InferenceServerClient(server.grpc) as client, triton.InferenceServerClient(server.control) as control:
        assert not client.is_server_ready()
        assert sum(state == 'READY' for state, _ in states(client).values()) == 9
        control.unload_model('broken')
        assert client.is_server_ready()
        with pytest.raises(InferenceServerException, match="model 'broken' failed to load") as raised:
            control.load_model('broken')
        assert str(repository) not in raised.value.message()


class Traffic:
    """Threads that ask for one image's answer again and again, and remember every answer that is none of `known`."""

    def __init__(self, address, model, image, known, threads=4):
        self.wrong, self.answers, self.stopping = [], 0, False
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.ask, args=(address, model, image, known)) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def ask(self, address, model, image, known):
        with triton.InferenceServerClient(address) as client:
            while not self.stopping:
                try:
                    logits = client.infer(model, image_input(image), client_timeout=60).as_numpy('logits')
                    right = any(numpy.allclose(logits, answer, rtol=1e-3, atol=1e-3) for answer in known)
                    failure = None if right else f'an answer of no model: {logits}'
                except InferenceServerException as error:
                    failure = str(error)
                with self.lock:
                    self.answers += 1
                    if failure:
                        self.wrong.append(failure)

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()


def answers_of(client, models, image):
    return [client.infer(model, image_input(image)).as_numpy('logits') for model in models]


def test_reloads_under_load_drop_nothing(start, repository, test_images):
    image = test_images[0][:1]
    repository.shipped(SPARSE).shipped(DENSE).file('m', 'model.onnx', SHIPPED / f'{SPARSE}.onnx')
    server = start(repository, *EXPLICIT, '--load-model=*')
    with triton.InferenceServerClient(server.grpc) as client, triton.InferenceServerClient(server.control) as control:
        known = answers_of(client, [SPARSE, DENSE], image)
        assert not numpy.allclose(*known, rtol=1e-3, atol=1e-3), 'the two are to be told apart'
        traffic = Traffic(server.grpc, 'm', image, known)
        try:
            for i in range(6):
                replace(repository, 'm', SHIPPED / f'{(DENSE, SPARSE)[i % 2]}.onnx')
                control.load_model('m', client_timeout=120)
                numpy.testing.assert_allclose(answers_of(client, ['m'], image)[0], known[1 - i % 2], rtol=1e-3,
                                              atol=1e-3, err_msg='the new model serves from then on')
        finally:
            traffic.stop()
        assert not traffic.wrong, traffic.wrong[:3]
        assert traffic.answers > 0
        assert server.metric('swizzle_requests_total', model='m', code='OK') >= traffic.answers, 'counters go on'
    assert server.stop() == 0


def test_a_failed_reload_leaves_the_old_version(start, repository, test_images):
    image = test_images[0][:1]
    repository.shipped()
    server = start(repository, *EXPLICIT, f'--load-model={SPARSE}')
    with triton.InferenceServerClient(server.grpc) as client, triton.InferenceServerClient(server.control) as control:
        before = answers_of(client, [SPARSE], image)[0]
        repository.file(SPARSE, 'model.onnx', b'no model')
        with pytest.raises(InferenceServerException, match='what served before goes on'):
            control.load_model(SPARSE)
        assert numpy.array_equal(answers_of(client, [SPARSE], image)[0], before)
        state, reason = states(client)[(SPARSE, '1')]
        assert state == 'READY' and 'loading it again failed' in reason
        assert client.is_server_ready()
        assert server.metric('swizzle_model_load_failures_total', model=SPARSE) == 1


def test_sigterm_ends_a_load(start, repository):
    """A model that takes long to load, and a server that is to go meanwhile: who waits is told, and it goes at once."""
    repository.identity()
    for i in range(40):
        repository.shipped().file(f'm{i}', 'model.onnx', SHIPPED / f'{DENSE}.onnx')
    server = start(repository, *EXPLICIT, '--load-model=identity', tuning=['--tune=before-ready'])
    with grpc.insecure_channel(server.control) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        calls = [stub.RepositoryModelLoad.future(service_pb2.RepositoryModelLoadRequest(model_name=f'm{i}'),
                                                 timeout=120) for i in range(40)]
        wait_until(lambda: 'reading model' in server.log(), 60, 'the first load')
        server.terminate()
        assert server.exit_code() == 0, server.log()
        codes = {call.code() for call in calls}
        assert codes <= {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}, codes
        assert grpc.StatusCode.UNAVAILABLE in codes


def test_draining_while_loading_finishes_what_is_queued(start, repository):
    repository.identity('slow', delay_ms=1500).shipped()
    server = start(repository, *EXPLICIT, '--load-model=slow', tuning=['--tune=before-ready'])
    with triton.InferenceServerClient(server.grpc) as client, grpc.insecure_channel(server.control) as channel:
        tensor = triton.InferInput('INPUT0', [1, 16], 'FP32')
        tensor.set_data_from_numpy(numpy.ones((1, 16), numpy.float32))
        results = []
        client.async_infer('slow', [tensor], lambda result, error: results.append(error))
        wait_until(lambda: results or server.metric('swizzle_inflight_requests', model='slow') == 1, 30, 'the request')
        load = service_pb2_grpc.GRPCInferenceServiceStub(channel).RepositoryModelLoad.future(
            service_pb2.RepositoryModelLoadRequest(model_name=SPARSE), timeout=120)
        wait_until(lambda: 'reading model' in server.log(), 60, 'the load')
        server.process.send_signal(signal.SIGTERM)
        assert server.exit_code() == 0, server.log()
        wait_until(lambda: results, 30, 'the answer')
        assert results == [None]
        assert load.code() in (grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE)


def test_polling_follows_the_folder(start, repository, test_images):
    image = test_images[0][:1]
    repository.shipped(SPARSE).shipped(DENSE).file('m', 'model.onnx', SHIPPED / f'{SPARSE}.onnx')
    server = start(repository, '--model-control=poll', '--repository-poll-secs=0.1')
    with triton.InferenceServerClient(server.grpc) as client:
        known = answers_of(client, [SPARSE, DENSE], image)

        def serves(answer):
            return lambda: numpy.allclose(answers_of(client, ['m'], image)[0], answer, rtol=1e-3, atol=1e-3)

        assert serves(known[0])()
        replace(repository, 'm', SHIPPED / f'{DENSE}.onnx')
        wait_until(serves(known[1]), 60, 'the new file')
        repository.identity('new')
        wait_until(lambda: ('new', '1') in states(client) and client.is_model_ready('new'), 60, 'the new model')
        shutil.rmtree(repository.directory / 'new')
        wait_until(lambda: not any(name == 'new' for name, _ in states(client)), 60, 'the end of the model')
        repository.file('m', 'model.onnx', b'no model')
        wait_until(lambda: 'loading it again failed' in states(client)[('m', '1')][1], 60, 'the failure')
        assert serves(known[1])()
        assert server.metric('swizzle_model_load_failures_total', model='m') == 1
    assert server.stop() == 0


def test_the_server_stays_ready_while_more_is_loaded(start, repository):
    repository.identity()
    server = start(repository, *EXPLICIT, '--load-model=identity')
    repository.file('broken', 'model.onnx', b'no model')
    with triton.InferenceServerClient(server.control) as control:
        with pytest.raises(InferenceServerException):
            control.load_model('broken')
    assert server.http('/readyz')[0] == 200
    assert "model 'broken' failed" in server.http('/readyz')[1]


def test_tritonclient_brings_a_model(start, repository, test_images):
    repository.identity()
    server = start(repository, *EXPLICIT, '--allow-load-overrides')
    with triton.InferenceServerClient(server.grpc) as client, triton.InferenceServerClient(server.control) as control:
        files = {'file:1/model.onnx': (SHIPPED / f'{DENSE}.onnx').read_bytes()}
        control.load_model('brought', config='{"max_batch_size": 4}', files=files)
        dense = client.infer('brought', image_input(test_images[0][:4])).as_numpy('logits')
        assert client.get_model_config('brought').config.max_batch_size == 4
        files['file:1/model.onnx'] = (SHIPPED / f'{SPARSE}.onnx').read_bytes()
        control.load_model('brought', config='{"max_batch_size": 4}', files=files)
        assert not numpy.array_equal(client.infer('brought', image_input(test_images[0][:4])).as_numpy('logits'), dense)
        with pytest.raises(InferenceServerException, match="'config' is missing"):
            control.load_model('brought', files={'file:1/model.onnx': b'x'})
        with pytest.raises(InferenceServerException, match="model 'brought' failed to load"):
            control.load_model('brought', config='{}', files={'file:1/model.onnx': b'no model'})
        assert client.is_model_ready('brought'), 'what served goes on'
        control.unload_model('brought')
        assert not client.is_model_ready('brought')
    assert server.stop() == 0
