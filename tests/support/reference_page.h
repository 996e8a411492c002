// Pages that are made from what the code says, and tables of them.
#ifndef SWIZZLE_TESTS_SUPPORT_REFERENCE_PAGE_H_
#define SWIZZLE_TESTS_SUPPORT_REFERENCE_PAGE_H_

#include <functional>
#include <string>
#include <vector>

namespace swizzle {

// Expects the page at `path`, below the root of the project, to be `text`. With SWIZZLE_REWRITE_PAGES set in the
// environment, writes it instead.
void ExpectPage(const std::string& path, const std::string& text);

// Whether help is laid out as CLI11 does it up to 2.4, which is what the functions below read; newer ones align letters
// and wrap lines. The pages are held where they are made, on Debian 12.
bool IsReadable(const std::string& help);

// What --help printed of arguments and flags, as a table. Fails where a line is not understood.
std::string FlagTable(const std::string& help);

// The page of a program without commands: what it is for, its table, and what its help says below that. Man pages and
// completions are made of such pages (deploy/packages/man_page.cmake).
std::string FlagsPage(const std::string& program, const std::string& help);

// The page of a tool with commands: likewise of each. `help` gives what the tool prints for its arguments.
std::string CommandPage(const std::string& tool, const std::vector<std::string>& commands,
                        const std::function<std::string(const std::vector<std::string>& arguments)>& help);

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_SUPPORT_REFERENCE_PAGE_H_
