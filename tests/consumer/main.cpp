// What a user of the library writes first: open a model and list its tensors.
#include <cstdio>

#include <poise/error.hpp>
#include <poise/format.hpp>

int main(int argc, char** argv) {
  try {
    const poise::Model model = poise::open(argc > 1 ? argv[1] : ".");
    std::printf("%zu tensors\n", model.size());
  } catch (const poise::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
