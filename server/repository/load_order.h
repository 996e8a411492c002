// What is to be loaded.
#ifndef SWIZZLE_SERVER_REPOSITORY_LOAD_ORDER_H_
#define SWIZZLE_SERVER_REPOSITORY_LOAD_ORDER_H_

#include <memory>
#include <optional>
#include <string>

#include "proto/model_config.pb.h"
#include "server/repository/brought_files.h"

namespace swizzle {

struct LoadOrder {
  std::string model = {};
  std::optional<inference::ModelConfig> config = {};  // in place of its config.pbtxt; none: as that says
  std::shared_ptr<const BroughtFiles> files = {};     // in place of its folder; null: as that is
  bool awaited = false;                               // ModelStatus's
  // An ensemble that a change of its steps is the reason for: it loads none of them, and serves no longer where it
  // cannot serve with them as they are now.
  bool follows_steps = false;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_LOAD_ORDER_H_
