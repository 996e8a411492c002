#include "server/memory/memory_need.h"

#include <algorithm>

namespace swizzle {
namespace {

// More than any machine has: sums of a few of these fit.
constexpr int64_t kUnheardOf = int64_t{1} << 58;

int64_t InMiB(int64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }         // of what is needed
int64_t WholeMiB(int64_t bytes) { return std::max<int64_t>(bytes, 0) >> 20; }  // of what there is

int64_t Product(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? kUnheardOf : std::min(product, kUnheardOf);
}

int64_t Arena(const MemoryNeed& need, int64_t rows) {
  const double part = static_cast<double>(rows) / static_cast<double>(need.largest);
  return static_cast<int64_t>(static_cast<double>(std::min(need.arena, kUnheardOf)) * part);
}

int64_t OwnSpare(const MemoryNeed& need, int64_t rows) { return need.tuned ? need.stream + Arena(need, rows) : 0; }

// What there has to be more for the model that is tuned.
int64_t Spare(const MemoryNeed& need, int64_t rows, const MemoryRoom& room) {
  return std::max(room.spare, OwnSpare(need, rows));
}

// At batches of so many rows.
int64_t Executors(const MemoryNeed& need, int64_t rows) {
  const int64_t executor = std::min(need.stream + Arena(need, rows) + Product(need.row, rows), kUnheardOf);
  return Product(need.executors, executor);
}

int64_t Promise(const MemoryNeed& need, int64_t rows, const MemoryRoom& room) {
  return Executors(need, rows) + Spare(need, rows, room) - room.spare;
}

std::string NoRoomText(const MemoryRoom& room) {
  if (!room.flag.empty()) return Concat("there is no room for it within ", room.flag, ": ");
  if (room.device.empty()) return "there is no room for it in memory: ";
  return Concat("there is no room for it in the memory of ", room.device, ": ");
}

std::string MoreMemoryText(const MemoryRoom& room) {
  if (!room.flag.empty()) return Concat("; raise ", room.flag);
  return room.device.empty() ? "; give the server more memory" : "; give it a device with more memory";
}

// "of 2048 MiB of memory 1248 MiB are left, ...".
std::string LeftText(int64_t left, const MemoryRoom& room) {
  if (!room.flag.empty()) return Concat("of ", WholeMiB(room.limit), " MiB ", WholeMiB(left), " MiB are left");
  if (!room.device.empty()) {
    return Concat("of ", WholeMiB(room.limit), " MiB of ", room.device, " ", WholeMiB(left),
                  " MiB are left, with what is in use there and what models are tuned in");
  }
  return Concat("of ", WholeMiB(room.limit), " MiB of memory ", WholeMiB(left),
                " MiB are left, with what is loaded, what was promised to it, and ", InMiB(room.requests),
                " MiB for requests");
}

}  // namespace

StatusOr<MemoryFit> FitToMemory(const MemoryNeed& need, const MemoryRoom& room) {
  const int64_t left = room.Left(need.resident);
  const auto fits = [&](int64_t rows) { return room.limit == 0 || Promise(need, rows, room) <= left; };
  int64_t rows = need.largest;
  while (rows > need.least && !fits(rows)) rows = std::max(need.least, rows / 2);
  MemoryFit fit{.largest = rows,
                .promised = Promise(need, rows, room),
                .spare = Spare(need, rows, room),
                .executors = Executors(need, rows),
                .own_spare = OwnSpare(need, rows)};
  if (rows == need.largest && fits(rows)) return fit;
  fit.why = Concat("at batches of ", need.largest, " it needs ", InMiB(Promise(need, need.largest, room)),
                   " MiB beside its weights, and ", LeftText(left, room));
  if (fits(rows)) return fit;
  return MakeError(StatusCode::kResourceExhausted, NoRoomText(room), fit.why, MoreMemoryText(room),
                   ", or the model smaller batches or fewer instances");
}

Status CheckRoomFor(std::string_view what, int64_t bytes, int64_t resident, const MemoryRoom& room) {
  const int64_t left = room.Left(resident);
  if (room.limit == 0 || bytes <= left) return absl::OkStatus();
  return MakeError(StatusCode::kResourceExhausted, NoRoomText(room), "its ", what, " have ", InMiB(bytes), " MiB, and ",
                   LeftText(left, room), MoreMemoryText(room));
}

}  // namespace swizzle
