#ifndef SWIZZLE_TESTS_KERNELS_FAKE_DEVICE_H_
#define SWIZZLE_TESTS_KERNELS_FAKE_DEVICE_H_

#include <sys/mman.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/reference/device_functions.h"

namespace swizzle {

// Memory that the host reaches while work runs, and at no other time.
class FakeDeviceMemory {
 public:
  class Pages final : public Buffer {
   public:
    Pages(FakeDeviceMemory& memory, size_t bytes)
        : memory_(memory), bytes_(bytes), mapped_((bytes + 4096) & ~size_t{4095}) {
      data_ = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      memory_.pages_[data_] = mapped_;
      memory_.used_ += static_cast<int64_t>(bytes_);
    }
    ~Pages() override {
      memory_.used_ -= static_cast<int64_t>(bytes_);
      memory_.pages_.erase(data_);
      munmap(data_, mapped_);
    }
    std::byte* data() override { return static_cast<std::byte*>(data_); }
    size_t bytes() const override { return bytes_; }

   private:
    FakeDeviceMemory& memory_;
    const size_t bytes_, mapped_;
    void* data_;
  };

  void Protect(int protection) {
    for (const auto& [data, bytes] : pages_) SWIZZLE_CHECK(mprotect(data, bytes, protection) == 0);
  }
  int64_t used() const { return used_; }

 private:
  std::map<void*, size_t> pages_;
  int64_t used_ = 0;
};

// Work runs as soon as it is queued, unless it is recorded.
class FakeDeviceStream final : public DeviceStream {
 public:
  using Piece = std::function<void(Stream& host)>;

  FakeDeviceStream(FakeDeviceMemory& memory, std::unique_ptr<HostStream> host)
      : memory_(memory), host_(std::move(host)) {}

  int threads() const override { return 1; }
  void Copy(void* to, const void* from, size_t bytes) override {
    ++copies;
    Queue([=](Stream& host) { host.Copy(to, from, bytes); });
  }
  void Run(Work work) override { work(); }
  StatusOr<absl::Duration> Time(Work work, Operands) override {
    work();
    return absl::Microseconds(1);
  }
  Status Synchronize() override {
    return recorded_ == nullptr ? host_->Synchronize() : absl::InternalError("recording");
  }
  StatusOr<std::unique_ptr<Recording>> Record(Work work) override {
    auto recording = std::make_unique<Pieces>(*this);
    recorded_ = &recording->pieces;
    work();
    recorded_ = nullptr;
    ++recordings;
    return recording;
  }

  void Queue(Piece piece) {
    if (recorded_ != nullptr) return recorded_->push_back(std::move(piece));
    RunPieces({&piece, 1});
  }
  void QueueRow(const Kernel& row, const KernelArgs& args) {
    Queue([run = row.run, args, problem = *args.problem,
           inputs = std::vector<Operand>(args.inputs.begin(), args.inputs.end())](Stream& host) {
      KernelArgs own = args;
      own.problem = &problem;
      own.inputs = inputs;
      run(own, host);
    });
  }

  int recordings = 0, replays = 0;
  int64_t copies = 0;  // queued or recorded

 private:
  struct Pieces final : Recording {
    explicit Pieces(FakeDeviceStream& of) : stream(of) {}
    Status Replay() override {
      ++stream.replays;
      stream.RunPieces(pieces);
      return absl::OkStatus();
    }
    FakeDeviceStream& stream;
    std::vector<Piece> pieces;
  };

  void RunPieces(std::span<const Piece> pieces) {
    memory_.Protect(PROT_READ | PROT_WRITE);
    for (const Piece& piece : pieces) piece(*host_);
    memory_.Protect(PROT_NONE);
  }

  FakeDeviceMemory& memory_;
  const std::unique_ptr<HostStream> host_;
  std::vector<Piece>* recorded_ = nullptr;
};

class FakeDeviceFunctions final : public DeviceFunctions {
 public:
  void Copy(const StridedCopy& call, Stream& stream) const override { Queue(&DeviceFunctions::Copy, call, stream); }
  void Map(const Pointwise& call, Stream& stream) const override { Queue(&DeviceFunctions::Map, call, stream); }
  void Reduce(const RowsReduced& call, Stream& stream) const override { Queue(&DeviceFunctions::Reduce, call, stream); }
  void Sum(const RowsSummed& call, Stream& stream) const override { Queue(Sums<RowsSummed>(), call, stream); }
  void Softmax(const RowsSoftmax& call, Stream& stream) const override {
    Queue(&DeviceFunctions::Softmax, call, stream);
  }
  void Normalise(const RowsNormalised& call, Stream& stream) const override {
    Queue(&DeviceFunctions::Normalise, call, stream);
  }
  void Pick(const Picks& call, Stream& stream) const override { Queue(&DeviceFunctions::Pick, call, stream); }
  void Multiply(const StackedProduct& call, Stream& stream) const override {
    Queue(&DeviceFunctions::Multiply, call, stream);
  }
  bool Attends(const HeadsAttended& call) const override { return host_.Attends(call); }
  void Attend(const HeadsAttended& call, Stream& stream) const override {
    Queue(&DeviceFunctions::Attend, call, stream);
  }
  void Gather(const ColumnsGathered& call, Stream& stream) const override {
    Queue(&DeviceFunctions::Gather, call, stream);
  }
  void Sum(const ColumnsSummed& call, Stream& stream) const override { Queue(Sums<ColumnsSummed>(), call, stream); }
  void Resize(const Resized& call, Stream& stream) const override { Queue(&DeviceFunctions::Resize, call, stream); }
  void Pool(const Pooled& call, Stream& stream) const override { Queue(&DeviceFunctions::Pool, call, stream); }

 private:
  template <typename CallOf>
  using Function = void (DeviceFunctions::*)(const CallOf&, Stream&) const;
  template <typename CallOf>
  static Function<CallOf> Sums() {
    return &DeviceFunctions::Sum;
  }

  template <typename CallOf>
  void Queue(Function<CallOf> function, const CallOf& call, Stream& stream) const {
    static_cast<FakeDeviceStream&>(stream).Queue(
        [this, function, call](Stream& host) { (host_.*function)(call, host); });
  }

  const reference::HostFunctions host_{};
};

// A device with memory of its own that the CPU's rows compute for. One thread uses it at a time.
class FakeDevice final : public DeviceBackend {
 public:
  explicit FakeDevice(std::string name = "fake:0") : name_(std::move(name)) {}

  std::string_view name() const override { return name_; }
  std::string device_name() const override { return "fake device"; }
  uint32_t features() const override { return cpu_->features(); }
  std::string features_text() const override { return cpu_->features_text(); }
  std::span<const Kernel> kernels() const override { return rows_; }
  bool Computes(Precision precision) const override { return cpu_->Computes(precision); }
  Throughput throughput(Precision precision) const override { return cpu_->throughput(precision); }
  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override {
    constexpr size_t kSlack = 64;
    const bool full = total > 0 && memory_.used() + static_cast<int64_t>(bytes + kSlack) > total;
    if (out_of_memory || full) return MakeError(StatusCode::kResourceExhausted, "no memory");
    return std::make_unique<FakeDeviceMemory::Pages>(memory_, bytes + kSlack);
  }
  StatusOr<std::unique_ptr<Buffer>> AllocateHost(size_t bytes) override { return cpu_->Allocate(bytes); }
  StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Kernel& kernel, const Weight& weight,
                                                  const Problem& problem) override {
    return cpu_->Prepare(kernel, weight, problem);
  }
  StatusOr<std::unique_ptr<DeviceStream>> NewDeviceStream() override {
    SWIZZLE_ASSIGN_OR_RETURN(auto host, std::get<HostBackend*>(cpu_->kind())->NewHostStream(1));
    auto stream = std::make_unique<FakeDeviceStream>(memory_, std::move(host));
    last_stream = stream.get();
    return stream;
  }
  const DeviceFunctions& functions() const { return functions_; }
  // Before anything is made of the device. Its `run` gets a FakeDeviceStream.
  void AddRow(const Kernel& row) { rows_.push_back(row); }
  Status health() const override { return absl::OkStatus(); }
  std::optional<DeviceMemory> memory() const override { return DeviceMemory{memory_.used(), total}; }

  bool out_of_memory = false;
  int64_t total = 0;                        // of its memory; 0: nobody knows, and there is always more
  FakeDeviceStream* last_stream = nullptr;  // that was made; the caller knows whether it still is

 private:
  static constexpr size_t kMostRows = 768;

  template <size_t kRow>
  static void RunRow(const KernelArgs& args, Stream& stream) {
    static_cast<FakeDeviceStream&>(stream).QueueRow(cpu::KernelTable()[kRow], args);
  }
  template <size_t... kRows>
  static constexpr std::array<decltype(Kernel::run), kMostRows> RunFunctions(std::index_sequence<kRows...>) {
    return {&RunRow<kRows>...};
  }

  static std::vector<Kernel> Rows() {
    static constexpr auto kRuns = RunFunctions(std::make_index_sequence<kMostRows>());
    const std::span<const Kernel> table = cpu::KernelTable();
    SWIZZLE_CHECK(table.size() <= kMostRows);
    std::vector<Kernel> rows(table.begin(), table.end());
    for (size_t i = 0; i < rows.size(); ++i) rows[i].run = kRuns[i];
    return rows;
  }

  const std::string name_;
  const std::unique_ptr<Backend> cpu_ = NewCpuBackend();
  std::vector<Kernel> rows_ = Rows();
  const FakeDeviceFunctions functions_{};
  FakeDeviceMemory memory_;
};

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_KERNELS_FAKE_DEVICE_H_
