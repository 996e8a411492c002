#include "kernels/devices.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/cuda_backend.h"

namespace swizzle {
namespace {

Status WrongDevice(std::string_view text) {
  return InvalidArgument("'", text, "' is no device; it must be auto, cpu, cuda, or cuda:0,2 for the GPUs 0 and 2");
}

// Numbers with commas between, each once.
StatusOr<std::vector<int>> ParseOrdinals(std::string_view numbers, std::string_view text) {
  std::vector<int> ordinals;
  for (;;) {
    int ordinal = 0;
    const auto [stop, error] = std::from_chars(numbers.data(), numbers.data() + numbers.size(), ordinal);
    const bool again = std::find(ordinals.begin(), ordinals.end(), ordinal) != ordinals.end();
    if (error != std::errc() || ordinal < 0 || again) return WrongDevice(text);
    ordinals.push_back(ordinal);
    numbers.remove_prefix(static_cast<size_t>(stop - numbers.data()));
    if (numbers.empty()) return ordinals;
    if (numbers.front() != ',') return WrongDevice(text);
    numbers.remove_prefix(1);
  }
}

// Afterwards the choice names those that were opened.
StatusOr<std::vector<std::unique_ptr<Backend>>> OpenGpus(DeviceChoice& choice) {
  SWIZZLE_ASSIGN_OR_RETURN(const int seen, CountCudaDevices());
  choice.ordinals = OrdinalsOf(choice, seen);
  std::vector<std::unique_ptr<Backend>> gpus;
  for (const int ordinal : choice.ordinals) {
    SWIZZLE_ASSIGN_OR_RETURN(gpus.emplace_back(), NewCudaBackend(ordinal));
  }
  return gpus;
}

}  // namespace

StatusOr<DeviceChoice> ParseDevice(std::string_view text) {
  constexpr std::string_view kNumbered = "cuda:";
  if (text == "cpu") return DeviceChoice{};
  if (text == "auto") return DeviceChoice{.cpu_if_none = true, .gpus = true, .ordinals = {}};
  if (text == "cuda") return DeviceChoice{.cpu_if_none = false, .gpus = true, .ordinals = {}};
  if (!text.starts_with(kNumbered)) return WrongDevice(text);
  DeviceChoice choice{.cpu_if_none = false, .gpus = true, .ordinals = {}};
  SWIZZLE_ASSIGN_OR_RETURN(choice.ordinals, ParseOrdinals(text.substr(kNumbered.size()), text));
  return choice;
}

std::vector<int> OrdinalsOf(const DeviceChoice& choice, int seen) {
  if (!choice.ordinals.empty()) return choice.ordinals;
  std::vector<int> all(static_cast<size_t>(seen));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Devices::Devices(std::unique_ptr<Backend> cpu, std::vector<std::unique_ptr<Backend>> gpus,
                 const DeviceFunctions* functions)
    : cpu_(std::move(cpu)), gpus_(std::move(gpus)), numbers_(gpus_.size()), functions_(functions) {
  std::iota(numbers_.begin(), numbers_.end(), 0);
}

StatusOr<Devices> Devices::Open(std::string_view device) {
  SWIZZLE_ASSIGN_OR_RETURN(DeviceChoice choice, ParseDevice(device));
  Devices devices(NewCpuBackend());
  if (!choice.gpus) return devices;
  auto gpus = OpenGpus(choice);
  if (gpus.ok()) {
    devices.gpus_ = *std::move(gpus);
    devices.numbers_ = std::move(choice.ordinals);
    SWIZZLE_ASSIGN_OR_RETURN(devices.functions_, CudaDeviceFunctions());
  } else if (choice.cpu_if_none) {
    devices.reason_ = std::string(gpus.status().message());
  } else {
    return gpus.status();
  }
  return devices;
}

std::vector<Backend*> Devices::gpus() const {
  std::vector<Backend*> gpus;
  for (const auto& gpu : gpus_) gpus.push_back(gpu.get());
  return gpus;
}

StatusOr<std::vector<Backend*>> Devices::GpusOf(std::span<const int> numbers) const {
  std::vector<Backend*> named;
  for (const int number : numbers) {
    const auto found = std::ranges::find(numbers_, number);
    if (found == numbers_.end()) {
      std::string there;
      for (const int opened : numbers_) there += Concat(there.empty() ? "" : ", ", opened);
      return MakeError(StatusCode::kFailedPrecondition, "there is no GPU ", number,
                       " here, or --device does not name it; of GPUs there are ", there.empty() ? "none" : there);
    }
    named.push_back(gpus_[static_cast<size_t>(found - numbers_.begin())].get());
  }
  return named;
}

DeviceBackend* Devices::main_gpu() const {
  if (gpus_.empty()) return nullptr;
  return std::get<DeviceBackend*>(gpus_.front()->kind());
}

Status Devices::health() const {
  for (const auto& gpu : gpus_) SWIZZLE_RETURN_IF_ERROR(gpu->health());
  return cpu_->health();
}

}  // namespace swizzle
