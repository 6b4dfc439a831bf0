// Comments cite documents of the project only, since a reader of the sources has no others.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "support/directories.hpp"

namespace {

namespace fs = std::filesystem;

TEST(Comments, CiteDocumentsThatAreHere) {
  static const std::set<std::string> kSources = {".c", ".cpp", ".def", ".h", ".hpp", ".py", ".sh", ".txt"};
  static const std::regex kDocument(R"(([A-Za-z0-9_./-]+\.md)\b)");
  const fs::path root = poise::source_directory();
  std::size_t cited = 0;
  for (const char* folder : {"bench", "cmake", "examples", "fuzz", "include", "scripts", "src", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || !kSources.contains(entry.path().extension().string())) continue;
      std::ifstream stream(entry.path());
      for (std::string line; std::getline(stream, line);) {
        const std::size_t comment = std::min(line.find("// "), line.find("# "));
        if (comment == std::string::npos) continue;
        const std::string text = line.substr(comment);
        for (std::sregex_iterator at(text.begin(), text.end(), kDocument), end; at != end; ++at, ++cited) {
          EXPECT_TRUE(fs::exists(root / (*at)[1].str())) << entry.path() << " cites " << (*at)[1];
        }
      }
    }
  }
  EXPECT_GT(cited, 10U);
}

}  // namespace
