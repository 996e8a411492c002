// Tokens of texts, and texts of tokens, as text-embeddings-inference's clients ask for them: what a model's tokeniser
// says, without an inference. Functions only.
#ifndef SWIZZLE_SERVER_REST_REST_TOKENS_H_
#define SWIZZLE_SERVER_REST_REST_TOKENS_H_

#include <memory>
#include <string>

#include "server/http/http_call.h"
#include "server/rest/text_json.h"
#include "server/rpc/infer_call.h"

namespace swizzle {

// Answers the call of kTeiTokenize or kTeiDecode, whose body this is, by the model that text_models.h says; where
// `model` is not empty, which a path names, by that one. Limits and deadline are those of inferences. A large body is
// worked on a piece at a time, on the threads that decode, so that others' requests come between.
void RunRestTokens(InferCalls& calls, std::shared_ptr<HttpCall> call, std::shared_ptr<const HttpBody> body,
                   TextEndpoint endpoint, const std::string& model);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_REST_TOKENS_H_
