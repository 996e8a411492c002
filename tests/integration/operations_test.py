"""What operators rely on: probes, metrics, logs, drain, memory."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

import grpc
import numpy
import pytest
import tritonclient.grpc as triton
from onnx import TensorProto, helper
from tritonclient.grpc import service_pb2, service_pb2_grpc

from conftest import SANITIZED, SHIPPED, SPARSE, START_SECONDS, STOP_SECONDS, program, wait_until

SERVING, NOT_SERVING = b'\x08\x01', b'\x08\x02'


def identity_request():
    message = service_pb2.ModelInferRequest(model_name='identity')
    message.inputs.add(name='INPUT0', datatype='FP32', shape=(1, 16))
    message.raw_input_contents.append(bytes(64))
    return message


def health_check(channel, service=b''):
    """grpc.health.v1's Check, encoded by hand: the status in the answer, or the error's code."""
    call = channel.unary_unary('/grpc.health.v1.Health/Check')
    try:
        return call(b'\x0a' + bytes([len(service)]) + service if service else b'', timeout=30)
    except grpc.RpcError as error:
        return error.code()


def test_probes(start, repository):
    server = start(repository.identity())
    assert [server.http(path)[0] for path in ('/livez', '/readyz', '/startupz')] == [200, 200, 200]
    assert server.http('/nothing')[0] == 404
    with grpc.insecure_channel(server.grpc) as channel:
        assert health_check(channel) == SERVING
        assert health_check(channel, b'identity') in (SERVING, grpc.StatusCode.NOT_FOUND)
        assert health_check(channel, b'nobody') == grpc.StatusCode.NOT_FOUND
        watch = channel.unary_stream('/grpc.health.v1.Health/Watch')(b'', timeout=60)
        assert next(watch) == SERVING
        watch.cancel()


def test_not_ready_while_a_model_is_broken(start, repository):
    server = start(repository.identity().file('broken', 'model.onnx', b'garbage'))
    assert server.http('/livez')[0] == 200
    assert server.http('/readyz')[0] == 503
    with triton.InferenceServerClient(server.grpc) as client:
        assert client.is_server_live()
        assert not client.is_server_ready()
        assert client.is_model_ready('identity')


def with_a_name_that_is_no_text(which):
    """A model whose input, or output, has a name that Python's protobuf would not write."""
    ports = [helper.make_tensor_value_info(f'the_{port}', TensorProto.FLOAT, (1, 4)) for port in ('input', 'output')]
    nodes = [helper.make_node('Relu', [ports[0].name], [ports[1].name])]
    graph = helper.make_graph(nodes, 'named', ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)])
    name = f'the_{which}'.encode()
    return model.SerializeToString().replace(name, b'\xff' * len(name))


@pytest.mark.parametrize('port', ['input', 'output'])
def test_names_that_no_message_can_hold_are_refused_at_load(start, repository, port):
    """ModelConfig and ModelMetadata would have to say them, and protobuf aborts on what is not UTF-8."""
    server = start(repository.identity().file('named', 'model.onnx', with_a_name_that_is_no_text(port)))
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for method, message in [(stub.ModelConfig, service_pb2.ModelConfigRequest(name='named')),
                                (stub.ModelMetadata, service_pb2.ModelMetadataRequest(name='named'))]:
            with pytest.raises(grpc.RpcError) as caught:
                method(message, timeout=30)
            assert caught.value.code() == grpc.StatusCode.INTERNAL
            assert 'not printable UTF-8' in caught.value.details()
        stub.ModelConfig(service_pb2.ModelConfigRequest(name='identity'), timeout=30)
    assert 'not printable UTF-8' in server.log()


def test_sigterm_finishes_requests_in_flight(start, repository):
    server = start(repository.identity(delay_ms=200, extra=''))
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        calls = [stub.ModelInfer.future(identity_request(), timeout=120) for _ in range(8)]
        wait_until(lambda: server.metric('swizzle_inflight_requests', model='identity') == 8, 60, 'the eight requests')
        server.terminate()
        assert [call.result().raw_output_contents[0] for call in calls] == [bytes(64)] * 8
    assert server.exit_code() == 0, server.log()


def test_sigterm_turns_readiness_off_and_serves_for_the_drain_delay(start, repository):
    server = start(repository.identity(), '--drain-delay=2')
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        stub.ModelInfer(identity_request(), timeout=60)
        server.terminate()
        wait_until(lambda: server.http('/readyz')[0] == 503, 60, 'the end of readiness')
        assert server.http('/livez')[0] == 200
        assert health_check(channel) == NOT_SERVING
        stub.ModelInfer(identity_request(), timeout=60)
    assert server.exit_code() == 0, server.log()


def test_a_second_signal_leaves_without_a_drain(start, repository):
    server = start(repository.identity(), '--drain-delay=600')
    server.terminate()
    wait_until(lambda: server.http('/readyz')[0] == 503, 60, 'the end of readiness')

    def gone():
        server.terminate()
        return server.process.poll() is not None

    wait_until(gone, STOP_SECONDS, 'the end')  # what follows the first signal at once is the same request
    assert server.exit_code() == 3, server.log()
    assert 'second signal' in server.log()


def test_sigterm_while_models_load(repository, tmp_path):
    # So many take far longer to load than the test.
    for i in range(30):
        version = repository.directory / f'model_{i}' / '1'
        version.mkdir(parents=True)
        (version / 'model.onnx').symlink_to(SHIPPED / f'{SPARSE}.onnx')
    log = tmp_path / 'log'
    with open(log, 'wb') as output:
        process = subprocess.Popen([program('swizzle-server'), f'--model-repository={repository}',
                                    '--grpc-address=127.0.0.1:0', '--metrics-address=127.0.0.1:0'],
                                   stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        wait_until(lambda: 'listening' in log.read_text(), START_SECONDS, 'the start of the server')
        process.terminate()
        assert process.wait(STOP_SECONDS) == 0, log.read_text()
    finally:
        process.kill()
    assert 'ready' not in log.read_text()


def test_sigterm_while_clients_go_on_sending(start, repository):
    server = start(repository.identity(delay_ms=5))
    codes = []

    def send():
        with grpc.insecure_channel(server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            while True:
                try:
                    stub.ModelInfer(identity_request(), timeout=60)
                except grpc.RpcError as error:
                    codes.append(error.code())
                    return

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    wait_until(lambda: server.metric('swizzle_requests_total', model='identity') > 20, 60, 'some requests')
    assert server.stop() == 0, server.log()
    for thread in threads:
        thread.join(60)
    assert codes == [grpc.StatusCode.UNAVAILABLE] * 4


def test_metrics_follow_requests(start, repository):
    server = start(repository.identity().shipped())
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for _ in range(3):
            stub.ModelInfer(identity_request(), timeout=60)
        with pytest.raises(grpc.RpcError):
            stub.ModelInfer(service_pb2.ModelInferRequest(model_name='identity'), timeout=60)
    metric = server.metric
    assert metric('swizzle_requests_total', model='identity', code='OK') == 3
    assert metric('swizzle_requests_total', model='identity', code='INVALID_ARGUMENT') == 1
    assert metric('swizzle_inferences_total', model='identity') == 3
    assert metric('swizzle_request_duration_seconds_count', model='identity') == 3
    assert metric('swizzle_stage_duration_seconds_count', model='identity', stage='compute') == 3
    assert metric('swizzle_inflight_requests', model='identity') == 0
    assert metric('swizzle_model_ready', model=SPARSE) == 1
    assert metric('swizzle_model_sparsity_ratio', model=SPARSE) > 0.8
    assert 0 < metric('swizzle_model_weight_bytes', model=SPARSE, kind='stored') < metric(
        'swizzle_model_weight_bytes', model=SPARSE, kind='dense')
    assert metric('swizzle_kernel_selected', model=SPARSE) > 20
    assert metric('process_resident_memory_bytes') > 0


@pytest.mark.skipif(not shutil.which('promtool'), reason='promtool (Debian package prometheus) is not installed')
def test_metrics_pass_promtool(start, repository):
    server = start(repository.identity().shipped())
    with grpc.insecure_channel(server.grpc) as channel:
        service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(identity_request(), timeout=60)
    result = subprocess.run(['promtool', 'check', 'metrics'], input=server.http('/metrics')[1], capture_output=True,
                            text=True, timeout=60)
    assert result.returncode == 0 and not result.stderr, result.stderr


def test_json_log(start, repository):
    server = start(repository.identity(), '--log-format=json')
    assert server.stop() == 0
    records = [json.loads(line) for line in server.log().splitlines()]
    assert any('identity' in json.dumps(record) for record in records)


def test_a_load_is_told_as_it_goes(start, repository):
    server = start(repository.shipped(), '--log-format=json')
    assert server.stop() == 0
    records = [record for record in map(json.loads, server.log().splitlines()) if 'model' in record]
    for model in {record['model'] for record in records}:
        told = [record['message'] for record in records if record['model'] == model]
        assert told[:4] == ['reading model', 'model read', 'model planned', 'model loaded'], told
    times = [record['ms'] for record in records if record['message'] in ('model read', 'model planned')]
    assert times and all(time >= 0 for time in times)


def test_a_second_start_takes_kernel_times_from_the_tuning_cache(start, repository, tmp_path):
    repository.shipped()
    times = tmp_path / 'times'
    flags = [f'--tuning-cache={times}', '--log-format=json']

    def events(server, message):
        assert server.stop() == 0, server.log()
        records = map(json.loads, server.log().splitlines())
        return [record for record in records if record.get('message') == message]

    tuned = events(start(repository, *flags, tuning=['--tune=before-ready', '--tuning-budget=5']), 'model tuned')
    assert tuned and all(record['measured_ms'] > 0 for record in tuned)
    if any('suspect' in json.loads(line) for line in times.read_text().splitlines()):
        pytest.skip('others kept the machine busy: what was measured then is not used')
    loaded = events(start(repository, *flags, tuning=['--tune=off']), 'model loaded')
    assert all(record['timed_now'] == 0 and record['timed_before'] > 0 for record in loaded)


def test_a_model_serves_before_its_kernels_are_measured(start, repository):
    server = start(repository.shipped(), '--log-format=json', tuning=[])
    loaded = [json.loads(line) for line in server.log().splitlines() if 'model loaded' in line]
    assert loaded and all(record['timed_now'] == 0 for record in loaded)
    metrics = server.http('/metrics')[1]
    assert re.search(r'swizzle_model_tuning_state{[^}]*state="(waiting|measuring|done)"[^}]*} 1', metrics), metrics


def test_readiness_names_what_is_not_ready(start, repository):
    repository.identity().file('broken', 'model.onnx', b'garbage')
    status, text = start(repository).http('/readyz')
    assert status == 503 and "model 'broken' failed: " in text
    status, text = start(repository, '--ready=any').http('/readyz')
    assert status == 200 and "model 'broken' failed: " in text
    assert start(repository, '--ready=identity').http('/readyz')[0] == 200
    assert start(repository, '--ready=identity,other').http('/readyz')[0] == 503


def test_a_foreign_tuning_cache_is_ignored_and_kept(start, repository, tmp_path):
    foreign = tmp_path / 'times'
    foreign.write_text('dear diary\n')
    server = start(repository.shipped(), f'--tuning-cache={foreign}')
    assert server.stop() == 0, server.log()
    assert server.log().count('tuning cache ignored') == 1
    assert foreign.read_text() == 'dear diary\n'


def test_address_in_use_is_an_error(start, repository):
    server = start(repository.identity())
    result = subprocess.run([program('swizzle-server'), f'--model-repository={repository}',
                             f'--grpc-address={server.grpc}', '--metrics-address=127.0.0.1:0'],
                            capture_output=True, text=True, timeout=60)
    assert result.returncode not in (0, None)
    assert server.grpc in result.stderr + result.stdout


def test_list_kernels():
    result = subprocess.run([program('swizzle-server'), '--list-kernels'], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0
    assert 'csr' in result.stdout


def resident_bytes(process):
    with open(f'/proc/{process.pid}/status') as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith('VmRSS:'))


@pytest.mark.skipif(SANITIZED, reason='sanitizers need memory of their own')
def test_resident_memory_of_a_packed_model(start, repository, tmp_path, record_testsuite_property):
    """Stored weights + arena + 64 MiB at most, after batches of every size."""
    packed = tmp_path / 'model.swz'
    subprocess.run([program('swizzle-pack'), 'pack', SHIPPED / f'{SPARSE}.onnx', packed], check=True, timeout=300)
    inspected = subprocess.run([program('swizzle-pack'), 'inspect', str(packed), '--tuning-budget=0', '-o', 'json'],
                               capture_output=True, check=True, timeout=300)
    report = json.loads(inspected.stdout)
    server = start(repository.file(SPARSE, 'model.swz', packed))
    loaded = resident_bytes(server.process)
    with triton.InferenceServerClient(server.grpc) as client:
        for batch in (1, 8, 64):
            tensor = triton.InferInput('image', [batch, 1, 28, 28], 'FP32')
            tensor.set_data_from_numpy(numpy.zeros((batch, 1, 28, 28), numpy.float32))
            client.infer(SPARSE, [tensor])
    used = resident_bytes(server.process)
    record_testsuite_property('resident_bytes', f'{loaded} loaded, {used} used')
    assert loaded <= used <= report['stored_bytes'] + report['arena_bytes'] + (64 << 20)


def wakings(server):
    """How often the server's threads have begun to wait, all together."""
    counts = (path.read_text() for path in pathlib.Path(f'/proc/{server.process.pid}/task').glob('*/status'))
    return sum(int(re.search(r'^voluntary_ctxt_switches:\s*(\d+)', text, re.MULTILINE)[1]) for text in counts)


def test_an_idle_server_sleeps(start, repository):
    server = start(repository.identity())
    with grpc.insecure_channel(server.grpc) as channel:
        assert health_check(channel) == SERVING
    wait_until(lambda: server.metric('swizzle_connections') == 0, 30, 'the end of the connection')
    before = wakings(server)
    time.sleep(2)
    assert wakings(server) - before < 100, 'what looks every ten milliseconds comes to 200 alone'
    with grpc.insecure_channel(server.grpc) as channel:
        assert health_check(channel) == SERVING


def pinned_threads(server):
    """Those of the server that one processor alone may run."""
    pinned = 0
    for status in pathlib.Path(f'/proc/{server.process.pid}/task').glob('*/status'):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended meanwhile
            pinned += status.read_text().split('Cpus_allowed_list:')[1].split()[0].isdigit()
    return pinned


def test_threads_are_no_more_than_processors(start, repository):
    server = start(repository.shipped(), '--device=cpu', '--threads=1024')
    assert '--threads is more than the processors that this process may run on' in server.log()
    with triton.InferenceServerClient(server.grpc) as client:
        assert client.is_model_ready(SPARSE)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 3, reason='there are fewer than three processors')
@pytest.mark.parametrize('when, pinned', (('on', 2), ('off', 0), ('auto', 0)))
def test_threads_of_an_executor_are_pinned(start, repository, when, pinned):
    """Of three the pool's own two are; the executor's only while it computes. Three are too few for "auto".

    Not two: on two processors a free worker, kept off the caller's, has one alone, too.
    """
    server = start(repository.shipped(), '--device=cpu', '--threads=3', f'--pin-threads={when}')
    image = triton.InferInput('image', [1, 1, 28, 28], 'FP32')
    image.set_data_from_numpy(numpy.zeros([1, 1, 28, 28], numpy.float32))
    with triton.InferenceServerClient(server.grpc) as client:
        client.infer(SPARSE, [image])
    assert pinned_threads(server) == pinned
