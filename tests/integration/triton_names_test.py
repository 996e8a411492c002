"""With --metrics-compat=triton, what Triton's published dashboards ask a Prometheus for is there."""

import shutil

import numpy
import pytest
import tritonclient.grpc as triton

from conftest import QUICK_START, SANITIZED, Repository, Server, wait_until
from monitoring_test import PROMETHEUS, Prometheus

# What panels of Triton's dashboards select, combine and divide. Those of failures are 0, and still have to be there.
QUERIES = [
    'count(count(nv_inference_count) by (instance))',
    'sum by (pod) (rate(nv_inference_count[1m])) / ignoring(pod) group_left sum(rate(nv_inference_count[1m]))',
    'sum(nv_inference_request_success) by (pod)',
    'sum(nv_inference_request_failure) by (pod)',
    'sum by (reason) (nv_inference_request_failure{reason=~"REJECTED|CANCELED|BACKEND|OTHER"})',
    'sum(rate(nv_inference_compute_infer_duration_us[30s])) by (model) / 1000',
    'avg(rate(nv_inference_queue_duration_us[30s]) / (1 + rate(nv_inference_request_success[30s]))) by (pod)',
    'sum by (model, version) (nv_inference_request_duration_us) / '
    'sum by (model, version) (nv_inference_request_success)',
    'nv_inference_compute_input_duration_us + nv_inference_compute_output_duration_us',
    'nv_inference_exec_count / nv_inference_count',
    'nv_inference_pending_request_count',
]


@pytest.fixture(scope='module')
def prometheus(tmp_path_factory):
    if not shutil.which('prometheus') or SANITIZED:
        pytest.skip('needs the Debian package prometheus, and is about names, not about the server')
    directory = tmp_path_factory.mktemp('triton-names')
    (directory / 'models').mkdir()
    server = Server(Repository(directory / 'models').identity(), directory, '--metrics-compat=triton', *QUICK_START)
    running = None
    try:
        tensor = triton.InferInput('INPUT0', [1, 16], 'FP32')
        tensor.set_data_from_numpy(numpy.zeros([1, 16], numpy.float32))
        with triton.InferenceServerClient(server.grpc) as client:
            client.infer('identity', [tensor])
        running = Prometheus(tmp_path_factory.mktemp('prometheus'), server.metrics.removeprefix('http://'),
                             PROMETHEUS / 'rules.yaml')
        wait_until(lambda: running.query('count_over_time(nv_inference_count[1m]) >= 3'), 120, 'three scrapes')
        yield running
    finally:
        if running:
            running.stop()
        server.kill()


@pytest.mark.parametrize('query', QUERIES)
def test_the_dashboards_have_data(prometheus, query):
    assert wait_until(lambda: prometheus.query(query), 60, f'data for {query}')


def test_a_request_is_counted_once(prometheus):
    assert prometheus.query('nv_inference_request_success{model="identity"}')[0]['value'][1] == '1'
