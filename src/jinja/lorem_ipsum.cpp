#include "jinja/lorem_ipsum.hpp"

#include <random>

#include <fmt/format.h>

namespace poise::jinja {
namespace {

// jinja2's words.
constexpr std::string_view kWords =
    "a ac accumsan ad adipiscing aenean aliquam aliquet amet ante aptent arcu at auctor augue bibendum blandit "
    "class commodo condimentum congue consectetuer consequat conubia convallis cras cubilia cum curabitur curae "
    "cursus dapibus diam dictum dictumst dignissim dis dolor donec dui duis egestas eget eleifend elementum elit "
    "enim erat eros est et etiam eu euismod facilisi facilisis fames faucibus felis fermentum feugiat fringilla "
    "fusce gravida habitant habitasse hac hendrerit hymenaeos iaculis id imperdiet in inceptos integer interdum "
    "ipsum justo lacinia lacus laoreet lectus leo libero ligula litora lobortis lorem luctus maecenas magna magnis "
    "malesuada massa mattis mauris metus mi molestie mollis montes morbi mus nam nascetur natoque nec neque netus "
    "nibh nisi nisl non nonummy nostra nulla nullam nunc odio orci ornare parturient pede pellentesque penatibus "
    "per pharetra phasellus placerat platea porta porttitor posuere potenti praesent pretium primis proin pulvinar "
    "purus quam quis quisque rhoncus ridiculus risus rutrum sagittis sapien scelerisque sed sem semper senectus "
    "sit sociis sociosqu sodales sollicitudin suscipit suspendisse taciti tellus tempor tempus tincidunt torquent "
    "tortor tristique turpis ullamcorper ultrices ultricies urna ut varius vehicula vel velit venenatis vestibulum "
    "vitae vivamus viverra volutpat vulputate";

class Writer {
 public:
  Writer() {
    for (std::size_t begin = 0; begin < kWords.size();) {
      const std::size_t end = std::min(kWords.find(' ', begin), kWords.size());
      words_.push_back(kWords.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  // From `first` to `last` - 1.
  std::int64_t number(std::int64_t first, std::int64_t last) {
    return std::uniform_int_distribution<std::int64_t>(first, last - 1)(random_);
  }

  // Commas and full stops where jinja2 puts them.
  std::string paragraph(Budget& budget, std::int64_t count) {
    std::string text;
    std::string_view last;
    bool begins = true;
    std::int64_t comma = 0;
    std::int64_t stop = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      budget.step();
      budget.charge(16);
      if (i > 0) text += ' ';
      const std::size_t at = text.size();
      last = other_word(last);
      text += last;
      if (begins) text[at] = static_cast<char>(text[at] - 'a' + 'A');
      begins = false;
      if (i - number(3, 8) > comma) {
        comma = i;
        stop += 2;
        text += ',';
      }
      if (i - number(10, 20) > stop) {
        comma = stop = i;
        text += '.';
        begins = true;
      }
    }
    if (text.ends_with(',')) text.pop_back();
    if (!text.ends_with('.')) text += '.';
    return text;
  }

 private:
  std::string_view other_word(std::string_view than) {
    std::string_view word;
    do word = words_[static_cast<std::size_t>(number(0, static_cast<std::int64_t>(words_.size())))];
    while (word == than);
    return word;
  }

  std::vector<std::string_view> words_;
  std::mt19937_64 random_{std::random_device()()};
};

}  // namespace

Object lorem_ipsum(Interpreter& in, Parameters& given) {
  const std::int64_t paragraphs = given.integer("n", 5);
  const bool is_html = given.truth("html", true);
  const std::int64_t least = given.integer("min", 20);
  const std::int64_t most = given.integer("max", 100);
  given.finish();
  Writer writer;
  Text out;
  for (std::int64_t i = 0; i < paragraphs; ++i) {
    if (least >= most) fail(fmt::format("empty range for randrange() ({}, {})", least, most));
    in.budget().step();
    const std::string text = writer.paragraph(in.budget(), writer.number(least, most));
    in.budget().charge(text.size() + 8);
    if (i > 0) append(out, is_html ? "\n" : "\n\n");
    append(out, is_html ? "<p>" + text + "</p>" : text);
  }
  out.is_markup = is_html;
  return out;
}

}  // namespace poise::jinja
