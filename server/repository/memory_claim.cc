#include "server/repository/memory_claim.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/memory/memory_trim.h"
#include "server/repository/model_memory.h"

namespace swizzle {
namespace {

int64_t At(const std::map<const Backend*, int64_t>& bytes, const Backend& gpu) {
  const auto found = bytes.find(&gpu);
  return found == bytes.end() ? 0 : found->second;
}

int64_t UsedOn(const Backend& gpu) {
  const std::optional<DeviceMemory> memory = gpu.memory();
  return memory ? memory->used : 0;
}

}  // namespace

MemoryRoom MemoryClaim::RoomOn(const Backend& gpu) const {
  const std::optional<DeviceMemory> memory = gpu.memory();
  const int64_t spare = At(rooms_.spare_on, gpu);
  return {.limit = memory ? memory->total : 0,
          .promised = spare + At(rooms_.promised_on, gpu),
          .spare = spare,
          .device = gpu.name()};
}

StatusOr<int64_t> MemoryClaim::LeftBesideFiles(int64_t bytes, int64_t most) const {
  const int64_t resident = resident_bytes_();
  SWIZZLE_RETURN_IF_ERROR(CheckRoomFor("files", bytes, resident, rooms_.process));
  return rooms_.process.limit == 0 ? most : std::min(most, rooms_.process.Left(resident) - bytes);
}

Status MemoryClaim::CheckWeights(int64_t bytes, Backend& backend) const {
  if (HasHostMemory(backend)) return absl::OkStatus();
  return CheckRoomFor("weights", bytes, UsedOn(backend), RoomOn(backend));
}

int64_t MemoryClaim::MostOfARun(const ModelSpec& spec, const interpreter::RunMemory& run, int64_t most) const {
  const int64_t left = rooms_.process.Left(resident_bytes_()) - fit_.promised;
  if (rooms_.most_of_runs > 0) most = std::min(most, rooms_.most_of_runs);
  return std::min(most, NeedOf(spec, run).arena + MostOfOneRun(spec, rooms_.process, left, most));
}

int64_t MemoryClaim::MostOfARunOn(const Backend& device, const ModelSpec& spec, const interpreter::RunMemory& run,
                                  int64_t most) const {
  const MemoryRoom room = RoomOn(device);
  const int64_t left = room.Left(UsedOn(device)) - fits_on_.at(&device).promised;
  return std::min(most, NeedOnDevice(spec, run).arena + MostOfOneRun(spec, room, left, most));
}

StatusOr<bool> MemoryClaim::FindRoom(const ModelSpec& spec, std::span<const std::shared_ptr<const Plan>> plans,
                                     std::span<Backend* const> backends, bool tuned) {
  MemoryNeed need = NeedOf(spec, *plans[0]);
  need.tuned = tuned;
  SWIZZLE_ASSIGN_OR_RETURN(bool fits, FindRoomInProcess(need));
  for (size_t i = 0; fits && i < backends.size(); ++i) {
    if (HasHostMemory(*backends[i])) continue;
    MemoryNeed on_device = NeedOnDevice(spec, *plans[i]);
    on_device.resident = UsedOn(*backends[i]);
    on_device.tuned = tuned;
    SWIZZLE_ASSIGN_OR_RETURN(fits, FindRoomIn(RoomOn(*backends[i]), on_device, fits_on_[backends[i]]));
  }
  return fits;
}

StatusOr<bool> MemoryClaim::FindRoom(const ModelSpec& spec, std::span<const CompiledModel> models,
                                     std::span<Backend* const> backends, bool tuned, interpreter::Limits& limits) {
  const regions::RegionalProgram* const first = models.front().regional();
  if (first == nullptr) {
    std::vector<std::shared_ptr<const Plan>> plans;
    for (const CompiledModel& model : models) plans.push_back(model.plan());
    return FindRoom(spec, plans, backends, tuned);
  }
  const bool is_on_host = first->on_device == nullptr;
  // Of what is on a device the host has copies of inputs and outputs alone.
  const interpreter::RunMemory on_host = is_on_host ? first->run_memory : interpreter::RunMemory();
  SWIZZLE_ASSIGN_OR_RETURN(bool fits, FindRoom(spec, on_host));
  if (!fits) return false;
  limits.max_live_bytes = MostOfARun(spec, on_host, limits.max_live_bytes);
  for (size_t i = 0; i < models.size() && fits && !is_on_host; ++i) {
    const offload::DeviceProgram& there = *models[i].regional()->on_device;
    SWIZZLE_ASSIGN_OR_RETURN(fits, FindRoomOn(there.device(), spec, there.run_memory()));
    if (!fits) return false;
    limits.max_live_bytes = MostOfARunOn(there.device(), spec, there.run_memory(), limits.max_live_bytes);
  }
  return fits;
}

StatusOr<bool> MemoryClaim::FindRoom(const ModelSpec& spec, const interpreter::RunMemory& run) {
  runs_by_node_ = true;
  SWIZZLE_ASSIGN_OR_RETURN(const bool fits, FindRoomIn(RoomOfRuns(), NeedOf(spec, run), fit_));
  return fits ? FindRoomInProcess(NeedOf(spec, run)) : fits;
}

StatusOr<bool> MemoryClaim::FindRoomOn(const Backend& device, const ModelSpec& spec,
                                       const interpreter::RunMemory& run) {
  MemoryNeed need = NeedOnDevice(spec, run);
  need.resident = UsedOn(device);
  regions_on_.insert(&device);
  return FindRoomIn(RoomOn(device), need, fits_on_[&device]);
}

StatusOr<bool> MemoryClaim::FindRoomInProcess(MemoryNeed need) {
  need.resident = resident_bytes_();
  const StatusOr<MemoryFit> as_it_is = FitToMemory(need, rooms_.process);
  if (!as_it_is.ok() || !as_it_is->why.empty()) {
    GiveBackFreedMemory();  // what reading has left over
    need.resident = resident_bytes_();
  }
  return FindRoomIn(rooms_.process, need, fit_);
}

StatusOr<bool> MemoryClaim::FindRoomIn(const MemoryRoom& room, const MemoryNeed& need, MemoryFit& fit) {
  SWIZZLE_ASSIGN_OR_RETURN(fit, FitToMemory(need, room));
  if (fit.why.empty()) return true;
  why_ = fit.why;
  if (lowered_.empty()) lowered_ = why_;
  largest_ = fit.largest;
  return false;
}

void MemoryClaim::Limit(ModelSpec& spec) const {
  if (lowered_.empty()) return;
  LowerBatch(largest_, spec);
  spec.memory_note = Concat("the largest batch is ", largest_, ": ", lowered_);
}

uint64_t MemoryClaim::Take() {
  MemoryShare share{.promised = fit_.executors, .runs_by_node = runs_by_node_, .spare = fit_.own_spare};
  for (const auto& [backend, fit] : fits_on_) share.spare_on[backend] = fit.own_spare;
  for (const Backend* const backend : regions_on_) share.promised_on[backend] = fits_on_.at(backend).executors;
  return rooms_.Take(std::move(share), resident_bytes_);
}

uint64_t MemoryRooms::Take(MemoryShare share, int64_t (*resident_bytes)()) {
  shares[++last_share] = std::move(share);
  Sum();
  if (promised_to_runs > 0) LimitRuns(resident_bytes);
  return last_share;
}

void MemoryRooms::GiveBack(uint64_t share, int64_t (*resident_bytes)()) {
  if (shares.erase(share) == 0) return;
  Sum();
  if (promised_to_runs > 0) LimitRuns(resident_bytes);
}

// One model is tuned at a time: the largest of their spares is kept.
void MemoryRooms::Sum() {
  process.promised = process.spare = promised_to_runs = 0;
  spare_on.clear();
  promised_on.clear();
  for (const auto& [id, share] : shares) {
    process.promised += share.promised;
    process.spare = std::max(process.spare, share.spare);
    if (share.runs_by_node) promised_to_runs += share.promised;
    for (const auto& [gpu, bytes] : share.spare_on) spare_on[gpu] = std::max(spare_on[gpu], bytes);
    for (const auto& [gpu, bytes] : share.promised_on) promised_on[gpu] += bytes;
  }
  process.promised += process.spare;
}

void MemoryRooms::LimitRuns(int64_t (*resident_bytes)()) {
  runs_limit = most_of_runs;
  if (process.limit != 0) {
    GiveBackFreedMemory();  // what loading has left over
    const int64_t left = process.Left(resident_bytes()) + promised_to_runs;
    const int64_t most = std::max<int64_t>(left + runs->held(), 1);
    runs_limit = most_of_runs > 0 ? std::min(most, most_of_runs) : most;
  }
  if (runs_limit > 0) runs->Limit(runs_limit);
}

}  // namespace swizzle
