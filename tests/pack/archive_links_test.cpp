#include "pack/archive_links.hpp"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace poise {
namespace {

using testing::HasSubstr;

using Names = std::set<std::string, std::less<>>;

// name -> the member that it stands for, or the problem.
std::map<std::string, std::string> followed(const std::vector<ArchiveLink>& links, const Names& members) {
  std::map<std::string, std::string> found;
  const auto has = [&](std::string_view name) { return members.contains(name); };
  const auto has_any = [&](std::string_view beginning) {
    const auto next = members.lower_bound(beginning);
    return next != members.end() && next->starts_with(beginning);
  };
  for (const FollowedLink& link : follow_links(links, {has, has_any})) {
    EXPECT_EQ(link.member.empty(), !link.problem.empty());
    found.emplace(link.name, link.member.empty() ? link.problem : link.member);
  }
  return found;
}

std::string end_of(const ArchiveLink& link, const Names& members) {
  return followed(std::vector<ArchiveLink>{link}, members)[link.name];
}

TEST(ArchiveLinks, LeadToMembers) {
  const Names members = {"a", "blobs/b", "snapshots/c/d"};
  EXPECT_EQ(end_of({"l", "a"}, members), "a");
  EXPECT_EQ(end_of({"l", "./blobs//b"}, members), "blobs/b");
  EXPECT_EQ(end_of({"snapshots/c/l", "../../blobs/b"}, members), "blobs/b");
  EXPECT_EQ(end_of({"snapshots/l", "c/../c/d"}, members), "snapshots/c/d");
}

TEST(ArchiveLinks, LeadThroughOtherLinks) {
  const Names members = {"blobs/b", "f/c"};
  const auto found = followed({{"x/l", "../folder/m"}, {"folder", "f"}, {"f/m", "../blobs/b"}, {"l", "x/l"}}, members);
  EXPECT_EQ(found.at("x/l"), "blobs/b");
  EXPECT_EQ(found.at("l"), "blobs/b");
  EXPECT_FALSE(found.contains("folder"));  // its members have names of their own
  EXPECT_FALSE(followed({{"l", "f"}, {"f/m", "nowhere"}}, Names()).contains("l"));
}

TEST(ArchiveLinks, LeadNowhere) {
  const Names members = {"a", "f/b"};
  EXPECT_THAT(end_of({"l", "b"}, members),
              HasSubstr("a symbolic link to b, which is not in the archive: pack the directory again"));
  EXPECT_THAT(end_of({"l", "../a"}, members), HasSubstr("a symbolic link to ../a, which is outside of the archive"));
  EXPECT_THAT(end_of({"f/l", "../../f/b"}, members), HasSubstr("outside of the archive"));
  EXPECT_THAT(end_of({"l", "/a"}, members), HasSubstr("outside of the archive"));
  EXPECT_THAT(end_of({"l", ""}, members), HasSubstr("names nothing"));
  EXPECT_THAT(end_of({"l", "a", true}, members), HasSubstr("a hard link to a, which is not before it"));
  EXPECT_THAT(end_of({"l", "l"}, members), HasSubstr("more than 40 links"));
  EXPECT_THAT(end_of({"l", "l/l/l/l"}, members), HasSubstr("more than 40 links"));
  EXPECT_THAT(end_of({"l", std::string(4097, 'a')}, members), HasSubstr("aaa..., which has more than 4096 bytes"));
}

TEST(ArchiveLinks, ChainsAreBounded) {
  std::vector<ArchiveLink> links;
  for (int i = 0; i < 50; ++i) links.push_back({std::to_string(i), std::to_string(i + 1)});
  const auto found = followed(links, Names{"50"});
  EXPECT_EQ(found.at("10"), "50");
  EXPECT_THAT(found.at("9"), HasSubstr("more than 40 links"));
}

TEST(ArchiveLinks, TargetsThatAreNotKnown) {
  const ArchiveLink damaged{"f/a", "", false, "whose target is damaged"};
  EXPECT_THAT(end_of(damaged, Names{"a"}), HasSubstr("a symbolic link, whose target is damaged: pack the directory"));
  EXPECT_THAT(followed({damaged, {"b", "f/a"}}, Names{"a"}).at("b"),
              HasSubstr("to f/a, which leads to a link whose target is not known"));
}

// Each takes a long way in a folder with a long name.
TEST(ArchiveLinks, WorkIsBounded) {
  std::string way;
  for (int i = 0; i < 800; ++i) way += "f/../";
  const std::string folder(60'000, 'f');
  std::vector<ArchiveLink> links;
  for (int i = 0; i < 10; ++i) links.push_back({folder + "/" + std::to_string(i), way + "a"});
  const auto found = followed(links, Names{folder + "/a"});
  EXPECT_EQ(found.at(folder + "/0"), folder + "/a");
  EXPECT_THAT(found.at(folder + "/9"), HasSubstr("too many links with long names"));
}

TEST(ArchiveLinks, PlainNames) {
  EXPECT_EQ(plain_member_name("a/b"), "a/b");
  EXPECT_EQ(plain_member_name("./a//./b"), "a/b");
  EXPECT_EQ(plain_member_name("./a/"), "a/");
  EXPECT_EQ(plain_member_name("./"), "");
  EXPECT_EQ(plain_member_name("..a/.b"), "..a/.b");
}

}  // namespace
}  // namespace poise
