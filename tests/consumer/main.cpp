// The first program that users of the library write, compiled with all warnings as errors: list a model's tensors, read
// numbers, convert, save numbers, and let the model go on with a text.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <poise/convert.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/session.hpp>
#include <poise/values.hpp>

namespace {

void list(const poise::Model& model) {
  for (const poise::Tensor& tensor : model.tensors()) {
    std::printf("%s %s %s\n", tensor.name.c_str(), poise::to_string(tensor.shape).c_str(),
                std::string(poise::to_string(tensor.parts[0].dtype)).c_str());
  }
}

void run(const std::filesystem::path& input, const std::filesystem::path& directory) {
  const poise::Model model = poise::open(input);
  list(model);
  std::printf("%zu tensors\n", model.size());

  const std::vector<float> norm = poise::values(*model.find("model.norm.weight"));
  poise::convert(input, directory / "q.zt",
                 {.quantize = poise::stored_type_from_name("group4"), .write = {.overwrite = true}});
  const poise::Model quantized = poise::open(directory / "q.zt");
  std::vector<float> first(64);
  poise::read_values(*quantized.find("lm_head.weight"), 0, first);

  poise::Model made;
  made.add(poise::make_tensor("norm", {norm.size()}, norm));
  poise::save(made, directory / "norm.safetensors", {.overwrite = true});
  if (poise::values(*poise::open(directory / "norm.safetensors").find("norm")) != norm)
    std::printf("the numbers have changed\n");

  poise::Session session(model);
  std::string streamed;
  const std::string text = session.generate("Once upon a time", {.max_tokens = 20}, [&](std::string_view piece) {
    streamed += piece;
    return true;
  });
  std::printf("continuation:%s\n", text == streamed ? text.c_str() : "streamed something else");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : ".", argc > 2 ? argv[2] : ".");
  } catch (const poise::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
