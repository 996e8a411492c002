// Where the memory of a session's runs comes from. Runs take blocks in like sizes one after another. Fresh from the
// kernel, which zeroes them page by page, blocks cost half of the processor time of an encoder with large scores; on a
// device an allocation takes longer than most operators do.
//
// Thread-safe. Blocks may be given back after the run that took them, by whoever holds its results.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_MEMORY_BLOCK_STORE_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_MEMORY_BLOCK_STORE_H_

#include <cstddef>

namespace swizzle::interpreter {

class BlockStore {
 public:
  struct Block {
    std::byte* data = nullptr;  // on a multiple of 64; null: there is no memory
    size_t bytes = 0;
  };

  BlockStore() = default;
  BlockStore(const BlockStore&) = delete;
  BlockStore& operator=(const BlockStore&) = delete;
  // REQUIRES: all blocks were given back.
  virtual ~BlockStore() = default;

  // At least so many bytes, with anything in them.
  virtual Block Take(size_t bytes) = 0;
  virtual void Give(Block block) = 0;
  // Frees what runs have not needed for a while.
  virtual void BeginRun() = 0;
  // Frees all that is kept.
  virtual void FreeKept() = 0;
  // Likewise, if no run began since the last call.
  virtual void FreeIdle() = 0;

  virtual size_t kept_bytes() const = 0;
};

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_MEMORY_BLOCK_STORE_H_
