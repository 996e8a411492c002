#include <ostream>

#include "model_loader/files/atomic_file.h"
#include "model_loader/load/loader.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/text_table.h"
#include "model_loader/packed/packed_writer.h"

namespace swizzle::pack {

StatusOr<Outcome> Execute(const PackCommand& command, Terminal& terminal) {
  SWIZZLE_ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(command.model));
  SWIZZLE_RETURN_IF_ERROR(MakeFolderOf(command.output));
  SWIZZLE_RETURN_IF_ERROR(WritePacked(model.network, command.output));
  const int64_t dense_bytes = model.network.DenseWeightBytes();
  const int64_t stored_bytes = model.network.StoredWeightBytes();
  terminal.out << command.output.string() << ": weights " << BytesText(dense_bytes) << " dense, "
               << BytesText(stored_bytes) << " stored (" << RatioText(dense_bytes, stored_bytes) << " smaller)\n";
  return Outcome::kOk;
}

}  // namespace swizzle::pack
