// ONNX models, with a file of weights next to them. Mutations rarely keep the lengths of all messages right. Thus the
// input is read as a model, and its halves also as an initializer and a sparse initializer of a valid model.
#include <poise/format.hpp>

#include "syntax/protobuf.hpp"
#include "target.hpp"

using namespace poise;

namespace {

std::string make_model(std::string_view input) {
  protobuf::MessageWriter graph;
  graph.append_text(5, input.substr(0, input.size() / 2));
  graph.append_text(15, input.substr(input.size() / 2));
  protobuf::MessageWriter model;
  model.append_integer(1, 8);
  model.append_message(7, graph);
  return model.release();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto& directory = fuzz::get_scratch_directory();
  static const bool is_written = [&] {
    fuzz::write_file(directory / "weights", std::vector<std::byte>(64, std::byte{1}));
    return true;
  }();
  (void)is_written;
  const std::string made = make_model({reinterpret_cast<const char*>(data), size});
  for (const auto input : {fuzz::bytes_of(data, size), fuzz::bytes_of(made)}) {
    fuzz::write_file(directory / "model.onnx", input);
    fuzz::expect_sound(size, [&] { fuzz::use_all(open(directory / "model.onnx")); });
  }
  return 0;
}
