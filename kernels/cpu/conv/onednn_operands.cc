#include "kernels/cpu/conv/onednn_operands.h"

#include <utility>

#include "kernels/cpu/conv/onednn_call.h"

namespace swizzle::cpu {

std::unique_ptr<OnednnOperands::Objects> OnednnOperands::Take() const {
  {
    const MutexLock lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Objects> taken = std::move(idle_.back());
      idle_.pop_back();
      return taken;
    }
  }
  auto made = std::make_unique<Objects>();
  for (const Operand& operand : operands_) {
    dnnl::memory& memory = made->memory.emplace_back();
    if (operand.of.get_size() == 0) continue;
    memory = dnnl::memory(operand.of, OnednnEngine(), DNNL_MEMORY_NONE);
    made->arguments.push_back({operand.argument, memory.get()});
  }
  return made;
}

void OnednnOperands::Execute(const dnnl::primitive& primitive, std::span<const void* const> places) const {
  std::unique_ptr<Objects> objects = Take();
  for (size_t i = 0; i < places.size(); ++i) {
    if (objects->memory[i]) objects->memory[i].set_data_handle(const_cast<void*>(places[i]));
  }
  dnnl::stream& stream = OnednnStream();
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(objects->arguments.size()),
                             objects->arguments.data()),
      "a primitive did not run");
  stream.wait();
  const MutexLock lock(mutex_);
  idle_.push_back(std::move(objects));
}

}  // namespace swizzle::cpu
