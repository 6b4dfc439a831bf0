// Finds models in the cache of the Hugging Face Hub, where its programs have downloaded them.
//
//   models--ORG--NAME/        a repository; also datasets--... and spaces--...
//     blobs/DIGEST            a file, named by its SHA-256 (64 digits), or a small one by git's SHA-1 (40 digits);
//                             DIGEST.incomplete is being downloaded, or was not downloaded to its end
//     refs/main               the commit of a branch
//     snapshots/COMMIT/FILE   a link to a blob: several snapshots share what did not change
//
// These functions never use the network.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace poise {

inline constexpr std::string_view kIncompleteEnding = ".incomplete";

// Returns a variable of the environment; empty if it is not set.
std::string_view read_environment(const char* name);

// Returns HF_HOME, else XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface: the folder of the cache and of the file
// with the user's token. Empty if the environment has none of them.
std::filesystem::path find_hub_home();

// Returns HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else find_hub_home()/hub, as huggingface_hub looks for it. Empty if
// the environment has none of them.
std::filesystem::path find_hub_cache();

// Returns true for the folder of a repository, such as "models--ORG--NAME", with snapshots or blobs.
bool is_hub_repository(const std::filesystem::path& path);
// Returns true for a folder that contains the folder of a repository.
bool is_hub_cache(const std::filesystem::path& path);
// Returns the repository of a folder that is one of its snapshots, or a link to one; empty for other paths.
std::filesystem::path find_snapshot_repository(const std::filesystem::path& path);
// Returns the blob for a file that is a blob, or a link to one; empty for other paths.
std::filesystem::path find_hub_blob(const std::filesystem::path& path);

// Returns "ORG/NAME" for "models--ORG--NAME". Requires: the folder of a repository.
std::string make_repository_name(const std::filesystem::path& repository);

// States which digest the name of a blob is.
enum class HubBlobName { sha256, git_sha1, unknown };
HubBlobName classify_hub_blob_name(std::string_view name);

// Returns `named` if this path exists. Otherwise finds a model in the cache: "ORG/NAME" and "NAME" mean the snapshot of
// its branch main, or its only snapshot; "ORG/NAME/FILE" means a file in it. Returns any other text unchanged. Throws
// not_found for "ORG/NAME" that is neither a path nor in the cache, and for a repository without that snapshot or file;
// the error names the places that were searched.
std::string find_model_path(const std::string& named);

}  // namespace poise
