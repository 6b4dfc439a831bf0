#include "tokenizer/tokens/unicode_scripts.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace poise {
namespace {

// The scripts of Unicode 14, abbreviated as in ISO 15924, except those that script_runs() names itself.
constexpr std::string_view kScripts =
    "Adlm Aghb Ahom Arab Armi Armn Avst Bali Bamu Bass Batk Beng Bhks Bopo Brah Brai Bugi Buhd Cakm Cans Cari Cham "
    "Cher Chrs Copt Cpmn Cprt Cyrl Deva Diak "
    "Dogr Dsrt Dupl Egyp Elba Elym Ethi Geor Glag Gong Gonm Goth Gran Grek Gujr Guru Hang Hano Hatr Hebr Hluw Hmng "
    "Hmnp Hung Ital Java Kali Khar Khmr "
    "Khoj Kits Knda Kthi Lana Laoo Latn Lepc Limb Lina Linb Lisu Lyci Lydi Mahj Maka Mand Mani Marc Medf Mend Merc "
    "Mero Mlym Modi Mong Mroo Mtei Mult "
    "Mymr Nand Narb Nbat Newa Nkoo Nshu Ogam Olck Orkh Orya Osge Osma Ougr Palm Pauc Perm Phag Phli Phlp Phnx Plrd "
    "Prti Rjng Rohg Runr Samr Sarb "
    "Saur Sgnw Shaw Shrd Sidd Sind Sinh Sogd Sogo Sora Soyo Sund Sylo Syrc Tagb Takr Tale Talu Taml Tang Tavt Telu "
    "Tfng Tglg Thaa Thai Tibt Tirh Tnsa "
    "Toto Ugar Vaii Vith Wara Wcho Xpeo Xsux Yezi Yiii Zanb Zinh";

// A run begins with a character of its script; spaces and characters without a script may follow.
std::string run(std::string_view script) { return fmt::format(R"([{0}][{0} \p{{sc:Zzzz}}]*)", script); }

}  // namespace

std::string script_runs() {
  std::string runs = run(R"(\p{sc:Hani}\p{sc:Hira}\p{sc:Kana}\x{30FC})");
  for (std::string_view rest = kScripts; !rest.empty(); rest.remove_prefix(std::min<std::size_t>(rest.size(), 5))) {
    runs += '|' + run(fmt::format(R"(\p{{sc:{}}})", rest.substr(0, 4)));
  }
  // The space and U+30FC are of the script Common.
  return runs + R"(|(?![ \x{30FC}])\p{sc:Zyyy}(?:(?!\x{30FC})[\p{sc:Zyyy}\p{sc:Zzzz}])*)";
}

}  // namespace poise
