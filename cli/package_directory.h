// Where the Python package lies that belongs to this command.
#pragma once

#include <filesystem>

namespace stoker::cli {

// The folder that holds `stoker/__init__.py`: $STOKER_PYTHON_DIR, else beside this binary as the build tree, an
// installed environment or the package itself has it. "" when none is found.
std::filesystem::path package_directory();

}  // namespace stoker::cli
