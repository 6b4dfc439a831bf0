#include "support/units.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "kernels/processor.hpp"

namespace poise {
namespace {

// Sets the unit of the whole run.
class UnitOfRun final : public testing::Environment {
 public:
  void SetUp() override {
    const char* const name = std::getenv("POISE_TEST_UNIT");
    if (name == nullptr) return;
    const std::vector<Unit> units = every_unit();
    const auto unit = std::ranges::find(units, name, name_of);
    if (unit == units.end()) {
      std::cerr << "this machine has no unit " << name << '\n';
      std::exit(77);
    }
    chosen_.emplace(*unit);
    instruction_set_of_run() = unit->target;
  }

  void TearDown() override {
    instruction_set_of_run() = 0;
    chosen_.reset();
  }

 private:
  std::optional<ChosenUnit> chosen_;
};

const testing::Environment* const kUnitOfRun = testing::AddGlobalTestEnvironment(new UnitOfRun);

}  // namespace

std::string name_of(const Unit& unit) {
  std::string name = hwy::TargetName(unit.target);
  if (!unit.vnni) name += "_without_vnni";
  if (unit.tiles == TileUnit::plain) name += "_plain_tiles";
  if (unit.tiles == TileUnit::amx) name += "_amx";
  return name;
}

std::ostream& operator<<(std::ostream& out, const Unit& unit) { return out << name_of(unit); }

std::vector<Unit> every_unit() {
  std::vector<Unit> units;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) units.push_back({.target = target});
  const std::int64_t best = units.front().target;
  if (has_vnni()) units.push_back({.target = best, .vnni = false});
  units.push_back({.target = best, .tiles = TileUnit::plain});
  if (get_tile_unit() == TileUnit::amx) units.push_back({.target = best, .tiles = TileUnit::amx});
  return units;
}

ChosenUnit::ChosenUnit(const Unit& unit)
    : instructions_(unit.target),
      tiles_before_(get_tile_unit()),
      vnni_before_(has_vnni()),
      bfloat16_before_(has_bfloat16()) {
  choose_tile_unit(unit.tiles);
  set_vnni(vnni_before_ && unit.vnni);
  // Tiles in ordinary code are filled by ordinary code, as they are on machines without either.
  set_bfloat16(bfloat16_before_ && unit.tiles == TileUnit::amx);
}

ChosenUnit::~ChosenUnit() {
  choose_tile_unit(tiles_before_);
  set_vnni(vnni_before_);
  set_bfloat16(bfloat16_before_);
}

}  // namespace poise
