"""Files that leave the shapes of their inputs or outputs out: config.pbtxt gives them, or a run of zeros does."""

import numpy
import onnx
import tritonclient.grpc as triton
from onnx import TensorProto, helper, numpy_helper

CONFIG = '''max_batch_size: {batch}
input {{ name: "x" data_type: TYPE_FP32 dims: [ {dims} ] }}
output {{ name: "y" data_type: TYPE_FP32 dims: [ {out} ] }}
'''


def model(shape, declares_output):
    """y = relu(conv(x)), where x is declared with this shape, or none."""
    weight = numpy_helper.from_array(numpy.random.default_rng(3).normal(size=(4, 3, 3, 3)).astype(numpy.float32), 'w')
    y = helper.make_tensor_value_info('y', TensorProto.FLOAT, ['N', 4, 8, 8])
    graph = helper.make_graph(
        [helper.make_node('Conv', ['x', 'w'], ['c'], pads=[1] * 4), helper.make_node('Relu', ['c'], ['y'])], 'g',
        [helper.make_tensor_value_info('x', TensorProto.FLOAT, shape)],
        [y if declares_output else onnx.ValueInfoProto(name='y')], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8).SerializeToString()


def test_what_a_file_leaves_out_is_served(start, repository):
    batched = CONFIG.format(batch=4, dims='3, 8, 8', out='4, 8, 8')
    fixed = CONFIG.format(batch=0, dims='1, 3, 8, 8', out='1, 4, 8, 8')
    for name, shape, declares_output, config in (
            ('no_output', ['N', 3, 8, 8], False, None), ('no_input', None, True, batched),
            ('neither', None, False, fixed), ('free_sides', ['N', 3, 'H', 'W'], False, None)):
        repository.file(name, 'model.onnx', model(shape, declares_output))
        if config:
            repository.config(name, config)
    server = start(repository)
    x = numpy.random.default_rng(4).normal(size=(1, 3, 8, 8)).astype(numpy.float32)
    answers = []
    with triton.InferenceServerClient(server.grpc) as client:
        for name in ('no_output', 'no_input', 'neither', 'free_sides'):
            tensor = triton.InferInput('x', list(x.shape), 'FP32')
            tensor.set_data_from_numpy(x)
            answers.append(client.infer(name, [tensor]).as_numpy('y'))
    for answer in answers:
        assert answer.shape == (1, 4, 8, 8)
        numpy.testing.assert_allclose(answer, answers[0], rtol=1e-4, atol=1e-5)
