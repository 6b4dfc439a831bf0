// The units of a processor that vector code and products can use, one of them while a test runs: those that this
// machine has, and a matrix unit's products in ordinary code on any.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "kernels/tiles.hpp"
#include "support/instruction_set.hpp"

namespace poise {

struct Unit {
  std::int64_t target = 0;  // of Highway
  TileUnit tiles = TileUnit::none;
  bool vnni = true;  // where the target has it
};

// Returns "AVX2", "AVX3_without_vnni", "AVX3_plain_tiles".
std::string name_of(const Unit& unit);
std::ostream& operator<<(std::ostream& out, const Unit& unit);

std::vector<Unit> every_unit();

// With the environment variable POISE_TEST_UNIT set to a unit's name, a test program uses it for all tests that choose
// none themselves. It exits with code 77 if the unit is missing.
class ChosenUnit {
 public:
  explicit ChosenUnit(const Unit& unit);
  ~ChosenUnit();
  ChosenUnit(const ChosenUnit&) = delete;
  ChosenUnit& operator=(const ChosenUnit&) = delete;

 private:
  InstructionSet instructions_;
  TileUnit tiles_before_;
  bool vnni_before_;
  bool bfloat16_before_;
};

}  // namespace poise
