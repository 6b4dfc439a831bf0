// A Hugging Face directory: config.json, model.safetensors.index.json, README.md, tokenizer.model, a list of tensors
// (write_listed_weights()), hf_quant_config.json and quantize_config.json, separated by the byte 0x1e. Without a list
// the weights fit the seeds; without an index they are one file. A model that opens is written again.
#include <array>

#include <poise/format.hpp>

#include "formats/format.hpp"
#include "huggingface_seed.hpp"
#include "io/sink.hpp"
#include "target.hpp"

using namespace poise;

namespace {

namespace fs = std::filesystem;

enum Weights : std::size_t { single, sharded, listed };

const fs::path& get_directory(Weights weights) {
  static const auto directories = [] {
    std::array paths = {fuzz::get_scratch_directory() / "single", fuzz::get_scratch_directory() / "sharded",
                        fuzz::get_scratch_directory() / "listed"};
    for (const fs::path& path : paths) fs::create_directory(path);
    fuzz::write_huggingface_weights(paths[0], false);
    fuzz::write_huggingface_weights(paths[1], true);
    return paths;
  }();
  return directories[weights];
}

class Nowhere final : public Output {
 public:
  Sink& main() override { return sink_; }
  Sink& open_main(const std::string&) override { return sink_; }
  Sink& open_sibling(const std::string&) override { return sink_; }
  std::string name() const override { return "fuzz"; }

 private:
  CountingSink sink_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto texts = fuzz::split(fuzz::bytes_of(data, size), 7);
  const fs::path& path = get_directory(!texts[4].empty() ? listed : !texts[1].empty() ? sharded : single);
  if (!texts[4].empty()) fuzz::write_listed_weights(path, texts[4]);
  fuzz::put_file(path / "config.json", texts[0]);
  fuzz::put_file(path / "model.safetensors.index.json", texts[1]);
  fuzz::put_file(path / "README.md", texts[2]);
  fuzz::put_file(path / "tokenizer.model", texts[3]);
  fuzz::put_file(path / "hf_quant_config.json", texts[5]);
  fuzz::put_file(path / "quantize_config.json", texts[6]);
  fuzz::expect_sound(size, [&] {
    const Model model = open(path);
    fuzz::use_all(model);
    Nowhere output;
    write_model(model, find_format_by_name("huggingface"), output, {});
  });
  return 0;
}
