#include "report/report.hpp"

#include <string>

#include <gtest/gtest.h>
#include <zlib.h>

#include "report/packed.hpp"

namespace poise {
namespace {

TEST(ReportPage, JsonCannotEndItsElement) {
  EXPECT_EQ(escape_json_for_html("{\"a\":\"</script><!--&\"}"), "{\"a\":\"\\u003c/script\\u003e\\u003c!--\\u0026\"}");
  EXPECT_EQ(escape_json_for_html("\"\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA\""), "\"\\u2028\\u2029\xE2\x80\xAA\"");
  EXPECT_EQ(escape_json_for_html("\xE2\x80"), "\xE2\x80");  // cut text stays as it is
}

TEST(ReportPage, ZlibInflatesWhatIsDeflated) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * i);
  for (const std::string& bytes : {std::string(), text}) {
    const std::string packed = deflate_bytes(bytes);
    std::string out(bytes.size() + 1, '\0');
    z_stream stream{};
    ASSERT_EQ(inflateInit2(&stream, -MAX_WBITS), Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    inflateEnd(&stream);
    EXPECT_EQ(out, bytes);
  }
}

// Values are not searched for placeholders, and the title is text.
TEST(ReportPage, ValuesStayAsTheyAre) {
  PageData data;
  data.title = "<b>@MODEL@\"&";
  data.model = "{\"name\":\"@SCRIPT@\"}";
  const std::string page = make_page(data);
  EXPECT_NE(page.find("<title>&lt;b&gt;@MODEL@&quot;&amp;</title>"), std::string::npos);
  EXPECT_NE(page.find(">{\"name\":\"@SCRIPT@\"}</script>"), std::string::npos);
  EXPECT_EQ(page.find("@POLICY@"), std::string::npos);
}

}  // namespace
}  // namespace poise
