"""The CUDA module of swizzle_engine, which finds it here. There is nothing to import."""
