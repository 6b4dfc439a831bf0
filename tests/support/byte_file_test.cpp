#include "support/byte_file.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <stdexcept>

namespace poise::support {

ByteFile::Field& ByteFile::field(std::string_view name) {
  for (Field& field : fields_) {
    if (field.name == name) return field;
  }
  return fields_.emplace_back(Field{std::string(name), {}, 0, {}, {}});
}

std::size_t ByteFile::index(std::string_view name) const {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name == name) return i;
  }
  throw std::out_of_range("there is no field " + std::string(name));
}

ByteFile& ByteFile::raw(std::string_view name, std::string bytes) {
  Field& target = field(name);
  target.first.clear();  // a given size is not computed
  target.alignment = 0;
  target.bytes = std::move(bytes);
  return *this;
}

ByteFile& ByteFile::f32(std::string_view name, float value) {
  return raw(name, le(std::bit_cast<std::uint32_t>(value), 4));
}

ByteFile& ByteFile::text(std::string_view name, std::string_view value) {
  i32(std::string(name) + " length", static_cast<std::int64_t>(value.size()));
  return raw(name, std::string(value));
}

ByteFile& ByteFile::pad(std::string_view name, std::size_t alignment) {
  field(name).alignment = alignment;
  return *this;
}

ByteFile& ByteFile::size_of(std::string_view name, std::string_view first, std::string_view last) {
  Field& size = field(name);
  size.bytes.assign(8, '\0');
  size.first = first;
  size.last = last;
  return *this;
}

ByteFile& ByteFile::append(const ByteFile& other, std::string_view prefix) {
  for (Field copy : other.fields_) {
    for (std::string* name : {&copy.name, &copy.first, &copy.last}) {
      if (!name->empty()) name->insert(0, prefix);
    }
    fields_.push_back(std::move(copy));
  }
  return *this;
}

ByteFile& ByteFile::erase(std::string_view name) {
  fields_.erase(fields_.begin() + static_cast<std::ptrdiff_t>(index(name)));
  return *this;
}

ByteFile& ByteFile::cut(std::string_view name, std::size_t bytes) {
  cut_ = static_cast<std::size_t>(offset(name)) + bytes;
  return *this;
}

std::vector<ByteFile::Place> ByteFile::places() const {
  std::vector<Place> places;
  std::uint64_t position = 0;
  for (const Field& field : fields_) {
    const std::uint64_t length =
        field.alignment > 0 ? (field.alignment - position % field.alignment) % field.alignment : field.bytes.size();
    places.push_back({position, position + length});
    position += length;
  }
  return places;
}

std::uint64_t ByteFile::offset(std::string_view name) const { return places()[index(name)].begin; }

std::uint64_t ByteFile::size(std::string_view name) const {
  const Place place = places()[index(name)];
  return place.end - place.begin;
}

std::string ByteFile::bytes() const {
  const auto at = places();
  std::string file;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const Field& field = fields_[i];
    if (field.alignment > 0) {
      file.append(static_cast<std::size_t>(at[i].end - at[i].begin), '\0');
    } else if (!field.first.empty()) {
      file += le(at[index(field.last)].end - at[index(field.first)].begin, 8);
    } else {
      file += field.bytes;
    }
  }
  if (cut_ < file.size()) file.resize(cut_);
  return file;
}

namespace {

TEST(ByteFile, FieldsHaveNamesAndPlaces) {
  ByteFile file;
  file.i32("a", -2).text("b", "hi").pad("p", 8).size_of("s", "b", "p").u8("c", 7);
  EXPECT_EQ(file.bytes(), std::string("\xfe\xff\xff\xff\x02\0\0\0hi\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\x07", 25));
  EXPECT_EQ(file.offset("b"), 8U);
  EXPECT_EQ(file.offset("c"), 24U);
  EXPECT_EQ(file.size("p"), 6U);
  file.i32("a", 1).text("b", "hello world").cut("c");
  EXPECT_EQ(file.bytes(), std::string("\x01\0\0\0\x0b\0\0\0hello world\0\0\0\0\0\x10\0\0\0\0\0\0\0", 32));
}

}  // namespace
}  // namespace poise::support
