"""Models whose weights are not in the ONNX file itself, or are sparse there, as the onnx package writes them: outputs
equal ONNX Runtime's, and the tools and the server open them."""

import json

import numpy
import onnx
import pytest
from onnx import helper, numpy_helper
from tritonclient.grpc import InferenceServerClient, InferInput

import make_architectures
import make_models
import vision_architectures  # noqa: F401, adds to make_architectures.SMALL
from command_line_test import pack
from conformance_test import TOLERANCE, check, draw_inputs, expected_outputs, run_model

NAMES = ('sparse', 'mobilenet_v1', 'linear', 'arithmetic')


def save_external(model, file, **options):
    onnx.save_model(model, file, save_as_external_data=True, size_threshold=0, **options)


def with_sparse_initializers(model, by_axis):
    """The same model with its weights of two dimensions and more in sparse_initializer."""
    dense = list(model.graph.initializer)
    del model.graph.initializer[:]
    for initializer in dense:
        array = numpy_helper.to_array(initializer)
        if array.ndim < 2:
            model.graph.initializer.append(initializer)
            continue
        indices = numpy.argwhere(array) if by_axis else numpy.flatnonzero(array)
        values = numpy_helper.from_array(array[array != 0], initializer.name)
        model.graph.sparse_initializer.append(helper.make_sparse_tensor(
            values, numpy_helper.from_array(indices.astype(numpy.int64)), array.shape))
    assert model.graph.sparse_initializer
    return model


@pytest.mark.parametrize('one_file', (True, False))
@pytest.mark.parametrize('name', NAMES)
def test_external_data(name, one_file, tmp_path):
    model = make_models.build(name, 17)
    inputs = draw_inputs(model)
    save_external(model, tmp_path / 'model.onnx', all_tensors_to_one_file=one_file, convert_attribute=True,
                  **({'location': 'weights.bin'} if one_file else {}))
    assert len(list(tmp_path.iterdir())) == 2 or not one_file
    check(tmp_path / 'model.onnx', inputs, tmp_path)


@pytest.mark.parametrize('by_axis', (False, True))
@pytest.mark.parametrize('name', NAMES[:3])
def test_sparse_initializer(name, by_axis, tmp_path):
    model = make_models.build(name, 17)
    inputs = draw_inputs(model)
    onnx.save(with_sparse_initializers(model, by_axis), tmp_path / 'model.onnx')
    check(tmp_path / 'model.onnx', inputs, tmp_path)


@pytest.mark.parametrize('container', ('external', 'sparse'))
def test_pack_prune_validate_inspect(container, tmp_path):
    model_file, packed, pruned = (tmp_path / name for name in ('model.onnx', 'model.swz', 'elsewhere.onnx'))
    onnx.save(make_models.build('sparse', 17), tmp_path / 'plain.onnx')
    if container == 'external':
        save_external(make_models.build('sparse', 17), model_file, location='weights.bin')
    else:
        onnx.save(with_sparse_initializers(make_models.build('sparse', 17), False), model_file)
    pack('pack', model_file, packed)
    assert 'equal' in pack('validate', model_file, packed)
    assert 'equal' in pack('validate', tmp_path / 'plain.onnx', packed)
    assert 'csr' in pack('inspect', model_file, '--tuning-budget=0')

    pack('prune', model_file, pruned, '--sparsity=0.97')
    pack('prune', model_file, tmp_path / 'pruned.swz', '--sparsity=0.97')
    pack('prune', tmp_path / 'plain.onnx', tmp_path / 'plain_pruned.onnx', '--sparsity=0.97')
    (tmp_path / 'weights.bin').unlink(missing_ok=True)  # the pruned model is whole without it
    assert 'equal' in pack('validate', tmp_path / 'plain_pruned.onnx', pruned)
    assert 'equal' in pack('validate', tmp_path / 'plain_pruned.onnx', tmp_path / 'pruned.swz')
    inputs = draw_inputs(onnx.load(tmp_path / 'plain.onnx'))
    expected = expected_outputs(tmp_path / 'plain_pruned.onnx', inputs)
    for name, array in expected_outputs(pruned, inputs).items():
        numpy.testing.assert_allclose(array, expected[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize('external', (False, True))
@pytest.mark.parametrize('name', ('vit', 'yolov5', 'whisper_encoder'))
def test_packs_what_runs_in_regions(name, external, tmp_path):
    model = make_architectures.build(name, make_architectures.SMALL[name], sparsity=0.9)
    inputs = draw_inputs(model)
    model_file, packed = tmp_path / 'model.onnx', tmp_path / 'packed.swz'
    onnx.save(model, model_file)
    expected = expected_outputs(model_file, inputs)
    if external:
        save_external(model, model_file, location='weights.bin')
    pack('pack', model_file, packed)
    if external:
        (tmp_path / 'weights.bin').unlink()
    else:
        assert packed.stat().st_size < 0.8 * model_file.stat().st_size  # layers of few channels have no zeros
    report = json.loads(pack('inspect', packed, '-o', 'json', '--tuning-budget=0'))
    assert report['container'] == 'swz'
    for output, array in run_model(packed, inputs, tmp_path)[0].items():
        assert numpy.abs(array - expected[output]).max() <= 2e-4 * numpy.abs(expected[output]).max()


def test_data_that_is_not_beside_the_model(tmp_path):
    (tmp_path / 'model').mkdir()
    model_file, data = tmp_path / 'model' / 'model.onnx', tmp_path / 'model' / 'weights.bin'
    save_external(make_models.build('linear', 17), model_file, location='weights.bin')
    data.rename(tmp_path / 'weights.bin')
    assert "'weights.bin' is not there" in pack('pack', model_file, tmp_path / 'out.swz', code=2)
    data.symlink_to('../weights.bin')
    assert 'symbolic link' in pack('pack', model_file, tmp_path / 'out.swz', code=2)
    model = onnx.load(model_file, load_external_data=False)
    for initializer in model.graph.initializer:
        initializer.external_data[0].value = '../weights.bin'
    onnx.save(model, model_file)
    assert "must be a relative path without '..'" in pack('pack', model_file, tmp_path / 'out.swz', code=2)


def test_server(repository, start):
    directory = repository.directory / 'external' / '1'
    directory.mkdir(parents=True)
    model = make_models.build('sparse', 17)
    inputs = draw_inputs(model)
    save_external(model, directory / 'model.onnx', location='weights.bin')
    expected = expected_outputs(directory / 'model.onnx', inputs)
    repository.file('sparse', 'model.onnx',
                    with_sparse_initializers(make_models.build('sparse', 17), True).SerializeToString())
    repository.file('broken', 'model.onnx', directory / 'model.onnx')
    in_regions = make_architectures.build('vit', make_architectures.SMALL['vit'], sparsity=0.9)
    onnx.save(in_regions, directory / 'vit.onnx')
    (repository.directory / 'vit' / '1').mkdir(parents=True)
    pack('pack', directory / 'vit.onnx', repository.directory / 'vit' / '1' / 'model.swz')
    server = start(repository)
    client = InferenceServerClient(server.grpc)
    arrays = [InferInput(name, array.shape, 'FP32') for name, array in inputs.items()]
    for tensor, array in zip(arrays, inputs.values()):
        tensor.set_data_from_numpy(array)
    for name in ('external', 'sparse'):
        result = client.infer(name, arrays)
        for output, array in expected.items():
            difference = numpy.abs(result.as_numpy(output) - array).max() / numpy.abs(array).max()
            assert difference <= TOLERANCE, f'{name}: {output}: {difference}'
    images = draw_inputs(in_regions)
    expected = expected_outputs(directory / 'vit.onnx', images)
    (name, array), = images.items()
    tensor = InferInput(name, array.shape, 'FP32')
    tensor.set_data_from_numpy(array)
    result = client.infer('vit', [tensor])
    assert client.get_model_metadata('vit').platform == 'swizzle_swz'
    for output, array in expected.items():
        numpy.testing.assert_allclose(result.as_numpy(output), array, rtol=1e-3, atol=1e-4)
    assert not client.is_model_ready('broken')
    assert "its external file 'weights.bin' is not there" in server.log()
