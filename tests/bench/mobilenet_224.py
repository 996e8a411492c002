"""Sparse MobileNetV1 at 224x224 against ONNX Runtime dense, on the same file, in the same run.

Draws a MobileNetV1 whose 1x1 convolutions are 90 % zeros, serves it with swizzle-server, and runs the same file in
ONNX Runtime in this process. The two take turns in blocks, so that drift of the machine's speed hits both. Times of
Swizzle are what the server reports as swizzle_compute_us; the whole round trip stands beside them.

    build/venv/bin/python tests/bench/mobilenet_224.py [--batch=1] [--rounds=10] [-o json]
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from served import Served

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS_PER_BLOCK = 8

# Output channels and stride of the depthwise-separable blocks (Howard et al., "MobileNets", 2017, table 1).
BLOCKS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]


class ModelBuilder:
    """Appends ONNX nodes and drawn weights, one convolution at a time."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def add_weight(self, name, array):
        self.weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def draw(self, shape, sparsity):
        fan_in = np.prod(shape[1:]) * (1.0 - sparsity)
        values = self.random.standard_normal(shape) * np.sqrt(2.0 / max(fan_in, 1.0))
        if sparsity > 0:
            zeros = self.random.permutation(values.size)[: round(sparsity * values.size)]
            values.reshape(-1)[zeros] = 0.0
        return values

    def conv(self, name, source, shape, stride, groups, sparsity=0.0):
        kernel = shape[2]
        weight = self.add_weight(name + ".weight", self.draw(shape, sparsity))
        bias = self.add_weight(name + ".bias", self.random.standard_normal(shape[0]) * 0.1)
        self.nodes.append(
            helper.make_node("Conv", [source, weight, bias], [name], name=name, group=groups, strides=[stride] * 2,
                             kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4))
        self.nodes.append(helper.make_node("Clip", [name, "low", "high"], [name + ".relu6"], name=name + ".relu6"))
        return name + ".relu6"


def make_mobilenet(path, sparsity, seed=1):
    builder = ModelBuilder(seed)
    builder.add_weight("low", np.array(0.0))
    builder.add_weight("high", np.array(6.0))
    value = builder.conv("stem", "image", (32, 3, 3, 3), 2, 1)
    channels = 32
    for index, (outputs, stride) in enumerate(BLOCKS):
        value = builder.conv(f"block{index}.depthwise", value, (channels, 1, 3, 3), stride, channels)
        value = builder.conv(f"block{index}.pointwise", value, (outputs, channels, 1, 1), 1, 1, sparsity)
        channels = outputs
    builder.add_weight("classifier.weight", builder.draw((1000, channels), 0.0))
    builder.add_weight("classifier.bias", np.zeros(1000))
    builder.nodes += [
        helper.make_node("GlobalAveragePool", [value], ["pooled"], name="pool"),
        helper.make_node("Flatten", ["pooled"], ["features"], name="flatten"),
        helper.make_node("Gemm", ["features", "classifier.weight", "classifier.bias"], ["logits"], name="classifier",
                         transB=1),
    ]
    graph = helper.make_graph(builder.nodes, "mobilenet_v1_224",
                              [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 224, 224])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1000])],
                              builder.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


class Swizzle:
    """The model behind a server of its own."""

    def __init__(self, binaries, repository, scratch):
        import tritonclient.grpc
        self.triton = tritonclient.grpc
        self.server = Served(binaries, repository, scratch)
        self.client = self.triton.InferenceServerClient(self.server.grpc_address)

    def infer(self, images):
        """Returns (logits, compute milliseconds, round-trip milliseconds)."""
        tensor = self.triton.InferInput("image", images.shape, "FP32")
        tensor.set_data_from_numpy(images)
        start = time.perf_counter()
        result = self.client.infer("mobilenet", [tensor])
        elapsed = time.perf_counter() - start
        parameters = result.get_response().parameters
        return result.as_numpy("logits"), parameters["swizzle_compute_us"].int64_param / 1e3, elapsed * 1e3

    def close(self):
        self.client.close()
        self.server.stop()


def open_onnxruntime(path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def compare(swizzle, session, images, rounds):
    """Takes turns; returns the three lists of milliseconds and the largest relative difference."""
    compute, round_trip, dense = [], [], []
    expected = session.run(None, {"image": images})[0]
    difference = np.abs(swizzle.infer(images)[0] - expected).max() / np.abs(expected).max()
    for _ in range(rounds):
        time.sleep(0.05)  # ONNX Runtime's threads spin for a while after a run
        for _ in range(RUNS_PER_BLOCK):
            _, computed, elapsed = swizzle.infer(images)
            compute.append(computed)
            round_trip.append(elapsed)
        for _ in range(RUNS_PER_BLOCK):
            start = time.perf_counter()
            session.run(None, {"image": images})
            dense.append((time.perf_counter() - start) * 1e3)
    return compute, round_trip, dense, float(difference)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--sparsity", type=float, default=0.9)
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        model = scratch / "repository/mobilenet/1/model.onnx"
        model.parent.mkdir(parents=True)
        make_mobilenet(model, args.sparsity)
        images = np.random.default_rng(2).random((args.batch, 3, 224, 224), dtype=np.float32)
        swizzle = Swizzle(args.binaries, scratch / "repository", scratch)
        try:
            compute, round_trip, dense, difference = compare(swizzle, open_onnxruntime(model), images, args.rounds)
        finally:
            swizzle.close()

    figures = {
        "model": f"MobileNetV1 224, {args.sparsity:.0%} zeros", "batch": args.batch,
        "swizzle_compute_ms": statistics.median(compute), "swizzle_round_trip_ms": statistics.median(round_trip),
        "onnxruntime_ms": statistics.median(dense), "speedup": statistics.median(dense) / statistics.median(compute),
        "relative_difference": difference,
    }
    if args.output == "json":
        json.dump(figures, sys.stdout, indent=2)
        print()
        return
    print(f"{figures['model']}, batch {args.batch}, medians of {len(compute)} runs each")
    print(f"  Swizzle compute      {figures['swizzle_compute_ms']:8.2f} ms")
    print(f"  Swizzle round trip   {figures['swizzle_round_trip_ms']:8.2f} ms")
    print(f"  ONNX Runtime dense   {figures['onnxruntime_ms']:8.2f} ms")
    print(f"  speed-up of compute  {figures['speedup']:8.2f} x")
    print(f"  largest difference   {difference:8.1e} of the largest magnitude")


if __name__ == "__main__":
    main()
