#include "model_loader/plan/choose/tuning_cache.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "kernels/backend/kernel_table_version.h"
#include "kernels/base/field_count.h"
#include "kernels/cpu/runtime/processor.h"
#include "kernels/operator/count_zeros.h"
#include "kernels/operator/print.h"
#include "kernels/whole_numbers/byte_weight.h"
#include "model_loader/files/atomic_file.h"
#include "model_loader/files/read_file.h"

namespace swizzle {
namespace {

using Json = nlohmann::json;

constexpr int kFileVersion = 1;
constexpr int64_t kMaxFileBytes = int64_t{64} << 20;

std::string HeadLine() { return Json({{"swizzle_tuning_cache", kFileVersion}}).dump(); }

std::string ExtentText(const Extent& extent) {
  const auto& [batch, channels, height, width] = extent;
  return Concat(batch, "x", channels, "x", height, "x", width);
}

// What of an operator's attributes its time may depend on: one overload for each type, which names all fields.
std::string TimedText(const std::monostate&) { return {}; }
std::string TimedText(const Window& window) { return AttributesText(window); }

std::string TimedText(const Function& function) {
  const auto& [kind, alpha, beta] = function;  // what it is multiplied with costs the same
  return Concat(" ", FunctionKindName(kind));
}

std::string TimedText(const Lookup& lookup) {
  const auto& [by_position, offset] = lookup;  // wherever positions begin
  return by_position ? " by position" : "";
}

std::string TimedText(const Attention& attention) {
  // A weight's pattern has a hash of its own.
  const auto& [heads, scale, length, nonzeros, packed, reach, windows, places, group_size] = attention;
  const bool is_biased = nonzeros == 0 && (length > 0 || reach > 0);
  return Concat(packed ? " packed" : "", " heads ", heads, group_size == 1 ? "" : Concat(" in groups of ", group_size),
                is_biased ? Concat(" length ", length, " reach ", reach) : "",
                windows == 1 ? "" : Concat(" windows ", windows), places == 0 ? "" : Concat(" places ", places));
}

std::string TimedText(const Normalisation& normalisation) {
  const auto& [epsilon, centred, groups] = normalisation;  // whatever epsilon is
  return Concat(centred ? "" : " uncentred", groups == 1 ? "" : Concat(" groups ", groups));
}

std::string TimedText(const ConcatParts& parts) { return AttributesText(parts); }

std::string TimedText(const ChannelRange& range) {
  const auto& [first] = range;
  return Concat(" from ", first % 16);  // whether it begins on a block of channels
}

std::string TimedText(const Resampling& resampling) { return AttributesText(resampling); }

std::string TimedText(const SpaceBlock& space) { return AttributesText(space); }

std::string TimedText(const Rotation& rotation) { return AttributesText(rotation); }

std::string TimedText(const TokenChoice& choice) {
  [[maybe_unused]] const auto& [token] = choice;  // whichever it is
  return {};
}

std::string TimedText(const Epilogue& epilogue) {
  const auto& [low, high, residual, function, requantise] = epilogue;  // any bounds and scales cost the same
  return Concat(epilogue.Clamps() ? " clamped" : "", residual ? " residual" : "", function ? TimedText(*function) : "",
                requantise ? Concat(" requantised ", DTypeName(requantise->dtype)) : "");
}

std::string HexText(uint64_t number) {
  std::ostringstream hex;
  hex << std::hex << number;
  return hex.str();
}

bool IsProcessor(const Backend& backend) { return dynamic_cast<const HostBackend*>(&backend) != nullptr; }

// Clouds call generations of processors by one name.
std::string DeviceOf(const Backend& backend) {
  return IsProcessor(backend) ? Concat(backend.device_name(), ", ", cpu::ThisProcessor().Identity())
                              : backend.device_name();
}

// Libraries use more than the table's rows ask for. Devices' kernels were once timed behind nothing (Stream::Time), and
// such times can't be compared with today's.
std::string FeaturesOf(const Backend& backend) {
  return IsProcessor(backend) ? Concat(backend.features_text(), ", of ", cpu::ThisProcessor().instruction_sets)
                              : Concat(backend.features_text(), ", timed behind a kernel");
}

}  // namespace

std::string ProblemText(const Problem& problem) {
  static_assert(FieldCount<Problem>() == 9,
                "what a problem has more than this stands below, or is left out on purpose");
  const auto& [op, attributes, epilogue] = static_cast<const Operator&>(problem);
  return Concat(OpName(op), " ", ExtentText(problem.input), " -> ", ExtentText(problem.output),
                std::visit([](const auto& its) { return TimedText(its); }, attributes), TimedText(epilogue),
                " threads ", problem.threads, problem.blocking == 0 ? "" : Concat(" blocking ", problem.blocking),
                problem.input_zeros ? Concat(" ", ZerosText(*problem.input_zeros)) : "");
}

uint64_t PatternHash(const Weight& weight) {
  class Hash final : public PartSink {
   public:
    void Scalar(std::string_view, int64_t number) override { Add(std::as_bytes(std::span(&number, 1))); }
    void Array(const MatrixArray& array, std::span<const std::byte> elements) override {
      if (array.role == MatrixArray::Role::kPlaces) Add(elements);
    }
    void Add(std::span<const std::byte> bytes) { value = XXH3_64bits_withSeed(bytes.data(), bytes.size(), value); }

    uint64_t value = 0;
  };
  Hash hash;
  const int64_t shape[] = {weight.rows(), weight.cols(), IsSparse(weight.format()) ? 1 : 0};
  hash.Add(std::as_bytes(std::span(shape)));
  weight.matrix.Write(hash);
  if (const int64_t beyond = CountBeyondSignedBytes(weight); beyond > 0) hash.Scalar("beyond", beyond);
  return hash.value;
}

uint64_t ExtendPlanHash(uint64_t hash, const Kernel& kernel, const Problem& problem, uint64_t pattern) {
  const std::string step = Concat(kernel.name, " ", ProblemText(AsRowSolves(kernel, problem)), " ", HexText(pattern));
  return XXH3_64bits_withSeed(step.data(), step.size(), hash);
}

uint64_t ExtendPlanHash(uint64_t hash, int64_t number) { return XXH3_64bits_withSeed(&number, sizeof(number), hash); }

TuningCache::TuningCache(std::filesystem::path file, const Backend& backend)
    : file_(std::move(file)), device_(DeviceOf(backend)), features_(FeaturesOf(backend)) {
  if (file_.empty()) return;
  Records records;
  status_ = Read(file_, records);
  if (!status_.ok()) return;
  MutexLock lock(mutex_);
  records_ = std::move(records);
}

// Splits a line of the file into a key and a record. False where it is not one.
bool TuningCache::ParseRecord(const std::string& line, std::string& key, Record& record) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  const auto time = json.find("microseconds");
  if (time == json.end() || !time->is_number()) return false;
  record = {.microseconds = time->get<double>()};
  if (!std::isfinite(record.microseconds) || record.microseconds < 0) return false;
  json.erase(time);
  if (const auto suspect = json.find("suspect"); suspect != json.end()) {
    if (!suspect->is_string()) return false;
    record.suspect = suspect->get<std::string>();
    json.erase(suspect);
  }
  if (const auto algorithm = json.find("algorithm"); algorithm != json.end()) {
    if (!algorithm->is_number_integer()) return false;
    record.algorithm = algorithm->get<int>();
    json.erase(algorithm);
  }
  key = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return true;
}

std::string TuningCache::RecordLine(const std::string& key, const Record& record) {
  Json json = Json::parse(key);
  json["microseconds"] = record.microseconds;
  if (!record.suspect.empty()) json["suspect"] = record.suspect;
  if (record.algorithm >= 0) json["algorithm"] = record.algorithm;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void TuningCache::Put(const std::string& key, const Record& record, Records& records) {
  const auto known = records.find(key);
  if (known != records.end() && known->second.suspect.empty() && !record.suspect.empty()) return;
  records[key] = record;
}

Status TuningCache::Read(const std::filesystem::path& file, Records& records) {
  const auto bytes = ReadFile(file, kMaxFileBytes);
  if (bytes.status().code() == StatusCode::kNotFound) return absl::OkStatus();
  SWIZZLE_RETURN_IF_ERROR(bytes);
  std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()));
  std::string line;
  if (!std::getline(lines, line) || line != HeadLine()) {
    return InvalidArgument(file.string(), ": it is no tuning cache of this version; name another file, or delete it");
  }
  for (int number = 2; std::getline(lines, line); ++number) {
    std::string key;
    Record record;
    if (!ParseRecord(line, key, record)) {
      return InvalidArgument(file.string(), ": line ", number, " is no record; delete the file");
    }
    records[key] = std::move(record);
    if (records.size() > kMaxRecords) {
      return MakeError(StatusCode::kResourceExhausted, file.string(), ": it holds more than ", kMaxRecords,
                       " records; delete it");
    }
  }
  return absl::OkStatus();
}

std::string TuningCache::KeyOf(const Kernel& kernel, const Problem& problem, uint64_t pattern) const {
  const Json key = {{"device", device_},
                    {"features", features_},
                    {"kernel", std::string(kernel.name)},
                    {"kernel_table", kKernelTableVersion},
                    {"pattern", HexText(pattern)},
                    {"problem", ProblemText(AsRowSolves(kernel, problem))}};
  return key.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string TuningCache::KeyOfRuns(uint64_t plan_hash, int64_t rows, int64_t micro_batch) const {
  const Json key = {{"device", device_},          {"features", features_},      {"kernel_table", kKernelTableVersion},
                    {"micro_batch", micro_batch}, {"plan", HexText(plan_hash)}, {"rows", rows}};
  return key.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string TuningCache::KeyOfStep(uint64_t plan_hash, int step, Steps steps) const {
  constexpr const char* kNames[] = {"all", "one", "chosen"};
  const Json key = {
      {"device", device_},          {"features", features_}, {"kernel_table", kKernelTableVersion},
      {"plan", HexText(plan_hash)}, {"step", step},          {"threads", kNames[static_cast<int>(steps)]}};
  return key.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string TuningCache::KeyOfProduct(const std::string& product) const {
  const Json key = {
      {"device", device_}, {"features", features_}, {"kernel_table", kKernelTableVersion}, {"product", product}};
  return key.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<double> TuningCache::FindKey(const std::string& key) const {
  MutexLock lock(mutex_);
  const auto record = records_.find(key);
  if (record == records_.end() || !record->second.suspect.empty()) return std::nullopt;
  return record->second.microseconds;
}

void TuningCache::AddKey(const std::string& key, const Record& record) {
  MutexLock lock(mutex_);
  Put(key, record, records_);
  Put(key, record, added_);
}

bool TuningCache::empty() const {
  MutexLock lock(mutex_);
  return records_.empty();
}

std::optional<double> TuningCache::Find(const Kernel& kernel, const Problem& problem, uint64_t pattern) const {
  return FindKey(KeyOf(kernel, problem, pattern));
}

bool TuningCache::IsSuspect(const Kernel& kernel, const Problem& problem, uint64_t pattern) const {
  const std::string key = KeyOf(kernel, problem, pattern);
  MutexLock lock(mutex_);
  const auto record = records_.find(key);
  return record != records_.end() && !record->second.suspect.empty();
}

void TuningCache::Add(const Kernel& kernel, const Problem& problem, uint64_t pattern, double microseconds,
                      const std::string& suspect) {
  AddKey(KeyOf(kernel, problem, pattern), {microseconds, suspect});
}

std::optional<double> TuningCache::FindRuns(uint64_t plan_hash, int64_t rows, int64_t micro_batch) const {
  return FindKey(KeyOfRuns(plan_hash, rows, micro_batch));
}

void TuningCache::AddRuns(uint64_t plan_hash, int64_t rows, int64_t micro_batch, double microseconds) {
  AddKey(KeyOfRuns(plan_hash, rows, micro_batch), {microseconds, {}});
}

std::optional<double> TuningCache::FindStep(uint64_t plan_hash, int step, Steps steps) const {
  return FindKey(KeyOfStep(plan_hash, step, steps));
}

void TuningCache::AddStep(uint64_t plan_hash, int step, Steps steps, double microseconds) {
  AddKey(KeyOfStep(plan_hash, step, steps), {microseconds, {}});
}

void TuningCache::GiveChoices(AlgorithmChoices& choices) const {
  const Json begin = Json::parse(KeyOfProduct(""));
  MutexLock lock(mutex_);
  for (const auto& [key, record] : records_) {
    if (record.algorithm < 0) continue;
    Json json = Json::parse(key);
    const auto product = json.find("product");
    if (product == json.end() || !product->is_string()) continue;
    const auto text = product->get<std::string>();
    *product = "";
    if (json == begin) choices.Add(text, {record.algorithm, record.microseconds});
  }
}

void TuningCache::TakeChoices(const AlgorithmChoices& choices) {
  for (const auto& [product, choice] : choices.All()) {
    const std::string key = KeyOfProduct(product);
    MutexLock lock(mutex_);
    if (records_.contains(key)) continue;
    const Record record = {.microseconds = choice.microseconds, .algorithm = choice.algorithm};
    Put(key, record, records_);
    Put(key, record, added_);
  }
}

Status TuningCache::Save() {
  MutexLock lock(mutex_);
  if (file_.empty() || added_.empty() || !status_.ok()) return absl::OkStatus();
  Records records;
  SWIZZLE_RETURN_IF_ERROR(Read(file_, records));
  size_t dropped = 0;
  for (const auto& [key, record] : added_) {
    if (records.size() < kMaxRecords || records.contains(key)) {
      Put(key, record, records);
    } else {
      ++dropped;
    }
  }
  std::string text = HeadLine() + "\n";
  for (const auto& [key, record] : records) text += RecordLine(key, record);
  SWIZZLE_RETURN_IF_ERROR(WriteFileAtomically(file_, std::as_bytes(std::span(text))));
  added_.clear();
  if (dropped == 0) return absl::OkStatus();
  return MakeError(StatusCode::kResourceExhausted, file_.string(), ": it holds ", kMaxRecords, " records, the most; ",
                   dropped, " new ones were dropped; delete it to start anew");
}

}  // namespace swizzle
