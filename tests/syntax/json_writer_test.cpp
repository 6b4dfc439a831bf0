// Writing piece by piece gives the same text as to_json() of the same value.
#include "syntax/json_writer.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace poise {
namespace {

TEST(JsonWriter, WritesTheTextOfToJson) {
  const Value nested = Attributes{{"deep", Value::Array{1, Value::Array{}, Attributes()}}};
  const Attributes whole{{"name", "a\"b"},
                         {"none", Value()},
                         {"list", Value::Array{true, 2, -1.5}},
                         {"empty", Attributes()},
                         {"nested", nested}};
  for (const int indent : {-1, 0, 2}) {
    JsonWriter out(indent);
    out.begin_object();
    out.write_member("name", "a\"b");
    out.write_member("none", Value());
    out.write_key("list");
    out.begin_array();
    out.write_value(Value(true));
    out.write_value(Value(2));
    out.write_value(Value(-1.5));
    out.end_array();
    out.write_key("empty");
    out.begin_object();
    out.end_object();
    out.write_member("nested", nested);
    out.end_object();
    EXPECT_EQ(out.release(), to_json(whole, indent)) << indent;
  }
}

TEST(JsonWriter, WritesNumbersThatAreNotFiniteAsAsked) {
  const auto write = [](JsonWriter::NotFinite not_finite) {
    JsonWriter out(-1, not_finite);
    out.write_value(
        Value(Value::Array{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN(), Value(), 1.5}));
    return out.release();
  };
  EXPECT_EQ(write(JsonWriter::NotFinite::null), "[null,null,null,null,1.5]");
  EXPECT_EQ(write(JsonWriter::NotFinite::quoted), R"(["Infinity","-Infinity","NaN",null,1.5])");
  EXPECT_EQ(write(JsonWriter::NotFinite::named), "[Infinity,-Infinity,NaN,null,1.5]");
}

TEST(JsonWriter, GivesTheTextPieceByPiece) {
  JsonWriter out;
  std::string text;
  out.begin_array();
  for (const char* item : {"a", "b", "c"}) {
    out.write_value(item);
    EXPECT_GT(out.size(), 0U);
    text += out.release();
  }
  out.end_array();
  EXPECT_EQ(text + out.release(), R"(["a","b","c"])");
}

}  // namespace
}  // namespace poise
