#include "jinja/template.hpp"

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise::jinja {
namespace {

using ::testing::HasSubstr;

std::tm some_friday() {  // environment.py has the same
  std::tm now = {};
  now.tm_year = 124;
  now.tm_mon = 6;
  now.tm_mday = 26;
  now.tm_hour = 13;
  now.tm_min = 4;
  now.tm_sec = 5;
  now.tm_wday = 5;
  now.tm_yday = 207;
  return now;
}

std::vector<Variable> variables_of(const Attributes& from) {
  std::vector<Variable> variables;
  for (const auto& [name, value] : from) variables.push_back({name, value});
  return variables;
}

Text render(const std::string& source, const Attributes& variables = {}, const Limits& limits = {}) {
  return Template(source, "template").render(variables_of(variables), {.limits = limits, .now = some_friday});
}

// Returns the text with brackets around characters that come from the variables.
std::string marked_text(const std::string& source, const Attributes& variables) {
  const Text text = render(source, variables);
  std::string shown;
  bool inside = false;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const bool is_marked = i < text.size() && is_input(text, i);
    if (is_marked != inside) shown += is_marked ? '[' : ']';
    inside = is_marked;
    if (i < text.size()) shown += text.bytes[i];
  }
  return shown;
}

// golden.jsonl is made by Python's jinja2 (make_golden.py).
TEST(Template, RendersWhatJinja2Renders) {
  std::ifstream file(source_directory() / "tests/jinja/golden.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const Value head = parse_json(line, "golden.jsonl");
  const auto variables = variables_of(*head.get_if<Attributes>()->find("variables")->get_if<Attributes>());
  std::size_t cases = 0;
  while (std::getline(file, line)) {
    const Value parsed = parse_json(line, "golden.jsonl");
    const Attributes& entry = *parsed.get_if<Attributes>();
    const std::string& source = *entry.get_if<std::string>("template");
    const auto* const expected = entry.get_if<std::string>("text");
    SCOPED_TRACE(source);
    ++cases;
    if (expected == nullptr) {
      EXPECT_THROW((void)Template(source, "template").render(variables, {.now = some_friday}), Error);
    } else {
      EXPECT_EQ(Template(source, "template").render(variables, {.now = some_friday}).bytes, *expected);
    }
  }
  EXPECT_GT(cases, 400U);
}

TEST(Template, MarksTextThatComesFromTheVariables) {
  const Attributes given = {{"x", "ab c"}, {"m", Value::Array{Attributes{{"role", "user"}, {"content", " <s>é "}}}}};
  EXPECT_EQ(marked_text("<s>{{ x }}</s>", given), "<s>[ab c]</s>");
  EXPECT_EQ(marked_text("{% for i in m %}<{{ i.role }}>{{ i['content']|trim }}\n{% endfor %}", given),
            "<[user]>[<s>é]\n");
  EXPECT_EQ(marked_text("{{ '<' + x + '>' }}{{ '-' ~ x.upper() ~ 1 }}", given), "<[ab c]>-[AB C]1");
  EXPECT_EQ(marked_text("{{ x[1:] }}{{ x.split(' ') }}{{ x.replace('b', '+') }}", given),
            "[b c]['[ab]', '[c]'][a]+[ c]");
  EXPECT_EQ(marked_text("{{ m|tojson }}", given), R"([{"[role]": "[user]", "[content]": "[ <s>é ]"}])");
  EXPECT_EQ(marked_text("{{ '%s|%5s' % (x, x[0]) }}{{ '{}:{:>3}'.format(x[0], x[1]) }}", given),
            "[ab c]|    [aa]:  [b]");
  EXPECT_EQ(marked_text("{{ [x, 'y']|join('+') }}{{ x|list|join }}{{ 'a'.join([x]) }}", given), "[ab c]+y[ab cab c]");
  EXPECT_EQ(marked_text("{% set y %}({{ x }}){% endset %}{{ y * 2 }}{% filter upper %}q{{ x }}{% endfilter %}", given),
            "([ab c])([ab c])Q[AB C]");
  EXPECT_EQ(marked_text("{% macro f(a) %}<{{ a }}>{% endmacro %}{{ f(x)|reverse }}{{ x|indent(2, true) }}", given),
            ">[c ba]<  [ab c]");
  EXPECT_EQ(marked_text("{{ x|title }}{{ x.center(8, '.') }}{{ x|truncate(3, true, '~', 0) }}{{ x|urlencode }}", given),
            "[Ab C]..[ab c]..[ab]~[ab%20c]");
  EXPECT_EQ(marked_text("{{ x|string|escape|safe }}{{ x is string }}{{ x|length }}{{ x ~ x }}", given),
            "[ab c]True4[ab cab c]");
}

// A message's numbers must not become a special token: 60 is "<", 62 is ">".
TEST(Template, MarksCharactersThatNumbersMake) {
  const Attributes given = {{"m", Attributes{{"a", 60}, {"b", 62}}}};
  EXPECT_EQ(marked_text("{{ '%cs%c' % (m.a, m.b) }}{{ '%3c' % m.a }}", given), "[<]s[>]  [<]");
  EXPECT_EQ(marked_text("{{ '{:c}s{:c}'.format(m.a, m.b) }}{{ '{:_>2c}'.format(m.a) }}", given), "[<]s[>]_[<]");
  EXPECT_EQ(marked_text("{{ '%c' | format(m.a) }}{{ '{x:c}'.format(x=m.b) }}", given), "[<>]");
  EXPECT_EQ(marked_text("{{ '%c%c' % ('x', m.a) }}", given), "x[<]");
}

TEST(Template, MarksTextThatComesThroughNamesAndFormats) {
  const Attributes given = {{"d", Attributes{{"<s>", 1}}}, {"x", "<s>%Y"}, {"f", "{:<>2}"}};
  EXPECT_EQ(marked_text("{{ dict(**d)|tojson }}{{ dict({'a': 1}, **d)|list|join }}", given), R"({"[<s>]": 1}a[<s>])");
  EXPECT_EQ(marked_text("{% macro f() %}{{ kwargs|list|join }}{% endmacro %}{{ f(b=1, **d) }}", given), "b[<s>]");
  EXPECT_EQ(marked_text("{% macro f() %}{{ kwargs|list|join }}{{ caller() }}{% endmacro %}"
                        "{% call f(**d) %}c{% endcall %}",
                        given),
            "[<s>]c");
  EXPECT_EQ(marked_text("{{ namespace(**d)|string }}{{ namespace(d)|string }}", given),
            "<Namespace {'[<s>]': 1}><Namespace {'[<s>]': 1}>");
  EXPECT_EQ(marked_text("{{ strftime_now('%d' ~ x ~ '%%|%-m') }}", given), "26[<s>2024]%|7");
  EXPECT_EQ(marked_text("{{ f.format('') }}{{ '{:*>2}'.format('') }}", given), "[<<]**");
}

std::string error_of(const std::string& source, const Attributes& variables = {}, const Limits& limits = {}) {
  return support::error_of([&] { (void)render(source, variables, limits); }).what();
}

TEST(Template, ErrorsNameTheLine) {
  EXPECT_THAT(error_of("a\n{% if %}"), HasSubstr("template: line 2: expected an expression"));
  EXPECT_THAT(error_of("\n\n{{ 'a }}"), HasSubstr("line 3: a string has no end"));
  EXPECT_THAT(error_of("{# a"), HasSubstr("line 1: a comment has no end"));
  EXPECT_THAT(error_of("{% for x in [1] %}"), HasSubstr("line 1: the template ends before 'endfor'"));
  EXPECT_THAT(error_of("{% frob %}"), HasSubstr("there is no statement 'frob'"));
  EXPECT_THAT(error_of("{% include 'x' %}"), HasSubstr("'include' is not supported: a chat template is one file"));
  EXPECT_THAT(error_of("{{ 1|frob }}"), HasSubstr("there is no filter 'frob'"));
  EXPECT_THAT(error_of("{{ 1 is frob }}"), HasSubstr("there is no test 'frob'"));
  // Unknown filters outside of conditions are errors before anything runs.
  EXPECT_THAT(error_of("{{ raise_exception('x') }}\n{% for x in [] %}\n{{ x|frob }}{% endfor %}"),
              HasSubstr("line 3: there is no filter 'frob'"));
  EXPECT_THAT(error_of("{{ dict(a=1, a=2) }}"), HasSubstr("the argument 'a' is given twice"));
  EXPECT_THAT(error_of("{% macro m(a, b, a) %}{% endmacro %}"), HasSubstr("two parameters are called 'a'"));
  EXPECT_THAT(error_of("{% block a %}{% endblock %}\n{% block a %}{% endblock %}"),
              HasSubstr("line 2: two blocks are called 'a'"));
  EXPECT_THAT(error_of("{% for x in [1] %}\n{% set loop = x %}{% endfor %}"),
              HasSubstr("line 2: 'loop' cannot be assigned to in a loop"));
  EXPECT_THAT(error_of("\n{{ raise_exception('only users') }}"),
              HasSubstr("line 2: the template refuses this: only users"));
  EXPECT_THAT(error_of("\n\n{{ x.y.z }}"), HasSubstr("line 3: 'x' is undefined"));
  EXPECT_THAT(error_of("{{ (1, 2 }}"), HasSubstr("unexpected '}', expected ')'"));
  EXPECT_THAT(error_of("{% break %}"), HasSubstr("'break' is outside of a loop"));
  EXPECT_THAT(error_of("{{ 99999999999999999999 }}"), HasSubstr("the integer 99999999999999999999 is too large"));
  EXPECT_THAT(error_of("{{ 9223372036854775807 + 1 }}"), HasSubstr("an integer does not fit 64 bits"));
  EXPECT_THAT(error_of("{{ 1 // 0 }}"), HasSubstr("by zero"));
}

// JSON may have integers that are too large for a template.
TEST(Template, IntegersBeyond64BitsFailWhereTheyAreUsed) {
  const std::string_view json = R"({"large": 9223372036854775808, "x": "y", "n": -9223372036854775808,
                                    "f": 1e300, "l": [18446744073709551615]})";
  const Attributes given = {{"m", parse_json(json, "")}};
  EXPECT_EQ(render("{{ m.x }}{{ m|length }}{{ m.n }}{{ m.f }}{{ m.l|length }}", given).bytes,
            "y5-92233720368547758081e+3001");
  for (const char* source :
       {"{{ m.large }}", "{{ m['large'] }}", "{{ m.large is string }}", "{{ m|tojson }}", "{{ m }}",
        "{% for x in m.l %}{{ x + 1 }}{% endfor %}", "{{ m.l|sum }}", "{{ m.l|join }}", "{{ m.values()|list|string }}",
        "{{ m.l|map('float')|list }}", "{{ m.l|select('number')|list }}"}) {
    EXPECT_THAT(error_of(source, given), HasSubstr("is too large for a template")) << source;
  }
}

// The expected texts are jinja2's.
TEST(Template, ANameThatAScopeSetsIsUndefinedAtItsBeginning) {
  const Attributes given = {{"x", "X"}};
  EXPECT_EQ(render("{% for i in [1] %}{{ x }}{% endfor %}{% set x = 2 %}{{ x }}", given).bytes, "2");
  EXPECT_EQ(render("{% macro f() %}{{ x }}{% endmacro %}{{ f() }}{% set x = 2 %}{{ f() }}", given).bytes, "2");
  EXPECT_EQ(render("{% for i in [1] if x %}{{ i }}{% endfor %}{% set x = 2 %}", given).bytes, "");
  EXPECT_EQ(render("{{ x }}{% for i in [1] %}{{ x }}{% endfor %}{% set x = 2 %}", given).bytes, "XX");
  EXPECT_EQ(render("{% for i in [1] %}{{ x }}{% endfor %}{% if false %}{% set x = 2 %}{% endif %}", given).bytes, "X");
  EXPECT_EQ(render("{% for i in [1] %}{{ x }}{% set x = 3 %}{{ x }}{% endfor %}{{ x }}", given).bytes, "X3X");
  EXPECT_EQ(render("{% block b %}{{ x }}{% endblock %}{% set x = 2 %}", given).bytes, "X");
}

TEST(Template, ReachesOnlyTheAttributesOfItsValues) {
  EXPECT_EQ(render("{{ ''.__class__ }}{{ [].__doc__ }}{{ cycler.__init__ }}{{ {}.__class__ }}").bytes, "");
  EXPECT_THAT(error_of("{{ ''.__class__.__mro__ }}"), HasSubstr("is unsafe"));
  EXPECT_THAT(error_of("{{ ''['__class__'].x }}"), HasSubstr("is unsafe"));
  EXPECT_THAT(error_of("{{ l.append(1) }}", {{"l", Value::Array{1}}}), HasSubstr("is unsafe"));
  EXPECT_THAT(error_of("{{ d.update({}) }}", {{"d", Attributes{}}}), HasSubstr("is unsafe"));
  EXPECT_THAT(error_of("{{ 5() }}"), HasSubstr("'int' object is not callable"));
}

// Without limits, each would run for ever, or take all memory or the whole stack.
TEST(Template, StopsAtItsLimits) {
  const Limits small = {.steps = 200'000, .bytes = 1 << 24, .output = 1 << 20, .depth = 400};
  const auto ends = [&](const std::string& source) {
    const Error error = support::error_of([&] { (void)render(source, {}, small); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << source << ": " << error.what();
  };
  ends("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}");
  ends("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}");
  ends("{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}");
  ends("{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}");
  ends("{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}");
  ends("{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}");
  ends(
      "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x == "
      "ns.x|list }}{{ ns.x|tojson }}");
  ends("{{ 'x' * 999999999999 }}");
  ends("{{ [0] * 999999999999 }}");
  ends("{{ 'a'.center(999999999) }}");
  ends("{{ '%1000000s%1000000s' % (1, 2) * 100 }}");
  ends("{{ ('a' * 9999).replace('', 'b' * 9999) }}");
  ends("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}");
  // Large arguments of filters, and large values.
  const std::string often = "{% set s = '\"' * 100000 %}{% for i in range(100) %}";
  for (const std::string filter : {"s|escape", "s|forceescape", "[]|groupby(s)", "[]|sort(attribute=',' * 100000)",
                                   "[]|map(attribute='.' * 100000)", "[{'a': 1}]|groupby('b', default=s)"})
    ends(often + "{% set x = " + filter + " %}{% endfor %}");
  ends("{{ ('ab' * 400000) ~ ('ab' * 400000) }}");
  // A tuple that holds a tuple twice, 60 deep, has 2^60 items to hash.
  const std::string deep =
      "{% set ns = namespace(x=(1,)) %}{% for i in range(60) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}";
  for (const std::string use :
       {"{{ {}[ns.x] }}", "{{ ns.x in {} }}", "{{ [ns.x]|unique|list }}", "{{ ns.x is filter }}"})
    ends(deep + use);
  ends(
      "{% set ns = namespace() %}{% macro m() %}{% endmacro %}{% set ns.m = m %}{% for i in range(9999) %}"
      "{% macro n() %}{% macro o() %}{{ n }}{% endmacro %}{% set ns.m = o %}{% endmacro %}{{ n() }}{% endfor %}"
      "{% for i in range(99999) %}{{ ns.m() }}{% endfor %}");
  EXPECT_THAT(error_of("{{ " + std::string(5000, '(')), HasSubstr("too deep"));
  EXPECT_THAT(error_of("{{ " + std::string(5000, '-') + "1 }}"), HasSubstr("too deep"));
  std::string sum = "{{ 1";
  for (int i = 0; i < 5000; ++i) sum += "+1";
  EXPECT_THAT(error_of(sum + " }}"), HasSubstr("too many operators"));
  std::string ifs;
  for (int i = 0; i < 5000; ++i) ifs += "{% if 1 %}";
  EXPECT_THAT(error_of(ifs), HasSubstr("too deep"));
}

TEST(Template, NamespacesThatHoldEachOtherAreFreed) {
  EXPECT_EQ(render("{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}{% set a.a = a %}"
                   "{% macro m() %}{% endmacro %}{% set a.m = m %}{{ a.b.a.a.b is defined }}")
                .bytes,
            "True");
  EXPECT_EQ(render("{% set ns = namespace(x=none) %}{% for i in range(9999) %}{% set ns.x = namespace(x=ns.x) %}"
                   "{% endfor %}{% for i in range(3) %}{{ loop.changed(loop) }}{% endfor %}")
                .bytes,
            "TrueFalseFalse");
}

}  // namespace
}  // namespace poise::jinja
