#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::kInvalid;
using swizzle::testing::OnnxBuilder;
using Attributes = std::map<std::string, Attribute>;

StatusOr<std::vector<Array>> Transform(const Tensor& x, const Attributes& attributes, int64_t length = 0) {
  OnnxBuilder builder = OneNode("DFT", x.shape, {"x", length != 0 ? "length" : ""}, attributes);
  return Execute(builder.Int64s("length", {}, {length}), {x});
}

TEST(Fourier, EqualsTheSumsThatDefineIt) {
  for (const int64_t length : {1, 2, 3, 4, 6, 11, 30, 64}) {
    std::vector<float> x(static_cast<size_t>(length));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * i % 7) - 3.0f;
    const auto transform = Transform(Floats({1, length, 1}, x), {});
    ASSERT_THAT(transform, IsOk());
    const std::vector<float> actual = Values((*transform)[0]);
    for (int64_t k = 0; k < length; ++k) {
      double real = 0.0, imaginary = 0.0;
      for (int64_t i = 0; i < length; ++i) {
        const double angle = 2.0 * std::numbers::pi * static_cast<double>(i * k % length) / static_cast<double>(length);
        real += x[static_cast<size_t>(i)] * std::cos(angle);
        imaginary -= x[static_cast<size_t>(i)] * std::sin(angle);
      }
      EXPECT_NEAR(actual[static_cast<size_t>(2 * k)], real, 1e-4) << length;
      EXPECT_NEAR(actual[static_cast<size_t>(2 * k + 1)], imaginary, 1e-4) << length;
    }
  }
}

TEST(Fourier, RefusesLengthsThatItCannotDo) {
  const Tensor x = Floats({1, 4, 1}, {1, 2, 3, 4});
  EXPECT_THAT(Transform(x, {}, -1), IsError(kInvalid, "the transform's length is -1"));
  EXPECT_THAT(Transform(x, {}, 1'000'003), IsError(StatusCode::kUnimplemented, "has a prime factor above 4096"));
  EXPECT_THAT(Transform(x, {}, int64_t{1} << 60), IsError(StatusCode::kResourceExhausted, "larger than the limit"));
  EXPECT_THAT(Transform(x, {{"axis", int64_t{2}}}), IsError(kInvalid, "DFT node 'y_node': the last axis"));
  EXPECT_THAT(Transform(x, {{"inverse", int64_t{1}}, {"onesided", int64_t{1}}}), IsError(kInvalid, "not both"));
  EXPECT_THAT(Transform(Floats({1, 4, 3}, std::vector<float>(12)), {}), IsError(kInvalid, "must be 1 or 2"));
}

TEST(Stft, FramesMustFit) {
  const auto run = [](int64_t step, int64_t length, int64_t window) {
    OnnxBuilder builder = OneNode("STFT", {1, 10, 1}, {"x", "step", window != 0 ? "window" : "", "length"});
    builder.Int64s("step", {}, {step})
        .Int64s("length", {}, {length})
        .Counting("window", {std::max<int64_t>(window, 1)});
    return Execute(builder, {Floats({1, 10, 1}, std::vector<float>(10, 1.0f))});
  };
  const auto frames = run(3, 4, 4);
  ASSERT_THAT(frames, IsOk());
  EXPECT_EQ((*frames)[0].shape, (Shape{1, 3, 3, 2}));
  EXPECT_THAT(run(3, 11, 0), IsError(kInvalid, "frames of 11 samples"));
  EXPECT_THAT(run(0, 4, 0), IsError(kInvalid, "every 0"));
  EXPECT_THAT(run(3, 4, 5), IsError(kInvalid, "frame_length is 4, but the window has 5"));
}

TEST(Windows, OfOneElementAndOfNone) {
  const auto window = [](const std::string& op, int64_t size) {
    OnnxBuilder builder = OneNode(op, {1}, {"size"}, {{"periodic", int64_t{0}}});
    return Execute(builder.Int64s("size", {}, {size}), {Floats({1}, {0})});
  };
  for (const char* op : {"HannWindow", "HammingWindow", "BlackmanWindow"}) {
    const auto one = window(op, 1);
    ASSERT_THAT(one, IsOk());
    EXPECT_EQ(Values((*one)[0]), (std::vector<float>{1}));
    EXPECT_EQ((*window(op, 0))[0].shape, (Shape{0}));
    EXPECT_THAT(window(op, -1), IsError(kInvalid, "negative dimension"));
    EXPECT_THAT(window(op, int64_t{1} << 50), IsError(StatusCode::kResourceExhausted, op));
  }
}

TEST(MelWeightMatrix, BandsMustLieWithinTheSpectrum) {
  const auto bands = [](int64_t count, int64_t length, int64_t rate, float lower, float upper) {
    OnnxBuilder builder = OneNode("MelWeightMatrix", {1}, {"count", "length", "rate", "lower", "upper"});
    builder.Int64s("count", {}, {count}).Int64s("length", {}, {length}).Int64s("rate", {}, {rate});
    return Execute(builder.Floats("lower", {}, {lower}).Floats("upper", {}, {upper}), {Floats({1}, {0})});
  };
  EXPECT_THAT(bands(8, 16, 8192, 0, 4096), IsOk());
  EXPECT_THAT(bands(8, 16, 8192, 0, 40960), IsError(kInvalid, "is not within a spectrum of 9 bins"));
  EXPECT_THAT(bands(8, 16, 8192, -800, 4096), IsError(kInvalid, "is not within"));
  EXPECT_THAT(bands(8, 16, 0, 0, 4096), IsError(kInvalid, "they must be positive"));
  EXPECT_THAT(bands(int64_t{1} << 40, 16, 8192, 0, 4096), IsError(kInvalid, "no more than"));
}

}  // namespace
}  // namespace swizzle::interpreter
