// Embeddings as OpenAI's and text-embeddings-inference's clients ask for them: one request of any number of texts,
// which becomes as many inferences as its model's batches need, each through the same InferCall as gRPC's. Functions
// only.
#ifndef SWIZZLE_SERVER_REST_REST_EMBEDDINGS_H_
#define SWIZZLE_SERVER_REST_REST_EMBEDDINGS_H_

#include <memory>

#include "server/http/http_call.h"
#include "server/rest/embeddings_json.h"
#include "server/rpc/infer_call.h"

namespace swizzle {

// Answers the call. The model is the one that the request names, or, where it names none, the only one that takes texts
// and that the client may use. Large bodies are read on threads of their own.
void StartRestEmbeddings(InferCalls& calls, std::shared_ptr<HttpCall> call, EmbeddingsDialect dialect);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_REST_EMBEDDINGS_H_
