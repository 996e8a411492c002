#include "server/model/sequence_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/plan/planner.h"
#include "server/model/derived_spec.h"
#include "server/model/served_model.h"
#include "tests/support/random_encoder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::swizzle::testing::IsError;
using ::swizzle::testing::IsOk;
using ::swizzle::testing::MakeRandomEncoder;
using ::swizzle::testing::RandomEncoderOptions;
using ::testing::ElementsAre;

constexpr int64_t kChannels = 24;
constexpr float kTolerance = 2e-5f;

Backend& Cpu() {
  static const std::unique_ptr<Backend> backend = NewCpuBackend();
  return *backend;
}

// One request to the encoder: rows of one length, with a mask.
struct Item {
  Item(int64_t rows, int64_t length, uint32_t seed = 1) : shape{rows, length}, types(rows * length, 0) {
    std::mt19937 random(seed);
    for (int64_t i = 0; i < rows * length; ++i) ids.push_back(static_cast<int64_t>(random() % 50));
    mask.assign(ids.size(), 1);
  }
  // Leaves `kept` tokens of every row.
  Item& MaskAfter(int64_t kept) {
    for (int64_t i = 0; i < shape[0] * shape[1]; ++i) mask[i] = i % shape[1] < kept;
    return *this;
  }
  BatchItem Of() {
    views = {{DType::kInt64, shape, std::as_bytes(std::span(ids))},
             {DType::kInt64, shape, std::as_bytes(std::span(mask))},
             {DType::kInt32, shape, std::as_bytes(std::span(types))}};
    return {views, shape[0], &outputs, &shapes};
  }
  std::vector<float> Floats(size_t i) const {
    std::vector<float> floats(outputs[i].size() / sizeof(float));
    std::memcpy(floats.data(), outputs[i].data(), outputs[i].size());
    return floats;
  }

  Shape shape;
  std::vector<int64_t> ids, mask;
  std::vector<int32_t> types;
  std::vector<TensorView> views;
  std::vector<std::string> outputs;
  std::vector<Shape> shapes;
};

class SequenceSessionTest : public ::testing::Test {
 protected:
  void Load(const RandomEncoderOptions& options = {}, bool compute_masked = false, int64_t max_tokens = 512,
            int64_t micro_batch = 0) {
    Network network = MakeRandomEncoder(options);
    ModelSpec spec = *DeriveSpec(InterfaceOf(network));
    spec.name = "encoder";
    spec.compute_masked = compute_masked;
    const PlanOptions plan_options{
        .max_tokens = max_tokens, .threads = 2, .tuning_budget = absl::ZeroDuration(), .micro_batch = micro_batch};
    auto plan = MakePlan(std::move(network), Cpu(), plan_options);
    ASSERT_THAT(plan.status(), IsOk());
    auto model = NewServedModel(std::move(spec), {*plan});
    ASSERT_THAT(model.status(), IsOk());
    model_ = *std::move(model);
    session_ = *model_->NewSession(Clock::Real());
  }

  void Run(std::initializer_list<Item*> items) {
    std::vector<BatchItem> batch;
    for (Item* item : items) {
      batch.push_back(item->Of());
      ASSERT_THAT(model_->CheckRequest(batch.back().inputs).status(), IsOk());
    }
    BatchTimes times;
    ASSERT_THAT(session_->Run(batch, times), IsOk());
  }

  Status Check(Item item) { return model_->CheckRequest(item.Of().inputs).status(); }
  // Of each of its rows.
  StatusOr<std::vector<int64_t>> Tokens(Item item) { return model_->CheckRequest(item.Of().inputs); }

  std::shared_ptr<Model> model_;
  std::unique_ptr<Session> session_;
};

void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  float largest = 1;
  for (float value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_LE(std::abs(actual[i] - expected[i]), kTolerance * largest) << "element " << i;
  }
}

TEST_F(SequenceSessionTest, MixedLengthsGiveTheSameNumbersAsAlone) {
  Load();
  Item a(1, 5, 1), b(3, 17, 2), c(2, 80, 3), d(1, 1, 4);
  Run({&a, &b, &c, &d});
  EXPECT_EQ(b.shapes[0], (Shape{3, 17, kChannels}));
  EXPECT_EQ(b.shapes[1], (Shape{3, kChannels}));
  for (Item* together : {&a, &b, &c, &d}) {
    Item alone = *together;
    Run({&alone});
    for (size_t i : {0, 1}) ExpectNear(together->Floats(i), alone.Floats(i));
  }
  EXPECT_NE(a.Floats(1), d.Floats(1));
}

// Queries and keys are turned by the positions that tokens have in their requests, whatever was left out.
TEST_F(SequenceSessionTest, TurnedByPositionTheyGiveTheSameNumbersAsAlone) {
  for (const bool compute_masked : {false, true}) {
    Load({.positions = 0, .rotary = 80}, compute_masked);
    Item a(1, 5, 1), b(3, 17, 2), c(2, 80, 3);
    b.MaskAfter(11);
    Run({&a, &b, &c});
    for (Item* together : {&a, &b, &c}) {
      Item alone = *together;
      Run({&alone});
      for (size_t i : {0, 1}) ExpectNear(together->Floats(i), alone.Floats(i));
    }
    EXPECT_THAT(Check(Item(1, 81)), IsError(StatusCode::kInvalidArgument, "81"));
  }
}

// Runs of at most 40 tokens: sequences of one request in several, of several in one, and one that is longer.
TEST_F(SequenceSessionTest, ALargeBatchRunsInSeveralRuns) {
  Load({}, false, 512, 40);
  Item a(1, 5, 1), b(7, 17, 2), c(2, 80, 3), d(1, 1, 4);
  b.MaskAfter(11);
  Run({&a, &b, &c, &d});
  EXPECT_EQ(b.shapes[0], (Shape{7, 17, kChannels}));
  const Item results[] = {a, b, c, d};
  Load();
  Run({&a, &b, &c, &d});
  const Item* const whole[] = {&a, &b, &c, &d};
  for (size_t k = 0; k < 4; ++k) {
    for (size_t i : {0, 1}) ExpectNear(results[k].Floats(i), whole[k]->Floats(i));
  }
}

TEST_F(SequenceSessionTest, MaskedTokensAreZerosAndChangeNothing) {
  Load();
  Item masked = Item(2, 12, 1).MaskAfter(7);
  Item longer(1, 12, 9);
  Run({&masked, &longer});
  Item cut(2, 7);
  for (int64_t row : {0, 1}) {
    std::copy_n(masked.ids.begin() + row * 12, 7, cut.ids.begin() + row * 7);
  }
  Run({&cut});
  ExpectNear(masked.Floats(1), cut.Floats(1));
  const std::vector<float> hidden = masked.Floats(0), expected = cut.Floats(0);
  for (int64_t row : {0, 1}) {
    const auto begin = hidden.begin() + row * 12 * kChannels;
    ExpectNear({begin, begin + 7 * kChannels},
               {expected.begin() + row * 7 * kChannels, expected.begin() + (row + 1) * 7 * kChannels});
    EXPECT_TRUE(std::all_of(begin + 7 * kChannels, begin + 12 * kChannels, [](float x) { return x == 0; }));
  }
}

// Padding before the text moves nothing, nor does where requests are cut.
TEST_F(SequenceSessionTest, PositionsMayCountWhatIsNotPadding) {
  for (const int64_t micro_batch : {0, 9}) {
    Load({.padding = 1}, false, 512, micro_batch);
    Item text(2, 7, 1), padded(2, 9, 2);
    for (int64_t& id : text.ids) id = std::max<int64_t>(id, 2);
    for (int64_t row : {0, 1}) {
      std::fill_n(padded.ids.begin() + row * 9, 2, 1);
      std::fill_n(padded.mask.begin() + row * 9, 2, 0);
      std::copy_n(text.ids.begin() + row * 7, 7, padded.ids.begin() + row * 9 + 2);
    }
    Run({&text, &padded});
    const std::vector<float> expected = text.Floats(0), hidden = padded.Floats(0);
    for (int64_t row : {0, 1}) {
      const auto begin = hidden.begin() + (row * 9 + 2) * kChannels;
      ExpectNear({begin, begin + 7 * kChannels},
                 {expected.begin() + row * 7 * kChannels, expected.begin() + (row + 1) * 7 * kChannels});
    }
    EXPECT_THAT(Check(Item(1, 79)), IsOk());
    EXPECT_THAT(Check(Item(1, 80)), IsError(StatusCode::kInvalidArgument, "the model has positions for 79"));
  }
}

TEST_F(SequenceSessionTest, MaskedTokensCanBeComputed) {
  Load();
  Item skipped = Item(2, 12, 1).MaskAfter(7), computed = skipped;
  Run({&skipped});
  Load({}, /*compute_masked=*/true);
  EXPECT_THAT(*Tokens(computed), ElementsAre(12, 12));
  Run({&computed});
  ExpectNear(computed.Floats(1), skipped.Floats(1));
  const std::vector<float> a = skipped.Floats(0), b = computed.Floats(0);
  ExpectNear({b.begin(), b.begin() + 7 * kChannels}, {a.begin(), a.begin() + 7 * kChannels});
  EXPECT_NE(b[8 * kChannels], 0.0f);
}

TEST_F(SequenceSessionTest, TheFirstTokenIsComputedThoughMasked) {
  Load();
  Item item(1, 4);
  item.mask = {0, 1, 1, 0};
  Item all = item;
  EXPECT_THAT(*Tokens(item), ElementsAre(3));
  Run({&item});
  Load({}, /*compute_masked=*/true);
  Run({&all});
  ExpectNear(item.Floats(1), all.Floats(1));
}

TEST_F(SequenceSessionTest, AFixedBatchAndLengthAreKept) {
  Load({.batch_size = 2, .length = 9});
  EXPECT_EQ(model_->spec().max_batch_size, 0);
  EXPECT_EQ(model_->spec().inputs[0].dims, (Shape{2, 9}));
  Item item = Item(2, 9).MaskAfter(4);
  EXPECT_THAT(*Tokens(item), ElementsAre(8)) << "of both rows, which run together";
  Run({&item});
  EXPECT_EQ(item.shapes[0], (Shape{2, 9, kChannels}));
  EXPECT_EQ(item.shapes[1], (Shape{2, kChannels}));
}

TEST_F(SequenceSessionTest, CountsTokensThatAreComputed) {
  Load();
  EXPECT_THAT(*Tokens(Item(3, 10)), ElementsAre(10, 10, 10));
  EXPECT_THAT(*Tokens(Item(3, 10).MaskAfter(4)), ElementsAre(4, 4, 4));
  EXPECT_THAT(*Tokens(Item(3, 10).MaskAfter(0)), ElementsAre(1, 1, 1));
}

TEST_F(SequenceSessionTest, RefusesWhatTheModelCannotRun) {
  Load({}, false, /*max_tokens=*/64);
  const auto refuses = [&](const Item& item, const char* message) {
    EXPECT_THAT(Check(item), IsError(StatusCode::kInvalidArgument, message));
  };
  Item item(1, 4);
  item.ids[2] = 50;
  refuses(item, "input 'input_ids' of model 'encoder' holds 50 at element 2; ids must be from 0 to 49");
  item.ids[2] = -1;
  refuses(item, "holds -1 at element 2");
  item = Item(1, 4);
  item.mask[3] = 2;
  refuses(item, "input 'attention_mask' of model 'encoder' holds 2 at element 3; a mask holds 0 and 1");
  refuses(Item(1, 81), "has sequences of 81 tokens; the model has positions for 80");
  refuses(Item(1, 0), "at least 1 token");
  refuses(Item(65, 1), "it must have 1 to 64 sequences");
  refuses(Item(2, 65), "sequence 0 of the request to model 'encoder' has 65 tokens; max_batch_tokens is 64");
  EXPECT_THAT(Check(Item(2, 65).MaskAfter(64)), IsOk());
  EXPECT_THAT(Check(Item(5, 13)), IsOk()) << "its sequences need not run together";
  Item other(1, 4);
  BatchItem batch = other.Of();
  other.views[1].shape = {2, 2};
  EXPECT_THAT(model_->CheckRequest(batch.inputs).status(),
              IsError(StatusCode::kInvalidArgument, "input 'attention_mask' of model 'encoder' has shape [2,2]"));
}

TEST_F(SequenceSessionTest, PropertiesSayWhatPasses) {
  Load();
  const auto facts = model_->facts();
  EXPECT_EQ(facts->properties.at("swizzle_ids.input_ids"), "50");
  EXPECT_EQ(facts->properties.at("swizzle_mask.attention_mask"), "1");
  EXPECT_FALSE(facts->properties.contains("swizzle_ids.attention_mask"));
  EXPECT_EQ(facts->properties.at("swizzle_max_length"), "80");
  EXPECT_THAT(Check(Item(1, 80)), IsOk());
  Load({}, false, /*max_tokens=*/64);
  EXPECT_EQ(model_->facts()->properties.at("swizzle_max_length"), "64");
}

// Tokens that are masked are not computed, but outputs have places for them.
TEST_F(SequenceSessionTest, WithoutAPositionTableASequenceIsNoLongerThanABatch) {
  RandomEncoderOptions options;
  options.positions = 0;
  Load(options, false, /*max_tokens=*/64);
  EXPECT_THAT(Check(Item(1, 64)), IsOk());
  EXPECT_THAT(Check(Item(1, 65).MaskAfter(1)),
              IsError(StatusCode::kInvalidArgument, "has sequences of 65 tokens; max_batch_tokens is 64"));
}

}  // namespace
}  // namespace swizzle
