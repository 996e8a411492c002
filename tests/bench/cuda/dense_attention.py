"""Dense attention by PyTorch's scaled_dot_product_attention, for sparse attention to beat. One JSON line a row.

  dense_attention.py [--tokens N] [--heads N] [--rounds N]    causal
  dense_attention.py --magicube                               of Magicube's shapes: FP16, every key, heads of 64
"""
import argparse
import json
import statistics

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


def time_us(run, rounds):
    """The median over the rounds; the second cache is as the last run left it."""
    for _ in range(3):
        run()
    times = []
    for _ in range(rounds):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 1000)
    return statistics.median(times)


def time_backend(backend, q, k, v, rounds, causal):
    """None where it is not for this type."""
    try:
        with sdpa_kernel(backend):
            return time_us(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal), rounds)
    except RuntimeError:
        return None


def magicube(rounds):
    for heads, sequences in ((4, 2), (4, 8), (8, 2), (8, 8)):
        for tokens in (4096, 8192):
            q, k, v = (torch.randn(sequences, heads, tokens, 64, dtype=torch.float16, device="cuda") for _ in range(3))
            for name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash", SDPBackend.FLASH_ATTENTION)):
                us = time_backend(backend, q, k, v, rounds, causal=False)
                if us is not None:
                    print(json.dumps({"sequences": sequences, "heads": heads, "tokens": tokens, "backend": name,
                                      "us": round(us, 1), "torch": torch.__version__}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=12288)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--magicube", action="store_true")
    options = parser.parse_args()
    if options.magicube:
        magicube(options.rounds)
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    backends = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
                "efficient": SDPBackend.EFFICIENT_ATTENTION}
    for dtype, name in ((torch.float16, "f16"), (torch.float32, "f32")):
        for head_dim in (64, 128):
            q, k, v = (torch.randn(1, options.heads, options.tokens, head_dim, dtype=dtype, device="cuda")
                       for _ in range(3))
            for backend in backends:
                us = time_backend(backends[backend], q, k, v, options.rounds, causal=True)
                if us is None:
                    continue
                print(json.dumps({"row": f"dense_causal_{name}_{backend}", "pattern": "dense causal", "dtype": name,
                                  "head_dim": head_dim, "us": round(us, 1), "torch": torch.__version__}), flush=True)


if __name__ == "__main__":
    main()
