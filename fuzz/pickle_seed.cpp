#include "pickle_seed.hpp"

#include <cstdint>

namespace poise::fuzz {
namespace {

std::string word(std::uint64_t value, std::size_t bytes) {
  std::string word(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) word[i] = static_cast<char>(value >> (8 * i));
  return word;
}

// These write steps of pickles (Lib/pickletools.py of CPython).
std::string integer(std::uint64_t value) { return "J" + word(value, 4); }
std::string text(std::string_view value) { return "X" + word(value.size(), 4) + std::string(value); }
std::string global(const std::string& module, const std::string& name) { return "c" + module + "\n" + name + "\n"; }
std::string tuple(const std::string& items) { return "(" + items + "t"; }
std::string call(const std::string& function, const std::string& arguments) {
  return function + tuple(arguments) + "R";
}

unsigned elements_of(std::string_view storage) {
  return kPickledBytes / (storage == "FloatStorage" ? 4 : storage == "HalfStorage" ? 2 : 1);
}

std::string parameter(const std::string& storage) {
  const std::string hooks = global("collections", "OrderedDict") + ")R";
  const std::string elements =
      tuple(text("storage") + global("torch", storage) + text("0") + text("cpu") + integer(elements_of(storage))) + "Q";
  const std::string view =
      call(global("torch._utils", "_rebuild_tensor_v2"),
           elements + integer(0) + tuple(integer(2) + integer(3)) + tuple(integer(1) + integer(2)) + "\x89" + hooks);
  return call(global("torch._utils", "_rebuild_parameter"), view + "\x88" + hooks);
}

std::string values() {
  const std::string type = call(global("numpy", "dtype"), text("f4") + "\x89\x88") + "(" + integer(3) + text("<") +
                           "NNN" + integer(UINT32_MAX) + integer(UINT32_MAX) + integer(0) + "tb";
  return text("epoch") + integer(1) + text("lr") + "G?\xe0" + std::string(6, '\0') + text("betas") +
         tuple(integer(1) + "\x8a\x01\xff") + text("size") + call(global("torch", "Size"), tuple(integer(3))) +
         text("list") + "](" + text("a") + "\x88Ne" + text("loss") +
         call(global("numpy.core.multiarray", "scalar"), type + "C\x04" + word(0x3f800000, 4)) + text("other") +
         call(global("os", "system"), text("true"));
}

}  // namespace

std::string make_pickle_seed(std::string_view storage) {
  return "\x80\x02}(" + text("state_dict") + "}(" + text("w") + parameter(std::string(storage)) + "u" + values() + "u.";
}

std::string make_legacy_checkpoint_seed(std::string_view storage) {
  return "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}(" +
         text("little_endian") + "\x88u." + make_pickle_seed(storage) + "\x80\x02](" + text("0") + "e." +
         word(elements_of(storage), 8) + std::string(kPickledBytes, '\0');
}

}  // namespace poise::fuzz
