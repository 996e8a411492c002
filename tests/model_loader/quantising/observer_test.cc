#include "model_loader/quantising/observer.h"

#include <cmath>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;

Observer SeeTwice(const std::vector<float>& values, int64_t channels = 1) {
  Observer observer;
  observer.SeeRange(values);
  observer.SeeValues(values, channels);
  return observer;
}

TEST(ObserverTest, NamesAreThoseOfTheFlag) {
  for (const ObserverKind kind : {ObserverKind::kMinMax, ObserverKind::kPercentile, ObserverKind::kMse}) {
    EXPECT_EQ(ObserverFromName(ObserverName(kind)), kind);
  }
  EXPECT_EQ(ObserverFromName("median"), std::nullopt);
}

TEST(ObserverTest, TheRangeHoldsAllThatWasSeenAndZero) {
  const Quantised above = SeeTwice({1, 51, 20}).Choose(ObserverKind::kMinMax);
  EXPECT_FLOAT_EQ(above.scale, 0.2f);
  EXPECT_EQ(above.zero_point, 0);
  const Quantised both = SeeTwice({-10, 15.5f, NAN, INFINITY}).Choose(ObserverKind::kMinMax);
  EXPECT_FLOAT_EQ(both.scale, 0.1f);
  EXPECT_EQ(both.zero_point, 100);
  EXPECT_EQ(SeeTwice({0, 0}).Choose(ObserverKind::kMinMax), (Quantised{DType::kUint8, 1.0f, 0}));
}

TEST(ObserverTest, RareLargeValuesMayBeCutOff) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(200'000);
  for (float& value : values) value = normal(random);
  values[7] = 200;
  const Observer observer = SeeTwice(values);
  const Quantised all = observer.Choose(ObserverKind::kMinMax), most = observer.Choose(ObserverKind::kPercentile),
                  best = observer.Choose(ObserverKind::kMse);
  EXPECT_GT(all.scale, 10 * most.scale);
  EXPECT_GT(observer.SignalToNoise(best), observer.SignalToNoise(all));
  EXPECT_LT(best.scale, all.scale);
  EXPECT_GT(observer.SignalToNoise(SeeTwice({-1, 1, 0.5f}).Choose(ObserverKind::kMinMax)), 0.0);
}

TEST(ObserverTest, MeansAreByChannelOverAllRows) {
  Observer observer;
  const std::vector<float> first = {1, 3, 10, 20}, second = {5, 7, 0, 0};
  observer.SeeRange(first);
  observer.SeeRange(second);
  observer.SeeValues(first, 2);
  observer.SeeValues(second, 2);
  EXPECT_THAT(observer.Means(), ElementsAre(4.0, 7.5));
}

}  // namespace
}  // namespace swizzle
