// What the program swizzle-pack does: looks into, prunes, packs and checks models. The process is its own: it takes
// over a signal, and what it prints goes to standard output and standard error.
#ifndef SWIZZLE_MODEL_LOADER_PACK_TOOL_MAIN_H_
#define SWIZZLE_MODEL_LOADER_PACK_TOOL_MAIN_H_

namespace swizzle::pack {

// The exit code.
int ToolMain(int argc, char** argv);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_TOOL_MAIN_H_
