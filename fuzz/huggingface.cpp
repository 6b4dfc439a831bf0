// A Hugging Face directory: config.json, model.safetensors.index.json, README.md and tokenizer.model, separated by the
// byte 0x1e, next to weights that fit the seeds. Without an index the weights are one file. Writes again whatever
// opens.
#include <array>

#include <poise/format.hpp>

#include "formats/format.hpp"
#include "huggingface_seed.hpp"
#include "io/sink.hpp"
#include "target.hpp"

using namespace poise;

namespace {

namespace fs = std::filesystem;

const fs::path& directory(bool sharded) {
  static const auto directories = [] {
    std::array paths = {fuzz::scratch_directory() / "single", fuzz::scratch_directory() / "sharded"};
    for (const fs::path& path : paths) fs::create_directory(path);
    fuzz::write_huggingface_weights(paths[0], false);
    fuzz::write_huggingface_weights(paths[1], true);
    return paths;
  }();
  return directories[sharded ? 1 : 0];
}

class Nowhere final : public Output {
 public:
  Sink& main() override { return sink_; }
  Sink& main_named(const std::string&) override { return sink_; }
  Sink& sibling(const std::string&) override { return sink_; }
  std::string name() const override { return "fuzz"; }

 private:
  CountingSink sink_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto texts = fuzz::split(fuzz::bytes_of(data, size), 4);
  const fs::path& path = directory(!texts[1].empty());
  fuzz::put_file(path / "config.json", texts[0]);
  fuzz::put_file(path / "model.safetensors.index.json", texts[1]);
  fuzz::put_file(path / "README.md", texts[2]);
  fuzz::put_file(path / "tokenizer.model", texts[3]);
  fuzz::expect_sound(size, [&] {
    const Model model = open(path);
    fuzz::use(model);
    Nowhere output;
    write_model(model, format_by_name("huggingface"), output, {});
  });
  return 0;
}
