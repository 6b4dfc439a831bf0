// A program may have any locale: in German numbers have a comma, in Turkish the small letter of I is not i. The texts
// that Poise reads and writes stays the same. localedef makes the locales (Debian's package locales has their sources).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>
#include <limits>
#include <map>

#include <poise/convert.hpp>
#include <poise/format.hpp>

#include "jinja/template.hpp"
#include "numeric/float_formats.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"
#include "tokenizer/gguf/vocabulary.hpp"

namespace poise {
namespace {

using ::testing::HasSubstr;

// Returns the directory of a locale that localedef makes, once; without it if that fails.
const support::TemporaryDirectory& directory_with(const std::string& language) {
  static std::map<std::string, support::TemporaryDirectory> directories;
  const auto [found, is_new] = directories.try_emplace(language);
  const support::TemporaryDirectory& directory = found->second;
  if (is_new) {
    const std::string path = (directory / (language + ".UTF-8")).string();
    const std::string command = "localedef -i " + language + " -f UTF-8 '" + path + "' >/dev/null 2>&1";
    if (std::system(command.c_str()) != 0) std::filesystem::remove_all(path);
  }
  return directory;
}

class AnyLocale : public ::testing::TestWithParam<std::string> {
 protected:
  // Sets the locale for all of the process.
  void SetUp() override {
    const std::string name = GetParam() + ".UTF-8";
    const support::TemporaryDirectory& directory = directory_with(GetParam());
    if (!std::filesystem::exists(directory / name)) GTEST_SKIP() << "localedef does not make " << name;
    ::setenv("LOCPATH", directory.path().c_str(), 1);
    ASSERT_NE(std::setlocale(LC_ALL, name.c_str()), nullptr);
    if (GetParam() == "de_DE") {
      ASSERT_EQ(std::strtod("0.5", nullptr), 0.0) << "the locale has no decimal comma";
    }
  }
  void TearDown() override {
    std::setlocale(LC_ALL, "C");
    ::unsetenv("LOCPATH");
  }
};

INSTANTIATE_TEST_SUITE_P(Of, AnyLocale, ::testing::Values("de_DE", "tr_TR"),
                         [](const auto& test) { return test.param; });

TEST_P(AnyLocale, KeepsNumbers) {
  for (const float number : {0.5F, 1e-5F, 1000000.0F, 3.4028235e38F, 1e-45F, -0.1F})
    EXPECT_EQ(static_cast<float>(convert_by_spelling(number)), number);
  EXPECT_EQ(convert_by_spelling(1e-5F), 1e-5);
  EXPECT_EQ(convert_by_spelling(-std::numeric_limits<float>::infinity()), -std::numeric_limits<double>::infinity());
}

// Token scores, hyperparameters and tensors, in both directions. The numbers are those of config.json.
TEST_P(AnyLocale, ConvertsAsEver) {
  const support::TemporaryDirectory folder;
  std::filesystem::copy(source_directory() / "examples" / "nano-mistral", folder / "model");
  std::string config = support::contents(folder / "model/config.json");
  config.replace(config.find("10000.0"), 7, "10000.5");
  support::put(folder / "model/config.json", config);
  for (const char* name : {"x.gguf", "x.alt", "x.zt", "x.safetensors"}) {
    convert(folder / "model", folder / name);
    convert(folder / name, folder / "back/");
    for (const Model& model : {open(folder / name), open(folder / "back")}) {
      const Attributes found = whole_config(model);
      if (std::string_view(name) != "x.safetensors") {
        EXPECT_EQ(*found.find("rope_theta"), Value(10000.5)) << name;
        EXPECT_EQ(*found.find("rms_norm_eps"), Value(1e-5)) << name;
      }
    }
    std::setlocale(LC_ALL, "C");
    convert(folder / "model", folder / (std::string("expected-") + name));
    std::setlocale(LC_ALL, (GetParam() + ".UTF-8").c_str());
    EXPECT_TRUE(support::contents(folder / name) == support::contents(folder / (std::string("expected-") + name)))
        << name;
    std::filesystem::remove_all(folder / "back");
  }
}

// Expected: jinja2 3.1.6 and CPython 3.11.
TEST_P(AnyLocale, RendersTemplatesAsPythonDoes) {
  jinja::RenderOptions options;
  std::tm day{};
  day.tm_year = 126;
  day.tm_mon = 11;
  day.tm_mday = 24;
  day.tm_wday = 4;
  options.now = [day] { return day; };
  const auto render = [&](const char* source) { return jinja::Template(source, "template").render({}, options).bytes; };
  EXPECT_EQ(render("{{ 0.5 }} {{ '1.25'|float }} {{ 2.345|round(2) }} {{ '%.2f' % 1.5 }} {{ [1e400, 1e-400] }}"),
            "0.5 1.25 2.35 1.50 [inf, 0.0]");
  EXPECT_EQ(render("{{ strftime_now('%A, %d %B %Y') }}"), "Thursday, 24 December 2026");
}

TEST_P(AnyLocale, KnowsNamesInCapitals) {
  const support::TemporaryDirectory folder;
  support::put(folder / "x.bin", "VERSION HTTPS://GIT-LFS.GITHUB.COM/SPEC/V1\nOID SHA256:00\nSIZE 1\n");
  EXPECT_THAT(support::message_of([&] { open(folder / "x.bin"); }), HasSubstr("Git LFS"));
  EXPECT_TRUE(consumes_space_in_gguf("x", "PHI-3 MINI"));
}

}  // namespace
}  // namespace poise
