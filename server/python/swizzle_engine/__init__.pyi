from swizzle_engine._engine import ModelError as ModelError
from swizzle_engine.files import pack as pack, prune as prune, quantize as quantize
from swizzle_engine.model import Model as Model
from swizzle_engine.report import Report as Report

__version__: str
