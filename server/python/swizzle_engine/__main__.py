"""python -m swizzle_engine COMMAND ...: the program `swizzle`, as `serve model.onnx`."""

from swizzle_engine.programs import swizzle

if __name__ == '__main__':
    swizzle()
