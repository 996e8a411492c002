#include "model_loader/files/file_kind.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace swizzle {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view bytes;
  std::string_view kind;
  size_t offset = 0;
};

constexpr std::string_view kPointer =
    "a pointer file of Git LFS, which stands for the file itself: fetch that with 'git lfs pull'";
constexpr std::string_view kPage =
    "an HTML page: what the file was downloaded from needs a login, or shows the file instead of giving it";
constexpr std::string_view kXml =
    "XML, perhaps the error of a store that a download came from, or OpenVINO's .xml: export the model to ONNX";
constexpr std::string_view kJson = "JSON, perhaps the error of a store that a download came from, and no model";
constexpr std::string_view kZip =
    "a ZIP archive, as PyTorch (.pt, .pth), Keras (.keras) and NumPy (.npz) write: unpack it, or export the model to "
    "ONNX";
constexpr std::string_view kPickle =
    "a Python pickle, as PyTorch and scikit-learn write, which no server should open: export the model to ONNX";
constexpr std::string_view kHdf5 = "an HDF5 file, as Keras writes (.h5): export the model to ONNX";
constexpr std::string_view kTensorRt =
    "a TensorRT engine (.plan), which only the GPU and version that made it can run: use the ONNX model it was made of";
constexpr std::string_view kGguf = "a language model of llama.cpp (GGUF), which this program does not run";
constexpr std::string_view kTfLite = "a model of TensorFlow Lite (.tflite): convert it to ONNX, as tf2onnx does";
constexpr std::string_view kOrt = "a model in ONNX Runtime's own format (.ort): use the ONNX model it was made of";
constexpr std::string_view kSafetensors =
    "a safetensors file: call it model.safetensors, and put its config.json beside it";
constexpr std::string_view kCompressed = "a compressed file or archive: unpack it first";
constexpr std::string_view kNumpy = "an array of NumPy (.npy)";
constexpr std::string_view kProgram = "a program or library (ELF)";
constexpr std::string_view kZeros =
    "zeros from its beginning on, as a download leaves that did not end: fetch it again";

constexpr auto kSignatures = std::to_array<Signature>({
    {"version https://git-lfs.github.com/"sv, kPointer},
    {"version https://hawser.github.com/"sv, kPointer},
    {"PK\3\4"sv, kZip},
    {"PK\5\6"sv, kZip},
    {"\x80\2"sv, kPickle},
    {"\x80\3"sv, kPickle},
    {"\x80\4"sv, kPickle},
    {"\x80\5"sv, kPickle},
    {"\x89HDF\r\n\x1a\n"sv, kHdf5},
    {"ftrt"sv, kTensorRt},
    {"ptrt"sv, kTensorRt},
    {"GGUF"sv, kGguf},
    {"TFL3"sv, kTfLite, 4},
    {"ORTM"sv, kOrt, 4},
    {"{\""sv, kSafetensors, 8},
    {"\x1f\x8b"sv, kCompressed},
    {"\x28\xb5\x2f\xfd"sv, kCompressed},
    {"\xfd\x37zXZ\0"sv, kCompressed},
    {"BZh"sv, kCompressed},
    {"7z\xbc\xaf\x27\x1c"sv, kCompressed},
    {"Rar!\x1a\7"sv, kCompressed},
    {"ustar"sv, kCompressed, 257},
    {"\x93NUMPY"sv, kNumpy},
    {"\x7f"
     "ELF"sv,
     kProgram},
    {"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"sv, kZeros},
});

// Text may begin with a mark of its encoding and with white space, and HTML is written in any case.
std::string_view KindOfText(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  std::string lower(text.substr(0, kFileKindBytes));
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower.starts_with("<!doctype html") || lower.starts_with("<html")) return kPage;
  if (lower.starts_with("<?xml") || lower.starts_with("<error") || lower.starts_with("<net")) {
    return lower.find("<html") == std::string::npos ? kXml : kPage;
  }
  if (!lower.starts_with('{')) return "";
  const size_t next = lower.find_first_not_of(" \t\r\n", 1);
  return next != std::string::npos && (lower[next] == '"' || lower[next] == '}') ? kJson : "";
}

}  // namespace

std::string_view KindOfFile(std::span<const std::byte> content) {
  if (content.empty()) return "an empty file";
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  for (const Signature& signature : kSignatures) {
    if (text.substr(std::min(signature.offset, text.size())).starts_with(signature.bytes)) return signature.kind;
  }
  return KindOfText(text);
}

}  // namespace swizzle
