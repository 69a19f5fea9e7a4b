// What a file is, by its first bytes: a name is only a promise. Private to the room.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "stoker/base/status.h"

namespace stoker::feed {

enum class Packing { kFolder, kZip, kTar, kTarGz, kTarBz2, kTarXz, kTarZst, kSevenZip };
const char* name(Packing packing);

// Errors: kNotFound; kBadInput for what is no archive, with what it seems to be (a web page and its title, a Git LFS
// pointer, an empty file); kUnsupported for an archive of another kind; kCorrupt for a broken beginning.
Result<Packing> sniff(const std::filesystem::path& source);

// The part of sniff() that looks at bytes: `head` is the first 64 KiB, `shown` the file's name for messages.
Result<Packing> sniff_bytes(std::string_view head, const std::string& shown);

// True when `block` begins with a tar header whose checksum is right.
bool is_tar_header(std::string_view block);

}  // namespace stoker::feed
