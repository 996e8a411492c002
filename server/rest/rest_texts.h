// Vectors, scores and tokens of texts as OpenAI's and text-embeddings-inference's clients ask for them: one request of
// any number of texts, which becomes as many inferences as its model's batches need, each through the same InferCall as
// gRPC's. Functions only.
#ifndef SWIZZLE_SERVER_REST_REST_TEXTS_H_
#define SWIZZLE_SERVER_REST_REST_TEXTS_H_

#include <memory>
#include <string>

#include "server/http/http_call.h"
#include "server/rest/text_json.h"
#include "server/rpc/infer_call.h"

namespace swizzle {

// Answers the call, by the model that text_models.h says; where `model` is not empty, which a path names, by that one.
// Large bodies are read on threads of their own.
void StartRestTexts(InferCalls& calls, std::shared_ptr<HttpCall> call, TextEndpoint endpoint, const std::string& model);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_REST_TEXTS_H_
