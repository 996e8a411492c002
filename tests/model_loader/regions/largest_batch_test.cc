#include "model_loader/regions/largest_batch.h"

#include <gtest/gtest.h>

namespace swizzle::regions {
namespace {

// From so many numbers to so many others.
Network From(int64_t inputs, int64_t outputs, DType dtype = DType::kFloat32) {
  Network network;
  for (const int64_t elements : {inputs, outputs}) {
    NetworkValue value;
    value.channels = elements;
    network.values.push_back(value);
  }
  network.inputs = {{"x", DType::kFloat32, {inputs}, 0}};
  network.outputs = {{"y", dtype, {outputs}, 1}};
  return network;
}

TEST(LargestBatchTest, CachesHoldSomeOfItOnTheHost) {
  constexpr auto kHost = interpreter::Place::kHost;
  EXPECT_EQ(LargestBatch(From(8, 10), Form::kVectors, kHost), kMostRows);
  EXPECT_EQ(LargestBatch(From(8, 10), Form::kImages, kHost), 64);
  EXPECT_EQ(LargestBatch(From(350'000, 10), Form::kImages, kHost), 2);
  EXPECT_EQ(LargestBatch(From(70'000'000, 10), Form::kImages, kHost), 1);
}

TEST(LargestBatchTest, PowersOfTwoFillADevice) {
  constexpr auto kDevice = interpreter::Place::kDevice;
  EXPECT_EQ(LargestBatch(From(8, 10), Form::kVectors, kDevice), 65536);
  EXPECT_EQ(LargestBatch(From(8, 10), Form::kImages, kDevice), 64);
  EXPECT_EQ(LargestBatch(From(2'000'000, 10), Form::kImages, kDevice), 32);
}

// Of images of which a device takes one at a time.
TEST(LargestBatchTest, PartsBeginWhereADeviceReadsPacks) {
  constexpr auto kDevice = interpreter::Place::kDevice;
  EXPECT_EQ(LargestBatch(From(70'000'000, 12), Form::kImages, kDevice), 1);
  EXPECT_EQ(LargestBatch(From(70'000'000, 10), Form::kImages, kDevice), 2);
  EXPECT_EQ(LargestBatch(From(70'000'000, 9), Form::kImages, kDevice), 4);
  EXPECT_EQ(LargestBatch(From(70'000'001, 12), Form::kImages, kDevice), 4);
  EXPECT_EQ(LargestBatch(From(70'000'000, 9, DType::kUint8), Form::kImages, kDevice), 16);
}

}  // namespace
}  // namespace swizzle::regions
