// The session of any model whose batches are of rows: it gathers requests into the model's inputs, as many rows at a
// time as the model's runner asks for, or as rows_at_once.h finds best, and cuts its outputs apart.
#ifndef SWIZZLE_SERVER_MODEL_BATCH_SESSION_H_
#define SWIZZLE_SERVER_MODEL_BATCH_SESSION_H_

#include <cstdint>
#include <memory>
#include <span>

#include "model_loader/graph/graph.h"
#include "server/model/model.h"
#include "server/model/pinned_pool.h"
#include "server/model/runner_seat.h"
#include "server/model/tensor_ports.h"

namespace swizzle {

// What a session needs to know of its model; all of it outlives the session.
struct BatchedModel {
  const ModelSpec& spec;
  const PortMap& ports;
  const PinnedPool* pool = nullptr;  // where requests' inputs may be that a device reads; null: nowhere
  // Whether one plan takes the whole, whose inputs' first dimension is the batch even where max_batch_size is 0, and
  // which has been prepared for all shapes.
  bool planned_whole = false;
  int64_t fixed_batch = 0;       // ModelInterface::fixed_batch
  const Graph* graph = nullptr;  // whose nodes' names no client is told; null: there is none
};

// The hash is the same for requests that may share a batch, whose dimensions agree but for the batch's, and hardly ever
// for others.
uint64_t ShapeClassOf(const ModelSpec& spec, std::span<const TensorView> inputs);

std::unique_ptr<Session> NewBatchSession(const BatchedModel& model, std::shared_ptr<RunnerSeat> seat, Clock& clock);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_BATCH_SESSION_H_
