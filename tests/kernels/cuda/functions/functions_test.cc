// What a GPU computes of tensors beside its rows, against plain loops on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/backend/device_functions.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/reference/device_functions.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using swizzle::testing::IsOk;

// Memory of the host's, and a copy on the device.
template <typename T>
struct Twin {
  std::vector<T> host;
  std::unique_ptr<Buffer> device;

  T* on_device() { return reinterpret_cast<T*>(device->data()); }
};

class DeviceFunctionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto backend = NewCudaBackend(0);
    if (!backend.ok()) GTEST_SKIP() << backend.status().message();
    backend_ = *std::move(backend);
    device_ = std::get<DeviceBackend*>(backend_->kind());
    functions_ = *CudaDeviceFunctions();
    stream_ = *device_->NewDeviceStream();
  }

  template <typename T>
  Twin<T> TwinOf(std::vector<T> elements) {
    Twin<T> twin{std::move(elements), nullptr};
    twin.device = *backend_->Allocate(twin.host.size() * sizeof(T));
    stream_->Copy(twin.device->data(), twin.host.data(), twin.host.size() * sizeof(T));
    EXPECT_THAT(stream_->Synchronize(), IsOk());
    return twin;
  }
  Twin<float> Floats(int64_t count) {
    std::uniform_real_distribution<float> draw(-2, 2);
    std::vector<float> drawn(static_cast<size_t>(count));
    for (float& element : drawn) element = draw(random_);
    return TwinOf(std::move(drawn));
  }
  template <typename T>
  Twin<T> Numbers(int64_t count, T below) {
    std::vector<T> drawn(static_cast<size_t>(count));
    for (T& element : drawn) element = static_cast<T>(random_() % static_cast<uint64_t>(below));
    return TwinOf(std::move(drawn));
  }

  // Runs call(functions, on the device?) on both, and compares what stands in `result` then.
  template <typename T, typename Call>
  void ExpectSame(Twin<T>& result, const Call& call, double tolerance = 2e-5) {
    const reference::HostFunctions host;
    call(static_cast<const DeviceFunctions&>(host), false);
    stream_->Run([&] { call(*functions_, true); });
    std::vector<T> actual(result.host.size());
    stream_->Copy(actual.data(), result.device->data(), actual.size() * sizeof(T));
    ASSERT_THAT(stream_->Synchronize(), IsOk());
    for (size_t i = 0; i < actual.size(); ++i) {
      const auto wanted = static_cast<double>(result.host[i]), found = static_cast<double>(actual[i]);
      if (std::isnan(wanted) ? std::isnan(found) : wanted == found) continue;
      ASSERT_NEAR(found, wanted, tolerance * (1 + std::abs(wanted))) << i;
    }
  }

  std::mt19937_64 random_{1};
  std::unique_ptr<Backend> backend_;
  DeviceBackend* device_ = nullptr;
  const DeviceFunctions* functions_ = nullptr;
  std::unique_ptr<DeviceStream> stream_;
};

template <typename T>
const T* At(const Twin<T>& twin, bool on_device) {
  return on_device ? reinterpret_cast<const T*>(twin.device->data()) : twin.host.data();
}
template <typename T>
T* At(Twin<T>& twin, bool on_device) {
  return on_device ? twin.on_device() : twin.host.data();
}

TEST_F(DeviceFunctionsTest, CopyAnyStrides) {
  struct Case {
    int rank;
    StridedDims dims, from_strides;
  };
  const Case cases[] = {
      {2, {70, 45}, {1, 70}},                // a transposition
      {3, {5, 33, 64}, {33 * 64, 1, 33}},    // several
      {4, {2, 3, 40, 9}, {1080, 9, 27, 1}},  // rows move
      {4, {3, 8, 9, 10}, {1, 27 * 10, 3, 27}},
      {2, {6, 7}, {0, 1}},  // spread
      {1, {1000}, {2}},     // every second
      {2, {3, 100}, {2000, -3}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.rank);
    StridedDims dense = {};
    int64_t count = 1;
    for (int d = c.rank - 1; d >= 0; --d) {
      dense[static_cast<size_t>(d)] = count;
      count *= c.dims[static_cast<size_t>(d)];
    }
    const auto check = [&]<typename T>(T) {
      Twin<T> from = Numbers<T>(20000, T(100)), to = TwinOf(std::vector<T>(static_cast<size_t>(count)));
      ExpectSame(to, [&](const DeviceFunctions& functions, bool on_device) {
        functions.Copy({.element_bytes = sizeof(T),
                        .rank = c.rank,
                        .dims = c.dims,
                        .from_strides = c.from_strides,
                        .to_strides = dense,
                        .from = At(from, on_device) + 400,
                        .to = At(to, on_device)},
                       *stream_);
      });
    };
    check(uint8_t());
    check(uint16_t());
    check(uint32_t());
    check(uint64_t());
  }
}

// Parts of a tensor that come together in another, of elements that are 16 bytes where they are neighbours; more than
// one launch takes, one in tiles, one of no elements.
TEST_F(DeviceFunctionsTest, CopyManyAtOnce) {
  constexpr int64_t kParts = 30, kRows = 8, kLine = 16;
  const Twin<uint32_t> from = Numbers<uint32_t>(kParts * kRows * kLine, 1000);
  const auto check = [&](size_t element_bytes, int64_t pitch) {
    Twin<uint32_t> to = TwinOf(std::vector<uint32_t>(kParts * kRows * kLine));
    ExpectSame(to, [&](const DeviceFunctions& functions, bool on_device) {
      std::vector<StridedCopy> copies;
      const int64_t each = static_cast<int64_t>(element_bytes / sizeof(uint32_t)), line = kLine / each;
      for (int64_t part = 0; part < kParts; ++part) {
        const int64_t place = (part * 7 + 3) % kParts;
        StridedCopy copy{.element_bytes = element_bytes,
                         .rank = 2,
                         .dims = {kRows, line},
                         .from_strides = {line, 1},
                         .to_strides = {line, 1},
                         .from = At(from, on_device) + part * pitch,
                         .to = At(to, on_device) + place * kRows * kLine};
        if (part == 4) copy.dims = {line, kRows}, copy.from_strides = {1, line}, copy.to_strides = {kRows, 1};
        if (part == 5) copy.dims[0] = 0;
        copies.push_back(copy);
      }
      functions.CopyAll(copies, *stream_);
    });
  };
  check(4, kRows * kLine);
  check(4, kRows * kLine - 3);
  check(8, kRows * kLine);
  check(16, kRows * kLine);
}

TEST_F(DeviceFunctionsTest, MapEachFunction) {
  const Twin<float> a = Floats(6 * 50), b = Floats(50), c = Floats(6);
  const Twin<uint8_t> condition = Numbers<uint8_t>(300, 2);
  Twin<float> to = Floats(300);
  Twin<uint8_t> test = Numbers<uint8_t>(300, 7);
  for (int op = 0; op <= static_cast<int>(PointOp::kWhere); ++op) {
    SCOPED_TRACE(op);
    const auto kind = static_cast<PointOp>(op);
    const auto call = [&](const DeviceFunctions& functions, bool on_device) {
      Pointwise map{.op = kind, .alpha = 0.3f, .beta = 0.7f, .rank = 2, .dims = {6, 50}};
      map.inputs[0] = {At(a, on_device), DType::kFloat32, {50, 1}};
      if (kind == PointOp::kWhere) map.inputs[0] = {At(condition, on_device), DType::kBool, {50, 1}};
      map.inputs[1] = {At(b, on_device), DType::kFloat32, {0, 1}};
      map.inputs[2] = {At(c, on_device), DType::kFloat32, {1, 0}};
      map.output = IsTest(kind) ? static_cast<void*>(At(test, on_device)) : At(to, on_device);
      map.output_dtype = IsTest(kind) ? DType::kBool : DType::kFloat32;
      functions.Map(map, *stream_);
    };
    if (IsTest(kind)) {
      ExpectSame(test, call);
    } else {
      ExpectSame(to, call);
    }
    if (HasFatalFailure()) return;
  }
}

TEST_F(DeviceFunctionsTest, MapWholeNumbersAndTypes) {
  const Twin<int64_t> a = Numbers<int64_t>(100, 9), b = Numbers<int64_t>(100, 4);
  Twin<int64_t> to = Numbers<int64_t>(100, 5);
  for (const PointOp op : {PointOp::kAdd, PointOp::kSub, PointOp::kMul, PointOp::kDiv, PointOp::kMax, PointOp::kNeg}) {
    ExpectSame(to, [&](const DeviceFunctions& functions, bool on_device) {
      Pointwise map{.op = op, .integers = true, .rank = 1, .dims = {100}};
      map.inputs[0] = {At(a, on_device), DType::kInt64, {1}};
      map.inputs[1] = {At(b, on_device), DType::kInt64, {1}};
      map.output = At(to, on_device);
      map.output_dtype = DType::kInt64;
      functions.Map(map, *stream_);
    });
  }
  Twin<float> floats = Floats(100);
  ExpectSame(floats, [&](const DeviceFunctions& functions, bool on_device) {
    Pointwise map{.op = PointOp::kCopy, .integers = true, .rank = 1, .dims = {100}};
    map.inputs[0] = {At(a, on_device), DType::kInt64, {1}};
    map.output = At(floats, on_device);
    functions.Map(map, *stream_);
  });
}

TEST_F(DeviceFunctionsTest, OfRows) {
  for (const int64_t length : {1, 31, 200, 3000}) {
    SCOPED_TRACE(length);
    const int64_t rows = 2 * 3 * 4;
    const Twin<float> from = Floats(rows * length), bias = Floats(3 * 4 * length);
    Twin<float> to = Floats(rows * length), reduced = Floats(rows);
    for (int i = 0; i <= static_cast<int>(RowReduction::kSumSquare); ++i) {
      ExpectSame(reduced, [&](const DeviceFunctions& functions, bool on_device) {
        functions.Reduce({static_cast<RowReduction>(i), rows, length, At(from, on_device), At(reduced, on_device)},
                         *stream_);
      });
    }
    ExpectSame(to, [&](const DeviceFunctions& functions, bool on_device) {
      functions.Softmax({.outer = 2,
                         .middle = 3,
                         .inner = 4,
                         .length = length,
                         .scale = 0.5f,
                         .from = At(from, on_device),
                         .bias = At(bias, on_device),
                         .bias_strides = {0, 4 * length, length},
                         .to = At(to, on_device)},
                        *stream_);
    });
    ExpectSame(to, [&](const DeviceFunctions& functions, bool on_device) {
      functions.Normalise({.rows = rows,
                           .length = length,
                           .epsilon = 1e-2f,
                           .from = At(from, on_device),
                           .scale = At(bias, on_device),
                           .shift = At(bias, on_device) + length,
                           .to = At(to, on_device)},
                          *stream_);
    });
  }
}

struct Heads {
  int64_t sequences, heads, queries, keys, channels, value_channels, pitch;  // pitch: of a token, all heads
};

class DeviceAttentionTest : public DeviceFunctionsTest, public ::testing::WithParamInterface<Heads> {};

TEST_P(DeviceAttentionTest, OfViewsWithoutScoresInMemory) {
  const Heads& s = GetParam();
  const Twin<float> queries = Floats(s.sequences * s.queries * s.pitch), keys = Floats(s.sequences * s.keys * s.pitch);
  Twin<float> bias = Floats(s.heads * s.queries * s.keys);
  for (int64_t i = 0; i < s.queries * s.keys; i += 3)
    bias.host[static_cast<size_t>(i)] = i % 2 == 0 ? -INFINITY : -3e38f;
  std::fill_n(bias.host.begin() + s.keys, s.keys, -INFINITY);
  bias = TwinOf(std::move(bias.host));
  const int64_t made = s.heads * s.value_channels;
  Twin<float> to = Floats(s.sequences * s.queries * made);
  for (const DType factors : {DType::kFloat16, DType::kBFloat16}) {
    for (const bool biased : {false, true}) {
      const auto call = [&](const DeviceFunctions& functions, bool on_device) {
        HeadsAttended attended{.factors = factors,
                               .sequences = s.sequences,
                               .heads = s.heads,
                               .queries = s.queries,
                               .keys = s.keys,
                               .channels = s.channels,
                               .value_channels = s.value_channels,
                               .scale = 0.25f,
                               .query = {At(queries, on_device), s.queries * s.pitch, s.channels, s.pitch},
                               .key = {At(keys, on_device), s.keys * s.pitch, s.channels, s.pitch},
                               .value = {At(keys, on_device), s.keys * s.pitch, s.value_channels, s.pitch},
                               .bias = {},
                               .to = At(to, on_device),
                               .to_sequence_stride = s.queries * made,
                               .to_head_stride = s.value_channels,
                               .to_token_stride = made};
        if (biased) attended.bias = {At(bias, on_device), 0, s.queries * s.keys, s.keys};
        ASSERT_TRUE(functions.Attends(attended));
        functions.Attend(attended, *stream_);
      };
      ExpectSame(to, call, factors == DType::kFloat16 ? 4e-3 : 3e-2);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, DeviceAttentionTest,
                         ::testing::Values(Heads{1, 12, 197, 197, 64, 64, 768}, Heads{5, 3, 49, 49, 32, 32, 96},
                                           Heads{2, 2, 70, 3, 18, 35, 77}, Heads{2, 4, 1, 130, 36, 36, 144},
                                           Heads{1, 1, 64, 200, 128, 96, 128}, Heads{3, 2, 10, 65, 40, 1, 83}));

TEST_F(DeviceFunctionsTest, RunningSums) {
  const Twin<int64_t> from = Numbers<int64_t>(5 * 100, 9);
  Twin<int64_t> to = Numbers<int64_t>(5 * 100, 9);
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      ExpectSame(to, [&](const DeviceFunctions& functions, bool on_device) {
        functions.Sum(RowsSummed{DType::kInt64, 5, 100, exclusive, reverse, At(from, on_device), At(to, on_device)},
                      *stream_);
      });
    }
  }
}

TEST_F(DeviceFunctionsTest, PickAndNoteWhatIsOutOfRange) {
  const Twin<float> table = Floats(2 * 7 * 12);
  Twin<int64_t> indices = Numbers<int64_t>(5, 7);
  for (const int64_t wrong : {0, 7, -8, -7}) {
    for (const int64_t piece : {1, 3, 12}) {
      indices.host[2] = wrong;
      Twin<int64_t> own = TwinOf(indices.host);
      Twin<float> to = Floats(2 * 5 * piece);
      Twin<int32_t> bad = TwinOf(std::vector<int32_t>(1));
      const auto call = [&](const DeviceFunctions& functions, bool on_device) {
        functions.Pick({.outer = 2,
                        .size = 7,
                        .count = 5,
                        .piece_bytes = piece * 4,
                        .from = At(table, on_device),
                        .indices = At(own, on_device),
                        .to = At(to, on_device),
                        .bad = At(bad, on_device),
                        .mark = 9},
                       *stream_);
      };
      ExpectSame(to, call);
      ExpectSame(bad, call);
      EXPECT_EQ(bad.host[0], wrong == 7 || wrong == -8 ? 9 : 0);
    }
  }
}

TEST_F(DeviceFunctionsTest, MultiplyStacks) {
  struct Case {
    int64_t m, n, k, batch;
    bool turn_a, turn_b;
  };
  for (const Case& c :
       {Case{49, 49, 32, 6, false, true}, Case{17, 15, 33, 4, false, false}, Case{1, 10, 7, 1, false, false},
        Case{64, 1, 15, 3, true, false}, Case{130, 70, 20, 2, true, true}, Case{5, 9, 1, 2, false, true}}) {
    SCOPED_TRACE(c.m);
    // Apart by more than they take, as heads of packed tokens are.
    const int64_t a_pitch = (c.turn_a ? c.m : c.k) + 3, b_pitch = (c.turn_b ? c.k : c.n) + 5;
    const int64_t a_batch = (c.turn_a ? c.k : c.m) * a_pitch + 1, b_batch = (c.turn_b ? c.n : c.k) * b_pitch + 2;
    const Twin<float> a = Floats(c.batch * a_batch), b = Floats(c.batch * b_batch);
    Twin<float> to = TwinOf(std::vector<float>(static_cast<size_t>(c.batch * c.m * (c.n + 1))));
    ExpectSame(to, [&](const DeviceFunctions& functions, bool on_device) {
      functions.Multiply({.m = c.m,
                          .n = c.n,
                          .k = c.k,
                          .batch = c.batch,
                          .a = {At(a, on_device), c.turn_a ? 1 : a_pitch, c.turn_a ? a_pitch : 1, a_batch},
                          .b = {At(b, on_device), c.turn_b ? 1 : b_pitch, c.turn_b ? b_pitch : 1, b_batch},
                          .to = At(to, on_device),
                          .to_row_stride = c.n + 1,
                          .to_batch_stride = c.m * (c.n + 1)},
                         *stream_);
    });
  }
}

TEST_F(DeviceFunctionsTest, OfPlanes) {
  constexpr int64_t kPlanes = 6, kPlane = 50, kTaps = 9, kPositions = 40;
  const Twin<float> from = Floats(kPlanes * kPlane), divisors = TwinOf(std::vector<float>(kPositions, 3.0f));
  std::vector<int32_t> drawn(kTaps * kPositions);
  for (int32_t& source : drawn) source = static_cast<int32_t>(random_() % (kPlane + 10)) - 10;
  const Twin<int32_t> sources = TwinOf(drawn);
  Twin<float> columns = Floats(kPlanes * kTaps * kPositions), pooled = Floats(kPlanes * kPositions);
  ExpectSame(columns, [&](const DeviceFunctions& functions, bool on_device) {
    functions.Gather(
        {kPlanes, kPlane, kTaps, kPositions, At(sources, on_device), At(from, on_device), At(columns, on_device)},
        *stream_);
  });
  for (const bool mean : {false, true}) {
    ExpectSame(pooled, [&](const DeviceFunctions& functions, bool on_device) {
      functions.Pool({kPlanes, kPlane, kTaps, kPositions, At(sources, on_device),
                      mean ? At(divisors, on_device) : nullptr, At(from, on_device), At(pooled, on_device)},
                     *stream_);
    });
  }
  std::vector<int32_t> offsets = {0}, entries;
  for (int64_t i = 0; i < kPlane; ++i) {
    for (int64_t j = 0; j < i % 4; ++j) entries.push_back(static_cast<int32_t>(random_() % (kTaps * kPositions)));
    offsets.push_back(static_cast<int32_t>(entries.size()));
  }
  const Twin<int32_t> begins = TwinOf(offsets), list = TwinOf(entries);
  Twin<float> summed = Floats(kPlanes * kPlane);
  ExpectSame(summed, [&](const DeviceFunctions& functions, bool on_device) {
    functions.Sum(ColumnsSummed{kPlanes, kPlane, kTaps * kPositions, At(begins, on_device), At(list, on_device),
                                At(columns, on_device), At(summed, on_device)},
                  *stream_);
  });
}

TEST_F(DeviceFunctionsTest, ResizeOneDimension) {
  const Twin<float> from = Floats(3 * 8 * 5);
  std::vector<WeightedTaps> made(12);
  for (size_t i = 0; i < made.size(); ++i) {
    made[i] = {{static_cast<int32_t>(i % 8), static_cast<int32_t>((i + 3) % 8), 0, 7},
               {0.5f, 0.25f, -1, 2},
               static_cast<int32_t>(i % 5),
               i == 3 ? 1.5f : 0.0f};
  }
  auto taps = *backend_->Allocate(made.size() * sizeof(WeightedTaps));
  stream_->Copy(taps->data(), made.data(), made.size() * sizeof(WeightedTaps));
  Twin<float> to = Floats(3 * 12 * 5);
  ExpectSame(to, [&](const DeviceFunctions& functions, bool on_device) {
    functions.Resize({3, 8, 12, 5, on_device ? reinterpret_cast<const WeightedTaps*>(taps->data()) : made.data(),
                      At(from, on_device), At(to, on_device)},
                     *stream_);
  });
}

}  // namespace
}  // namespace swizzle
