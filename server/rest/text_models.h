// Which model serves a request that may name none, as those of text-embeddings-inference do. Free functions,
// thread-safe.
#ifndef SWIZZLE_SERVER_REST_TEXT_MODELS_H_
#define SWIZZLE_SERVER_REST_TEXT_MODELS_H_

#include <memory>
#include <string>

#include "kernels/base/status.h"
#include "server/http/http_call.h"
#include "server/rest/text_json.h"
#include "server/rpc/infer_call.h"

namespace swizzle {

// The model of that name, or, where it is empty, the only one that the client may use and that does what the endpoint
// is for. NOT_FOUND where there is none, INVALID_ARGUMENT where there are several, or where the one of that name does
// something else; and what InferCalls::Find says of a name.
StatusOr<std::shared_ptr<ServingModel>> ModelForTexts(const InferCalls& calls, const HttpCall& call,
                                                      TextEndpoint endpoint, const std::string& name);

// What GET /info says of the model of that name, or, where it is empty, of the only one that takes texts and that the
// client may use. The same errors.
StatusOr<std::string> WriteTextInfo(const InferCalls& calls, const HttpCall& call, const std::string& name);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_TEXT_MODELS_H_
