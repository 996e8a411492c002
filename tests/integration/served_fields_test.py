"""Fields of config.pbtxt as Triton's own client sees what they do."""

import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

IO = '''
    backend: "identity"
    max_batch_size: 8
    input [ {{ name: "INPUT0" data_type: TYPE_FP32 dims: [ 3 ] }} ]
    output [ {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 3 ] {output} }} ]
    '''


def infer(client, model, values, outputs=None, **options):
    tensor = triton.InferInput('INPUT0', list(values.shape), 'FP32')
    tensor.set_data_from_numpy(values)
    return client.infer(model, [tensor], outputs=outputs, **options).as_numpy('OUTPUT0')


def test_classes_have_the_labels_of_their_file(start, repository):
    repository.config('labelled', IO.format(output='label_filename: "names/labels.txt"'))
    (repository.directory / 'labelled' / 'names').mkdir()
    (repository.directory / 'labelled' / 'names' / 'labels.txt').write_text('coat\ndress\n')
    repository.config('unlabelled', IO.format(output='label_filename: "missing.txt"'))
    repository.config('escaping', IO.format(output='label_filename: "../labelled/names/labels.txt"'))
    server = start(repository, '--ready=labelled,unlabelled')
    values = numpy.array([[0.25, 0.75, -1], [3, 2, 5]], numpy.float32)
    best = [triton.InferRequestedOutput('OUTPUT0', class_count=2)]
    with triton.InferenceServerClient(server.grpc) as client:
        assert infer(client, 'labelled', values, best).tolist() == [
            [b'0.750000:1:dress', b'0.250000:0:coat'], [b'5.000000:2', b'3.000000:0:coat']]
        assert infer(client, 'unlabelled', values[1:], best).tolist() == [[b'5.000000:2', b'3.000000:0']]
        numpy.testing.assert_array_equal(infer(client, 'labelled', values), values)
        with pytest.raises(InferenceServerException, match='is not below the model.s folder'):
            infer(client, 'escaping', values)
        assert 'classification' in client.get_server_metadata().extensions
    assert "there is no file 'missing.txt': classes of 'OUTPUT0' have no labels" in server.log()
