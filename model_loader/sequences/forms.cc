#include "model_loader/sequences/forms.h"

namespace swizzle {
namespace {

struct ViewFinder {
  View* operator()(Unknown&) const { return nullptr; }
  View* operator()(Known&) const { return nullptr; }
  View* operator()(Moment& moment) const { return &moment.tokens.view; }
  View* operator()(MovedTokens& moved) const { return &moved.tokens.view; }
  template <typename Viewed>
  View* operator()(Viewed& viewed) const {
    return &viewed.view;
  }
};

// A mean and what follows from it have one element in place of the channels.
bool IsReduced(const Moment& moment) {
  using Stage = Moment::Stage;
  if (moment.expanded) return false;
  return moment.stage == Stage::kMean || (moment.stage >= Stage::kVariance && moment.stage <= Stage::kInverse);
}

}  // namespace

View* ViewOf(Form& form) { return std::visit(ViewFinder(), form); }

std::optional<Wholes> ShapeOf(const Form& form) {
  if (std::holds_alternative<Unknown>(form)) return std::nullopt;
  if (const auto* known = std::get_if<Known>(&form)) return known->shape;
  Wholes shape = ViewOf(const_cast<Form&>(form))->shape();
  const auto* moment = std::get_if<Moment>(&form);
  if (moment != nullptr && IsReduced(*moment)) shape.back() = Whole{1};
  return shape;
}

}  // namespace swizzle
