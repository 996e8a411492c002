// swizzle-pack: looks into, prunes, packs and checks models.
#include "model_loader/pack/tool_main.h"

int main(int argc, char** argv) { return swizzle::pack::ToolMain(argc, argv); }
