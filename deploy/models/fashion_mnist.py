"""Fashion-MNIST (Xiao et al., 2017) for training: reading, augmentation, prediction and accuracy."""

import gzip
import math
import struct

import numpy as np
import torch

IMAGE_SIZE = 28
NUM_CLASSES = 10
CROP_PADDING = 2


def read_idx(path):
    """Reads a gzipped IDX file of bytes (MNIST's format) into an array."""
    with gzip.open(path, "rb") as file:
        data = file.read()
    zeros, kind, rank = struct.unpack_from(">HBB", data)
    if zeros != 0 or kind != 8:
        raise ValueError(f"{path}: not an IDX file of unsigned bytes")
    shape = struct.unpack_from(f">{rank}I", data, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def load_split(directory, prefix, device):
    """Returns (images uint8 [n, 28, 28], labels int64 [n]) on the device."""
    images = read_idx(directory / f"{prefix}-images-idx3-ubyte.gz")
    labels = read_idx(directory / f"{prefix}-labels-idx1-ubyte.gz")
    return (
        torch.from_numpy(images.copy()).to(device),
        torch.from_numpy(labels.astype(np.int64)).to(device),
    )


def augment(padded, index, erase_probability):
    """Returns a batch of randomly cropped, flipped and erased images.

    Args:
      padded: uint8 [n, 28 + 2p, 28 + 2p], all images, zero-padded.
      index: int64 [batch], the images to take.
      erase_probability: chance of random erasing (Zhong et al., 2017).

    Returns:
      float32 [batch, 1, 28, 28], pixels in 0..1.
    """
    n, device = len(index), padded.device
    span = torch.arange(IMAGE_SIZE, device=device)

    def uniform(low, high):
        return torch.rand(n, device=device) * (high - low) + low

    # Crop and flip, by the row and column numbers of the pixels to take.
    top = torch.randint(2 * CROP_PADDING + 1, (n, 1), device=device)
    left = torch.randint(2 * CROP_PADDING + 1, (n, 1), device=device)
    flip = torch.rand(n, 1, device=device) < 0.5
    rows = top + span
    columns = left + torch.where(flip, IMAGE_SIZE - 1 - span, span)
    batch = padded[index[:, None, None], rows[:, :, None], columns[:, None]]
    batch = batch.float() / 255

    # Erase a rectangle of 2..25 % of the area, side ratio 0.3..1/0.3.
    area = uniform(0.02, 0.25) * IMAGE_SIZE**2
    ratio = torch.exp(uniform(math.log(0.3), -math.log(0.3)))
    sides = []
    for side in ((area * ratio).sqrt(), (area / ratio).sqrt()):
        side = side.round().clamp(1, IMAGE_SIZE)
        start = torch.floor(uniform(0, 1) * (IMAGE_SIZE - side + 1))
        end = start + side
        sides.append((span >= start[:, None]) & (span < end[:, None]))
    chosen = torch.rand(n, 1, 1, device=device) < erase_probability
    erased = sides[0][:, :, None] & sides[1][:, None, :] & chosen
    batch = torch.where(erased, torch.rand_like(batch), batch)
    return batch[:, None]


@torch.no_grad()
def predict(model, images, batch_size=2000):
    """Returns float32 logits of uint8 images, computed in float32."""
    training = model.training
    model.eval()
    logits = [
        model(chunk[:, None].float() / 255)
        for chunk in images.split(batch_size)
    ]
    model.train(training)
    return torch.cat(logits)


def accuracy(logits, labels):
    """Returns the top-1 accuracy in percent."""
    return 100 * (logits.argmax(1) == labels).double().mean().item()
