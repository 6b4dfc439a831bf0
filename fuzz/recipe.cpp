// A recipe of a merge in YAML: reads it. The same bytes are the front matter of a README.
#include <poise/merge.hpp>

#include "formats/front_matter.hpp"
#include "target.hpp"

using namespace poise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto path = fuzz::get_scratch_directory() / "recipe.yaml";
  fuzz::write_file(path, fuzz::bytes_of(data, size));
  fuzz::expect_sound(size, [&] {
    fuzz::expect_answer([&] { (void)read_merge_recipe(path); });
    const FrontMatter front_matter("---\n" + std::string(reinterpret_cast<const char*>(data), size) + "\n---\n");
    for (const char* key : {"license", "tags", "base_model", "models"}) (void)front_matter.find_values(key);
  });
  return 0;
}
