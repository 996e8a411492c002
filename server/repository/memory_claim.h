// What a model that is being loaded takes of the memories that it would run in: the process's, and those of its GPUs.
// Where its largest batch has no room, a smaller one is found, or the model refused.
#ifndef SWIZZLE_SERVER_REPOSITORY_MEMORY_CLAIM_H_
#define SWIZZLE_SERVER_REPOSITORY_MEMORY_CLAIM_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "kernels/backend/backend.h"
#include "model_loader/compiled/compiled_model.h"
#include "model_loader/interpreter/memory/run_budget.h"
#include "model_loader/plan/run/plan.h"
#include "server/memory/memory_need.h"
#include "server/model/model.h"

namespace swizzle {

// What one model has of the memories, from when it is loaded until it is gone.
struct MemoryShare {
  int64_t promised = 0;                                // to its executors, of the process's memory
  bool runs_by_node = false;                           // what that is for
  int64_t spare = 0;                                   // for one more of them, while it is tuned
  std::map<const Backend*, int64_t> spare_on = {};     // likewise, of GPUs
  std::map<const Backend*, int64_t> promised_on = {};  // where it runs in regions
};

// What there is for the models of one server. Thread-compatible.
struct MemoryRooms {
  MemoryRoom process;
  // Of each GPU, what is kept for one more executor, of whichever model is tuned.
  std::map<const Backend*, int64_t> spare_on = {};
  // Of each GPU, what was promised to executors of models in regions, which take it when they run. Others take theirs
  // when they are made.
  std::map<const Backend*, int64_t> promised_on = {};
  // What runs node by node hold of the process's memory, and what of its promises is theirs.
  std::shared_ptr<interpreter::RunBudget> runs = std::make_shared<interpreter::RunBudget>();
  int64_t promised_to_runs = 0;
  int64_t most_of_runs = 0;                     // that they may hold however much is left; 0: all of that
  int64_t runs_limit = 0;                       // that they may hold now; 0: there is no limit
  std::map<uint64_t, MemoryShare> shares = {};  // of models that are loaded; what was promised is their sum
  uint64_t last_share = 0;

  // Returns what to give it back by.
  uint64_t Take(MemoryShare share, int64_t (*resident_bytes)());
  void GiveBack(uint64_t share, int64_t (*resident_bytes)());
  // Has runs node by node take together what is left for them now.
  void LimitRuns(int64_t (*resident_bytes)());

 private:
  void Sum();
};

// Of one model. Single-owner.
class MemoryClaim {
 public:
  // `rooms` outlives this. `resident_bytes`: of this process.
  MemoryClaim(MemoryRooms& rooms, int64_t (*resident_bytes)()) : rooms_(rooms), resident_bytes_(resident_bytes) {}

  // RESOURCE_EXHAUSTED if files of so many bytes have no room; else how many bytes more have, without a limit `most`.
  StatusOr<int64_t> LeftBesideFiles(int64_t bytes, int64_t most) const;
  // RESOURCE_EXHAUSTED if weights of so many bytes have no room on the device; on the host their file has been counted.
  Status CheckWeights(int64_t bytes, Backend& backend) const;
  // What a run node by node may take, after FindRoom: what the largest batch does, and of what is then left an
  // executor's share (MostOfOneRun).
  int64_t MostOfARun(const ModelSpec& spec, const interpreter::RunMemory& run, int64_t most) const;
  // Likewise of a device's memory, after FindRoomOn.
  int64_t MostOfARunOn(const Backend& device, const ModelSpec& spec, const interpreter::RunMemory& run,
                       int64_t most) const;
  // What all such runs on the host may take together.
  const std::shared_ptr<interpreter::RunBudget>& runs() const { return rooms_.runs; }

  // Whether executors of a model have room at the largest batch on each of its devices; plans of the whole are for
  // `backends`. Where they have none, `largest` is less, and the model is to be compiled again. RESOURCE_EXHAUSTED if
  // there is no room for any batch. `tuned`: one executor of a plan of the whole more runs now and then. Bounds what
  // each run in regions, or node by node, may take.
  StatusOr<bool> FindRoom(const ModelSpec& spec, std::span<const CompiledModel> models,
                          std::span<Backend* const> backends, bool tuned, interpreter::Limits& limits);
  // Its parts. Of plans of the whole, one a backend.
  StatusOr<bool> FindRoom(const ModelSpec& spec, std::span<const std::shared_ptr<const Plan>> plans,
                          std::span<Backend* const> backends, bool tuned);
  // Of runs in regions. Of the process's memory, where a run took so much of it.
  StatusOr<bool> FindRoom(const ModelSpec& spec, const interpreter::RunMemory& run);
  // Likewise of a device's.
  StatusOr<bool> FindRoomOn(const Backend& device, const ModelSpec& spec, const interpreter::RunMemory& run);

  // Rows of the largest batch that has room as far as is known, or tokens.
  int64_t largest() const { return largest_; }
  const std::string& why() const { return why_; }  // it was lowered last
  // Has `spec` ask for no more, and say so.
  void Limit(ModelSpec& spec) const;

  // The model is loaded: what it was found to need is taken from the rooms, until that is given back to them.
  uint64_t Take();
  // Has runs node by node take together what is left for them now.
  void LimitRuns() { rooms_.LimitRuns(resident_bytes_); }

 private:
  StatusOr<bool> FindRoomInProcess(MemoryNeed need);
  // What the runs of all models may take, where that is less than what the process may.
  MemoryRoom RoomOfRuns() const {
    return {.limit = rooms_.most_of_runs, .promised = rooms_.promised_to_runs, .flag = "--max-run-bytes"};
  }
  StatusOr<bool> FindRoomIn(const MemoryRoom& room, const MemoryNeed& need, MemoryFit& fit);
  // As it is now. One that does not say how much it has has room for everything.
  MemoryRoom RoomOn(const Backend& gpu) const;

  MemoryRooms& rooms_;
  int64_t (*const resident_bytes_)();
  MemoryFit fit_;                                // in the process's memory
  bool runs_by_node_ = false;                    // what that is for
  std::map<const Backend*, MemoryFit> fits_on_;  // on devices
  std::set<const Backend*> regions_on_;          // those of these that regions run on
  int64_t largest_ = std::numeric_limits<int64_t>::max();
  std::string why_, lowered_;  // the last reason, and the first, which is what was asked for
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REPOSITORY_MEMORY_CLAIM_H_
