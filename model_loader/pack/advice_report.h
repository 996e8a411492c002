// What `advise` prints, as text and as JSON. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PACK_ADVICE_REPORT_H_
#define SWIZZLE_MODEL_LOADER_PACK_ADVICE_REPORT_H_

#include <string>

#include "model_loader/pack/advice.h"
#include "nlohmann/json_fwd.hpp"

namespace swizzle::pack {

// Tables: each layer's latency at each sparsity, at the least and the largest measured batch, and what zeros remove of
// its weight. REQUIRES: Advise filled it in.
std::string AdviceText(const Advice& advice);

// Everything; microseconds are plain numbers, and those of a layer at several places are of one. Keys only ever get
// added.
nlohmann::ordered_json AdviceObject(const Advice& advice);

// The object, indented, with a newline at its end.
std::string AdviceJson(const Advice& advice);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_ADVICE_REPORT_H_
