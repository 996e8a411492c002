#!/usr/bin/env python3
"""Trains MobileNetV1 on Fashion-MNIST, dense and 90 % sparse, and exports ONNX.

Two networks are trained, one after the other:

1. The dense twin: MobileNetV1 (Howard et al., 2017) adapted to 28x28 grayscale
   images, trained from scratch.
2. The sparse model: starts from the dense twin. Gradual magnitude pruning with
   a cubic schedule (Zhu and Gupta, 2017) zeroes 90 % of the weights of every
   1x1 convolution, each layer by itself; then the masks stay fixed while the
   surviving weights are fine-tuned. The dense twin teaches throughout
   (knowledge distillation, Hinton et al., 2015).

The stem, the depthwise convolutions and the classifier stay dense.

The last epoch's weights are the result. The test set is only measured: no
choice of weights, epoch or setting looks at it.

Written to --out:
  mobilenet_v1_fashion.onnx           the dense twin
  mobilenet_v1_fashion_sparse90.onnx  the sparse model, zeros stored explicitly
  mobilenet_v1_fashion.json           settings, figures per epoch and results

Both ONNX files take "image", float32 [batch, 1, 28, 28], pixels divided by
255 and nothing else, and give "logits", float32 [batch, 10]. Batch
normalization is folded into the convolutions.

Needs torch, onnx, onnxruntime and numpy, and in practice an NVIDIA GPU.

  python3 train_mobilenet_fashion.py --data=DIR --out=DIR
"""

import argparse
import collections
import copy
import gzip
import json
import math
import pathlib
import platform
import struct
import time

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval

IMAGE_SIZE = 28
NUM_CLASSES = 10
CROP_PADDING = 2
ONNX_OPSET = 17
DENSE_FILE = "mobilenet_v1_fashion.onnx"
SPARSE_FILE = "mobilenet_v1_fashion_sparse{percent:.0f}.onnx"
LOG_FILE = "mobilenet_v1_fashion.json"

# (output channels at width 1.0, stride) of the depthwise-separable blocks. The
# original network takes 224x224 images; here the stem and the second block
# have stride 1, so a 28x28 image leaves the last block as 4x4.
BLOCKS = (
    (64, 1),
    (128, 1),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (1024, 2),
    (1024, 1),
)


class ConvBnRelu6(nn.Module):
    """A convolution without bias, batch normalization and ReLU6."""

    def __init__(self, inputs, outputs, kernel, stride=1, groups=1):
        super().__init__()
        self.conv = nn.Conv2d(
            inputs,
            outputs,
            kernel,
            stride=stride,
            padding=kernel // 2,
            groups=groups,
            bias=False,
        )
        self.bn = nn.BatchNorm2d(outputs)
        self.act = nn.ReLU6()

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))

    def fold_batch_norm(self):
        """Folds the (evaluation-mode) batch normalization into the conv."""
        self.conv = fuse_conv_bn_eval(self.conv, self.bn)
        self.bn = nn.Identity()
        # A negative scale turns 0.0 into -0.0; adding 0.0 turns it back.
        self.conv.weight.data.add_(0.0)


class SeparableBlock(nn.Module):
    """A 3x3 depthwise convolution followed by a 1x1 (pointwise) one."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.depthwise = ConvBnRelu6(inputs, inputs, 3, stride, groups=inputs)
        self.pointwise = ConvBnRelu6(inputs, outputs, 1)

    def forward(self, x):
        return self.pointwise(self.depthwise(x))


class MobileNetV1(nn.Module):
    """MobileNetV1 for 28x28 grayscale images."""

    def __init__(self, width=1.0):
        super().__init__()

        def scaled(channels):
            return max(8, int(round(channels * width)))

        channels = scaled(32)
        self.stem = ConvBnRelu6(1, channels, 3)
        self.blocks = nn.Sequential()
        for outputs, stride in BLOCKS:
            block = SeparableBlock(channels, scaled(outputs), stride)
            self.blocks.append(block)
            channels = scaled(outputs)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, NUM_CLASSES)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(
                    module.weight, mode="fan_out", nonlinearity="relu"
                )
        nn.init.normal_(self.classifier.weight, std=0.01)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x):
        x = self.pool(self.blocks(self.stem(x)))
        return self.classifier(torch.flatten(x, 1))

    def pointwise_weights(self):
        """Returns the 1x1 convolutions' weights: {layer name: parameter}."""
        return {
            f"blocks.{i}.pointwise": block.pointwise.conv.weight
            for i, block in enumerate(self.blocks)
        }

    def folded(self):
        """Returns a float32 copy on the CPU with batch norm folded in."""
        model = copy.deepcopy(self).to("cpu", torch.float32)
        model = model.to(memory_format=torch.contiguous_format).eval()
        for module in model.modules():
            if isinstance(module, ConvBnRelu6):
                module.fold_batch_norm()
        return model


class MagnitudePruner:
    """Keeps masks that zero the smallest weights of each layer."""

    def __init__(self, weights):
        self.weights = list(weights)
        self.masks = [torch.ones_like(w) for w in self.weights]
        self.sparsity = 0.0

    @torch.no_grad()
    def prune_to(self, sparsity):
        """Masks exactly round(sparsity * n) weights of each layer.

        A masked weight is zero, hence among the smallest: while the sparsity
        grows, it never comes back.
        """
        self.sparsity = sparsity
        for weight, mask in zip(self.weights, self.masks):
            order = weight.abs().flatten().argsort()
            flat = torch.ones_like(order, dtype=mask.dtype)
            flat[order[: round(sparsity * weight.numel())]] = 0
            mask.copy_(flat.view(mask.shape))
        self.apply()

    @torch.no_grad()
    def apply(self):
        """Zeroes the masked weights; to be called after each step."""
        for weight, mask in zip(self.weights, self.masks):
            weight.mul_(mask)


def cubic_sparsity(progress, final):
    """Returns the sparsity after `progress` (0..1) of the pruning phase."""
    return final * (1 - (1 - min(progress, 1.0)) ** 3)


def cosine_rate(step, total, peak, warmup):
    """Returns the learning rate: linear warm-up, then a half cosine to 0."""
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = (step - warmup) / max(1, total - warmup)
    return peak * 0.5 * (1 + math.cos(math.pi * progress))


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


def train(
    phase, model, train_set, test_set, args, epochs, peak_rate, decay,
    teacher=None, pruner=None,
):
    """Trains `model` in place.

    Args:
      phase: name for the log, "dense" or "sparse".
      model: the network, on the device.
      train_set: (images, labels).
      test_set: (images, labels), measured after each epoch.
      args: the command line's settings.
      epochs: number of passes over the training set.
      peak_rate: learning rate after the warm-up.
      decay: weight decay of convolution and linear weights.
      teacher: if given, the network whose outputs are distilled.
      pruner: if given, prunes over the first args.prune_fraction of the steps.

    Returns:
      A list of dictionaries, the figures of each epoch.
    """
    images, labels = train_set
    padded = F.pad(images, [CROP_PADDING] * 4)
    device = images.device
    steps_per_epoch = len(images) // args.batch_size
    total = epochs * steps_per_epoch
    warmup = max(1, round(args.warmup_fraction * total))
    prune_steps = max(1, round(args.prune_fraction * total))

    weights = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.SGD(
        [
            {"params": weights, "weight_decay": decay},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=peak_rate,
        momentum=0.9,
        nesterov=True,
    )

    def teach(batch):
        with torch.no_grad():
            return teacher(batch)

    run_model, run_teacher, run_augment = model, teach, augment
    if args.compile:
        run_model = torch.compile(model)
        run_teacher = torch.compile(teach)
        run_augment = torch.compile(augment)

    figures = []
    step = 0
    for epoch in range(1, epochs + 1):
        started = time.perf_counter()
        model.train()
        sums = torch.zeros(2, device=device)
        order = torch.randperm(len(images), device=device)
        for i in range(steps_per_epoch):
            index = order[i * args.batch_size : (i + 1) * args.batch_size]
            batch = run_augment(padded, index, args.erase)
            batch = batch.to(memory_format=torch.channels_last)
            target = labels[index]
            rate = cosine_rate(step, total, peak_rate, warmup)
            for group in optimizer.param_groups:
                group["lr"] = rate
            with torch.autocast(device.type, torch.bfloat16):
                logits = run_model(batch).float()
                if teacher is not None:
                    taught = run_teacher(batch).float()
            loss = F.cross_entropy(
                logits, target, label_smoothing=args.label_smoothing
            )
            if teacher is not None:
                t = args.temperature
                distance = F.kl_div(
                    F.log_softmax(logits / t, 1),
                    F.log_softmax(taught / t, 1),
                    reduction="batchmean",
                    log_target=True,
                )
                loss = torch.lerp(loss, t * t * distance, args.distill)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            step += 1
            if pruner is not None:
                due = step % args.prune_every == 0 and step < prune_steps
                if due or step == prune_steps:
                    pruner.prune_to(
                        cubic_sparsity(step / prune_steps, args.sparsity)
                    )
                else:
                    pruner.apply()
            hits = (logits.argmax(1) == target).float().mean()
            sums += torch.stack([loss.detach(), hits])
        loss, hits = (sums / steps_per_epoch).tolist()
        figures.append({
            "epoch": epoch,
            "rate": round(rate, 6),
            "sparsity": round(100 * pruner.sparsity, 2) if pruner else 0.0,
            "train_loss": round(loss, 4),
            "train_top1": round(100 * hits, 2),
            "test_top1": round(accuracy(predict(model, test_set[0]),
                                        test_set[1]), 2),
            "seconds": round(time.perf_counter() - started, 2),
        })
        print(
            "{phase} {epoch:3}/{epochs}  rate {rate:.5f}  sparsity"
            " {sparsity:5.2f} %  loss {train_loss:.4f}  train"
            " {train_top1:.2f} %  test {test_top1:.2f} %  {seconds:.1f} s"
            .format(phase=phase, epochs=epochs, **figures[-1]),
            flush=True,
        )
    return figures


def export_onnx(model, path):
    """Writes the network, batch normalization folded in, as ONNX."""
    folded = model.folded()
    torch.onnx.export(
        folded,
        (torch.zeros(1, 1, IMAGE_SIZE, IMAGE_SIZE),),
        str(path),
        input_names=["image"],
        output_names=["logits"],
        dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}},
        opset_version=ONNX_OPSET,
        dynamo=False,
    )


def check_onnx(path, test_set, reference):
    """Checks an exported file and returns its figures.

    Args:
      path: the ONNX file.
      test_set: (images, labels).
      reference: PyTorch's logits of the test images.

    Returns:
      A dictionary: bytes, operators, accuracy by ONNX Runtime, the largest
      difference from `reference`, and the zeros of each 1x1 convolution.
    """
    model = onnx.load(str(path), load_external_data=False)
    onnx.checker.check_model(model, full_check=True)
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise ValueError(f"{path}: {tensor.name} is outside the file")
    tensors = {
        t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer
    }
    layers = []
    for node in model.graph.node:
        if node.op_type != "Conv":
            continue
        weight = tensors[node.input[1]]
        if weight.shape[2:] == (1, 1):
            layers.append({
                "name": node.input[1],
                "outputs": weight.shape[0],
                "inputs": weight.shape[1],
                "zeros": int((weight == 0).sum()),
                "negative_zeros": int(
                    ((weight == 0) & np.signbit(weight)).sum()
                ),
                "zero_rows": int((weight == 0).all((1, 2, 3)).sum()),
                "zero_columns": int((weight == 0).all((0, 2, 3)).sum()),
            })
    session = onnxruntime.InferenceSession(
        str(path), providers=["CPUExecutionProvider"]
    )
    images = test_set[0].cpu().numpy()[:, None].astype(np.float32) / 255
    # 625 images a batch, and one image alone to see that the batch varies.
    logits = np.concatenate([
        session.run(["logits"], {"image": images[i : i + 625]})[0]
        for i in range(0, len(images), 625)
    ])
    alone = session.run(["logits"], {"image": images[:1]})[0]
    np.testing.assert_allclose(alone, logits[:1], rtol=1e-3, atol=1e-3)
    return {
        "file": path.name,
        "bytes": path.stat().st_size,
        "operators": dict(
            sorted(collections.Counter(n.op_type for n in model.graph.node)
                   .items())
        ),
        "ir_version": model.ir_version,
        "opset": model.opset_import[0].version,
        "onnxruntime_top1": round(
            accuracy(torch.from_numpy(logits), test_set[1].cpu()), 2
        ),
        "pytorch_top1": round(accuracy(reference, test_set[1]), 2),
        "same_class": int(
            (logits.argmax(1) == reference.cpu().numpy().argmax(1)).sum()
        ),
        "largest_logit_difference": float(
            np.abs(logits - reference.cpu().numpy()).max()
        ),
        "pointwise": layers,
    }


def check_zeros(layers, sparsity):
    """Raises unless each layer has exactly round(sparsity * n) zeros."""
    for layer in layers:
        size = layer["outputs"] * layer["inputs"]
        expected = round(sparsity * size)
        if layer["zeros"] != expected or layer["negative_zeros"]:
            raise ValueError(f"{layer}: {expected} zeros expected")


def write_log(path, log):
    """Writes JSON with one line per innermost list or dictionary."""

    def encode(value, indent):
        nested = isinstance(value, (dict, list)) and any(
            isinstance(v, (dict, list))
            for v in (value.values() if isinstance(value, dict) else value)
        )
        # The settings are flat, but too long for one line.
        if not nested and not (isinstance(value, dict) and len(value) > 12):
            return json.dumps(value)
        pad = "  " * (indent + 1)
        if isinstance(value, dict):
            items = [
                f"{pad}{json.dumps(k)}: {encode(v, indent + 1)}"
                for k, v in value.items()
            ]
            opening, closing = "{}"
        else:
            items = [pad + encode(v, indent + 1) for v in value]
            opening, closing = "[]"
        body = ",\n".join(items)
        return f"{opening}\n{body}\n{'  ' * indent}{closing}"

    path.write_text(encode(log, 0) + "\n", encoding="utf-8")


def parse_args():
    """Returns the command line's settings."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--data", type=pathlib.Path, metavar="DIR",
        default="/usr/share/datasets/fashion-mnist",
        help="folder with the four .gz files of Fashion-MNIST; the default is"
             " where Debian's package dataset-fashion-mnist puts them")
    add("--out", type=pathlib.Path, metavar="DIR", default=".",
        help="folder to write the models and the log to")
    add("--seed", type=int, default=1, help="seed of all random numbers")
    add("--width", type=float, default=1.0, help="width multiplier")
    add("--sparsity", type=float, default=0.9,
        help="fraction of zeros in each 1x1 convolution")
    add("--dense-epochs", type=int, default=100,
        help="epochs of the dense twin")
    add("--sparse-epochs", type=int, default=160,
        help="epochs of pruning and fine-tuning")
    add("--prune-fraction", type=float, default=0.5,
        help="part of the sparse epochs in which the sparsity grows")
    add("--prune-every", type=int, default=25,
        help="steps from one growth of the sparsity to the next")
    add("--batch-size", type=int, default=512, help="images a step")
    add("--dense-rate", type=float, default=0.2,
        help="peak learning rate of the dense twin")
    add("--sparse-rate", type=float, default=0.1,
        help="peak learning rate of pruning and fine-tuning")
    add("--dense-decay", type=float, default=5e-4,
        help="weight decay of the dense twin")
    add("--sparse-decay", type=float, default=2e-4,
        help="weight decay of pruning and fine-tuning")
    add("--warmup-fraction", type=float, default=0.05,
        help="part of the steps in which the learning rate grows")
    add("--label-smoothing", type=float, default=0.1, help="label smoothing")
    add("--erase", type=float, default=0.5,
        help="probability of erasing a rectangle of a training image")
    add("--distill", type=float, default=0.7,
        help="weight of the dense twin's outputs in the sparse model's loss")
    add("--temperature", type=float, default=2.0,
        help="temperature of the distillation")
    add("--compile", action=argparse.BooleanOptionalAction, default=True,
        help="use torch.compile in training")
    return parser.parse_args()


def main():
    started = time.perf_counter()
    args = parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(args.seed)
    torch.backends.cudnn.benchmark = True
    # Training computes in bfloat16; what remains in float32, all measurements
    # of accuracy among it, is computed in full precision.
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False

    train_set = load_split(args.data, "train", device)
    test_set = load_split(args.data, "t10k", device)

    dense = MobileNetV1(args.width).to(device)
    dense = dense.to(memory_format=torch.channels_last)
    dense_start = time.perf_counter()
    dense_epochs = train(
        "dense", dense, train_set, test_set, args,
        args.dense_epochs, args.dense_rate, args.dense_decay,
    )
    dense.eval().requires_grad_(False)

    sparse = copy.deepcopy(dense).requires_grad_(True)
    pruner = MagnitudePruner(sparse.pointwise_weights().values())
    sparse_start = time.perf_counter()
    sparse_epochs = train(
        "sparse", sparse, train_set, test_set, args,
        args.sparse_epochs, args.sparse_rate, args.sparse_decay,
        teacher=dense, pruner=pruner,
    )
    sparse.eval()
    sparse_end = time.perf_counter()

    results = {}
    sparse_file = SPARSE_FILE.format(percent=100 * args.sparsity)
    for phase, model, name in (
        ("dense", dense, DENSE_FILE),
        ("sparse", sparse, sparse_file),
    ):
        path = args.out / name
        export_onnx(model, path)
        reference = predict(model, test_set[0])
        results[phase] = check_onnx(path, test_set, reference)
    check_zeros(results["sparse"]["pointwise"], args.sparsity)

    settings = {
        key: value
        for key, value in vars(args).items()
        if key not in ("data", "out")
    }
    write_log(args.out / LOG_FILE, {
        "model": "MobileNetV1 for Fashion-MNIST",
        "parameters": sum(p.numel() for p in dense.parameters()),
        "settings": settings,
        "hardware": (
            torch.cuda.get_device_name(0) if device.type == "cuda" else "CPU"
        ),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "onnx": onnx.__version__,
            "onnxruntime": onnxruntime.__version__,
            "numpy": np.__version__,
        },
        "seconds": {
            "dense": round(sparse_start - dense_start, 1),
            "sparse": round(sparse_end - sparse_start, 1),
            "total": round(time.perf_counter() - started, 1),
        },
        "results": results,
        "epoch_columns": list(dense_epochs[0]),
        "dense_epochs": [list(f.values()) for f in dense_epochs],
        "sparse_epochs": [list(f.values()) for f in sparse_epochs],
    })
    for phase, result in results.items():
        print(phase, json.dumps(result))
    print(f"total {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
