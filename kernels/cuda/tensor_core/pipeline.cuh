// How operands come to shared memory while products of earlier ones run: a ring of stages that copies fill ahead of
// what reads them. Device code.
//
// Of two kinds. Where all threads copy and all read, each thread's copies of a stage are a group (CommitCopies), and a
// stage is there when every thread has waited for its group (WaitForCopies) and then for the others (__syncthreads).
// Where some warps copy and others multiply, a stage has two barriers in shared memory: StageBarriers, which a Producer
// and a Consumer go round each on its own.
#ifndef SWIZZLE_KERNELS_CUDA_TENSOR_CORE_PIPELINE_CUH_
#define SWIZZLE_KERNELS_CUDA_TENSOR_CORE_PIPELINE_CUH_

#include <cuda_runtime.h>

#include <cstdint>

namespace swizzle::cuda {

__device__ inline uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

template <int kStages>
__device__ int NextStage(int stage) {
  if constexpr (kStages == 2) return stage ^ 1;
  return stage + 1 == kStages ? 0 : stage + 1;
}

// Turing has no asynchronous copies, and only Hopper and its successors have the barriers' bulk copies. Kernels compile
// for all devices and are launched on those that have what they use.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define SWIZZLE_SM80_ASM(...) asm volatile(__VA_ARGS__)
#else
#define SWIZZLE_SM80_ASM(...) __trap()
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define SWIZZLE_SM90_ASM(...) asm volatile(__VA_ARGS__)
#else
#define SWIZZLE_SM90_ASM(...) __trap()
#endif

// 16 bytes to shared memory.
__device__ inline void CopyPiece(uint32_t to, const void* from) {
  SWIZZLE_SM80_ASM("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
// The same, of which the first `bytes` are read and the others zero.
__device__ inline void CopyAsyncPart(uint32_t to, const void* from, int bytes) {
  SWIZZLE_SM80_ASM("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
// 16 bytes to shared memory; zeros if not `real`, and nothing is read.
__device__ inline void CopyAsync(uint32_t to, const void* from, bool real = true) {
  CopyAsyncPart(to, from, real ? 16 : 0);
}
__device__ inline void CommitCopies() { SWIZZLE_SM80_ASM("cp.async.commit_group;" ::: "memory"); }
// Until all groups but the latest kLeft are there.
template <int kLeft>
__device__ void WaitForCopies() {
  SWIZZLE_SM80_ASM("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// A barrier in shared memory. It goes from phase to phase, each of which ends when as many have arrived as it was made
// for, and as many bytes as they said to expect.
class Barrier {
 public:
  // By one thread, before a fence (StageBarriers::Init, PublishToProducts) and __syncthreads.
  __device__ void Init(int arrivals) {
    SWIZZLE_SM90_ASM("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals));
  }
  __device__ void Arrive() { SWIZZLE_SM90_ASM("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory"); }
  __device__ void ArriveExpecting(uint32_t bytes) {
    SWIZZLE_SM90_ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
  }
  // This thread arrives when all its copies so far are there; it does not wait for them.
  __device__ void ArriveAfterCopies() {
    SWIZZLE_SM90_ASM("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address()) : "memory");
  }
  // Until the phase of this parity has ended. Of a new barrier the phase before the first counts as ended.
  __device__ void Wait(uint32_t parity) {
    SWIZZLE_SM90_ASM(
        "{\n"
        ".reg .pred done;\n"
        "Again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra Again;\n"
        "}\n" ::"r"(address()),
        "r"(parity)
        : "memory");
  }
  // `bytes`, a multiple of 16, from and to addresses that are too; they count for this barrier when they are there.
  __device__ void CopyBulk(uint32_t to, const void* from, uint32_t bytes) {
    SWIZZLE_SM90_ASM(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
        "r"(bytes), "r"(address())
        : "memory");
  }

 private:
  __device__ uint32_t address() const { return SharedAddress(&state_); }
  uint64_t state_;
};

// A ring's barriers, in shared memory: of each stage one that it is full and one that it is empty again.
template <int kStages>
struct StageBarriers {
  Barrier full[kStages], empty[kStages];

  // By one thread, before __syncthreads. For each stage: how often producers arrive at `full`, and consumers at
  // `empty`.
  __device__ void Init(int producers, int consumers) {
    for (int i = 0; i < kStages; ++i) full[i].Init(producers), empty[i].Init(consumers);
    SWIZZLE_SM90_ASM("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
};

// Where a role stands in the ring; stages come in order, round and round.
template <int kStages, uint32_t kFirstParity>
class StageTurn {
 public:
  __device__ int stage() const { return stage_; }

 protected:
  __device__ uint32_t parity() const { return parity_; }
  __device__ void Advance() {
    stage_ = NextStage<kStages>(stage_);
    if (stage_ == 0) parity_ ^= 1;
  }

 private:
  int stage_ = 0;
  uint32_t parity_ = kFirstParity;
};

// Fills stages: wait until its stage is empty, begin the copies, arrive at full(), go on.
template <int kStages>
class Producer : public StageTurn<kStages, 1> {
 public:
  __device__ explicit Producer(StageBarriers<kStages>& barriers) : barriers_(barriers) {}
  __device__ void WaitUntilEmpty() { barriers_.empty[this->stage()].Wait(this->parity()); }
  __device__ Barrier& full() { return barriers_.full[this->stage()]; }
  __device__ void Next() { this->Advance(); }

 private:
  StageBarriers<kStages>& barriers_;
};

// Reads stages: wait until its stage is full, go on, and release it when nothing reads it any more. What other threads
// copied by CopyAsync has to be published to products (PublishToProducts) by those that waited.
template <int kStages>
class Consumer : public StageTurn<kStages, 0> {
 public:
  __device__ explicit Consumer(StageBarriers<kStages>& barriers) : barriers_(barriers) {}
  __device__ void WaitUntilFull() { barriers_.full[this->stage()].Wait(this->parity()); }
  __device__ void Next() { this->Advance(); }
  __device__ void Release(int stage) { barriers_.empty[stage].Arrive(); }

 private:
  StageBarriers<kStages>& barriers_;
};

// A role's registers: all warps of a warpgroup call it, where a kernel begins to be of one role. Producers give some
// back, which consumers take; kCount is a multiple of 8.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
template <int kCount>
__device__ void KeepRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ void TakeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}
#else
template <int>
__device__ void KeepRegisters() {}
template <int>
__device__ void TakeRegisters() {}
#endif
#undef SWIZZLE_SM80_ASM
#undef SWIZZLE_SM90_ASM

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_TENSOR_CORE_PIPELINE_CUH_
