// A delta, applied to a base of a few tensors: the attribute poise.delta in JSON, the attribute `parts` of a tensor in
// JSON, and the bytes of its part. The file around them is sound, so that its digests do not refuse every change.
#include <poise/delta.hpp>

#include "ops/delta/delta_parts.hpp"
#include "target.hpp"

using namespace poise;

namespace {

BlobPtr make_zeros(std::size_t size) { return make_memory_blob(std::vector<std::byte>(size), "zeros"); }

Model make_base() {
  Model base;
  base.add(make_dense("a", {70'000}, DType::bf16, make_zeros(140'000)));
  base.add(make_dense("b", {3}, DType::f32, make_zeros(12)));
  return base;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Model base = make_base();
  const auto texts = fuzz::split(fuzz::bytes_of(data, size), 3);
  fuzz::expect_sound(size, [&] {
    Model delta;
    delta.attributes.set(std::string(kDeltaKey), parse_json(texts[0], "header"));
    Tensor tensor{"a", {70'000}, TensorLayout::other(std::string(kDeltaLayout)), {}, {}};
    tensor.attributes.set("parts", parse_json(texts[1], "parts"));
    const auto bytes = fuzz::bytes_of(texts[2]);
    tensor.parts.push_back(
        {.role = "data", .dtype = DType::u8, .blob = make_memory_blob({bytes.begin(), bytes.end()}, "part")});
    delta.add(std::move(tensor));
    fuzz::use_all(apply_delta(base, delta));
  });
  return 0;
}
