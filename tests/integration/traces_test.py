"""Traces and the request log of a real server, by a collector with OpenTelemetry's own messages and ones that
misbehave."""

import collections
import concurrent.futures
import contextlib
import json
import socket
import threading

import grpc
import numpy
import pytest
import tritonclient.grpc as triton
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1 import trace_pb2

from conftest import QUICK_START, Repository, Server, wait_until

TRACE, PARENT = '0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'
REQUEST = 'inference.GRPCInferenceService/ModelInfer'


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps what it gets. `answer`, where there is one, decides what becomes of a call."""

    def __init__(self, answer=None):
        self.resources, self.spans, self.calls = [], [], 0
        self._answer = answer
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port('127.0.0.1:0')
        self._server.start()

    def Export(self, request, context):
        self.calls += 1
        if self._answer:
            return self._answer(context)
        for resource in request.resource_spans:
            self.resources.append({each.key: each.value for each in resource.resource.attributes})
            for scope in resource.scope_spans:
                self.spans += scope.spans
        return trace_service_pb2.ExportTraceServiceResponse()

    def named(self, name):
        return [span for span in self.spans if span.name == name]

    def stop(self):
        self._server.stop(None)


@contextlib.contextmanager
def collecting(answer=None):
    collector = Collector(answer)
    try:
        yield collector
    finally:
        collector.stop()


@contextlib.contextmanager
def serving(tmp_path, *flags):
    """A server of the model `identity`."""
    (tmp_path / 'models').mkdir()
    server = Server(Repository(tmp_path / 'models').identity(), tmp_path, *flags, *QUICK_START)
    try:
        yield server
    finally:
        server.kill()


def infer(server, count=1, headers=None, request_id='', model='identity'):
    tensor = triton.InferInput('INPUT0', [1, 16], 'FP32')
    tensor.set_data_from_numpy(numpy.zeros([1, 16], numpy.float32))
    with triton.InferenceServerClient(server.grpc) as client:
        for _ in range(count):
            client.infer(model, [tensor], request_id=request_id, headers=headers)


def test_official_messages_hold_what_was_sent(tmp_path):
    with collecting() as collector, serving(tmp_path, f'--trace-endpoint=http://127.0.0.1:{collector.port}') as server:
        infer(server, headers={'traceparent': f'00-{TRACE}-{PARENT}-01', 'tracestate': 'vendor=x'}, request_id='one')
        infer(server, headers={'traceparent': f'00-{TRACE}-{PARENT}-00'}, request_id='unrecorded')
        infer(server, request_id='nobody asked')
        wait_until(lambda: collector.spans, 30, 'an export')
        assert server.stop() == 0
        request, = collector.named(REQUEST)
        assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE, PARENT)
        assert request.trace_state == 'vendor=x'
        assert request.kind == trace_pb2.Span.SPAN_KIND_SERVER
        attributes = {each.key: each.value for each in request.attributes}
        assert attributes['rpc.system'].string_value == 'grpc'
        assert attributes['rpc.grpc.status_code'].int_value == 0
        assert attributes['swizzle.request_id'].string_value == 'one'
        children = [span for span in collector.spans if span.parent_span_id == request.span_id]
        assert [span.name for span in children] == ['queue', 'gather', 'compute', 'scatter']
        assert all(request.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
                   <= request.end_time_unix_nano for span in children)
        batch, = collector.named('batch')
        assert [(link.trace_id, link.span_id) for link in batch.links] == [(request.trace_id, request.span_id)]
        assert collector.resources[0]['service.name'].string_value == 'swizzle'


def test_an_ensemble_shows_its_steps(tmp_path):
    (tmp_path / 'models').mkdir()
    repository = Repository(tmp_path / 'models').identity('first').identity('second')
    repository.config('chain', '''platform: "ensemble" max_batch_size: 8
        input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] } ]
        output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] } ]
        ensemble_scheduling { step [
            { model_name: "first" model_version: -1 input_map { key: "INPUT0" value: "INPUT0" }
              output_map { key: "OUTPUT0" value: "between" } },
            { model_name: "second" model_version: -1 input_map { key: "INPUT0" value: "between" }
              output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }''')
    with collecting() as collector:
        server = Server(repository, tmp_path, f'--trace-endpoint=http://127.0.0.1:{collector.port}', '--trace-rate=1',
                        *QUICK_START)
        try:
            infer(server, model='chain')
            assert server.stop() == 0
        finally:
            server.kill()
    request, = collector.named(REQUEST)
    steps = [span for span in collector.spans if span.parent_span_id == request.span_id]
    models = [{each.key: each.value for each in span.attributes}['swizzle.model'].string_value for span in steps]
    assert ([span.name for span in steps], models) == (['step', 'step'], ['first', 'second'])
    for span in steps:
        stages = [child.name for child in collector.spans if child.parent_span_id == span.span_id]
        assert stages == ['queue', 'gather', 'compute', 'scatter']
    batches = collector.named('batch')
    assert sorted(link.span_id for batch in batches for link in batch.links) == sorted(s.span_id for s in steps)


def test_a_drain_sends_what_waits(tmp_path):
    with collecting() as collector, serving(tmp_path, f'--trace-endpoint=http://127.0.0.1:{collector.port}',
                                            '--trace-rate=1') as server:
        infer(server, 50)
        assert server.stop() == 0
        assert len(collector.named(REQUEST)) == 50
        assert len({span.trace_id for span in collector.named(REQUEST)}) == 50


def answers(tmp_path, port):
    """(exit code, lost spans by outcome) of a server after 20 traced requests to such a collector."""
    with serving(tmp_path, f'--trace-endpoint=http://127.0.0.1:{port}', '--trace-rate=1') as server:
        infer(server, 20)
        wait_until(lambda: server.metric('swizzle_trace_export_failures_total') or
                   server.metric('swizzle_trace_spans_total', outcome='rejected'), 60, 'a failure')
        infer(server, 20)
        lost = collections.Counter({outcome: server.metric('swizzle_trace_spans_total', outcome=outcome)
                                    for outcome in ('exported', 'not_delivered', 'rejected')})
        assert server.metric('swizzle_requests_total', code='OK', model='identity') == 40
        return server.stop(), lost


def test_a_collector_that_is_gone(tmp_path):
    with socket.socket() as unused:
        unused.bind(('127.0.0.1', 0))  # and never listens
        code, lost = answers(tmp_path, unused.getsockname()[1])
    assert code == 0 and not lost['exported']


def test_a_collector_that_speaks_something_else(tmp_path):
    with socket.create_server(('127.0.0.1', 0)) as listening:
        def babble():
            with contextlib.suppress(OSError):
                while True:
                    with listening.accept()[0] as connection:
                        connection.sendall(b'HTTP/1.1 200 OK\r\n\r\n' + b'x' * 100000)
        threading.Thread(target=babble, daemon=True).start()
        code, lost = answers(tmp_path, listening.getsockname()[1])
    assert code == 0 and not lost['exported']


def test_a_collector_that_answers_more_than_is_read(tmp_path):
    def huge(context):
        return trace_service_pb2.ExportTraceServiceResponse(
            partial_success=trace_service_pb2.ExportTracePartialSuccess(error_message='x' * (3 << 20)))
    with collecting(huge) as collector:
        code, lost = answers(tmp_path, collector.port)
    assert code == 0 and lost['not_delivered'] and not lost['exported']


def test_a_collector_that_refuses_part(tmp_path):
    def refuse(context):
        return trace_service_pb2.ExportTraceServiceResponse(
            partial_success=trace_service_pb2.ExportTracePartialSuccess(rejected_spans=1 << 62, error_message='\x00\n'))
    with collecting(refuse) as collector:
        code, lost = answers(tmp_path, collector.port)
    assert code == 0 and lost['rejected'] and not lost['exported']


def test_a_collector_that_never_answers_holds_up_nothing(tmp_path):
    end = threading.Event()

    def wait(context):
        end.wait(60)
        return trace_service_pb2.ExportTraceServiceResponse()
    with collecting(wait) as collector, serving(tmp_path, f'--trace-endpoint=http://127.0.0.1:{collector.port}',
                                                '--trace-rate=1') as server:
        try:
            infer(server, 3)
            wait_until(lambda: collector.calls, 30, 'an export')
            sent = 3
            while not server.metric('swizzle_trace_spans_total', outcome='queue_full'):
                infer(server, 500)
                sent += 500
            assert server.metric('swizzle_requests_total', code='OK', model='identity') == sent
            assert server.stop() == 0
        finally:
            end.set()


def test_the_request_log(tmp_path):
    with serving(tmp_path, '--request-log-rate=1') as server:
        infer(server, headers={'traceparent': f'00-{TRACE}-{PARENT}-00'}, request_id='a "quoted"\nid')
        infer(server, request_id='x' * 1000)
        with triton.InferenceServerClient(server.grpc) as client, pytest.raises(triton.InferenceServerException):
            client.infer('nobody', [])
        assert server.stop() == 0
        lines = [json.loads(line) for line in server.log().splitlines() if '"message":"request"' in line]
    first, second, third = lines
    assert first['model'] == 'identity' and first['version'] == 1 and first['code'] == 'OK'
    assert first['id'] == 'a "quoted"\nid' and first['trace_id'] == TRACE
    assert first['rows'] == 1 and first['batch_size'] == 1
    assert first['total_us'] >= first['queue_us'] + first['compute_us'] >= 0
    assert second['id'] == 'x' * 128 and 'trace_id' not in second
    assert third['code'] == 'NOT_FOUND' and third['model'] == ''


def test_lines_of_the_request_log_are_written_or_counted(tmp_path):
    with serving(tmp_path, '--request-log-rate=1') as server:
        infer(server, 600)
        dropped = server.metric('swizzle_request_log_lines_total', outcome='dropped')
        assert server.stop() == 0
        assert server.log().count('"message":"request"') + dropped == 600


def test_both_are_off_by_default(tmp_path):
    with serving(tmp_path) as server:
        infer(server, 3, headers={'traceparent': f'00-{TRACE}-{PARENT}-01'})
        assert server.metric('swizzle_trace_spans_total') == 0
        assert server.stop() == 0
        assert '"message":"request"' not in server.log()


# Triton's own clients.

def test_settings_are_read_by_tritons_client(tmp_path):
    with serving(tmp_path, '--trace-endpoint=http://127.0.0.1:1', '--trace-rate=0.01') as server:
        with triton.InferenceServerClient(server.grpc) as client:
            traces = client.get_trace_settings(as_json=True)['settings']
            assert traces['trace_rate']['value'] == ['100'] and traces['trace_level']['value'] == ['TIMESTAMPS']
            log = client.get_log_settings(as_json=True)['settings']
            assert log['log_info']['bool_param'] is True and log['log_format']['string_param'] == 'text'
            for change in (lambda: client.update_trace_settings(settings={'trace_level': ['OFF']}),
                           lambda: client.update_log_settings({'log_info': False})):
                with pytest.raises(triton.InferenceServerException) as refused:
                    change()
                assert 'PERMISSION_DENIED' in refused.value.status()
