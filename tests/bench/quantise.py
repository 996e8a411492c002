"""A model as the int8 engines of whole_models.py take it: quantise.py MODEL.onnx INPUTS.npz QUANTISED.onnx

Static quantisation by ONNX Runtime (QDQ; UINT8 activations with ranges from these inputs, INT8 weights by channel), which
OpenVINO reads, too; of models that take token ids, dynamic quantisation of their linear layers. Needs onnx 1.16 or later, which the engines of peers_requirements.txt cannot have.
"""

import sys

import numpy as np
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static


class Once(CalibrationDataReader):
    def __init__(self, inputs):
        self.inputs = iter([inputs])

    def get_next(self):
        return next(self.inputs, None)


if __name__ == '__main__':
    model, inputs, quantised = sys.argv[1:]
    inputs = dict(np.load(inputs))
    if any(array.dtype == np.int64 for array in inputs.values()):
        quantize_dynamic(model, quantised, op_types_to_quantize=['MatMul', 'Gemm'], per_channel=True,
                         weight_type=QuantType.QInt8)
    else:
        quantize_static(model, quantised, Once(inputs), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
