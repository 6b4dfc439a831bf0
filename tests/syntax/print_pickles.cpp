// Prints pickles for tests/syntax/pickles_against_python.py: a pickle in hexadecimal digits on each line of standard
// input, and on each line of standard output its objects as JSON, {"objects", "root", "size"}, or {"objects", "stop"}
// with the kind of error at which Poise stopped.
#include <bit>
#include <cstdint>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/value.hpp>

#include "syntax/pickle.hpp"

namespace {

using poise::Attributes;
using poise::Value;
using poise::pickle::Call;
using poise::pickle::Id;
using poise::pickle::Kind;
using poise::pickle::Pickle;

std::vector<std::byte> from_hex(std::string_view digits) {
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at + 1 < digits.size(); at += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(digits.substr(at, 2)), nullptr, 16)));
  return bytes;
}

std::string to_hex(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return digits;
}

Value number(std::uint64_t value) { return value; }

Value ids(std::span<const Id> list) {
  Value::Array array;
  for (const Id id : list) array.push_back(number(id));
  return array;
}

Value object(const Pickle& pickle, Id id) {
  switch (pickle.kind(id)) {
    case Kind::none: return Value::Array{"none"};
    case Kind::boolean: return Value::Array{"bool", pickle.boolean(id)};
    case Kind::integer: return Value::Array{"int", pickle.integer(id)};
    case Kind::wide_integer: return Value::Array{"wide", to_hex(pickle.text(id))};
    case Kind::real: return Value::Array{"real", fmt::format("{:016x}", std::bit_cast<std::uint64_t>(pickle.real(id)))};
    case Kind::text: return Value::Array{"text", to_hex(pickle.text(id))};
    case Kind::bytes: return Value::Array{"bytes", to_hex(pickle.text(id))};
    case Kind::tuple: return Value::Array{"tuple", ids(pickle.items(id))};
    case Kind::list: return Value::Array{"list", ids(pickle.items(id))};
    case Kind::dict: return Value::Array{"dict", ids(pickle.items(id))};
    case Kind::set: return Value::Array{"set", ids(pickle.items(id))};
    case Kind::global: return Value::Array{"global", to_hex(pickle.global(id).module), to_hex(pickle.global(id).name)};
    case Kind::persistent: return Value::Array{"persistent", number(pickle.persistent(id))};
    case Kind::call: break;
  }
  const Call& call = pickle.call(id);
  return Value::Array{"call",
                      call.how == Call::How::made_new,
                      number(call.function),
                      number(call.arguments),
                      call.state ? number(*call.state) : Value(),
                      ids(call.items),
                      ids(call.pairs),
                      ids(call.keywords)};
}

Attributes print(const std::vector<std::byte>& bytes) {
  const poise::pickle::Partial partial = poise::pickle::run_until_error(bytes, "pickle");
  Value::Array objects;
  for (Id id = 0; id < partial.pickle.count_objects(); ++id) objects.push_back(object(partial.pickle, id));
  if (!partial.stop)
    return {{"objects", std::move(objects)}, {"root", number(partial.pickle.root())}, {"size", partial.pickle.size()}};
  return {{"objects", std::move(objects)},
          {"stop", std::string(poise::to_string(partial.stop->kind()))},
          {"message", partial.stop->message()}};
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) std::cout << poise::to_json(print(from_hex(line))) << '\n';
  return std::cout.good() ? 0 : 1;
}
