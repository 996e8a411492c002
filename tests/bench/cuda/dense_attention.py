"""Dense causal attention by PyTorch's scaled_dot_product_attention, for sparse attention to beat. One JSON line a row.

  dense_attention.py [--tokens N] [--heads N] [--rounds N]
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=12288)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    backends = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
                "efficient": SDPBackend.EFFICIENT_ATTENTION}
    for dtype, name in ((torch.float16, "f16"), (torch.float32, "f32")):
        for head_dim in (64, 128):
            q, k, v = (torch.randn(1, options.heads, options.tokens, head_dim, dtype=dtype, device="cuda")
                       for _ in range(3))
            for backend in backends:
                try:
                    with sdpa_kernel(backends[backend]):
                        us = time_us(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
                                     options.rounds)
                except RuntimeError:
                    continue  # not for this type
                print(json.dumps({"row": f"dense_causal_{name}_{backend}", "pattern": "dense causal", "dtype": name,
                                  "head_dim": head_dim, "us": round(us, 1), "torch": torch.__version__}), flush=True)


if __name__ == "__main__":
    main()
