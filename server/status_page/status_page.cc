#include "server/status_page/status_page.h"

#include "model_loader/pages/page.h"

namespace swizzle {

PageSources StatusPageSources();  // of the files beside this

std::string StatusPage() { return FillPage(StatusPageSources()); }

}  // namespace swizzle
