// What watch shows of the models between two looks: a table for a person, a line for a file, JSON for a program.
#ifndef SWIZZLE_CLIENT_CLI_WATCH_TABLE_H_
#define SWIZZLE_CLIENT_CLI_WATCH_TABLE_H_

#include <string>
#include <vector>

#include "client/cli/report.h"
#include "client/client.h"

namespace swizzle::client {

struct WatchedModel {
  ListedModel listed;
  ModelStatistics between;  // of what was counted since the look before
};

// Every listed model, with what was counted of it since: nothing where one of the looks did not see it.
std::vector<WatchedModel> WatchedModels(const std::vector<ListedModel>& listed,
                                        const std::vector<ModelStatistics>& before,
                                        const std::vector<ModelStatistics>& after);

struct Screen {
  int rows = 24;
  int columns = 80;
};

// The size of the terminal that standard output is; as above where it is none.
Screen ScreenSize();

// At most as many lines as the screen has, but one, none wider than it, so that it can be drawn over.
std::string WatchTable(const std::vector<WatchedModel>& models, double seconds, Screen screen);
// One line, with what every model does that does something, or does not serve.
std::string WatchLine(const std::vector<WatchedModel>& models, double seconds);
Json WatchJson(const std::vector<WatchedModel>& models, double seconds);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_WATCH_TABLE_H_
