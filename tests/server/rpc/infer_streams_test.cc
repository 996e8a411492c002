#include "server/rpc/infer_streams.h"

#include <gtest/gtest.h>

#include <map>

namespace swizzle {
namespace {

class Recorded final : public InferStreams::Stream {
 public:
  void EndInOrder(const Status& why) override { status = why; }
  Status status;
};

class InferStreamsTest : public ::testing::Test {
 protected:
  InferStreamsTest() {
    limits_.connection_age = absl::Minutes(30);
    limits_.connection_grace = absl::Minutes(2);
  }

  bool EndedAt(const Recorded& stream, Instant now) {
    streams_.EndAged(limits_, now, [this](const std::string& peer) {
      const auto found = accepted_.find(peer);
      return found == accepted_.end() ? std::nullopt : std::optional(found->second);
    });
    return absl::IsUnavailable(stream.status);
  }

  RpcLimits limits_;
  const Instant start_ = Instant() + absl::Hours(1);
  std::map<std::string, Instant> accepted_ = {{"peer", start_}};
  InferStreams streams_;
};

TEST_F(InferStreamsTest, AShutdownEndsThoseThatAreOpenAndThoseThatCome) {
  Recorded open, gone, late;
  ASSERT_TRUE(streams_.Add(open, "peer", start_).ok());
  ASSERT_TRUE(streams_.Add(gone, "peer", start_).ok());
  streams_.Remove(gone);
  streams_.EndAll();
  EXPECT_TRUE(absl::IsUnavailable(open.status));
  EXPECT_TRUE(gone.status.ok());
  EXPECT_TRUE(absl::IsUnavailable(streams_.Add(late, "peer", start_)));
}

TEST_F(InferStreamsTest, AStreamEndsBeforeItsConnectionIsOfAge) {
  Recorded stream;
  ASSERT_TRUE(streams_.Add(stream, "peer", start_ + absl::Minutes(20)).ok());
  EXPECT_FALSE(EndedAt(stream, start_ + absl::Minutes(26)));
  EXPECT_TRUE(EndedAt(stream, start_ + absl::Minutes(27)));
}

TEST_F(InferStreamsTest, AStreamOnAnOldConnectionLastsForAWhile) {
  Recorded stream;
  ASSERT_TRUE(streams_.Add(stream, "peer", start_ + absl::Minutes(29)).ok());
  EXPECT_FALSE(EndedAt(stream, start_ + absl::Minutes(29)));
  EXPECT_TRUE(EndedAt(stream, start_ + absl::Minutes(30)));
}

TEST_F(InferStreamsTest, AConnectionThatIsNotKnownIsAsOldAsTheStream) {
  Recorded stream;
  ASSERT_TRUE(streams_.Add(stream, "another", start_).ok());
  EXPECT_FALSE(EndedAt(stream, start_ + absl::Minutes(26)));
  EXPECT_TRUE(EndedAt(stream, start_ + absl::Minutes(28)));
}

TEST_F(InferStreamsTest, WithoutAnAgeNothingEnds) {
  limits_.connection_age = absl::ZeroDuration();
  Recorded stream;
  ASSERT_TRUE(streams_.Add(stream, "peer", start_).ok());
  EXPECT_FALSE(EndedAt(stream, start_ + absl::Hours(100)));
}

}  // namespace
}  // namespace swizzle
