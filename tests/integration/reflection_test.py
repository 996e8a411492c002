"""Server reflection, by grpcio's own client."""

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

SERVICES = ['grpc.health.v1.Health', 'grpc.reflection.v1.ServerReflection',
            'grpc.reflection.v1alpha.ServerReflection', 'inference.GRPCInferenceService']


@pytest.fixture
def channel(shared_server):
    with grpc.insecure_channel(shared_server.grpc) as channel:
        yield channel


def ask(channel, version='v1alpha', **what):
    stub = channel.stream_stream(f'/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo',
                                 reflection_pb2.ServerReflectionRequest.SerializeToString,
                                 reflection_pb2.ServerReflectionResponse.FromString)
    return next(iter(stub(iter([reflection_pb2.ServerReflectionRequest(host='h', **what)]), timeout=30)))


def test_a_client_without_protocol_files_calls_methods(channel):
    database = ProtoReflectionDescriptorDatabase(channel)
    assert sorted(database.get_services()) == SERVICES
    pool = DescriptorPool(database)
    method = pool.FindServiceByName('inference.GRPCInferenceService').FindMethodByName('ModelMetadata')
    request, response = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    call = channel.unary_unary('/inference.GRPCInferenceService/ModelMetadata', request.SerializeToString,
                               response.FromString)
    assert call(request(name='identity')).inputs[0].name == 'INPUT0'
    assert pool.FindServiceByName('grpc.health.v1.Health').FindMethodByName('Watch').server_streaming


@pytest.mark.parametrize('version', ['v1', 'v1alpha'])
def test_both_versions_answer(channel, version):
    listed = ask(channel, version, list_services='')
    assert [service.name for service in listed.list_services_response.service] == SERVICES
    assert listed.valid_host == listed.original_request.host == 'h'
    files = ask(channel, version, file_containing_symbol='inference.ModelInferRequest.InferInputTensor')
    assert len(files.file_descriptor_response.file_descriptor_proto) == 2, 'the file, and the one that it imports'


@pytest.mark.parametrize('what', [{'file_by_filename': 'proto/packed_model.proto'},
                                  {'file_containing_symbol': 'swizzle.packed.Model'},
                                  {'file_containing_symbol': 'google.protobuf.FileDescriptorProto'},
                                  {'file_by_filename': '/etc/passwd'},
                                  {'all_extension_numbers_of_type': 'inference.Nothing'}])
def test_what_is_not_served_is_not_found(channel, what):
    assert ask(channel, **what).error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


def test_nothing_is_asked(channel):
    assert ask(channel).error_response.error_code == grpc.StatusCode.INVALID_ARGUMENT.value[0]


def test_a_stream_of_requests_is_answered_in_order(channel):
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    names = [f'nothing.{i}' for i in range(100)]
    requests = (reflection_pb2.ServerReflectionRequest(file_containing_symbol=name) for name in names)
    answers = stub.ServerReflectionInfo(requests, timeout=60)
    assert [answer.original_request.file_containing_symbol for answer in answers] == names


def test_what_is_no_message_ends_the_stream(channel):
    stub = channel.stream_stream('/grpc.reflection.v1.ServerReflection/ServerReflectionInfo')
    for message in (b'\xff\xff', b'\x1a\x90\x4e' + b'x' * 10000):
        with pytest.raises(grpc.RpcError) as raised:
            list(stub(iter([message]), timeout=30))
        assert raised.value.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED)
