// Loads a model that is made of others, which serve already.
#ifndef SWIZZLE_SERVER_REPOSITORY_ENSEMBLE_LOADER_H_
#define SWIZZLE_SERVER_REPOSITORY_ENSEMBLE_LOADER_H_

#include <memory>
#include <vector>

#include "kernels/base/status.h"
#include "server/model/ensemble_graph.h"
#include "server/repository/directory_loader.h"
#include "server/repository/model_table.h"
#include "server/repository/serving_model.h"

namespace swizzle {

// What serves each step now. FAILED_PRECONDITION naming the first for which nothing does, and why.
StatusOr<std::vector<ModelTable::Serving>> FindSteps(const std::vector<EnsembleStep>& steps, const ModelTable& table);

// LoadVersion's part for an ensemble. The result keeps what serves its steps; whoever replaces one loads it again.
// REQUIRES: the configuration is an ensemble's.
StatusOr<std::shared_ptr<ServingModel>> LoadEnsemble(const VersionFolder& folder, const LoadingPlace& place);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_ENSEMBLE_LOADER_H_
