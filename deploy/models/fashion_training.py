"""Trains an image classifier for Fashion-MNIST twice, dense and sparse, and exports both as ONNX.

What the scripts train_mobilenet_fashion.py and train_resnet_fashion.py share:

1. The dense twin is trained from scratch.
2. The sparse model starts from the dense twin. Gradual magnitude pruning with
   a cubic schedule (Zhu and Gupta, 2017) zeroes weights, each layer by itself;
   then the masks stay fixed while the surviving weights are fine-tuned. The
   dense twin teaches throughout (knowledge distillation, Hinton et al., 2015).

The last epoch's weights are the result. The test set is only measured: no
choice of weights, epoch or setting looks at it.
"""

import argparse
import collections
import copy
import dataclasses
import json
import pathlib
import platform
import time
from typing import Callable

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime
import torch
from torch.nn import functional as F

from fashion_mnist import CROP_PADDING, IMAGE_SIZE, accuracy, augment
from fashion_mnist import load_split, predict
from pruning import MagnitudePruner, cosine_rate, cubic_sparsity

ONNX_OPSET = 17


@dataclasses.dataclass
class Classifier:
    """A kind of network and its files.

    The network has two methods: prunable_weights() gives the weights to prune,
    {layer name: parameter}, and folded() a float32 copy on the CPU with batch
    normalization folded into the convolutions.
    """

    title: str
    file: str  # without a suffix
    make: Callable  # from the width multiplier
    is_prunable: Callable  # from the shape of a convolution's weight in ONNX
    layers_key: str  # of the pruned layers in the log


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


def check_onnx(classifier, path, test_set, reference):
    """Checks an exported file and returns its figures.

    Args:
      classifier: what the file holds.
      path: the ONNX file.
      test_set: (images, labels).
      reference: PyTorch's logits of the test images.

    Returns:
      A dictionary: bytes, operators, accuracy by ONNX Runtime, the largest
      difference from `reference`, and the zeros of each pruned convolution.
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
        if classifier.is_prunable(weight.shape):
            layers.append({
                "name": node.input[1],
                "outputs": weight.shape[0],
                "inputs": weight.shape[1],
                **({"taps": taps} if (taps := weight[0, 0].size) > 1 else {}),
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
        classifier.layers_key: layers,
    }


def check_zeros(layers, sparsity):
    """Raises unless each layer has exactly round(sparsity * n) zeros."""
    for layer in layers:
        size = layer["outputs"] * layer["inputs"] * layer.get("taps", 1)
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


def parse_args(description):
    """Returns the command line's settings."""
    parser = argparse.ArgumentParser(
        description=description,
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
        help="fraction of zeros in each pruned convolution")
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


def run(classifier, description):
    """Trains, exports and checks both networks, as the command line says."""
    started = time.perf_counter()
    args = parse_args(description)
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

    dense = classifier.make(args.width).to(device)
    dense = dense.to(memory_format=torch.channels_last)
    dense_start = time.perf_counter()
    dense_epochs = train(
        "dense", dense, train_set, test_set, args,
        args.dense_epochs, args.dense_rate, args.dense_decay,
    )
    dense.eval().requires_grad_(False)

    sparse = copy.deepcopy(dense).requires_grad_(True)
    pruner = MagnitudePruner(sparse.prunable_weights().values())
    sparse_start = time.perf_counter()
    sparse_epochs = train(
        "sparse", sparse, train_set, test_set, args,
        args.sparse_epochs, args.sparse_rate, args.sparse_decay,
        teacher=dense, pruner=pruner,
    )
    sparse.eval()
    sparse_end = time.perf_counter()

    results = {}
    sparse_file = f"{classifier.file}_sparse{100 * args.sparsity:.0f}.onnx"
    for phase, model, name in (
        ("dense", dense, f"{classifier.file}.onnx"),
        ("sparse", sparse, sparse_file),
    ):
        path = args.out / name
        export_onnx(model, path)
        reference = predict(model, test_set[0])
        results[phase] = check_onnx(classifier, path, test_set, reference)
    check_zeros(results["sparse"][classifier.layers_key], args.sparsity)

    settings = {
        key: value
        for key, value in vars(args).items()
        if key not in ("data", "out")
    }
    write_log(args.out / f"{classifier.file}.json", {
        "model": f"{classifier.title} for Fashion-MNIST",
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
