#include "pack/tar.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/bytes.hpp"
#include "support/errors.hpp"
#include "support/tar_file.hpp"

namespace poise {
namespace {

using support::error_of;
using support::tar_end;
using support::tar_member;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TarListing listing_of(const std::string& file) { return read_tar(*support::source(file, "a.tar")); }
std::vector<TarMember> members_of(const std::string& file) { return listing_of(file).members; }

std::vector<std::string> names_of(const std::string& file) {
  std::vector<std::string> names;
  for (const TarMember& member : members_of(file)) names.push_back(member.name);
  return names;
}

TEST(Tar, MembersAreWhereTheyAre) {
  const std::string file =
      tar_member({"./a", "some bytes"}) + tar_member({"b", ""}) + tar_member({"c", std::string(512, 'x')});
  const auto members = members_of(file + tar_end() + "anything");
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(members[0].name, "a");
  EXPECT_EQ(file.substr(members[0].begin, members[0].bytes), "some bytes");
  EXPECT_EQ(members[1].bytes, 0U);
  EXPECT_EQ(file.substr(members[2].begin, members[2].bytes), std::string(512, 'x'));
  EXPECT_EQ(members_of(file).size(), 3U);  // without its end
  EXPECT_THAT(members_of(tar_end()), IsEmpty());
}

TEST(Tar, LongNames) {
  const std::string name(150, 'n');
  EXPECT_THAT(names_of(tar_member({"b", "", '0', "a/folder"})), ElementsAre("a/folder/b"));
  EXPECT_THAT(names_of(tar_member({"././@LongLink", name + '\0', 'L'}) + tar_member({"cut"}) + tar_member({"c"})),
              ElementsAre(name, "c"));
  const std::string attributes = "160 path=" + name + "\n";
  EXPECT_THAT(names_of(tar_member({"x", "9 a=bcde\n" + attributes, 'x'}) + tar_member({"cut"}) + tar_member({"c"})),
              ElementsAre(name, "c"));
}

TEST(Tar, SizesOfAttributesAndBinaryOnes) {
  const std::string as_binary = std::string("\x80", 1) + std::string(10, '\0') + "\3";
  const std::string member = tar_member({.name = "a", .bytes = "xyz", .size = as_binary});
  EXPECT_EQ(members_of(member)[0].bytes, 3U);
  const std::string given =
      tar_member({"x", "10 size=3\n", 'x'}) + tar_member({.name = "a", .bytes = "xyz", .size = "00000000000"});
  EXPECT_EQ(members_of(given + tar_member({"b"})).at(0).bytes, 3U);
  EXPECT_EQ(members_of(given + tar_member({"b"})).at(1).name, "b");
}

TEST(Tar, OtherMembersAreLeftOut) {
  EXPECT_THAT(names_of(tar_member({"folder/", "", '5'}) + tar_member({"device", "", '3'}) +
                       tar_member({"g", "9 a=bcde\n", 'g'}) + tar_member({"old/"}) + tar_member({"dumped", "x", 'D'}) +
                       tar_member({"volume", "", 'V'}) + tar_member({"more", "x", 'M'}) + tar_member({"a"})),
              ElementsAre("a"));
}

TEST(Tar, MembersOfUnknownTypesAreFiles) {
  const std::string file = tar_member({"a", "bytes", 'Z'}) + tar_member({"x", "15 path=longer\n", 'X'}) +
                           tar_member({"short", "", '8'}) + tar_member({"c"});
  EXPECT_THAT(names_of(file), ElementsAre("a", "longer", "c"));
  EXPECT_EQ(file.substr(members_of(file)[0].begin, members_of(file)[0].bytes), "bytes");
}

// What follows a link are the next members, whatever size it claims.
TEST(Tar, LinksHaveNoBytes) {
  for (const char type : {'1', '2', '5'}) {
    EXPECT_THAT(names_of(tar_member({.name = "link", .type = type, .size = "00000001000"}) + tar_member({"a", "x"})),
                ElementsAre("a"));
  }
}

TEST(Tar, LinksAreListed) {
  const std::string target(150, 't');
  const TarListing listing = listing_of(
      tar_member({.name = "./f/link", .type = '2', .link = "../a"}) +
      tar_member({"././@LongLink", target + '\0', 'K'}) + tar_member({.name = "long", .type = '2', .link = "cut"}) +
      tar_member({"x", "14 linkpath=b\n", 'x'}) + tar_member({.name = "pax", .type = '2', .link = "cut"}) +
      tar_member({.name = "last", .type = '2', .link = "short"}));
  std::vector<std::string> links;
  for (const ArchiveLink& link : listing.links) {
    EXPECT_FALSE(link.is_hard);
    links.push_back(link.name + " -> " + link.target);
  }
  EXPECT_THAT(links, ElementsAre("f/link -> ../a", "long -> " + target, "pax -> b", "last -> short"));
  EXPECT_THAT(listing.members, IsEmpty());
  EXPECT_THAT(listing.warnings, IsEmpty());
}

// As tar extracts them: a hard link is another name of what is there by then.
TEST(Tar, HardLinksAreMembers) {
  const std::string file = tar_member({"a", "old"}) + tar_member({.name = "hard", .type = '1', .link = "./a"}) +
                           tar_member({.name = "harder", .type = '1', .link = "hard"}) + tar_member({"a", "new"}) +
                           tar_member({.name = "soft", .type = '2', .link = "a"}) +
                           tar_member({.name = "f/same", .type = '1', .link = "soft"}) +
                           tar_member({.name = "early", .type = '1', .link = "late"}) + tar_member({"late", "x"});
  const TarListing listing = listing_of(file);
  std::vector<std::string> members;
  for (const TarMember& member : listing.members)
    members.push_back(member.name + "=" + file.substr(member.begin, member.bytes));
  EXPECT_THAT(members, ElementsAre("hard=old", "harder=old", "a=new", "late=x"));
  std::vector<std::string> links;
  for (const ArchiveLink& link : listing.links)
    links.push_back(link.name + (link.is_hard ? " => " : " -> ") + link.target);
  EXPECT_THAT(links, ElementsAre("soft -> a", "f/same -> a", "early => late"));
}

// Few bytes of a file are a link's, and many links may lead where it leads.
TEST(Tar, LongTargetsAreNotKept) {
  std::string file = tar_member({"././@LongLink", std::string((1 << 20) - 1, 't') + '\0', 'K'}) +
                     tar_member({.name = "a", .type = '2', .link = "cut"});
  for (int i = 0; i < 100; ++i) file += tar_member({.name = std::to_string(i), .type = '1', .link = "a"});
  const TarListing listing = listing_of(file);
  ASSERT_EQ(listing.links.size(), 101U);
  for (const ArchiveLink& link : listing.links) {
    EXPECT_EQ(link.target, std::string(kMostTargetBytes + 1, 't'));
    EXPECT_LE(link.target.capacity(), 2 * kMostTargetBytes);
  }
}

TEST(Tar, TheLastOfOneNameCounts) {
  const std::string file = tar_member({"a", "first"}) + tar_member({"b", "b"}) + tar_member({"a", "second"}) +
                           tar_member({"./b", "other b"}) + tar_member({.name = "a", .type = '2', .link = "b"});
  const TarListing listing = listing_of(file);
  ASSERT_EQ(listing.members.size(), 1U);
  EXPECT_EQ(file.substr(listing.members[0].begin, listing.members[0].bytes), "other b");
  ASSERT_EQ(listing.links.size(), 1U);
  ASSERT_EQ(listing.warnings.size(), 1U);
  EXPECT_THAT(listing.warnings[0].message, HasSubstr("a, b (also as ./b), a: more than one member has this name"));
  const std::string respelled = tar_member({".//a"}) + tar_member({"./a"}) + tar_member({"./a"});
  EXPECT_THAT(listing_of(respelled).warnings.at(0).message, HasSubstr("tar: .//a (also as ./a), ./a: more than"));
  const std::string name(300, 'n');
  const std::string long_one = tar_member({"././@LongLink", name + '\0', 'L'}) + tar_member({"cut"});
  EXPECT_THAT(listing_of(long_one + long_one).warnings.at(0).message,
              HasSubstr("tar: " + std::string(200, 'n') + "...: more"));
  std::string many;
  for (int i = 0; i < 7; ++i) many += tar_member({"a"});
  EXPECT_THAT(listing_of(many).warnings.at(0).message, HasSubstr("a, a, a, a, a and 1 more: more than one"));
}

TEST(Tar, FromBeforePosix) {
  const std::string file = tar_member({.name = "a", .bytes = "x", .is_v7 = true}) +
                           tar_member({.name = "b", .type = '2', .prefix = "not a prefix", .link = "a", .is_v7 = true});
  EXPECT_TRUE(is_tar(*support::source(file)));
  EXPECT_EQ(listing_of(file).members.at(0).name, "a");
  EXPECT_EQ(listing_of(file).links.at(0).name, "b");
  EXPECT_TRUE(is_tar(*support::source(tar_member({"a"}))));
  EXPECT_FALSE(is_tar(*support::source(tar_end())));
  EXPECT_FALSE(is_tar(*support::source(file.substr(0, 511))));
  EXPECT_FALSE(is_tar(*support::source(std::string(512, ' '))));
  EXPECT_FALSE(is_tar(*support::source(tar_member({.name = "a", .checksum = std::string("000001\0 ", 8)}))));
}

TEST(Tar, AttributesWaitForTheirMember) {
  const std::string attributes = tar_member({.name = "x", .bytes = "15 path=longer\n10 size=1\n", .type = 'x'}) +
                                 tar_member({.name = "all", .bytes = "16 comment=none\n", .type = 'g'});
  const auto members = members_of(attributes + tar_member({.name = "short", .bytes = "y", .size = "00000000777"}));
  ASSERT_EQ(members.size(), 1U);
  EXPECT_EQ(members[0].name, "longer");
  EXPECT_EQ(members[0].bytes, 1U);
}

TEST(Tar, WhatIsWrongIsNamed) {
  struct Case {
    const char* name;
    std::string file;
    ErrorKind kind;
    std::uint64_t offset;
    const char* problem;
  };
  const std::string first = tar_member({"a", "x"});
  const Case cases[] = {
      {"a cut header", first + first.substr(0, 100), ErrorKind::invalid_file, 1024,
       "header: 512 bytes wanted, 100 left"},
      {"a cut member", first.substr(0, 512), ErrorKind::invalid_file, 124, "size: 1 bytes wanted, 0 left"},
      {"a cut block", first.substr(0, 600), ErrorKind::invalid_file, 513, "511 bytes wanted, 87 left"},
      {"a size beyond the file", tar_member({.name = "a", .size = "77777777777"}), ErrorKind::invalid_file, 124,
       "8589934591 bytes wanted"},
      {"a size of too many bits", tar_member({.name = "a", .size = "\x80\1" + std::string(10, '\0')}),
       ErrorKind::invalid_file, 124, "size: more than 64 bits"},
      {"a negative size", tar_member({.name = "a", .size = std::string(12, '\xff')}), ErrorKind::invalid_file, 124,
       "size: more than 64 bits"},
      {"a size in letters", tar_member({.name = "a", .size = "0000000000x"}), ErrorKind::invalid_file, 124,
       "size: expected octal digits"},
      {"another checksum", tar_member({.name = "a", .checksum = std::string("000001\0 ", 8)}), ErrorKind::invalid_file,
       148, "checksum: 1, expected"},
      {"a name that leads out", tar_member({"../a"}), ErrorKind::invalid_file, 0, "\"../a\" leads out of the archive"},
      {"an absolute name", tar_member({"/a"}), ErrorKind::invalid_file, 0, "\"/a\" leads out of the archive"},
      {"a link whose name leads out", tar_member({"../a", "", '2'}), ErrorKind::invalid_file, 0,
       "\"../a\" leads out of the archive"},
      {"the folder itself as a file", tar_member({"./."}), ErrorKind::invalid_file, 0, "leads out of the archive"},
      {"no name", tar_member({""}), ErrorKind::invalid_file, 0, "leads out of the archive"},
      {"an attribute without its length", tar_member({"x", "path=a\n", 'x'}), ErrorKind::invalid_file, 512,
       "expected LENGTH KEY=VALUE"},
      {"an attribute beyond its member", tar_member({"x", "99 path=a\n", 'x'}), ErrorKind::invalid_file, 512,
       "expected LENGTH KEY=VALUE"},
      {"an attribute without a value", tar_member({"x", "7 path\n", 'x'}), ErrorKind::invalid_file, 512,
       "expected KEY=VALUE"},
      {"a size in an attribute", tar_member({"x", "10 size=x\n", 'x'}), ErrorKind::invalid_file, 512,
       "size: \"x\", expected digits"},
      {"a size beyond the file in an attribute", tar_member({"x", "11 size=99\n", 'x'}) + tar_member({"a"}),
       ErrorKind::invalid_file, 1024 + 124, "99 bytes wanted, 0 left"},
      {"too many attributes", tar_member({"x", std::string((1 << 20) + 1, ' '), 'x'}), ErrorKind::invalid_file, 0,
       "1048577 bytes of attributes"},
      {"a sparse file", tar_member({"a", "", 'S'}), ErrorKind::unsupported, 0, "a sparse file"},
      {"a sparse file of pax", tar_member({"x", "22 GNU.sparse.major=1\n", 'x'}), ErrorKind::unsupported, 512,
       "a sparse file"},
  };
  for (const Case& rule : cases) {
    SCOPED_TRACE(rule.name);
    const Error error = error_of([&] { members_of(rule.file); });
    EXPECT_EQ(error.kind(), rule.kind);
    EXPECT_EQ(error.path(), "a.tar");
    EXPECT_EQ(error.offset(), rule.offset);
    EXPECT_THAT(error.message(), HasSubstr(rule.problem));
  }
}

}  // namespace
}  // namespace poise
